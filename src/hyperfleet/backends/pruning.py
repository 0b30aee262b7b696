"""Which rows of the event log and the report log may be deleted: the logic that all stores share. No SQL here.

A store walks a log from its oldest row and visits each row once, when it has expired. The row that it replaces is
deleted then: of a resource's expired events the last one stays, and of an adapter's expired reports at a generation the
last one. So the state at any time within the retention can be read, and the present state is never lost. The rows of a
removed resource are deleted with its removal event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any

from msgspec import Struct

from hyperfleet.backends.past import WalkedLog

Row = Sequence[Any]  # as `walk_events` and `walk_reports` select them


class WalkStep(Struct, frozen=True):
    """A visited row, and the rows that become obsolete when it expires."""

    key: int
    time: datetime
    superfluous: tuple[int | None, ...]
    gone: str | None = None  # the resource whose last event this is


def steps_of(log: WalkedLog, rows: Iterable[Row]) -> Iterator[WalkStep]:
    """Make steps of the rows of `walk_events` or `walk_reports`."""
    return (event_step(*row) if log == "events" else WalkStep(row[0], row[1], (row[2],)) for row in rows)


def event_step(position: int, time: datetime, type_: str, resource_id: str, before: int | None) -> WalkStep:
    """Make a step of an event; `before` is the event of its resource that it replaces."""
    if type_ == "Removed":
        return WalkStep(position, time, (before, position), resource_id)
    return WalkStep(position, time, (before,))


class Walk(Struct, frozen=True):
    """The result of a walk: keys to delete, and the last row visited."""

    victims: tuple[int, ...]
    walked: int


def choose_victims(steps: Iterable[WalkStep], start: int, limit: int) -> Walk:
    """Choose what to delete, up to a limit, from the expired steps of a walk."""
    victims: dict[int, None] = {}
    walked = start
    for step in steps:
        more = [key for key in step.superfluous if key is not None and key not in victims]
        room = limit - len(victims)
        victims |= dict.fromkeys(more[:room])
        if len(more) > room:
            break
        walked = step.key
    return Walk(tuple(victims), walked)


def expired(steps: Iterable[WalkStep], cutoff: datetime) -> list[WalkStep]:
    """Return the steps up to the first row that has not expired."""
    return list(takewhile(lambda step: step.time < cutoff, steps))
