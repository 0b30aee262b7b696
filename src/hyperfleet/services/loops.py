"""Loops that run beside the requests for as long as the server does, and survive what goes wrong in one turn."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from hyperfleet.errors import HyperFleetError

_LOG: Final = logging.getLogger(__name__)
_PAUSE_AFTER_ERROR: Final = 1.0  # seconds
_PATIENCE: Final = 1.0  # seconds that a turn under way has to end


class Loop:
    """Calls `turn` again and again; each turn says in how many seconds the next one is due, unless nudged before."""

    def __init__(self, name: str, turn: Callable[[], Awaitable[float]]) -> None:
        """Name the loop for the log; `start` sets it going."""
        self._name = name
        self._turn = turn
        self._nudge = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False
        self.on_failure: Callable[[str], None] | None = None  # told our name when a turn failed

    def start(self) -> None:
        """Set the loop going."""
        self._task = asyncio.create_task(self._run(), name=self._name)

    def nudge(self) -> None:
        """Take the next turn now."""
        self._nudge.set()

    async def stop(self) -> None:
        """End the loop; a turn that does not end soon is abandoned, its transaction is not."""
        self._is_stopping = True
        self._nudge.set()
        if self._task is not None:
            _, unfinished = await asyncio.wait({self._task}, timeout=_PATIENCE)
            for task in unfinished:
                task.cancel()
            await asyncio.wait({self._task}, timeout=_PATIENCE)

    async def _run(self) -> None:
        while not self._is_stopping:
            pause = await self._take_turn()
            if not self._is_stopping:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._nudge.wait(), pause)
                self._nudge.clear()

    async def _take_turn(self) -> float:
        try:
            return await self._turn()
        except HyperFleetError as error:
            _LOG.warning("%s: %s; trying again", self._name, error)
        except Exception as error:  # noqa: BLE001  # one bad turn must not end the loop
            _LOG.error("%s failed unexpectedly; trying again", self._name, exc_info=error)
        if self.on_failure is not None:
            self.on_failure(self._name)
        return _PAUSE_AFTER_ERROR
