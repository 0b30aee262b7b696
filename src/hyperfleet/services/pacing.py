"""Long work in the event loop, in slices so short that requests hardly notice.

Beside a thread, requests would be slower: each of them waits for the interpreter several times, and a thread that
computes lets go of it only every five milliseconds.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Final

_SLICE: Final = 0.001  # seconds; a request waits for one such slice, however long the work is


class Pace:
    """Says when it is time to let others have their turn."""

    def __init__(self) -> None:
        """Begin with a fresh slice."""
        self._until = perf_counter() + _SLICE

    async def keep(self) -> None:
        """Let whoever waits have a turn if the slice is used up. Call it after every small piece of work."""
        if perf_counter() >= self._until:
            await asyncio.sleep(0)
            self._until = perf_counter() + _SLICE
