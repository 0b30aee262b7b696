"""Differences as text for a terminal: what is compared, the summary, then one line for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from hyperfleet.api.difference_wire import DifferenceAnswer, Differences, SideAnswer
from hyperfleet.documents.wording import count
from hyperfleet.services.difference import DifferenceKind
from hyperfleet.services.past import write_time

_SHOWN: Final = 60  # characters of a value, and of a path before values no longer stand in a column
_CONTROLS: Final = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}  # those that JSON does not escape itself
_MARKS: Final[Mapping[DifferenceKind, str]] = {"added": "+", "removed": "-", "changed": "~"}


def render(told: Differences, *, with_times: bool) -> str:
    """Write differences; if they are without times, say how many of those there are."""
    return "\n".join(_lines(told, with_times=with_times)) + "\n"


def _lines(told: Differences, *, with_times: bool) -> Iterator[str]:
    yield f"from {_side(told.from_)}"
    yield f"to   {_side(told.to)}"
    yield told.summary
    width = min(max([len(_plain(each.path)) for each in told.items], default=0), _SHOWN)
    for each in told.items:
        yield f"  {_MARKS[each.kind]} {_plain(each.path):{width}}  {_values(each)}"
    if told.truncated:
        yield f"  … and {told.total - len(told.items)} more"
    if told.times_changed and not with_times:
        yield f"  {count(told.times_changed, 'time')} left out; times=true shows them"


def _side(side: SideAnswer) -> str:
    when = write_time(side.time) if isinstance(side.time, datetime) else "now"
    return f"{side.id} {when} (revision {side.revision}, generation {side.generation})"


def _values(difference: DifferenceAnswer) -> str:
    match difference.kind:
        case "added":
            return _value(difference.to)
        case "removed":
            return _value(difference.from_)
        case _:
            return f"{_value(difference.from_)} → {_value(difference.to)}"


def _value(value: Any) -> str:
    text = _write(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _plain(path: str) -> str:
    return _write(path)[1:-1]


def _write(value: Any) -> str:
    """Write a value as JSON that does nothing to a terminal: specs, keys included, may hold anything."""
    return msgspec.json.encode(value).decode().translate(_CONTROLS)
