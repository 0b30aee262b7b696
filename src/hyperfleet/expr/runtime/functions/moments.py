"""The functions on times: `date`, `duration`, `timezone`. (`now` asks the caller's clock: see `program`.)"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.runtime.budget import read
from hyperfleet.expr.runtime.values import as_string
from hyperfleet.expr.temporal.dates import parse_time
from hyperfleet.expr.temporal.durations import parse_duration
from hyperfleet.expr.temporal.layouts import RFC822, RFC850, RFC1123, RFC3339
from hyperfleet.expr.temporal.zones import Zone, load_zone

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.runtime.values import Value
    from hyperfleet.expr.temporal.durations import Duration
    from hyperfleet.expr.temporal.times import Time

# Tried in this order when no layout is given.
_LAYOUTS = ("2006-01-02", "15:04:05", "2006-01-02 15:04:05", RFC3339, RFC822, RFC850, RFC1123)


def date(budget: Budget, *arguments: Value) -> Time:
    """Read a time: `date([zone,] text [, layout [, zone name]])`."""
    zone = arguments[0] if isinstance(arguments[0], Zone) else None
    rest = [as_string(argument) for argument in (arguments[1:] if zone else arguments)]
    if not rest:
        raise EvaluationFault("runtime error: index out of range [0] with length 0")
    read(budget, sum(map(len, rest)))
    if len(rest) == 3:
        return parse_time(rest[0], rest[1], load_zone(rest[2]))
    if len(rest) == 2:
        return parse_time(rest[0], rest[1], zone)
    for layout in _LAYOUTS:
        try:
            return parse_time(rest[0], layout, zone)
        except EvaluationFault:
            read(budget, len(rest[0]))
    raise EvaluationFault(f"invalid date {rest[0]}")


def duration(budget: Budget, text: Value) -> Duration:
    """Read a duration such as `1h30m`."""
    given = as_string(text)
    read(budget, len(given))
    return parse_duration(given)


def timezone(budget: Budget, name: Value) -> Zone:
    """Return a zone by its name in the IANA database."""
    given = as_string(name)
    read(budget, len(given))
    return load_zone(given)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "date": date,
    "duration": duration,
    "timezone": timezone,
}
