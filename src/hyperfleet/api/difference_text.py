"""Differences as text for a terminal: what is compared, the summary, then one line per difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from hyperfleet.api.difference_wire import DifferenceAnswer, Differences, SideAnswer
from hyperfleet.documents.wording import count
from hyperfleet.services.difference import DifferenceKind
from hyperfleet.services.past import write_time

_MAX_WIDTH: Final = 60  # characters of a value, and of the path column: both fit into a line of 120
_CONTROLS: Final = {
    code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)
}  # control characters that JSON does not escape
_MARKS: Final[Mapping[DifferenceKind, str]] = {"added": "+", "removed": "-", "changed": "~"}


def render(differences: Differences, *, with_times: bool) -> str:
    """Write differences; if times are left out, write how many."""
    return "\n".join(_lines(differences, with_times=with_times)) + "\n"


def _lines(differences: Differences, *, with_times: bool) -> Iterator[str]:
    yield f"from {_side(differences.from_)}"
    yield f"to   {_side(differences.to)}"
    yield differences.summary
    width = min(max([len(_plain(each.path)) for each in differences.items], default=0), _MAX_WIDTH)
    for each in differences.items:
        yield f"  {_MARKS[each.kind]} {_plain(each.path):{width}}  {_values(each)}"
    if differences.truncated:
        yield f"  … and {differences.total - len(differences.items)} more"
    if differences.times_changed and not with_times:
        yield f"  {count(differences.times_changed, 'time')} left out; times=true shows them"


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
    return text if len(text) <= _MAX_WIDTH else f"{text[: _MAX_WIDTH - 1]}…"


def _plain(path: str) -> str:
    return _write(path)[1:-1]


def _write(value: Any) -> str:
    """Write a value as JSON without control characters: keys and values of a spec may contain terminal escapes."""
    return msgspec.json.encode(value).decode().translate(_CONTROLS)
