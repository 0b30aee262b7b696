"""Reading times: text and a layout give an instant, or a fault that quotes the place where they part.

Called by `date()`. The counterpart, writing, is in `layouts`, and so is how a layout is cut.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.temporal.durations import SECOND, quoted
from hyperfleet.expr.temporal.layouts import OFFSETS, elements
from hyperfleet.expr.temporal.times import (
    MONTHS,
    WEEKDAYS,
    Time,
    civil_from_days,
    days_from_civil,
    days_in_month,
    make_time,
)
from hyperfleet.expr.temporal.zones import LOCAL, UTC, Zone, fixed_zone

if TYPE_CHECKING:
    from collections.abc import Callable


class _Mismatch(Exception):  # noqa: N818 - a signal between the functions of this module
    """The text is not what the current element wants; `args[0]` tells if it is merely out of range."""


class _Reading:
    """What was read so far; None is what the text did not say."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.next_code = ""
        self.year = 0
        self.month: int | None = None
        self.day: int | None = None
        self.year_day: int | None = None
        self.hour = self.minute = self.second = self.nanosecond = 0
        self.half: str = ""
        self.zone: Zone | None = None
        self.zone_name = ""
        self.offset: int | None = None

    @property
    def rest(self) -> str:
        """Return what is still to be read, for error texts: a copy, so not for reading."""
        return self.text[self.at :]

    def peek(self, length: int = 1) -> str:
        """Return the next characters, as many as there are."""
        return self.text[self.at : self.at + length]

    def measure(self, pattern: str) -> int:
        """Return how many of the next characters a pattern matches."""
        match = re.compile(pattern).match(self.text, self.at)
        return match.end() - self.at if match is not None else 0

    def take(self, length: int) -> str:
        """Read `length` characters."""
        taken = self.peek(length)
        if len(taken) < length:
            raise _Mismatch("")
        self.at += length
        return taken

    def skip_blanks(self) -> None:
        """Pass over a run of blanks."""
        self.at += self.measure(" *")

    def number(self, *, fixed: bool, digits: int = 2) -> int:
        """Read a number of at most `digits` digits, or of exactly so many."""
        length = self.measure(rf"[0-9]{{1,{digits}}}")
        if not length or (fixed and length != digits):
            raise _Mismatch("")
        return int(self.take(length))

    def ranged(self, name: str, low: int, high: int, *, fixed: bool) -> int:
        """Read a number that must lie within a range."""
        value = self.number(fixed=fixed)
        if not low <= value <= high:
            raise _Mismatch(f": {name} out of range")
        return value

    def name(self, names: tuple[str, ...], length: int | None = None) -> int:
        """Read one of `names` (of their first `length` letters) and return its place."""
        for place, name in enumerate(names):
            wanted = name[:length]
            if self.peek(len(wanted)).lower() == wanted.lower():
                self.take(len(wanted))
                return place
        raise _Mismatch("")

    def fraction(self, length: int) -> None:
        """Read a fraction of a second, `length` characters with its point."""
        text = self.take(length)[:10]
        if text[0] not in ".," or not re.fullmatch(r"[0-9]+", text[1:]):
            raise _Mismatch("")
        self.nanosecond = int(text[1:].ljust(9, "0"))


def parse_time(text: str, layout: str, zone: Zone | None = None) -> Time:
    """Read a time; one that names no zone is in `zone`, or else in UTC."""
    reading = _Reading(text)
    cut = elements(layout)
    codes = [code for code, _ in cut if code]
    following = iter([*codes[1:], ""])
    for code, shown in cut:
        before = reading.at
        try:
            if code:
                reading.next_code = next(following)
                _READERS[code](reading, shown)
            else:
                _skip(reading, shown)
        except _Mismatch as mismatch:
            place = text[before:] if code else reading.rest
            raise _failure(text, layout, place, shown, str(mismatch)) from None
    if reading.at < len(text):
        raise _failure(text, layout, reading.rest, "", f": extra text: {quoted(reading.rest)}")
    return _assemble(reading, text, zone)


def _failure(text: str, layout: str, place: str, shown: str, message: str) -> EvaluationFault:
    if message:
        return EvaluationFault(f"parsing time {quoted(text)}{message}")
    wanted = f"cannot parse {quoted(place)} as {quoted(shown)}"
    return EvaluationFault(f"parsing time {quoted(text)} as {quoted(layout)}: {wanted}")


