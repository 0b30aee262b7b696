"""The clockwork of a plan: routines that wait, wake and act, one at a time, in the order of their time.

A routine is a generator. It yields a number to let that many seconds pass, an `Until` to wait for something, and an
action to do it. Nothing here knows what the routines are about, and nothing is random.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from hyperfleet.simulator.actions import Action, Step

FOREVER: Final = float("inf")
_TICK: Final = 0.001  # seconds: the least that can pass, so that nobody waits for ever for less


class Until(Struct, frozen=True):
    """A wait until something holds, but no longer than patience lasts."""

    holds: Callable[[], bool]
    patience: float = FOREVER


Routine: TypeAlias = Generator[float | Until | Action, None, None]


class Thread(Struct, eq=False):
    """A routine under way."""

    routine: Routine
    is_over: bool = False
    wakes: int = 0  # rises with every wake: an alarm that was set before the last one is void
    awaits: Until | None = None


class Timeline:
    """All routines of a plan and what time it is in it."""

    def __init__(self) -> None:
        """Begin at nought, with nothing to do."""
        self.now = 0.0
        self._alarms: list[tuple[float, int, int, Thread]] = []
        self._count = 0  # the first that was set rings first

    def start(self, routine: Routine, after: float = 0.0) -> Thread:
        """Set a routine going."""
        thread = Thread(routine)
        self._set_alarm(thread, after)
        return thread

    def look(self, thread: Thread) -> bool:
        """Wake a routine if what it awaits holds now; tell whether it did."""
        if thread.is_over or thread.awaits is None or not thread.awaits.holds():
            return False
        self._set_alarm(thread, 0.0)
        return True

    def run(self, end: float) -> Iterator[Step]:
        """Let everything happen until the end, which may be never."""
        while self._alarms and self._alarms[0][0] <= end:
            time, _, wakes, thread = heapq.heappop(self._alarms)
            if thread.is_over or wakes != thread.wakes:
                continue
            self.now = time
            yield from self._resume(thread)

    def _resume(self, thread: Thread) -> Iterator[Step]:
        thread.awaits = None
        for wish in thread.routine:
            if isinstance(wish, Until):
                if not wish.holds():
                    thread.awaits = wish
                    self._set_alarm(thread, wish.patience)
                    return
            elif isinstance(wish, float | int):
                self._set_alarm(thread, wish)
                return
            else:
                yield Step(self.now, wish)
            if thread.is_over:  # what it did has ended it
                return
        thread.is_over = True

    def _set_alarm(self, thread: Thread, after: float) -> None:
        thread.wakes += 1
        self._count += 1
        if after < FOREVER:
            time = round(self.now + max(after, _TICK if after > 0 else 0.0), 3)
            heapq.heappush(self._alarms, (time, self._count, thread.wakes, thread))
