"""A time limit for many short tasks. One timer looks after all of them: one for each would cost a tenth of a report."""

from __future__ import annotations

from asyncio import AbstractEventLoop, CancelledError, Task, current_task, get_running_loop
from types import TracebackType
from typing import Any, Final

_LOOKS: Final = 8  # in the time of the limit, so that a task may have an eighth more


class SharedTimeout:
    """`with patience:` ends in `TimeoutError` for a task that takes longer than the limit."""

    def __init__(self, limit: float) -> None:
        """Give every task so many seconds."""
        self._limit = limit
        self._looks = 0  # so far: the clock by which tasks are timed
        self._begun: dict[Task[Any] | None, int] = {}  # in the order of their beginnings
        self._cut: set[Task[Any]] = set()
        self._loop: AbstractEventLoop | None = None  # in which it looks; None: there is nobody to look after

    def __enter__(self) -> None:
        """Begin to count for the task that runs."""
        if self._loop is None:
            self._loop = get_running_loop()  # a system call in Python 3.11, so not for every task
            self._loop.call_later(self._limit / _LOOKS, self._look, self._loop)
        self._begun[current_task(self._loop)] = self._looks

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Stop counting; what was cut short is told as such."""
        task = current_task(self._loop)
        self._begun.pop(task, None)
        if task is not None and task in self._cut:
            self._cut.remove(task)
            if task.uncancel() == 0 and kind is CancelledError:
                raise TimeoutError from error

    def _look(self, loop: AbstractEventLoop) -> None:
        """Cut short whoever has taken too long; look again while there is anybody."""
        self._looks += 1
        latest = self._looks - _LOOKS - 1  # who began then has had the whole time, and up to an eighth more
        for task, begun in self._begun.items():
            if begun > latest:
                break
            if task is not None and task not in self._cut:
                self._cut.add(task)
                task.cancel()
        self._loop = loop if self._begun else None
        if self._loop is not None:
            loop.call_later(self._limit / _LOOKS, self._look, loop)
