"""The limits that `msgspec.Meta` puts on a value: length, range, pattern.

Only the binder uses this. Each function yields faults: the code and the message of a problem, without place.
"""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, Final, TypeAlias

from hyperfleet.documents.wording import count, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from msgspec import inspect

    from hyperfleet.documents.binding import Fault

    Number: TypeAlias = int | float
    Sized: TypeAlias = (
        inspect.ListType
        | inspect.VarTupleType
        | inspect.SetType
        | inspect.FrozenSetType
        | inspect.DictType
        | inspect.StrType
    )

_BOUNDS: Final[tuple[tuple[str, Callable[[Number, Number], bool], str], ...]] = (
    ("ge", operator.ge, "at least"),
    ("gt", operator.gt, "more than"),
    ("le", operator.le, "at most"),
    ("lt", operator.lt, "less than"),
)


def check_number(info: inspect.IntType | inspect.FloatType, value: Number) -> Iterator[Fault]:
    """Check the range of a number."""
    for name, holds, words in _BOUNDS:
        bound = getattr(info, name)
        if bound is not None and not holds(value, bound):
            yield "OutOfRange", f"expected {words} {bound}, found {value}"
    if info.multiple_of is not None and value % info.multiple_of:
        yield "OutOfRange", f"expected a multiple of {info.multiple_of}, found {value}"


def check_length(info: Sized, length: int, noun: str) -> Iterator[Fault]:
    """Check how many characters, items or keys there are."""
    if info.min_length is not None and length < info.min_length:
        yield "TooShort", f"expected at least {count(info.min_length, noun)}, found {length}"
    if info.max_length is not None and length > info.max_length:
        yield "TooLong", f"expected at most {count(info.max_length, noun)}, found {length}"


def check_text(info: inspect.StrType, text: str, expected: str) -> Iterator[Fault]:
    """Check the length and the pattern of text; `expected` describes what it should be."""
    yield from check_length(info, len(text), "character")
    # To Python `$` also matches before a line end; to JSON Schema only the very end is the end.
    if info.pattern is not None and not re.search(re.sub(r"\$$", r"\\Z", info.pattern), text):
        yield "NotAllowed", f"expected {expected} (pattern {info.pattern}), found the text {quote(text)}"
