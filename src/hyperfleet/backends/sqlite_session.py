"""The connections and threads of an open SQLite file.

One connection writes, one transaction after the other; another one checkpoints its log. One serves point reads, in the
event loop. A few serve lists, in threads. `SqliteStore` uses them.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

from hyperfleet.backends.sqlite_checkpoint import Checkpointer
from hyperfleet.backends.sqlite_connection import (
    connect,
    make_durable,
    migrate,
    set_flushing,
    set_waiting,
    translating,
)
from hyperfleet.ports import Clock

P = ParamSpec("P")
T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)
_SCANNERS: Final = 2  # concurrent lists; the processor is the limit, and writers need their share
# Page caches of the connections, small because the system caches the file.
_WRITER_CACHE: Final = 12  # MiB
_POINT_CACHE: Final = 8
_SCANNER_CACHE: Final = 4  # each
_QUICK: Final = 0.0005  # seconds: handing a commit to the thread and back takes about as long


class Session:
    """The connections and threads of an open store."""

    def __init__(self, path: Path, writer: sqlite3.Connection, readers: list[sqlite3.Connection]) -> None:
        """Take over connections: one to write, one for point reads and the rest for lists."""
        self._path = path
        self._writer = writer
        self.point, *self._scanners = readers
        self._turn = asyncio.Lock()  # one transaction at a time
        self.checkpointer = Checkpointer(path, writer, self._turn)
        self._commit_time = _QUICK  # seconds, of the last few commits
        self._is_behind = False  # the thread may still run the last commit, so the next transaction begins there
        self._writing = ThreadPoolExecutor(1, "sqlite-writer")
        self._scanning = ThreadPoolExecutor(len(self._scanners), "sqlite-reader")

    @classmethod
    def open(cls, path: Path, clock: Clock) -> Self:
        """Open the file and bring it up to date; blocks."""
        with translating(path), ExitStack() as cleanup:
            writer = connect(path, cache_mib=_WRITER_CACHE)
            cleanup.callback(writer.close)
            make_durable(writer, path)
            migrate(writer, path, clock)
            set_waiting(writer, is_waiting=False)
            readers = []
            for size in (_POINT_CACHE, *[_SCANNER_CACHE] * _SCANNERS):
                readers.append(connect(path, cache_mib=size))
                cleanup.callback(readers[-1].close)
            session = cls(path, writer, readers)
            cleanup.pop_all()  # the session owns them now
            return session

    @asynccontextmanager
    async def writing(self, *, is_durable: bool = True) -> AsyncIterator[sqlite3.Connection]:
        """Begin a transaction, let the caller run its statements, and commit; roll back on errors.

        One that is not durable is not flushed: if the machine loses power, it may be lost, but only together with all
        that were committed after it.

        Only what may wait is done in the thread that writes: the commit, unless those before it were quick, and, if
        another process is writing, the begin. Its jobs run in their order, so a caller that is cancelled leaves nothing
        half done: it is rolled back before the next one begins.
        """
        async with self._turn:
            try:
                with translating(self._path):
                    is_begun = not self._is_behind and _begin_at_once(self._writer, is_durable=is_durable)
                if not is_begun:
                    await self._run(partial(_begin, is_durable=is_durable))
                self._is_behind = False
                with translating(self._path):
                    yield self._writer
                await self._commit(is_durable=is_durable)
            except BaseException:
                self._is_behind = True
                self._writing.submit(_roll_back, self._writer)
                raise

    async def _commit(self, *, is_durable: bool) -> None:
        if not is_durable:
            with translating(self._path):
                self._writer.execute("commit")
        elif self._commit_time < _QUICK:
            with translating(self._path):
                self._time_commit(self._writer)
        else:
            await self._run(self._time_commit)
        self.checkpointer.notice()

    def _time_commit(self, connection: sqlite3.Connection) -> None:
        began = time.perf_counter()
        connection.execute("commit")
        self._commit_time += (time.perf_counter() - began - self._commit_time) / 4

    async def _run(self, job: Callable[[sqlite3.Connection], None]) -> None:
        def run() -> None:
            with translating(self._path):
                job(self._writer)

        await asyncio.get_running_loop().run_in_executor(self._writing, run)

    async def write(self, job: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function with the writing connection, after those submitted before."""

        def run() -> T:
            with translating(self._path):
                set_waiting(self._writer)
                set_flushing(self._writer)
                try:
                    return job(self._writer, *args, **kwargs)
                finally:
                    set_waiting(self._writer, is_waiting=False)

        async with self._turn:
            try:
                result = await asyncio.get_running_loop().run_in_executor(self._writing, run)
            except asyncio.CancelledError:
                self._is_behind = True
                raise
            self.checkpointer.notice()
            return result

    def look(self, statement: str, *parameters: object) -> Any:
        """Return the first row of a point read, in the event loop; None: there is none."""
        with translating(self._path):
            return self.point.execute(statement, parameters).fetchone()

    async def scan(self, job: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function with a reading connection, as soon as one is free."""

        def run() -> T:
            connection = self._scanners.pop()  # there are as many as threads
            try:
                with translating(self._path):
                    return job(connection, *args, **kwargs)
            finally:
                self._scanners.append(connection)

        return await asyncio.get_running_loop().run_in_executor(self._scanning, run)

    async def close(self) -> None:
        """Finish what is running, then close."""
        self.checkpointer.stop()
        async with self._turn:  # after all that wait for their turn
            await asyncio.to_thread(self._let_go)

    def _let_go(self) -> None:
        """Close every connection and move the log into the file; blocks."""
        self._scanning.shutdown()
        self._writing.shutdown()
        self.checkpointer.close()
        for reader in (self.point, *self._scanners):
            reader.close()
        try:  # If another process reads, the log stays; the last one to close moves it.
            self._writer.execute("pragma wal_checkpoint(truncate)")
        except sqlite3.OperationalError as error:  # such as a full disk
            _LOG.warning("the log of %s stays beside it, and is read at the next start: %s", self._path, error)
        self._writer.close()
        self.checkpointer.close_file()


def _begin_at_once(connection: sqlite3.Connection, *, is_durable: bool) -> bool:
    """Begin a transaction, unless another process has one."""
    set_flushing(connection, is_flushing=is_durable)
    try:
        connection.execute("begin immediate")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


def _begin(connection: sqlite3.Connection, *, is_durable: bool) -> None:
    """Begin a transaction as soon as those of other processes have ended."""
    set_flushing(connection, is_flushing=is_durable)
    set_waiting(connection)
    try:
        connection.execute("begin immediate")
    finally:
        set_waiting(connection, is_waiting=False)


def _roll_back(connection: sqlite3.Connection) -> None:
    """Roll back, if a transaction is open: some errors end it."""
    if connection.in_transaction:
        connection.execute("rollback")