def _skip(reading: _Reading, literal: str) -> None:
    """Pass over literal text; a run of blanks matches any run, also none at the end."""
    for run in re.findall(" +|[^ ]", literal):
        if reading.peek() != run[0] and not (run[0] == " " and not reading.peek()):
            raise _Mismatch("")
        if run[0] == " ":
            reading.skip_blanks()
        else:
            reading.take(1)


def _read_year(reading: _Reading, _: str) -> None:
    reading.year = reading.number(fixed=True, digits=4)


def _read_short_year(reading: _Reading, _: str) -> None:
    year = reading.number(fixed=True)
    # A window of a hundred years that begins where 1970-01-01 UTC was the day before: west of Greenwich.
    reading.year = year + (1900 if year >= 69 else 2000)


def _read_month(reading: _Reading, shown: str) -> None:
    reading.month = reading.ranged("month", 1, 12, fixed=shown == "01")


def _read_month_name(reading: _Reading, shown: str) -> None:
    reading.month = reading.name(MONTHS, None if shown == "January" else 3) + 1


def _read_weekday(reading: _Reading, shown: str) -> None:
    reading.name(WEEKDAYS, None if shown == "Monday" else 3)


def _read_day(reading: _Reading, shown: str) -> None:
    if shown == "_2" and reading.peek() == " ":
        reading.take(1)
    reading.day = reading.number(fixed=shown == "02")


def _read_year_day(reading: _Reading, shown: str) -> None:
    for _ in range(2):
        if shown == "__2" and reading.peek() == " ":
            reading.take(1)
    reading.year_day = reading.number(fixed=shown == "002", digits=3)


def _read_hour(reading: _Reading, shown: str) -> None:
    reading.hour = reading.ranged("hour", 0, 23 if shown == "15" else 12, fixed=shown == "03")


def _read_minute(reading: _Reading, shown: str) -> None:
    reading.minute = reading.ranged("minute", 0, 59, fixed=shown == "04")


def _read_second(reading: _Reading, shown: str) -> None:
    reading.second = reading.ranged("second", 0, 59, fixed=shown == "05")
    if reading.next_code != "fraction":  # allowed even if the layout shows none
        _read_any_fraction(reading)


def _read_fraction(reading: _Reading, shown: str) -> None:
    if shown[1] == "0":
        reading.fraction(len(shown))
    else:
        _read_any_fraction(reading)


def _read_any_fraction(reading: _Reading) -> None:
    if length := reading.measure("[.,][0-9]+"):
        reading.fraction(length)


def _read_half(reading: _Reading, shown: str) -> None:
    half = reading.take(2)
    if half not in (("AM", "PM") if shown == "PM" else ("am", "pm")):
        raise _Mismatch("")
    reading.half = half.upper()


