"""A board of shared memory: each worker writes to its own place, all read. Made before the workers are (`serving`).

The memory belongs to no file and goes with the last process that has it. What a worker wrote stays when it dies.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from typing import Final

_PLACE: Final = 4 * 1024 * 1024  # bytes of one worker; memory that nobody writes to is not taken
_HEAD: Final = struct.Struct("=QII")  # process, length and check sum of what follows
_ATTEMPTS: Final = 5  # to read a place that is being written to


class SharedBoard:
    """The board, as one process sees it; `seat` gives a worker its place."""

    def __init__(self, places: int) -> None:
        """Make a board for so many workers."""
        self._memory = mmap.mmap(-1, places * _PLACE)
        self._places = places
        self._last: dict[int, bytes] = {}  # what could be read, for when it cannot
        self.place = 0

    def seat(self, place: int) -> SharedBoard:
        """Take a place; called once by each worker, after it was made. Return the board."""
        self.place = place
        return self

    def write(self, text: bytes) -> bool:
        """Put something into our place; tell whether it fitted."""
        if len(text) > _PLACE - _HEAD.size:
            return False
        begin = self.place * _PLACE
        self._memory[begin + _HEAD.size : begin + _HEAD.size + len(text)] = text
        self._memory[begin : begin + _HEAD.size] = _HEAD.pack(os.getpid(), len(text), zlib.crc32(text))
        return True

    def read(self) -> list[bytes]:
        """Return what is in every place; what nobody has written to is empty."""
        return [self._read(place) for place in range(self._places)]

    def is_taken(self, place: int) -> bool:
        """Tell whether the process that wrote to a place lives."""
        pid, _, _ = self._read_head(place)
        return pid != 0 and os.path.exists(f"/proc/{pid}")

    def _read(self, place: int) -> bytes:
        begin = place * _PLACE + _HEAD.size
        for _ in range(_ATTEMPTS):
            _, length, check = self._read_head(place)
            text = self._memory[begin : begin + min(length, _PLACE)]
            if zlib.crc32(text) == check:  # and not half of one and half of the next
                self._last[place] = text
                return text
        return self._last.get(place, b"")

    def _read_head(self, place: int) -> tuple[int, int, int]:
        return _HEAD.unpack_from(self._memory, place * _PLACE)
