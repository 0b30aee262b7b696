"""Durations as Go writes them: 10m, 1h30m, 1.5h, 500ms.

A struct field declared `Duration` is a `timedelta`; the binder reads it with `parse_duration` and the schema
shows it as text with a pattern. The grammar is Go's, the resolution is Python's (a microsecond).
"""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Annotated, Final

from msgspec import Meta

_UNITS: Final = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),  # U+00B5, the micro sign
    "μs": Fraction(1),  # U+03BC, the Greek letter
    "ms": Fraction(1000),
    "s": Fraction(1_000_000),
    "m": Fraction(60_000_000),
    "h": Fraction(3_600_000_000),
}
_NUMBER: Final = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_TERM: Final = rf"{_NUMBER}(?:ns|us|µs|μs|ms|s|m|h)"
_DURATION: Final = re.compile(rf"([-+]?)(0|(?:{_TERM})+)")
_TERMS: Final = re.compile(rf"({_NUMBER})(ns|us|µs|μs|ms|s|m|h)")

# The longest canonical form has 30 characters; more is a mistake, and a long row of digits costs time.
MAX_CHARACTERS: Final = 64
# Go counts nanoseconds in 63 bits: 2562047h47m16.854775807s, a little over 292 years.
MAX_DURATION: Final = timedelta(microseconds=(2**63 - 1) // 1000)

_SECOND: Final = timedelta(seconds=1)

PATTERN: Final = rf"^\+?(?:0|(?:{_TERM})+)$"
EXAMPLES: Final = ("10m", "1h30m", "90s", "500ms")

Duration = Annotated[timedelta, Meta(title="Duration", examples=list(EXAMPLES))]


def parse_duration(text: str, *, allow_negative: bool = False) -> timedelta:
    """Parse a duration such as 1h30m; raise ValueError with a message for people."""
    match = _DURATION.fullmatch(text) if len(text) <= MAX_CHARACTERS else None
    if match is None:
        raise ValueError(_explain(text))
    sign, terms = match.groups()
    if sign == "-" and not allow_negative:
        raise ValueError(f'a duration must not be negative, found "{text}"')
    total = sum(Fraction(number.rstrip(".")) * _UNITS[unit] for number, unit in _TERMS.findall(terms))
    return _to_timedelta(Fraction(total), text) * (-1 if sign == "-" else 1)


def format_duration(duration: timedelta) -> str:
    """Write a duration in its shortest usual form: 10m, 1h30m, 1.5s, 500ms, 0s."""
    microseconds = duration // timedelta(microseconds=1)
    if microseconds < 0:
        return "-" + format_duration(-duration)
    if 0 < microseconds < 1_000_000:
        return f"{_decimal(microseconds, 1000)}ms" if microseconds >= 1000 else f"{microseconds}us"
    hours, rest = divmod(microseconds, 3_600_000_000)
    minutes, rest = divmod(rest, 60_000_000)
    parts = (f"{hours}h" if hours else "", f"{minutes}m" if minutes else "")
    return "".join(parts) + (f"{_decimal(rest, 1_000_000)}s" if rest else "") or "0s"


def short_duration(duration: timedelta) -> str:
    """Write a duration for people, with fractions of a second only below one second."""
    return format_duration(duration if abs(duration) < _SECOND else duration // _SECOND * _SECOND)


def _to_timedelta(microseconds: Fraction, text: str) -> timedelta:
    if microseconds.denominator != 1:
        raise ValueError(f'a duration counts whole microseconds, "{text}" is finer')
    if microseconds > MAX_DURATION // timedelta(microseconds=1):
        raise ValueError(f'a duration is at most about 292 years, "{text}" is longer')
    return timedelta(microseconds=int(microseconds))


def _explain(text: str) -> str:
    """Say why text is no duration, with the likely correction where there is one."""
    if len(text) > MAX_CHARACTERS:
        return f"a duration has at most {MAX_CHARACTERS} characters, found {len(text)}"
    if re.fullmatch(_NUMBER, text):
        return f'a duration needs a unit (ms, s, m or h): "{text}" could be {text}s or {text}m'
    days = re.fullmatch(r"([0-9]+)d", text)
    if days and len(text) < 10:
        return f'a duration has no unit for days: write {int(days[1]) * 24}h for "{text}"'
    return f'expected a duration such as 10m or 1h30m, found "{text}"'


def _decimal(value: int, scale: int) -> str:
    """Write value/scale exactly, without zeros at the end; scale is a power of ten."""
    whole, rest = divmod(value, scale)
    digits = str(rest).rjust(len(str(scale)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
