"""Values on their way into the engine and out of it.

The engine takes None, bool, int64, float, str, bytes, list and dict. Everything else that JSON documents of ours may
hold is converted: tuples, sets, decimals, ids and times. An entry of a map that is None is left out: the engine fails
on `.?name` of null, where cel-go has an absent value.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from hyperfleet.documents.durations import format_duration

if TYPE_CHECKING:
    from cel_expr_python.cel import Value

MAX_DEPTH: Final = 64  # levels; as deep as our documents may be
MAX_VALUES: Final = 200_000  # of one activation; a resource has some hundreds
MAX_CHARACTERS: Final = 4_000_000  # of one activation, in all texts together

_INT64: Final = range(-(2**63), 2**63)


class ValueFault(Exception):  # noqa: N818 - internal: `program` turns it into a failure
    """A value that cannot be passed to an expression, or returned from one; the text is for people."""


class Inward:
    """Converts the values of one activation, within a budget."""

    __slots__ = ("_characters", "_values")

    def __init__(self) -> None:
        """Start with the whole budget."""
        self._values = MAX_VALUES
        self._characters = MAX_CHARACTERS

    def convert(self, value: Any, depth: int = 0) -> Any:
        """Return a value that the engine takes."""
        self._values -= 1
        if self._values < 0 or depth > MAX_DEPTH:
            raise ValueFault("the values are too large, or nested too deeply")
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int):
            return value if value in _INT64 else float_of(value)  # as JSON numbers are in Go
        if isinstance(value, Mapping):
            return {
                self._text(str(key)): self.convert(item, depth + 1) for key, item in value.items() if item is not None
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self.convert(item, depth + 1) for item in value]
        return self._scalar(value)

    def _scalar(self, value: object) -> Any:
        if isinstance(value, bytes | bytearray):
            self._spend(len(value))
            return bytes(value)
        if isinstance(value, Decimal):
            return float_of(value)
        if isinstance(value, datetime):
            return format_time(value)
        if isinstance(value, timedelta):
            return format_duration(value)
        return self._text(value.isoformat() if isinstance(value, date) else str(value))

    def _text(self, text: str) -> str:
        self._spend(len(text))
        return text if text.isascii() else text.encode("utf-8", "replace").decode()

    def _spend(self, characters: int) -> None:
        self._characters -= characters
        if self._characters < 0:
            raise ValueFault("the texts are too long")


def float_of(number: int | Decimal) -> float:
    """Return the nearest float; infinity for what is larger than any."""
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def format_time(time: datetime) -> str:
    """Write a time as JSON documents do; one without a zone is UTC."""
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat().replace("+00:00", "Z")


def read_result(value: Value, depth: int = 0) -> Any:
    """Return the plain value of a result.

    `Value.plain_value` is never used: it ends the process for a map that contains an optional.
    """
    try:
        content = value.value()
    except (TypeError, SystemError):
        raise ValueFault("the result is, or contains, an optional value; end it with .orValue(…)") from None
    if value.type().name() == "ERROR":
        raise ValueFault(str(content))
    if depth > MAX_DEPTH:
        raise ValueFault("the result is nested too deeply")
    if isinstance(content, list):
        return [read_result(item, depth + 1) for item in content]
    if isinstance(content, dict):
        return {key: read_result(item, depth + 1) for key, item in content.items()}
    if isinstance(content, bytearray):
        return bytes(content)
    plain = content is None or isinstance(content, bool | int | float | str | datetime | timedelta)
    return content if plain else str(content.name())  # what is left is a type, as type(1) returns
