"""Giving the demo fleet a past: its first hour is written into the database before the server opens it.

Only `demo` calls this. The whole server runs in this process without sockets, on a manual clock, so that everything has
the time it would have had, including what deadlines cause.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

import httpx

from hyperfleet.bootstrap import System
from hyperfleet.client import AsyncFleet
from hyperfleet.ports import StatusCause
from hyperfleet.services.upkeep import recompute_all
from hyperfleet.settings import Settings
from hyperfleet.simulator.actions import PlanStep
from hyperfleet.simulator.lane import DriverContext, Lane
from hyperfleet.simulator.roster import Roster
from hyperfleet.simulator.stats import SimulationStats

# Steps within a slice happen at one time, so that reports share a batch; the last minutes are finer, people look there.
_LONG_SLICE: Final = 60.0
_SHORT_SLICE: Final = 10.0
_LATELY: Final = 600.0
_DUE: Final = 128  # deadlines handled in one batch


class ManualClock:
    """A clock that moves only when it is set."""

    def __init__(self, instant: datetime) -> None:
        """Set it."""
        self._instant = instant

    def now(self) -> datetime:
        """Return the time it is set to."""
        return self._instant

    def set(self, instant: datetime) -> None:
        """Set it; it never goes back."""
        self._instant = max(instant, self._instant)


class _PastPace:
    """A pace without waiting, in the past."""

    def __init__(self, begin: datetime) -> None:
        self._begin = begin

    async def wait_until(self, at: float) -> None:
        """Do not wait."""

    def to_real_time(self, at: float) -> datetime:
        """Convert a time of the plan."""
        return self._begin + timedelta(seconds=at)


async def age(settings: Settings, steps: Iterator[PlanStep], begin: datetime, end: datetime, roster: Roster) -> None:
    """Execute steps from `begin` on, and everything that deadlines cause until `end`."""
    clock = ManualClock(begin)
    system = System(settings, clock=clock)
    pace = _PastPace(begin)
    await system.store.open()
    try:
        await system.policies.activate()
        system.committer.start()
        transport = httpx.ASGITransport(app=system.app)
        async with AsyncFleet("http://127.0.0.1", token="", transport=transport) as fleet:
            lane = Lane(DriverContext(fleet, pace, roster, SimulationStats(), time.monotonic))
            for until, slice_ in groupby(steps, lambda step: _round(step.at, (end - begin).total_seconds())):
                await _advance(system, clock, pace.to_real_time(until))
                await lane.do(list(slice_))
        await _advance(system, clock, end)
        await system.committer.close()
    finally:
        await system.store.close()


async def _advance(system: System, clock: ManualClock, instant: datetime) -> None:
    """Advance the clock, doing at each deadline what the server's timer does."""
    while True:
        due = await system.store.due(_DUE)
        if due.ids:
            await recompute_all(system.committer, due.ids, StatusCause("deadline"))
        elif due.next_wake is not None and due.next_wake <= instant:
            clock.set(due.next_wake)
        else:
            clock.set(instant)
            return


def _round(at: float, end: float) -> float:
    """Return the end of the slice that a time is in."""
    length = _LONG_SLICE if at < end - _LATELY else _SHORT_SLICE
    return min((at // length + 1) * length, end)
