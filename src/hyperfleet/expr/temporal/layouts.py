"""Times as text by example: a layout shows how 2006-01-02 15:04:05.999 -0700 MST would be written.

A layout is cut into elements by one table, which both directions share. Used by `date()` and by `Format`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from hyperfleet.expr.temporal.times import MONTHS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.temporal.times import Time

RFC3339 = "2006-01-02T15:04:05Z07:00"
RFC3339_NANO = "2006-01-02T15:04:05.999999999Z07:00"
RFC822 = "02 Jan 06 15:04 MST"
RFC850 = "Monday, 02-Jan-06 15:04:05 MST"
RFC1123 = "Mon, 02 Jan 2006 15:04:05 MST"
DEFAULT = "2006-01-02 15:04:05.999999999 -0700 MST"


class LayoutElement(NamedTuple):
    """One piece of a layout: literal text, or a `code` that stands for a part of a time."""

    code: str
    text: str


# Longest first where one starts like another. `Jan` and `Mon` stop at a lower-case letter, `.000` at a digit.
_CODES = re.compile(
    r"January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST"
    r"|002|0[1-6]|15|1|2006|2|__2|_2(?!006)|3|4|5|PM|pm"
    r"|[-Z]07(?:0000|:00:00|00|:00)?"
    r"|[.,](?:0+|9+)(?![0-9])"
)
OFFSETS = tuple(sign + digits for sign in "-Z" for digits in ("0700", "07:00", "07", "070000", "07:00:00"))


_LONG = 256  # longer layouts are not cached


def elements(layout: str) -> tuple[LayoutElement, ...]:
    """Cut a layout into its elements."""
    return _known_elements(layout) if len(layout) <= _LONG else _cut(layout)


@lru_cache(maxsize=256)
def _known_elements(layout: str) -> tuple[LayoutElement, ...]:
    return _cut(layout)


def _cut(layout: str) -> tuple[LayoutElement, ...]:
    found: list[LayoutElement] = []
    start = 0
    while match := _CODES.search(layout, start):
        if match.start() > start:
            found.append(LayoutElement("", layout[start : match.start()]))
        found.append(LayoutElement(_code(match.group()), match.group()))
        start = match.end()
    if start < len(layout):
        found.append(LayoutElement("", layout[start:]))
    return tuple(found)


def _code(text: str) -> str:
    """Name an element; fractions share a name, whatever their length."""
    return "fraction" if text[0] in ".," else text


def format_time(moment: Time, layout: str) -> str:
    """Write a time as `layout` shows."""
    parts = _Parts(moment)
    return "".join(_WRITERS[code](parts, text) if code else text for code, text in elements(layout))


class _Parts:
    """What can be written of a time, computed once for a whole layout."""

    __slots__ = ("day", "hour", "minute", "moment", "month", "nanosecond", "offset", "second", "year", "zone")

    def __init__(self, moment: Time) -> None:
        self.moment = moment
        self.year, self.month, self.day = moment.date()
        self.hour, self.minute, self.second = moment.clock()
        self.nanosecond = moment.nanosecond
        self.zone, self.offset = moment.zone.at(moment.unix)


def _year(parts: _Parts, _: str) -> str:
    return f"{parts.year:04d}" if parts.year >= 0 else f"-{-parts.year:04d}"


def _fraction(parts: _Parts, text: str) -> str:
    digits = f"{parts.nanosecond:09d}"[: len(text) - 1].ljust(len(text) - 1, "0")
    if text[1] == "9":
        digits = digits.rstrip("0")
        return text[0] + digits if digits else ""
    return text[0] + digits


def _zone_name(parts: _Parts, _: str) -> str:
    if parts.zone:
        return parts.zone
    sign, minutes = ("-", -parts.offset // 60) if parts.offset < 0 else ("+", parts.offset // 60)
    return f"{sign}{minutes // 60:02d}{minutes % 60:02d}"


def _offset(parts: _Parts, text: str) -> str:
    """Write the offset; the digits and colons of `text` say how much of it."""
    if text[0] == "Z" and parts.offset == 0:
        return "Z"
    sign = "-" if parts.offset < 0 else "+"
    minutes, seconds = divmod(abs(parts.offset), 60)
    colon = ":" if ":" in text else ""
    digits = len(text.replace(":", "")) - 1
    shown = [f"{minutes // 60:02d}", f"{minutes % 60:02d}", f"{seconds:02d}"][: digits // 2]
    return sign + colon.join(shown)


_WRITERS: dict[str, Callable[[_Parts, str], str]] = {
    "2006": _year,
    "06": lambda parts, _: f"{abs(parts.year) % 100:02d}",
    "January": lambda parts, _: MONTHS[parts.month - 1],
    "Jan": lambda parts, _: MONTHS[parts.month - 1][:3],
    "01": lambda parts, _: f"{parts.month:02d}",
    "1": lambda parts, _: str(parts.month),
    "Monday": lambda parts, _: str(parts.moment.weekday()),
    "Mon": lambda parts, _: str(parts.moment.weekday())[:3],
    "02": lambda parts, _: f"{parts.day:02d}",
    "_2": lambda parts, _: f"{parts.day:2d}",
    "2": lambda parts, _: str(parts.day),
    "002": lambda parts, _: f"{parts.moment.year_day():03d}",
    "__2": lambda parts, _: f"{parts.moment.year_day():3d}",
    "15": lambda parts, _: f"{parts.hour:02d}",
    "03": lambda parts, _: f"{parts.hour % 12 or 12:02d}",
    "3": lambda parts, _: str(parts.hour % 12 or 12),
    "04": lambda parts, _: f"{parts.minute:02d}",
    "4": lambda parts, _: str(parts.minute),
    "05": lambda parts, _: f"{parts.second:02d}",
    "5": lambda parts, _: str(parts.second),
    "PM": lambda parts, _: "PM" if parts.hour >= 12 else "AM",
    "pm": lambda parts, _: "pm" if parts.hour >= 12 else "am",
    "MST": _zone_name,
    "fraction": _fraction,
}
_WRITERS.update(dict.fromkeys(OFFSETS, _offset))
