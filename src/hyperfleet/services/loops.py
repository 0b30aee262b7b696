"""Background loops that run as long as the server does, and survive errors of a single turn."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from hyperfleet.errors import HyperFleetError
from hyperfleet.services.repeated_warning import RepeatedWarning

_LOG: Final = logging.getLogger(__name__)
_PAUSE_AFTER_ERROR: Final = 1.0  # seconds; a store that is away comes back in seconds, and the log must not fill
_STOP_TIMEOUT: Final = 1.0  # seconds for a running turn to end, well within the grace period of a pod


class Loop:
    """Calls `turn` repeatedly; each turn returns the seconds until the next one, unless nudged before."""

    def __init__(self, name: str, turn: Callable[[], Awaitable[float]]) -> None:
        """Name the loop for the log; nothing runs before `start`."""
        self._name = name
        self._turn = turn
        self._nudge = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._warning = RepeatedWarning(_LOG)
        self.on_failure: Callable[[str], None] | None = None  # called with the loop's name when a turn failed

    def start(self) -> None:
        """Start the loop."""
        self._task = asyncio.create_task(self._run(), name=self._name)

    def nudge(self) -> None:
        """Run the next turn now."""
        self._nudge.set()

    async def stop(self) -> None:
        """Stop the loop; a turn that does not end soon is cancelled, but its transaction completes."""
        self._is_stopping = True
        self._nudge.set()
        if self._task is not None:
            _, unfinished = await asyncio.wait({self._task}, timeout=_STOP_TIMEOUT)
            for task in unfinished:
                task.cancel()
            await asyncio.wait({self._task}, timeout=_STOP_TIMEOUT)

    async def _run(self) -> None:
        while not self._is_stopping:
            pause = await self._run_turn()
            if not self._is_stopping:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._nudge.wait(), pause)
                self._nudge.clear()

    async def _run_turn(self) -> float:
        try:
            pause = await self._turn()
        except HyperFleetError as error:
            self._warning.log(f"{self._name}: {error}; trying again")
        except Exception as error:  # noqa: BLE001  # one bad turn must not end the loop
            _LOG.error("%s failed unexpectedly; trying again", self._name, exc_info=error)
        else:
            self._warning.end()
            return pause
        if self.on_failure is not None:
            self.on_failure(self._name)
        return _PAUSE_AFTER_ERROR
