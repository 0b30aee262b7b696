"""The methods of times, durations, months, weekdays and zones, as one table for each class.

Looked up by `access` at run time and called directly by generated code where the static type is known.
The checker knows their signatures on its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.runtime.values import Function
from hyperfleet.expr.temporal.durations import (
    HOUR,
    LONGEST,
    MICROSECOND,
    MILLISECOND,
    MINUTE,
    SECOND,
    SHORTEST,
    Duration,
    round_to,
    truncate,
)
from hyperfleet.expr.temporal.layouts import DEFAULT, RFC3339_NANO, format_time
from hyperfleet.expr.temporal.times import Month, Time, Weekday, iso_week, make_time
from hyperfleet.expr.temporal.zones import LOCAL, UTC, Zone
from hyperfleet.expr.types import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT,
    INT,
    LOCATION,
    MONTH,
    STRING,
    TIME,
    WEEKDAY,
    Func,
    Type,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.runtime.values import Value


class Native(NamedTuple):
    """A method of one of our own classes: the function, receiver first, and its signature without it."""

    call: Callable[..., Value]
    signature: Func

    def bind(self, receiver: Value) -> Function:
        """Return the method as a function value."""
        return Function(lambda *arguments: self.call(receiver, *arguments), self.signature)


def _method(call: Callable[..., Value], result: Type, *parameters: Type) -> Native:
    return Native(call, Func(parameters, result))


def _add_date(moment: Time, years: int, months: int, days: int) -> Time:
    year, month, day = moment.date()
    return make_time((year + years, month + months, day + days), moment.clock(), moment.nanosecond, moment.zone)


def _round_time(moment: Time, step: int, *, up: bool) -> Time:
    """Round to a multiple of `step` since the year 1, half up; a step that is not positive changes nothing."""
    if step <= 0:
        return moment
    remainder = (moment.nanoseconds + 62_135_596_800 * SECOND) % step
    return moment.plus(step - remainder if up and remainder * 2 >= step else -remainder)


def _within(moment: Time, zone: Zone | None) -> Time:
    if zone is None:
        raise EvaluationFault("time: missing Location in call to Time.In")
    return moment.within(zone)


def _go_string(moment: Time) -> str:
    """Return the Go expression that makes this time."""
    year, month, day = moment.date()
    hour, minute, second = moment.clock()
    zone = {UTC.name: "time.UTC", LOCAL.name: "time.Local"}.get(
        moment.zone.name, f'time.Location("{moment.zone.name}")'
    )
    numbers = f"{day}, {hour}, {minute}, {second}, {moment.nanosecond}"
    return f"time.Date({year}, time.{Month(month)}, {numbers}, {zone})"


def _append_format(moment: Time, head: bytes, layout: str) -> bytes:
    return bytes(head) + format_time(moment, layout).encode()


def _json(moment: Time) -> bytes:
    return f'"{format_time(moment, RFC3339_NANO)}"'.encode()


def _hours(length: Duration, unit: int) -> float:
    """Divide as the original does: whole units first, so that large durations keep their digits."""
    whole, rest = divmod(abs(int(length)), unit)
    amount = float(whole) + float(rest) / float(unit)
    return -amount if length < 0 else amount


def _whole(length: Duration, unit: int) -> int:
    return -(-int(length) // unit) if length < 0 else int(length) // unit


_TIME: dict[str, Native] = {
    "Add": _method(lambda moment, length: moment.plus(length), TIME, DURATION),
    "AddDate": _method(_add_date, TIME, INT, INT, INT),
    "After": _method(lambda moment, other: moment > other, BOOL, TIME),
    "AppendFormat": _method(_append_format, BYTES, BYTES, STRING),
    "Before": _method(lambda moment, other: moment < other, BOOL, TIME),
    "Clock": _method(lambda moment: moment.clock()[0], INT),
    "Compare": _method(lambda moment, other: (moment > other) - (moment < other), INT, TIME),
    "Date": _method(lambda moment: moment.date()[0], INT),
    "Day": _method(lambda moment: moment.date()[2], INT),
    "Equal": _method(lambda moment, other: moment == other, BOOL, TIME),
    "Format": _method(format_time, STRING, STRING),
    "GoString": _method(_go_string, STRING),
    "Hour": _method(lambda moment: moment.clock()[0], INT),
    "In": _method(_within, TIME, LOCATION),
    "ISOWeek": _method(lambda moment: iso_week(moment)[0], INT),
    "IsDST": _method(lambda moment: moment.zone.is_dst(moment.unix), BOOL),
    "IsZero": _method(lambda moment: moment.nanoseconds == -62_135_596_800 * SECOND, BOOL),
    "Local": _method(lambda moment: moment.within(LOCAL), TIME),
    "Location": _method(lambda moment: moment.zone, LOCATION),
    "MarshalJSON": _method(_json, BYTES),
    "MarshalText": _method(lambda moment: format_time(moment, RFC3339_NANO).encode(), BYTES),
    "Minute": _method(lambda moment: moment.clock()[1], INT),
    "Month": _method(lambda moment: Month(moment.date()[1]), MONTH),
    "Nanosecond": _method(lambda moment: moment.nanosecond, INT),
    "Round": _method(lambda moment, step: _round_time(moment, step, up=True), TIME, DURATION),
    "Second": _method(lambda moment: moment.clock()[2], INT),
    "String": _method(lambda moment: format_time(moment, DEFAULT), STRING),
    "Sub": _method(lambda moment, other: moment.minus(other), DURATION, TIME),
    "Truncate": _method(lambda moment, step: _round_time(moment, step, up=False), TIME, DURATION),
    "UTC": _method(lambda moment: moment.within(UTC), TIME),
    "Unix": _method(lambda moment: moment.unix, INT),
    "UnixMicro": _method(lambda moment: moment.nanoseconds // MICROSECOND, INT),
    "UnixMilli": _method(lambda moment: moment.nanoseconds // MILLISECOND, INT),
    "UnixNano": _method(lambda moment: (moment.nanoseconds + 2**63) % 2**64 - 2**63, INT),
    "Weekday": _method(lambda moment: moment.weekday(), WEEKDAY),
    "Year": _method(lambda moment: moment.date()[0], INT),
    "YearDay": _method(lambda moment: moment.year_day(), INT),
    "Zone": _method(lambda moment: moment.zone.at(moment.unix)[0], STRING),
}

_DURATION: dict[str, Native] = {
    "Abs": _method(lambda length: Duration(LONGEST if length == SHORTEST else abs(length)), DURATION),
    "Hours": _method(lambda length: _hours(length, HOUR), FLOAT),
    "Microseconds": _method(lambda length: _whole(length, MICROSECOND), INT),
    "Milliseconds": _method(lambda length: _whole(length, MILLISECOND), INT),
    "Minutes": _method(lambda length: _hours(length, MINUTE), FLOAT),
    "Nanoseconds": _method(int, INT),
    "Round": _method(lambda length, step: Duration(round_to(length, step)), DURATION, DURATION),
    "Seconds": _method(lambda length: _hours(length, SECOND), FLOAT),
    "String": _method(str, STRING),
    "Truncate": _method(lambda length, step: Duration(truncate(length, step)), DURATION, DURATION),
}

METHODS: dict[type, dict[str, Native]] = {
    Time: _TIME,
    Duration: _DURATION,
    Month: {"String": _method(str, STRING)},
    Weekday: {"String": _method(str, STRING)},
    Zone: {"String": _method(lambda zone: zone.name, STRING)},
}
