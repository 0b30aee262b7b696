"""Runs long work in the event loop, in slices so short that requests hardly notice.

A thread would slow requests down more: each request waits for the interpreter several times, and a computing thread
releases it only every five milliseconds.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Final

_SLICE: Final = 0.001  # seconds; a task that is ready to run waits for one slice, however long the work is
# Requests come in through another thread. A mere `sleep(0)` wakes that thread, but it finds the interpreter busy with
# the next slice again, possibly for as long as the work takes. So we really sleep now and then.
_SLICES: Final = 8  # from sleep to sleep: the longest that a new request waits to get into the loop
_REST: Final = 0.001  # seconds; the shortest sleep that an event loop has


class TimeSlices:
    """Divides long work into slices, and lets other tasks run in between."""

    def __init__(self) -> None:
        """Start a slice."""
        self._until = perf_counter() + _SLICE
        self._slices = 0

    async def yield_if_due(self) -> None:
        """Let other tasks run if the slice is used up. Call it after every small piece of work."""
        if perf_counter() >= self._until:
            self._slices = (self._slices + 1) % _SLICES
            await asyncio.sleep(0 if self._slices else _REST)
            self._until = perf_counter() + _SLICE
