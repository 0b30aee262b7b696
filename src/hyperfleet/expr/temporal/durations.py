"""Lengths of time in nanoseconds, with the original's spelling (`1h30m0s`, `1.5ms`).

Used by the time functions and wherever a `timedelta` comes in. Knows nothing of clocks or calendars.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hyperfleet.expr.faults import EvaluationFault

if TYPE_CHECKING:
    from datetime import timedelta

NANOSECOND = 1
MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

LONGEST = 2**63 - 1
SHORTEST = -(2**63)


class Duration(int):
    """A length of time in nanoseconds. Its own class, so that arithmetic can tell it from a number."""

    __slots__ = ()

    @classmethod
    def from_timedelta(cls, delta: timedelta) -> Duration:
        """Return a host's duration; what an int64 of nanoseconds cannot hold is cut off."""
        microseconds = (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
        return cls(min(max(microseconds * MICROSECOND, SHORTEST), LONGEST))

    def __str__(self) -> str:
        """Return the spelling that `duration()` reads."""
        return format_duration(int(self))


_UNITS = {
    "ns": NANOSECOND,
    "us": MICROSECOND,
    "µs": MICROSECOND,  # the micro sign …
    "μs": MICROSECOND,  # … and the Greek letter
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}

_PART = re.compile(r"(?P<whole>[0-9]*)(?P<point>\.?)(?P<fraction>[0-9]*)(?P<unit>[^0-9.]*)")


def parse_duration(text: str) -> Duration:
    """Read a duration such as `-1h30m` or `1.5s`."""
    place = 1 if text[:1] in ("-", "+") else 0
    if text[place : place + 2] == "0":
        return Duration(0)
    if place == len(text):
        raise EvaluationFault(f"time: invalid duration {quoted(text)}")
    total = 0
    while place < len(text):
        amount, place = _read_part(text, place)
        total += amount
        if total > 2**63:
            raise EvaluationFault(f"time: invalid duration {quoted(text)}")
    if text[0] == "-":
        return Duration(-total)
    if total > LONGEST:
        raise EvaluationFault(f"time: invalid duration {quoted(text)}")
    return Duration(total)


def _read_part(text: str, place: int) -> tuple[int, int]:
    """Read one number with its unit; return its nanoseconds and the place behind it."""
    part = _PART.match(text, place)
    if part is None or not (part["whole"] or part["fraction"]):
        raise EvaluationFault(f"time: invalid duration {quoted(text)}")
    if not part["unit"]:
        raise EvaluationFault(f"time: missing unit in duration {quoted(text)}")
    unit = _UNITS.get(part["unit"])
    if unit is None:
        raise EvaluationFault(f"time: unknown unit {quoted(part['unit'])} in duration {quoted(text)}")
    nanoseconds = _whole(part["whole"]) * unit
    if part["fraction"]:
        # Digits beyond an int64 are dropped, then the product is cut: as the original rounds.
        digits = part["fraction"][:18]
        nanoseconds += int(float(int(digits)) * (float(unit) / 10.0 ** len(digits)))
    return nanoseconds, part.end()


def _whole(digits: str) -> int:
    """Read a whole number; of one that no duration can hold, only that it is too large."""
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) < 40 else 2**64


def quoted(text: str) -> str:
    """Quote a text as faults of times and durations do: what is not plain ASCII, byte by byte."""
    shown = "".join(char if " " <= char < "\x7f" and char not in '"\\' else _escaped(char) for char in text)
    return f'"{shown}"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))


def format_duration(nanoseconds: int) -> str:
    """Spell a duration with the largest units that fit."""
    sign = "-" if nanoseconds < 0 else ""
    amount = abs(nanoseconds)
    if amount == 0:
        return "0s"
    if amount < SECOND:
        return sign + _format_short(amount)
    hours, amount = divmod(amount, HOUR)
    minutes, amount = divmod(amount, MINUTE)
    seconds = _decimal(amount, SECOND) + "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else sign + seconds


def _format_short(amount: int) -> str:
    """Spell less than a second in the unit that leaves a digit before the point."""
    if amount < MICROSECOND:
        return f"{amount}ns"
    if amount < MILLISECOND:
        return _decimal(amount, MICROSECOND) + "µs"
    return _decimal(amount, MILLISECOND) + "ms"


def _decimal(amount: int, unit: int) -> str:
    """Write `amount / unit` exactly, without trailing zeros."""
    whole, fraction = divmod(amount, unit)
    if not fraction:
        return str(whole)
    digits = str(fraction).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"


def truncate(nanoseconds: int, step: int) -> int:
    """Cut towards zero to a multiple of `step`; a step that is not positive changes nothing."""
    if step <= 0:
        return nanoseconds
    remainder = abs(nanoseconds) % step
    return nanoseconds + remainder if nanoseconds < 0 else nanoseconds - remainder


def round_to(nanoseconds: int, step: int) -> int:
    """Round half away from zero to a multiple of `step`, staying within an int64."""
    if step <= 0:
        return nanoseconds
    remainder = abs(nanoseconds) % step
    size = abs(nanoseconds) - remainder + (step if remainder * 2 >= step else 0)
    return max(-size, SHORTEST) if nanoseconds < 0 else min(size, LONGEST)
