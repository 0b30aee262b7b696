"""Moving SQLite's log into its file beside the writing, not in its way.

SQLite does it at the end of whichever commit finds the log long, and everybody waits for that one: a tenth of a second
and more, because in a large fleet every page of the log belongs somewhere else in the file. Here a connection and a
thread of its own move pages while others write, and only the last few while nobody does, so that the log can begin
anew. SQLite flushes the file only then, all of it; so we flush it before, while others write. SQLite's own way stays as
the second line, should this one fall behind.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Final

from msgspec import Struct

from hyperfleet.backends.sqlite_connection import connect

_LOG: Final = logging.getLogger(__name__)
_flush: Final = getattr(os, "fdatasync", os.fsync)  # not every system has the cheaper one
_WORTHWHILE: Final = 8_000  # rows written, each some page of the log or a part of one: about 32 MB of heartbeats
_FEW: Final = 500  # pages: moved in some milliseconds
_ROUNDS: Final = 4  # beside the writing; each finds fewer pages than the one before, unless the disk is too slow


class _File(Struct, eq=False):
    """A database that is open beside SQLite, and by how many checkpointers of this process.

    It is closed by the last of them: with any descriptor of a file, a process lets go of all its locks on it.
    """

    key: tuple[int, int]
    descriptor: int
    users: int = 0


_files: Final[dict[tuple[int, int], _File]] = {}  # by device and number
_files_lock: Final = Lock()  # sessions are opened and closed in threads


def _borrow(path: Path) -> _File:
    with _files_lock:
        found = path.stat()
        key = (found.st_dev, found.st_ino)
        if key not in _files:
            _files[key] = _File(key, os.open(path, os.O_RDWR))
        _files[key].users += 1
        return _files[key]


def _give_back(file: _File) -> None:
    with _files_lock:
        file.users -= 1
        if not file.users:
            os.close(_files.pop(file.key).descriptor)


class Checkpointer:
    """Moves the log whenever enough was written."""

    def __init__(self, path: Path, writer: sqlite3.Connection, turn: asyncio.Lock) -> None:
        """Watch what `writer` writes; whoever holds `turn` is the only one who writes."""
        self._connection = connect(path, cache_mib=1)
        self._file = _borrow(path)
        self._writer = writer
        self._turn = turn
        self._moved = writer.total_changes  # rows that were written when the log was last moved
        self._moving: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "sqlite-checkpoint")

    @property
    def is_moving(self) -> bool:
        """Tell whether the log is being moved."""
        return self._moving is not None

    def notice(self) -> None:
        """Begin to move the log if it is worth it; called after each commit."""
        if not self.is_moving and self._writer.total_changes - self._moved >= _WORTHWHILE:
            self._moving = asyncio.create_task(self._move())
            self._moving.add_done_callback(self._rest)

    async def _move(self) -> None:
        self._moved = self._writer.total_changes
        before = 0
        for _ in range(_ROUNDS):
            length = await self._move_pages()
            if length - before < _FEW:
                break
            before = length
        async with self._turn:
            await self._move_pages()

    async def _move_pages(self) -> int:
        """Move what is in the log now, and return how many pages that are; those moved before cost nothing."""
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, _move_pages, self._connection, self._file.descriptor
        )

    def _rest(self, done: asyncio.Task[None]) -> None:
        self._moving = None
        if not done.cancelled() and (error := done.exception()) is not None:
            _LOG.warning("the log of the database could not be moved into its file, and grows: %s", error)

    def stop(self) -> None:
        """Begin nothing more; what the thread is at, it finishes."""
        if self._moving is not None:
            self._moving.cancel()

    def close(self) -> None:
        """Let go of the connection; blocks until the thread has come to its end."""
        self._thread.shutdown()
        self._connection.close()

    def close_file(self) -> None:
        """Let go of the file; after all connections."""
        _give_back(self._file)


def _move_pages(connection: sqlite3.Connection, file: int) -> int:
    _, length, _ = connection.execute("pragma wal_checkpoint(passive)").fetchone()
    _flush(file)
    return int(length)
