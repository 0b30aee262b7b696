"""Shared memory for metrics: each worker writes its own slot, all read. Created before the workers (`serving`).

The memory has no file and is freed with the last process that maps it. What a worker wrote stays when it dies.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from typing import Final

_SLOT: Final = 4 * 1024 * 1024  # bytes of one worker: tens of thousands of series; pages never written take no memory
_HEAD: Final = struct.Struct("=QII")  # process id, length and checksum of what follows
_ATTEMPTS: Final = 5  # to read a slot that is being written; a write takes microseconds


class SharedBoard:
    """The shared memory, as one process sees it; `take` assigns a worker its slot."""

    def __init__(self, slots: int) -> None:
        """Create the memory for a number of workers."""
        self._memory = mmap.mmap(-1, slots * _SLOT)
        self._slots = slots
        self._last: dict[int, bytes] = {}  # the last valid content, used while a slot cannot be read
        self.slot = 0

    def take(self, slot: int) -> SharedBoard:
        """Take a slot; called once by each worker after the fork. Return the board."""
        self.slot = slot
        return self

    def write(self, text: bytes) -> bool:
        """Write to our slot; tell whether it fitted."""
        if len(text) > _SLOT - _HEAD.size:
            return False
        begin = self.slot * _SLOT
        self._memory[begin + _HEAD.size : begin + _HEAD.size + len(text)] = text
        self._memory[begin : begin + _HEAD.size] = _HEAD.pack(os.getpid(), len(text), zlib.crc32(text))
        return True

    def read(self) -> list[bytes]:
        """Return the content of every slot; an unused slot is empty."""
        return [self._read(slot) for slot in range(self._slots)]

    def is_taken(self, slot: int) -> bool:
        """Tell whether the process that wrote to a slot is running."""
        pid, _, _ = self._read_head(slot)
        return pid != 0 and os.path.exists(f"/proc/{pid}")

    def _read(self, slot: int) -> bytes:
        begin = slot * _SLOT + _HEAD.size
        for _ in range(_ATTEMPTS):
            _, length, check = self._read_head(slot)
            text = self._memory[begin : begin + min(length, _SLOT)]
            if zlib.crc32(text) == check:  # otherwise a write is in progress
                self._last[slot] = text
                return text
        return self._last.get(slot, b"")

    def _read_head(self, slot: int) -> tuple[int, int, int]:
        return _HEAD.unpack_from(self._memory, slot * _SLOT)
