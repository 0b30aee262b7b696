"""Giving a fleet a past: the early life of a simulated fleet is written into a database before a server opens it.

Only `demo` calls this. The whole server runs in this process without its sockets, on a clock that we set, so that what
happened an hour ago has the time it would have, deadlines included. Later nobody can tell that it took two seconds.
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
from hyperfleet.ports import Cause
from hyperfleet.services.upkeep import recompute_all
from hyperfleet.settings import Settings
from hyperfleet.simulator.actions import Step
from hyperfleet.simulator.lane import Desk, Lane
from hyperfleet.simulator.roster import Roster
from hyperfleet.simulator.tally import Tally

# Seconds of the plan that happen at one time, so that reports go together: lately less, for somebody will look.
_LONG_SLICE: Final = 60.0
_SHORT_SLICE: Final = 10.0
_LATELY: Final = 600.0
_DUE: Final = 128  # deadlines that are met together


class HandClock:
    """A clock that shows what it is set to."""

    def __init__(self, instant: datetime) -> None:
        """Set it."""
        self._instant = instant

    def now(self) -> datetime:
        """Return what it shows."""
        return self._instant

    def set(self, instant: datetime) -> None:
        """Set it, never back."""
        self._instant = max(instant, self._instant)


class _Past:
    """The pace of what has already happened: no waiting, and times that are told as they were."""

    def __init__(self, begin: datetime) -> None:
        self._begin = begin

    async def reach(self, at: float) -> None:
        """Go on."""

    def tell(self, at: float) -> datetime:
        """Return what time it was."""
        return self._begin + timedelta(seconds=at)


async def age(settings: Settings, steps: Iterator[Step], begin: datetime, end: datetime, roster: Roster) -> None:
    """Let steps happen from `begin` on; leave the clock at `end`, with everything done that time alone does."""
    clock = HandClock(begin)
    system = System(settings, clock=clock)
    pace = _Past(begin)
    await system.store.open()
    try:
        await system.policies.activate()
        system.committer.start()
        transport = httpx.ASGITransport(app=system.app)
        async with AsyncFleet("http://127.0.0.1", token="", transport=transport) as fleet:
            lane = Lane(Desk(fleet, pace, roster, Tally(), time.monotonic))
            for until, slice_ in groupby(steps, lambda step: _round(step.at, (end - begin).total_seconds())):
                await _advance(system, clock, pace.tell(until))
                await lane.do(list(slice_))
        await _advance(system, clock, end)
        await system.committer.close()
    finally:
        await system.store.close()


async def _advance(system: System, clock: HandClock, instant: datetime) -> None:
    """Let time pass; at each deadline on the way do what the server's timer does."""
    while True:
        due = await system.store.due(_DUE)
        if due.ids:
            await recompute_all(system.committer, due.ids, Cause("deadline"))
        elif due.next_wake is not None and due.next_wake <= instant:
            clock.set(due.next_wake)
        else:
            clock.set(instant)
            return


def _round(at: float, end: float) -> float:
    """Return the end of the slice in which something happens."""
    length = _LONG_SLICE if at < end - _LATELY else _SHORT_SLICE
    return min((at // length + 1) * length, end)
