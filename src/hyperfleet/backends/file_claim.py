"""A claim on a task among the processes of one machine: a locked file, released by the system when its holder dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from hyperfleet.errors import StoreUnavailable


class FileClaim:
    """A claimed task. The file stays: if it were removed, two processes could each lock a file of that name."""

    def __init__(self, descriptor: int) -> None:
        """Hold the lock that `descriptor` has."""
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path) -> Self | None:
        """Lock a file; None: it is locked already, in this process or another one."""
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
        """Release it."""
        os.close(self._descriptor)
