"""Carrying out a whole plan: steps are dealt to lanes at their time, and a lane that is behind catches up in batches.

Called by `hyperfleet sim` and `hyperfleet demo`. A cluster and all that belongs to it always has the same lane, so
nothing about it is ever overtaken. A server that is away is waited for as long as the client has patience; then the
client's error ends it all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final
from zlib import crc32

from hyperfleet.client import FleetError
from hyperfleet.simulator.actions import Step
from hyperfleet.simulator.lane import Desk, Lane
from hyperfleet.simulator.pacing import Throttle

_AHEAD: Final = 400  # steps that may wait in a lane before the plan has to


class Driver:
    """Carries out a plan with so many requests at once."""

    def __init__(self, desk: Desk, lanes: int, throttle: Throttle | None = None) -> None:
        """Work at a desk; `throttle` holds the plan back."""
        self._desk = desk
        self._throttle = throttle
        self._queues: list[asyncio.Queue[Step | None]] = [asyncio.Queue(_AHEAD) for _ in range(lanes)]

    async def run(self, steps: Iterable[Step]) -> None:
        """Do everything, and return when the last answer is there; raise the client's error if there is no hope."""
        try:
            async with asyncio.TaskGroup() as group:
                for queue in self._queues:
                    group.create_task(self._work(queue))
                await self._deal(steps)
        except* FleetError as errors:
            raise _first(errors) from None

    async def _deal(self, steps: Iterable[Step]) -> None:
        for step in steps:
            await self._desk.pace.reach(step.at)
            if self._throttle is not None:
                await self._throttle.take()
            self._desk.tally.virtual = step.at
            await self._queues[crc32(step.action.place.cluster.encode()) % len(self._queues)].put(step)
        for queue in self._queues:
            await queue.put(None)

    async def _work(self, queue: asyncio.Queue[Step | None]) -> None:
        """Do what has gathered, again and again until the end is told."""
        lane = Lane(self._desk)
        while True:
            gathered = [await queue.get()]
            while not queue.empty():
                gathered.append(queue.get_nowait())
            await lane.do([step for step in gathered if step is not None])
            if gathered[-1] is None:
                return


def _first(errors: BaseExceptionGroup[FleetError]) -> FleetError:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
