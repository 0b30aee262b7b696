"""Checkpoints SQLite's log in the background, so that writers do not wait for it.

By default SQLite checkpoints at the end of the commit that finds the log long, and all writers wait for it: a tenth of
a second and more, because in a large fleet the pages of the log are scattered over the file. Here a connection and a
thread of their own move pages while others write, and block writers only for the last few, so that the log can start
again from its beginning. SQLite flushes the whole file only then, so we flush it before, while others write. SQLite's
own checkpoint stays as a fallback, in case this one falls behind.
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
_flush: Final = getattr(os, "fdatasync", os.fsync)  # not every system has the cheaper call
# Written since the last checkpoint: a usual row takes up to a page of the log, so both are about 32 MB.
_MIN_ROWS: Final = 8_000
_MIN_BYTES: Final = 32 * 1024 * 1024
_FEW: Final = 500  # pages, moved in some milliseconds: the last round may block writers
_ROUNDS: Final = 4  # in the background; each finds fewer pages than the one before, unless the disk is too slow


class _File(Struct, eq=False):
    """A descriptor of a database file beside SQLite's own, shared by the checkpointers of this process.

    The last of them closes it: when a process closes any descriptor of a file, it loses all its locks on that file.
    """

    key: tuple[int, int]
    descriptor: int
    users: int = 0


_files: Final[dict[tuple[int, int], _File]] = {}  # by device and inode
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
    """Checkpoints the log whenever enough was written."""

    def __init__(self, path: Path, writer: sqlite3.Connection, turn: asyncio.Lock) -> None:
        """Observe what `writer` writes; the holder of `turn` is the only writer."""
        self._connection = connect(path, cache_mib=1)
        self._file = _borrow(path)
        self._writer = writer
        self._turn = turn
        self._moved = writer.total_changes  # rows written at the last checkpoint
        self._log = Path(f"{path}-wal")
        self._log_size = _MIN_BYTES  # bytes at the last checkpoint; from then on the log is written from its beginning
        self._moving: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "sqlite-checkpoint")

    @property
    def is_moving(self) -> bool:
        """Tell whether a checkpoint is running."""
        return self._moving is not None

    def notice(self) -> None:
        """Start a checkpoint if enough was written; called after each commit."""
        if not self.is_moving and (self._has_many_rows() or self._has_grown()):
            self._moving = asyncio.create_task(self._move())
            self._moving.add_done_callback(self._rest)

    def _has_many_rows(self) -> bool:
        return self._writer.total_changes - self._moved >= _MIN_ROWS

    def _has_grown(self) -> bool:
        """Tell whether the log is longer than ever: rows may be large."""
        return self._size_of_log() > self._log_size

    def _size_of_log(self) -> int:
        try:
            return self._log.stat().st_size
        except FileNotFoundError:
            return 0

    async def _move(self) -> None:
        self._moved = self._writer.total_changes
        self._log_size = self._size_of_log() + _MIN_BYTES  # look again only then, if a reader or an error is in the way
        before = 0
        for _ in range(_ROUNDS):
            length, _ = await self._move_pages()
            if length - before < _FEW:
                break
            before = length
        async with self._turn:
            length, moved = await self._move_pages()
            if moved == length:
                self._log_size = max(_MIN_BYTES, self._size_of_log())

    async def _move_pages(self) -> tuple[int, int]:
        """Move the present log into the file; return its pages, and those moved so far. These cost nothing again."""
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, _move_pages, self._connection, self._file.descriptor
        )

    def _rest(self, done: asyncio.Task[None]) -> None:
        self._moving = None
        if not done.cancelled() and (error := done.exception()) is not None:
            _LOG.warning("the checkpoint of the database failed, and its log grows: %s", error)

    def stop(self) -> None:
        """Start no more checkpoints; a running one finishes."""
        if self._moving is not None:
            self._moving.cancel()

    def close(self) -> None:
        """Close the connection; blocks until the thread has ended."""
        self._thread.shutdown()
        self._connection.close()

    def close_file(self) -> None:
        """Close the file; after all connections."""
        _give_back(self._file)


def _move_pages(connection: sqlite3.Connection, file: int) -> tuple[int, int]:
    _, length, moved = connection.execute("pragma wal_checkpoint(passive)").fetchone()
    _flush(file)
    return int(length), int(moved)
