"""Which rows of the event log and the report log may be forgotten: decided alike for every store. No SQL here.

A store walks through a log from its oldest row on, and comes by each row once, when it is past its time. What it takes
the place of goes then: of a resource's old events stay the last one and the last one with an answer, of an adapter's
old reports at a generation the last one and the one whose words it repeats. So whatever was in force at a moment that
is not past its time can be told, and the present never loses its base. What is left of a resource that is gone goes
with its removal.

Heartbeats that stand among the events alone are events and reports at once. They go with the reports, but not before
the walk through the events has come by them; and not one by one: those before a milestone go with it, for it says when
each adapter was heard last, and what comes after it leads back to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby, takewhile
from typing import Any

from msgspec import Struct

from hyperfleet.backends.past import WalkedLog

Row = Sequence[Any]  # a key, its time, and what the log is walked for


class Step(Struct, frozen=True):
    """A row that a walk came by, and those that need not be kept once it is past its time; itself comes last."""

    key: int
    time: datetime
    superfluous: tuple[int | None, ...]
    gone: str | None = None  # the resource of which it is the last event


def event_step(position: int, time: datetime, type_: str, resource_id: str, *before: int | None) -> Step:
    """Make a step of an event; `before` are the earlier ones of its resource that it takes the place of."""
    if type_ == "Removed":
        return Step(position, time, (*before, position), resource_id)
    return Step(position, time, before)


def report_step(sequence: int, time: datetime, *before: int | None) -> Step:
    """Make a step of a report; `before` are the earlier ones of its adapter that it takes the place of."""
    return Step(sequence, time, before)


def beat_steps(rows: Iterable[Row]) -> Iterator[Step]:
    """Make steps of rows that tell, of each event, one of those that go with it, in the order of both."""
    for (position, time), some in groupby(rows, key=lambda row: row[:2]):
        yield Step(position, time, tuple(before for _, _, before in some))


def steps_of(log: WalkedLog, rows: Iterable[Row]) -> Iterator[Step]:
    """Make steps of what the statement that walks through a log selects."""
    match log:
        case "events":
            return (event_step(*row) for row in rows)
        case "reports":
            return (report_step(*row) for row in rows)
        case "beats":
            return beat_steps(rows)


class Walk(Struct, frozen=True):
    """What a walk found: keys to delete, and the last row that is done with."""

    victims: tuple[int, ...]
    walked: int


def choose_victims(steps: Iterable[Step], start: int, limit: int) -> Walk:
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


def expired(steps: Iterable[Step], cutoff: datetime) -> list[Step]:
    """Return the steps up to the first row that is not past its time."""
    return list(takewhile(lambda step: step.time < cutoff, steps))


def forgotten_until(log: WalkedLog, steps: Sequence[Step], cutoff: datetime) -> datetime:
    """Return before which moments something may be missing once what goes with these steps is gone.

    Heartbeats are past their time as reports and as events, so those that are walked by can be older than `cutoff`.
    """
    return max(step.time for step in steps) if log == "beats" else cutoff
