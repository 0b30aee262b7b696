"""Which rows of the event log and the report log may be forgotten: decided alike for every store. No SQL here.

A store walks through a log from its oldest row on, and comes by each row once, when it is past its time. What it takes
the place of goes then: of a resource's old events stay the last one and the last one with an answer, of an adapter's
old reports at a generation the last one and the one whose words it repeats. So whatever was in force at a moment that
is not past its time can be told, and the present never loses its base. What is left of a resource that is gone goes
with its removal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import takewhile
from typing import Final

from msgspec import Struct

from hyperfleet.backends.past import WalkedLog


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


# How rows of each log become steps: the statements `walk_events` and `walk_reports` select what these take.
STEP_OF: Final[Mapping[WalkedLog, Callable[..., Step]]] = {"events": event_step, "reports": report_step}


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
