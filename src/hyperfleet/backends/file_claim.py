"""A claim on a task among the processes of one machine: a locked file, let go by the system when its holder dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from hyperfleet.errors import StoreUnavailable


class FileClaim:
    """A task taken. The file stays behind: removing it would let two hold it, each a file of its own."""

    def __init__(self, descriptor: int) -> None:
        """Hold the lock that `descriptor` has."""
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path) -> Self | None:
        """Lock a file; None: somebody else, in this process or another one, has it."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreUnavailable(f"{path}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return cls(descriptor)

    async def __aenter__(self) -> Self:
        """Hold the task."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Let it go."""
        os.close(self._descriptor)