def _read_offset(reading: _Reading, shown: str) -> None:
    """Read `+07:00` and its variants; with `Z…` also the letter alone."""
    if shown[0] == "Z" and reading.peek() == "Z":
        reading.take(1)
        reading.zone = UTC
        return
    text = reading.take(len(shown))
    colon = ":" if ":" in shown else ""
    match = re.fullmatch(r"(.)" + colon.join([r"([0-9]{2})"] * (len(shown.replace(":", "")) // 2)), text)
    if match is None:
        raise _Mismatch("")
    # One more than clocks show is let through, as in the original.
    parts = [int(part) for part in match.groups()[1:]] + [0, 0]
    for value, name, limit in zip(parts, ("hour", "minute", "second"), (24, 60, 60), strict=False):
        if value > limit:
            raise _Mismatch(f": time zone offset {name} out of range")
    if match[1] not in "+-":
        raise _Mismatch("")
    seconds = parts[0] * 3600 + parts[1] * 60 + parts[2]
    reading.offset = -seconds if match[1] == "-" else seconds


# Three letters; four or five must end in T, except for one zone; GMT may carry an offset; `+03` is a name too.
_ZONE_NAME = r"ChST|MeST|GMT[+-](?:[01]?[0-9]|2[0-3])(?![0-9])|GMT|[+-](?:[01]?[0-9]|2[0-3])(?![0-9])|[A-Z]{3,6}"


def _read_zone(reading: _Reading, _: str) -> None:
    if reading.peek(3) == "UTC":
        reading.take(3)
        reading.zone = UTC
        return
    name = reading.peek(reading.measure(_ZONE_NAME))
    if not name:
        raise _Mismatch("")
    odd = len(name) == 6 or (len(name) > 3 and name[-1] != "T" and name != "WITA")
    if name.isalpha() and name not in ("ChST", "MeST") and odd:
        raise _Mismatch("")
    reading.zone_name = reading.take(len(name))


_READERS: dict[str, Callable[[_Reading, str], None]] = {
    "2006": _read_year,
    "06": _read_short_year,
    "January": _read_month_name,
    "Jan": _read_month_name,
    "01": _read_month,
    "1": _read_month,
    "Monday": _read_weekday,
    "Mon": _read_weekday,
    "02": _read_day,
    "_2": _read_day,
    "2": _read_day,
    "002": _read_year_day,
    "__2": _read_year_day,
    "15": _read_hour,
    "03": _read_hour,
    "3": _read_hour,
    "04": _read_minute,
    "4": _read_minute,
    "05": _read_second,
    "5": _read_second,
    "PM": _read_half,
    "pm": _read_half,
    "MST": _read_zone,
    "fraction": _read_fraction,
}
_READERS.update(dict.fromkeys(OFFSETS, _read_offset))


def _assemble(reading: _Reading, text: str, zone: Zone | None) -> Time:
    """Put what was read together, once it is complete."""
    if reading.half == "PM" and reading.hour < 12:
        reading.hour += 12
    elif reading.half == "AM" and reading.hour == 12:
        reading.hour = 0
    date = _date(reading, text)
    clock = (reading.hour, reading.minute, reading.second)
    if reading.zone is not None:
        return make_time(date, clock, reading.nanosecond, reading.zone)
    local = zone or LOCAL
    bare = make_time(date, clock, reading.nanosecond, UTC)
    if reading.offset is not None:
        return _with_offset(bare, reading.offset, reading.zone_name, local)
    if reading.zone_name:
        return _with_name(bare, reading.zone_name, local)
    return make_time(date, clock, reading.nanosecond, zone or UTC)


def _date(reading: _Reading, text: str) -> tuple[int, int, int]:
    """Return the date that was read, checked against the calendar."""
    year, month, day = reading.year, reading.month, reading.day
    if reading.year_day is not None:
        length = 366 if days_in_month(year, 2) == 29 else 365
        if not 1 <= reading.year_day <= length:
            raise EvaluationFault(f"parsing time {quoted(text)}: day-of-year out of range")
        _, found_month, found_day = civil_from_days(days_from_civil(year, 1, 1) + reading.year_day - 1)
        if month not in (None, found_month):
            raise EvaluationFault(f"parsing time {quoted(text)}: day-of-year does not match month")
        if day not in (None, found_day):
            raise EvaluationFault(f"parsing time {quoted(text)}: day-of-year does not match day")
        return year, found_month, found_day
    month = 1 if month is None else month
    day = 1 if day is None else day
    if not 1 <= day <= days_in_month(year, month):
        raise EvaluationFault(f"parsing time {quoted(text)}: day out of range")
    return year, month, day


def _with_offset(bare: Time, offset: int, name: str, local: Zone) -> Time:
    """Return a wall time at a given offset: in the local zone if that fits, else in one made for it."""
    moment = bare.plus(-offset * SECOND)
    shown, actual = local.at(moment.unix)
    if actual == offset and name in ("", shown):
        return moment.within(local)
    return moment.within(fixed_zone(name, offset))


def _with_name(bare: Time, name: str, local: Zone) -> Time:
    """Return a wall time in a zone known by its abbreviation: the local one if it ever has it, else an invented one."""
    half_year = 182 * 86_400
    for near in (0, half_year, -half_year):
        shown, offset = local.at(bare.unix + near)
        if shown == name:
            return bare.plus(-offset * SECOND).within(local)
    hours = int(name[3:]) if name.startswith("GMT") and len(name) > 3 else 0
    return bare.within(fixed_zone(name, hours * 3600))
