"""A time limit for many short tasks. One timer looks after all of them: one for each would cost a tenth of a report."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Final

_LOOKS: Final = 8  # in the time of the limit, so that a task may have an eighth more


class Patience:
    """`with patience:` ends in `TimeoutError` for a task that takes longer than the limit."""

    def __init__(self, limit: float) -> None:
        """Give every task so many seconds."""
        self._limit = limit
        self._begun: dict[asyncio.Task[Any] | None, float] = {}  # in the order of their beginnings
        self._cut: set[asyncio.Task[Any]] = set()
        self._is_looking = False

    def __enter__(self) -> None:
        """Begin to count for the task that runs."""
        loop = asyncio.get_running_loop()
        self._begun[asyncio.current_task()] = loop.time()
        if not self._is_looking:
            self._is_looking = True
            loop.call_later(self._limit / _LOOKS, self._look, loop)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Stop counting; what was cut short is told as such."""
        task = asyncio.current_task()
        self._begun.pop(task, None)
        if task is not None and task in self._cut:
            self._cut.remove(task)
            if task.uncancel() == 0 and kind is asyncio.CancelledError:
                raise TimeoutError from error

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cut short whoever has taken too long; look again while there is anybody."""
        earliest = loop.time() - self._limit
        for task, begun in self._begun.items():
            if begun > earliest:
                break
            if task is not None and task not in self._cut:
                self._cut.add(task)
                task.cancel()
        self._is_looking = bool(self._begun)
        if self._is_looking:
            loop.call_later(self._limit / _LOOKS, self._look, loop)
