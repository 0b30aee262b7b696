"""What a worker does next: one piece of work per resource at a time, with everything that waits for it. Pure.

An item belongs to the first work on its resource that begins after the item has arrived. So a worker that answers the
items of a work when it is done answers none too early, and forgets none.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class Work(Struct, Generic[T], frozen=True):
    """Items of one resource that are handled together, the oldest first."""

    key: str
    items: tuple[T, ...]


class WorkQueue(Generic[T]):
    """Items that wait, by resource. Resources take turns in the order in which they began to wait."""

    def __init__(self, *, coalesces: bool = True) -> None:
        """Handle all items that wait for a resource together, or else one after the other."""
        self._coalesces = coalesces
        self._waiting: dict[str, deque[T]] = {}
        self._ready: dict[str, None] = {}  # an ordered set: resources with items, on which no work is going on
        self._running: set[str] = set()

    @property
    def running(self) -> int:
        """Return the number of resources that are worked on."""
        return len(self._running)

    def add(self, key: str, item: T) -> None:
        """Add an item that has arrived."""
        self._waiting.setdefault(key, deque()).append(item)
        if key not in self._running:
            self._ready.setdefault(key)

    def take(self) -> Work[T] | None:
        """Begin work on the resource that has waited longest; None: there is none to begin."""
        key = next(iter(self._ready), None)
        if key is None:
            return None
        del self._ready[key]
        self._running.add(key)
        waiting = self._waiting[key]
        items = tuple(waiting) if self._coalesces else (waiting.popleft(),)
        if self._coalesces or not waiting:
            del self._waiting[key]
        return Work(key, items)

    def finish(self, work: Work[T]) -> None:
        """End work; the resource queues again, at the end, if more has arrived for it."""
        self._running.remove(work.key)
        if work.key in self._waiting:
            self._ready[work.key] = None

    def drain(self) -> list[T]:
        """Remove and return everything that no work has begun on."""
        left = [item for items in self._waiting.values() for item in items]
        self._waiting.clear()
        self._ready.clear()
        return left
