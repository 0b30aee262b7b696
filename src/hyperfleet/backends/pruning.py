"""Which rows of the event log and the report log may be forgotten: decided alike for every store. No SQL here.

A store walks through a log from its oldest row on and passes each row once, when it is past its time. What that row
replaces goes then: of a resource's old events the last one stays, of an adapter's old reports at a generation the last
one. So what was in force at any moment that is not past its time can be read, and the present never loses its base.
What is left of a removed resource goes with its removal.
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
    """A row that a walk passed, and those that need not be kept once it is past its time."""

    key: int
    time: datetime
    superfluous: tuple[int | None, ...]
    gone: str | None = None  # the resource of which it is the last event


def steps_of(log: WalkedLog, rows: Iterable[Row]) -> Iterator[WalkStep]:
    """Make steps of what the statement that walks through a log selects."""
    return (event_step(*row) if log == "events" else WalkStep(row[0], row[1], (row[2],)) for row in rows)


def event_step(position: int, time: datetime, type_: str, resource_id: str, before: int | None) -> WalkStep:
    """Make a step of an event; `before` is the event of its resource that it replaces."""
    if type_ == "Removed":
        return WalkStep(position, time, (before, position), resource_id)
    return WalkStep(position, time, (before,))


class Walk(Struct, frozen=True):
    """The result of a walk: keys to delete, and the last row that is done with."""

    victims: tuple[int, ...]
    walked: int


def choose_victims(steps: Iterable[WalkStep], start: int, limit: int) -> Walk:
    """Decide what goes, up to a limit, from the steps of a walk that are past their time."""
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
    """Return the steps up to the first row that is not past its time."""
    return list(takewhile(lambda step: step.time < cutoff, steps))
