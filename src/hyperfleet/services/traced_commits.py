"""Which requests of this process made which positions of the log, as long as their events are not published.

The committer notes them, the relay links its spans to them. They are not stored: changes of other replicas, and those
before a restart, are published without a link.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from hyperfleet.services.tracing import TracePoint

_MOST: Final = 1_000  # transactions; a replica that does not publish notes them in vain


class _TracedCommit(Struct, frozen=True):
    upto: int
    points: tuple[TracePoint, ...]


class TracedCommits:
    """The traces of the last transactions with events."""

    def __init__(self) -> None:
        """Start without any."""
        self._commits: deque[_TracedCommit] = deque(maxlen=_MOST)

    def note(self, upto: int, origins: Iterable[TracePoint | None]) -> None:
        """Remember the recorded traces of a transaction whose last event has the position `upto`."""
        points = tuple([point for point in origins if point is not None and point.is_recorded])
        if points:
            self._commits.append(_TracedCommit(upto, points))

    def between(self, after: int, upto: int) -> list[TracePoint]:
        """Return the traces of the transactions that end after one position, and not after another."""
        return [point for each in self._commits if after < each.upto <= upto for point in each.points]

    def forget(self, upto: int) -> None:
        """Forget the transactions up to a position."""
        self._commits = deque((each for each in self._commits if each.upto > upto), maxlen=_MOST)
