"""Somebody who creates clusters and changes them, for tests of what must be heard of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from tests.e2e.lanes import BASE, Channel, LostError
from tests.e2e.server import PATIENCE

_PAUSE: Final = 0.02  # seconds after a failure


class Changes:
    """Somebody who creates clusters and changes their labels without end."""

    def __init__(self, port: Callable[[], int]) -> None:
        """Send to any server that listens at the port."""
        self._channel = Channel(port)
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._number = 0
        self.acknowledged = 0

    def start(self) -> None:
        """Write until `stop`."""
        self._is_stopping = False
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Finish the write that is under way."""
        self._is_stopping = True
        if self._task is not None:
            await self._task
        self._channel.close()

    async def await_more(self, number: int) -> None:
        """Wait until so many more writes were acknowledged."""
        enough = self.acknowledged + number
        async with asyncio.timeout(PATIENCE):
            while self.acknowledged < enough:
                await asyncio.sleep(0.001)

    async def _run(self) -> None:
        while not self._is_stopping:
            self._number += 1
            created = await self._send("POST", "/clusters", {"name": f"new-{self._number}", "spec": {}})
            if created is not None:
                for label in ("a", "b", "c"):
                    await self._send("PATCH", f"/clusters/{created['id']}", {"labels": {"step": label}})

    async def _send(self, method: str, path: str, body: object) -> Any:
        """Return the answer; None: there was none, and the write may have been done or not."""
        try:
            status, answer = await self._channel.request(method, f"{BASE}{path}", body)
        except LostError:
            await asyncio.sleep(_PAUSE)
            return None
        assert status in {200, 201, 503}, answer
        if status == 503:
            await asyncio.sleep(_PAUSE)
            return None
        self.acknowledged += 1
        return answer
