"""Connections to PostgreSQL that heal by themselves, and what its errors mean to us.

The PostgreSQL store takes its connections here and nowhere else. A connection goes back as it is, without the reset
that asyncpg's own pool sends to the server each time: nobody here changes the settings of a session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

import asyncpg
from msgspec import Struct

from hyperfleet.errors import Contended, StoreError, StoreUnavailable

# SQLSTATE codes, or the classes of them that two characters name. Another writer was in the way:
_CONTENDED: Final = ("40", "23505", "55P03")  # deadlock or serialization, unique violation, lock timeout
# The server is away, full, refuses us, cannot be written to, or gave up on a statement:
_UNAVAILABLE: Final = ("08", "28", "3D", "53", "57", "58", "25006", "25P03", "XX001", "XX002")

SNAPSHOT: Final = "begin isolation level repeatable read read only"  # all statements see what the first one saw

_DRIVER_ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)


class Connection(Protocol):
    """What we use of a connection of asyncpg, which has no types of its own."""

    async def execute(self, query: str, *parameters: object, timeout: float | None = None) -> str:
        """Run a statement, or a script if there are no parameters; return what was done, as `DELETE 3`."""
        ...

    async def fetch(self, query: str, *parameters: object) -> Sequence[Any]:
        """Return all rows; each is a sequence whose items have names too."""
        ...

    async def fetchrow(self, query: str, *parameters: object) -> Any:
        """Return the first row, if there is one."""
        ...

    async def fetchval(self, query: str, *parameters: object) -> Any:
        """Return the first column of the first row, if there is one."""
        ...

    def is_closed(self) -> bool:
        """Tell whether it can no longer be used."""
        ...

    def is_in_transaction(self) -> bool:
        """Tell whether the server said that a transaction is open."""
        ...

    def terminate(self) -> None:
        """Cut it."""
        ...

    async def close(self, *, timeout: float) -> None:  # as asyncpg has it
        """Take leave of the server."""
        ...


class Timeouts(Struct, frozen=True):
    """How many seconds to wait before something counts as failed."""

    connect: float = 5.0
    statement: float = 15.0
    lock: float = 5.0  # for other transactions, which take milliseconds
    idle: float = 10.0  # inside a transaction: one whose process froze holds the head, and everybody waits for that

    def as_settings(self) -> dict[str, str]:
        """Return the settings of a session with which the server keeps to them."""
        limits = {
            "statement_timeout": self.statement,
            "lock_timeout": self.lock,
            "idle_in_transaction_session_timeout": self.idle,
        }
        return {name: str(round(seconds * 1000)) for name, seconds in limits.items()}


class Connections:
    """Up to `size` connections, made when they are first needed and replaced when they break."""

    def __init__(self, url: str, size: int, timeouts: Timeouts, settings: Mapping[str, str] | None = None) -> None:
        """Connect to `url` with these settings of the session; nothing is opened yet."""
        self._url = url
        self._timeouts = timeouts
        # Compiling to machine code takes longer than any statement of ours runs.
        self._settings = {"application_name": "hyperfleet", "jit": "off", **timeouts.as_settings(), **(settings or {})}
        self._places = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        self._taken: set[Connection] = set()
        self._closing = asyncio.Event()
        self._all_back = asyncio.Event()

    @asynccontextmanager
    async def take(self) -> AsyncIterator[Connection]:
        """Lend a connection for a block; what goes wrong with the server leaves the block as a `StoreError`."""
        async with self._places:
            connection = await self._obtain()
            self._taken.add(connection)
            try:
                yield connection
            except asyncio.CancelledError:
                connection.terminate()  # the server may still be busy with what nobody waits for
                raise
            except _DRIVER_ERRORS as error:
                if not isinstance(error, asyncpg.PostgresError):
                    connection.terminate()  # it was not the server that answered: nobody knows where the two stand
                if (meaning := translate(error)) is None:
                    raise
                raise meaning from error
            finally:
                self._put_back(connection)

    async def close(self) -> None:
        """Wait for those that are taken, as long as a statement may run, then let go of all, for good."""
        self._closing.set()
        if self._taken:
            try:
                await asyncio.wait_for(self._all_back.wait(), self._timeouts.statement)
            except TimeoutError:
                for connection in self._taken:
                    connection.terminate()
        idle, self._idle = self._idle, []
        await asyncio.gather(*(connection.close(timeout=1) for connection in idle), return_exceptions=True)

    async def _obtain(self) -> Connection:
        if self._closing.is_set():
            raise StoreUnavailable("the store is closed")
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        connection = await self._connect()
        if self._closing.is_set():  # meanwhile
            connection.terminate()
            raise StoreUnavailable("the store is closed")
        return connection

    async def _connect(self) -> Connection:
        try:
            connection: Connection = await asyncpg.connect(
                self._url,
                timeout=self._timeouts.connect,
                # The server gives up first; this is for a server that has vanished without a word.
                command_timeout=self._timeouts.statement + self._timeouts.connect,
                server_settings=self._settings,
            )
        except _DRIVER_ERRORS as error:
            raise StoreUnavailable(f"cannot connect to PostgreSQL: {_text_of(error)}") from error
        return connection

    def _put_back(self, connection: Connection) -> None:
        self._taken.discard(connection)
        if not connection.is_closed() and connection.is_in_transaction():  # a rollback did not get through
            connection.terminate()
        if not connection.is_closed():
            self._idle.append(connection)
        if self._closing.is_set() and not self._taken:
            self._all_back.set()


@asynccontextmanager
async def transaction(connection: Connection, begin: str = "begin") -> AsyncIterator[None]:
    """Commit what a block does, unless it has rolled back itself; if it raises, roll back."""
    await connection.execute(begin)
    try:
        yield
    except Exception:
        if not connection.is_closed():
            await connection.execute("rollback")
        raise
    if connection.is_in_transaction():
        await connection.execute("commit")


def translate(error: Exception) -> StoreError | None:
    """Return what an error of the driver means to those who use the store; None: it is a fault of ours."""
    text = f"PostgreSQL: {_text_of(error)}"
    if isinstance(error, asyncpg.InvalidCachedStatementError):  # the tables were altered meanwhile; it is made anew
        return Contended(text)
    if isinstance(error, asyncpg.PostgresError):
        code = str(error.sqlstate)
        if code.startswith(_CONTENDED):
            return Contended(text)
        return StoreUnavailable(text) if code.startswith(_UNAVAILABLE) else None
    if isinstance(error, asyncpg.InterfaceError):
        is_ours = isinstance(error, asyncpg.DataError) or "closed" not in text
        return None if is_ours else StoreUnavailable(text)
    return StoreUnavailable(text)


def _text_of(error: Exception) -> str:
    return str(error) or type(error).__name__
