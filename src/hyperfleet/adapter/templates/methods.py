"""The methods of times: `{{ now.UTC.Format "2006-01-02" }}`. Nothing else in a template has methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hyperfleet.adapter.templates.budget import RenderingFault
from hyperfleet.adapter.templates.values import Value, name_kind
from hyperfleet.documents.wording import suggest
from hyperfleet.expr.temporal.layouts import format_time
from hyperfleet.expr.temporal.times import Time
from hyperfleet.expr.temporal.zones import UTC

_METHODS: Final[Mapping[str, Callable[[Time], Value]]] = {
    "UTC": lambda moment: moment.within(UTC),
    "Unix": lambda moment: moment.unix,
    "UnixMilli": lambda moment: moment.nanoseconds // 1_000_000,
    "Year": lambda moment: moment.date()[0],
    "Day": lambda moment: moment.date()[2],
    "Hour": lambda moment: moment.clock()[0],
    "Minute": lambda moment: moment.clock()[1],
    "Second": lambda moment: moment.clock()[2],
    "YearDay": lambda moment: moment.year_day(),
}


def call_method(moment: Time, name: str, arguments: list[Value]) -> Value:
    """Call a method of a time."""
    if name == "Format":
        return _format(moment, arguments)
    method = _METHODS.get(name)
    if method is None:
        raise RenderingFault(f"a time has no method {name}{suggest(name, ('Format', *_METHODS))}")
    if arguments:
        raise RenderingFault(f"{name} takes no argument")
    return method(moment)


def _format(moment: Time, arguments: list[Value]) -> str:
    if len(arguments) != 1 or not isinstance(arguments[0], str):
        given = name_kind(arguments[0]) if len(arguments) == 1 else f"{len(arguments)} arguments"
        raise RenderingFault(f"Format takes a layout, not {given}")
    return format_time(moment, arguments[0])
