"""One timeout for many short tasks. They share a timer: a timer per task would cost a tenth of the time of a report."""

from __future__ import annotations

from asyncio import AbstractEventLoop, CancelledError, Task, current_task, get_running_loop
from types import TracebackType
from typing import Any, Final

_TICKS: Final = 8  # per limit: a task may run up to an eighth longer, which does no harm


class SharedTimeout:
    """`with timeout:` ends in `TimeoutError` for a task that takes longer than the limit."""

    def __init__(self, limit: float) -> None:
        """Limit every task to so many seconds."""
        self._limit = limit
        self._ticks = 0  # so far: the clock by which tasks are timed
        self._started: dict[Task[Any] | None, int] = {}  # task → its first tick, oldest first
        self._cancelled: set[Task[Any]] = set()
        self._loop: AbstractEventLoop | None = None  # whose timer runs; None: there are no tasks

    def __enter__(self) -> None:
        """Start the timeout of the current task."""
        if self._loop is None:
            self._loop = get_running_loop()  # a system call in Python 3.11, so not for every task
            self._loop.call_later(self._limit / _TICKS, self._tick, self._loop)
        self._started[current_task(self._loop)] = self._ticks

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Stop the timeout; raise `TimeoutError` if it ended the task."""
        task = current_task(self._loop)
        self._started.pop(task, None)
        if task is not None and task in self._cancelled:
            self._cancelled.remove(task)
            if task.uncancel() == 0 and kind is CancelledError:
                raise TimeoutError from error

    def _tick(self, loop: AbstractEventLoop) -> None:
        """Cancel tasks that have run too long; tick again while there are tasks."""
        self._ticks += 1
        latest = self._ticks - _TICKS - 1  # tasks started by then have had the whole limit
        for task, started in self._started.items():
            if started > latest:
                break
            if task is not None and task not in self._cancelled:
                self._cancelled.add(task)
                task.cancel()
        self._loop = loop if self._started else None
        if self._loop is not None:
            loop.call_later(self._limit / _TICKS, self._tick, loop)
