"""Executing a whole plan: steps are dealt to lanes when they are due; a lane that is behind catches up in batches.

Called by `hyperfleet sim` and `hyperfleet demo`. All steps of a cluster and its node pools go to the same lane, so they
stay in order. While the server is away the client retries until its deadline; then its error ends the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final
from zlib import crc32

from hyperfleet.client import FleetError
from hyperfleet.simulator.actions import PlanStep
from hyperfleet.simulator.lane import DriverContext, Lane
from hyperfleet.simulator.pacing import Throttle

_QUEUE_SIZE: Final = 400  # steps that may wait in a lane before the plan has to wait


class Driver:
    """Executes a plan in several lanes at once."""

    def __init__(self, context: DriverContext, lanes: int, throttle: Throttle | None = None) -> None:
        """Use so many lanes; `throttle` limits the rate of steps."""
        self._context = context
        self._throttle = throttle
        self._queues: list[asyncio.Queue[PlanStep | None]] = [asyncio.Queue(_QUEUE_SIZE) for _ in range(lanes)]

    async def run(self, steps: Iterable[PlanStep]) -> None:
        """Execute all steps and return after the last response; raise the client's error if it cannot go on."""
        try:
            async with asyncio.TaskGroup() as group:
                for queue in self._queues:
                    group.create_task(self._work(queue))
                await self._deal(steps)
        except* FleetError as errors:
            raise _first(errors) from None

    async def _deal(self, steps: Iterable[PlanStep]) -> None:
        for step in steps:
            await self._context.pace.wait_until(step.at)
            if self._throttle is not None:
                await self._throttle.take()
            self._context.stats.virtual = step.at
            await self._queues[crc32(step.action.ref.cluster.encode()) % len(self._queues)].put(step)
        for queue in self._queues:
            await queue.put(None)

    async def _work(self, queue: asyncio.Queue[PlanStep | None]) -> None:
        """Execute whatever is queued, until the None that marks the end."""
        lane = Lane(self._context)
        while True:
            queued = [await queue.get()]
            while not queue.empty():
                queued.append(queue.get_nowait())
            await lane.do([step for step in queued if step is not None])
            if queued[-1] is None:
                return


def _first(errors: BaseExceptionGroup[FleetError]) -> FleetError:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
