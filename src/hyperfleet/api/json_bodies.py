"""Parses the JSON of a body within limits, and refuses what must not be stored.

The work on a body is bounded before it is done: its values are counted while it is still bytes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sized
from itertools import islice
from typing import Final, ParamSpec, TypeVar

import msgspec

from hyperfleet.aggregation import BodyProblem
from hyperfleet.api.context import RequestLimits
from hyperfleet.api.problems import MAX_ERRORS, Problem, Refused, from_body
from hyperfleet.documents import pointer
from hyperfleet.documents.json_keys import find_repeated_keys, may_repeat_keys
from hyperfleet.documents.wording import quote

P = ParamSpec("P")
T = TypeVar("T")

MAX_TEXT: Final = (
    64 * 1024
)  # characters of a text in a report: it is searched for secrets, at about a megabyte a second

_LARGE: Final = 64 * 1024  # bytes of a body that is worked on in a thread
_INTEGERS: Final = range(-(2**63), 2**64)  # what JSON libraries of other languages can represent
_SIMPLIFY: Final = bytes.maketrans(b"123456789[", b"000000000{")  # any digit is 0, any opening bracket {
_LONG_NUMBER: Final = b"0" * 19
_TEXT: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)  # matches wherever it begins, so in linear time
_TRUNCATED: Final = "Input data was truncated"  # these two are texts of the decoder
_MALFORMED: Final = "JSON is malformed: "
# Paths below which any value is allowed; elsewhere, a string would be invalid as well.
_FREE: Final = re.compile(r"(?:/(?:adapterStatuses|adapter_statuses|reports)/\d+)?/(?:spec|data|metadata)/")


def parse_json(raw: bytes, limits: RequestLimits) -> object:
    """Parse JSON; refuse what cannot be stored, is nested too deeply or has too many values."""
    require_values(count_values(raw, limits.values), limits.values)
    body, errors = read_json_value(raw, limits)
    if errors:
        raise Refused(from_body(errors))
    return body


async def work_on(raw: Sized, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do work on a body: on a large one in a thread, so that other requests run meanwhile."""
    return work(*args, **kwargs) if len(raw) <= _LARGE else await asyncio.to_thread(work, *args, **kwargs)


def find_long_texts(value: object, at: str) -> Iterator[BodyProblem]:
    """Find texts that are too long for a report."""
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            message = f"a text of {len(value)} characters; a report may have texts of up to {MAX_TEXT}"
            yield BodyProblem(at, "TooLong", message)
    elif isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(key, str) and len(key) > MAX_TEXT:
                yield BodyProblem(at, "TooLong", f"a key of {len(key)} characters; at most {MAX_TEXT} are allowed")
            elif isinstance(child, str | dict | list):
                yield from find_long_texts(child, pointer.join(at, key))


def read_json_value(raw: bytes, limits: RequestLimits, at: str = "") -> tuple[object, tuple[BodyProblem, ...]]:
    """Parse JSON of so many values as the limits allow; return it, or its errors. `at`: its place in a larger body."""
    try:
        body = msgspec.json.decode(raw)
        return body, tuple(islice(_find_errors(raw, body, at, limits), MAX_ERRORS + 1))
    except RecursionError:
        return None, (_too_deep(at, limits),)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        text = _describe_json_error(error) if raw else "the body is empty; send JSON"
        return None, (BodyProblem(at, "MalformedJson", text),)


def count_values(raw: bytes, most: int) -> int:
    """Count the values of JSON, roughly: each but the first follows a comma or an opening bracket.

    Texts may have commas too, so they are left out if there seem to be too many.
    """
    if (found := _count(raw)) <= most:
        return found
    return _count(_TEXT.sub(b"", raw))


def _count(raw: bytes) -> int:
    return 1 + raw.count(b",") + raw.count(b"{") + raw.count(b"[")


def is_small(raw: bytes, most: int) -> bool:
    """Return cheaply whether JSON has at most so many values; false if it may have more."""
    return len(raw) <= most or _count(raw) <= most


def require_values(found: int, most: int) -> None:
    """Refuse a body with too many values."""
    if found > most:
        raise Refused(Problem("BodyTooLarge", f"the body has more than {most} values, keys aside"))


def is_suspicious(raw: bytes, depth: int) -> bool:
    """Return cheaply whether a body may contain what `_find_unstorable` finds; most cannot."""
    has_nul = b"\\" in raw and b"\\u0000" in raw  # searching one byte is four times as fast as six
    simple = raw.translate(_SIMPLIFY)
    opened = len(simple.split(b"{", depth + 1)) - 1  # twice as fast as `count`
    return opened > depth or has_nul or _LONG_NUMBER in simple


def _find_errors(raw: bytes, body: object, at: str, limits: RequestLimits) -> Iterator[BodyProblem]:
    found = False
    if is_suspicious(raw, limits.depth):
        for error in _find_unstorable(body, at, limits):
            found = True
            yield error
    if not found and may_repeat_keys(raw, body):
        for place, key in find_repeated_keys(raw, at):
            yield BodyProblem(place, "DuplicateKey", f"the key {quote(key)} is given more than once")


def _describe_json_error(error: Exception) -> str:
    """Describe why a body is not JSON."""
    text = str(error)
    if isinstance(error, UnicodeDecodeError):
        return "the body is not JSON: a string in it is not UTF-8"
    if isinstance(error, msgspec.ValidationError):
        return "the body has a number that is too large for a 64-bit float"
    if text == _TRUNCATED:
        return "the body is not JSON: it ends too early, or inside a surrogate pair"
    return f"the body is not JSON: {text.removeprefix(_MALFORMED)}"


def _find_unstorable(value: object, at: str, limits: RequestLimits, depth: int = 0) -> Iterator[BodyProblem]:
    """Find valid JSON that must not be stored: deep nesting, NUL, integers that other programs cannot represent."""
    if isinstance(value, dict | list):
        if depth == limits.depth:
            yield _too_deep(at, limits)
            return
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(key, str) and "\0" in key:
                yield BodyProblem(at, "BadFormat", "a key contains NUL (\\u0000)")
            else:
                yield from _find_unstorable(child, pointer.join(at, key), limits, depth + 1)
    elif isinstance(value, str) and "\0" in value:
        yield BodyProblem(at, "BadFormat", "the text contains NUL (\\u0000)")
    elif isinstance(value, int) and value not in _INTEGERS:
        advice = "; send it as a string" if _FREE.match(at) else ""
        yield BodyProblem(at, "OutOfRange", f"an integer of more than 64 bits{advice}")


def _too_deep(at: str, limits: RequestLimits) -> BodyProblem:
    return BodyProblem(at, "TooDeep", f"nested too deeply; at most {limits.depth} levels are allowed")
