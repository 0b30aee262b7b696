"""Bounds the memory of answers that wait for their readers.

The server takes a whole answer at once and keeps it until the last byte is read, so a large one is sent in pieces: the
next one when the connection has taken the last. A reader who takes none for a while is disconnected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from hyperfleet.errors import Overloaded

PIECE: Final = 64 * 1024  # bytes; a connection has a buffer of some megabytes besides, outside of this process
STALLED: Final = 30.0  # seconds in which a reader takes no piece

_ALL: Final = 96 * 1024 * 1024  # bytes of large answers at once
_OF_ONE: Final = _ALL // 4  # of one caller, so that one cannot take them all


class OutgoingBytes:
    """The large answers that are being sent."""

    def __init__(self, most: int = _ALL, most_of_one: int = _OF_ONE) -> None:
        """Allow so many bytes in all, and so many of one caller."""
        self._most = most
        self._most_of_one = most_of_one
        self._taken: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Return the bytes of all answers that are being sent."""
        return self._taken.total()

    def take(self, caller: str, size: int) -> None:
        """Count an answer; raise `Overloaded` if there are too many already. One alone may have any size."""
        others, own = self.total, self._taken[caller]
        if (others and others + size > self._most) or (own and own + size > self._most_of_one):
            raise Overloaded("too many large answers wait for their readers")
        self._taken[caller] += size

    def give_back(self, caller: str, size: int) -> None:
        """Count an answer no more."""
        self._taken[caller] -= size
        if self._taken[caller] <= 0:
            del self._taken[caller]


def split(body: bytes) -> Iterator[tuple[bytes, bool]]:
    """Split a body into pieces, each with whether it is the last one."""
    view = memoryview(body)
    for start in range(0, max(len(body), 1), PIECE):
        yield bytes(view[start : start + PIECE]), start + PIECE >= len(body)
