"""Long work in the event loop, in slices so short that requests hardly notice.

Beside a thread, requests would be slower: each of them waits for the interpreter several times, and a thread that
computes lets go of it only every five milliseconds.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Final

_SLICE: Final = 0.001  # seconds; who is in the event loop waits for one such slice, however long the work is
# Requests come in through another thread. Woken by our letting go of the interpreter for a moment, it finds us at work
# again, and so on: it may wait for as long as the work takes. So now and then we really rest.
_SLICES: Final = 8  # from rest to rest: a request waits for that long before it is in the loop
_REST: Final = 0.001  # seconds; the shortest that an event loop knows


class Pace:
    """Says when it is time to let others have their turn."""

    def __init__(self) -> None:
        """Begin with a fresh slice."""
        self._until = perf_counter() + _SLICE
        self._slices = 0

    async def keep(self) -> None:
        """Let whoever waits have a turn if the slice is used up. Call it after every small piece of work."""
        if perf_counter() >= self._until:
            self._slices = (self._slices + 1) % _SLICES
            await asyncio.sleep(0 if self._slices else _REST)
            self._until = perf_counter() + _SLICE
