"""The scheduler of a plan: routines that wait, wake and act, one at a time, ordered by time.

A routine is a generator. It yields a number to sleep for that many seconds, a `WaitUntil` to wait for a condition, and
an action to add it to the plan. Nothing here knows what the routines do, and nothing is random.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from hyperfleet.simulator.actions import Action, PlanStep

FOREVER: Final = float("inf")
_TICK: Final = 0.001  # seconds: the shortest sleep, so that rounding cannot make time stand still


class WaitUntil(Struct, frozen=True):
    """Wait until something holds, or for `timeout` seconds."""

    holds: Callable[[], bool]
    timeout: float = FOREVER


Routine: TypeAlias = Generator[float | WaitUntil | Action, None, None]


class RoutineTask(Struct, eq=False):
    """A running routine."""

    routine: Routine
    is_over: bool = False
    wakes: int = 0  # incremented whenever an alarm is set; older alarms are void
    awaits: WaitUntil | None = None


class Timeline:
    """All routines of a plan, and its current time."""

    def __init__(self) -> None:
        """Begin at 0 without routines."""
        self.now = 0.0
        self._alarms: list[tuple[float, int, int, RoutineTask]] = []
        self._count = 0  # among alarms for the same time the first one set goes first

    def start(self, routine: Routine, after: float = 0.0) -> RoutineTask:
        """Start a routine."""
        task = RoutineTask(routine)
        self._set_alarm(task, after)
        return task

    def wake_if_ready(self, task: RoutineTask) -> bool:
        """Wake a routine if what it waits for holds now; return whether it does."""
        if task.is_over or task.awaits is None or not task.awaits.holds():
            return False
        self._set_alarm(task, 0.0)
        return True

    def run(self, end: float) -> Iterator[PlanStep]:
        """Run all routines until the end, which may be FOREVER."""
        while self._alarms and self._alarms[0][0] <= end:
            time, _, wakes, task = heapq.heappop(self._alarms)
            if task.is_over or wakes != task.wakes:
                continue
            self.now = time
            yield from self._resume(task)

    def _resume(self, task: RoutineTask) -> Iterator[PlanStep]:
        task.awaits = None
        for request in task.routine:
            if isinstance(request, WaitUntil):
                if not request.holds():
                    task.awaits = request
                    self._set_alarm(task, request.timeout)
                    return
            elif isinstance(request, float | int):
                self._set_alarm(task, request)
                return
            else:
                yield PlanStep(self.now, request)
            if task.is_over:  # its own action may have ended it
                return
        task.is_over = True

    def _set_alarm(self, task: RoutineTask, after: float) -> None:
        task.wakes += 1
        self._count += 1
        if after < FOREVER:
            time = round(self.now + max(after, _TICK if after > 0 else 0.0), 3)
            heapq.heappush(self._alarms, (time, self._count, task.wakes, task))
