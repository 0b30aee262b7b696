"""A pool of connections to PostgreSQL that replaces broken ones, and translates errors.

All connections of the PostgreSQL store come from here. A connection is returned without the reset that asyncpg's own
pool sends to the server each time: no code here changes session settings.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

import asyncpg
from msgspec import Struct

from hyperfleet.errors import Contended, StoreError, StoreUnavailable

# SQLSTATE codes, or classes of two characters. A conflict with another writer:
_CONTENDED: Final = ("40", "23505", "55P03")  # deadlock or serialization, unique violation, lock timeout
# The server is away or full, refuses us, is read-only, or cancelled a statement:
_UNAVAILABLE: Final = ("08", "28", "3D", "53", "57", "58", "25006", "25P03", "XX001", "XX002")

SNAPSHOT: Final = "begin isolation level repeatable read read only"  # all statements see what the first one saw

DRIVER_ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)


class Connection(Protocol):
    """The methods of an asyncpg connection that we use; asyncpg has no types."""

    async def execute(self, query: str, *parameters: object, timeout: float | None = None) -> str:
        """Run a statement, or a script if there are no parameters; return the command tag, such as `DELETE 3`."""
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
        """Tell whether it is closed."""
        ...

    def is_in_transaction(self) -> bool:
        """Tell whether a transaction is open."""
        ...

    def terminate(self) -> None:
        """Drop the connection at once."""
        ...

    async def close(self, *, timeout: float) -> None:  # as asyncpg has it
        """Close the connection properly."""
        ...


class Timeouts(Struct, frozen=True):
    """Timeouts in seconds."""

    connect: float = 5.0
    statement: float = 15.0
    lock: float = 5.0  # for other transactions, which take milliseconds
    idle: float = 10.0  # inside a transaction: a frozen process holds the lock of the head, and all writers wait for it

    def as_settings(self) -> dict[str, str]:
        """Return the session settings that make the server enforce them."""
        limits = {
            "statement_timeout": self.statement,
            "lock_timeout": self.lock,
            "idle_in_transaction_session_timeout": self.idle,
        }
        return {name: str(round(seconds * 1000)) for name, seconds in limits.items()}


class Connections:
    """Up to `size` connections, opened when first needed and replaced when they break."""

    def __init__(self, url: str, size: int, timeouts: Timeouts, settings: Mapping[str, str] | None = None) -> None:
        """Connect to `url` with these settings of the session; nothing is opened yet."""
        self._url = url
        self._timeouts = timeouts
        # JIT compilation takes longer than any of our statements.
        self._settings = {"application_name": "hyperfleet", "jit": "off", **timeouts.as_settings(), **(settings or {})}
        self._places = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        self._taken: set[Connection] = set()
        self._closing = asyncio.Event()
        self._all_back = asyncio.Event()

    @asynccontextmanager
    async def take(self) -> AsyncIterator[Connection]:
        """Lend a connection for a block; errors of the server leave the block as a `StoreError`."""
        async with self._places:
            connection = await self._obtain()
            self._taken.add(connection)
            try:
                yield connection
            except asyncio.CancelledError:
                connection.terminate()  # the server may still run a cancelled statement
                raise
            except DRIVER_ERRORS as error:
                if not isinstance(error, asyncpg.PostgresError):
                    connection.terminate()  # not an answer of the server: the state of the connection is unknown
                if (meaning := translate(error)) is None:
                    raise
                raise meaning from error
            finally:
                self._put_back(connection)

    async def close(self) -> None:
        """Wait for lent connections as long as a statement may run, then close all for good."""
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
                # The server's own timeout comes first; this is for a server that no longer responds.
                command_timeout=self._timeouts.statement + self._timeouts.connect,
                server_settings=self._settings,
            )
        except DRIVER_ERRORS as error:
            raise StoreUnavailable(f"cannot connect to PostgreSQL: {_text_of(error)}") from error
        return connection

    def _put_back(self, connection: Connection) -> None:
        self._taken.discard(connection)
        if not connection.is_closed() and connection.is_in_transaction():  # a rollback failed
            connection.terminate()
        if not connection.is_closed():
            self._idle.append(connection)
        if self._closing.is_set() and not self._taken:
            self._all_back.set()


@asynccontextmanager
async def transaction(connection: Connection, begin: str = "begin") -> AsyncIterator[None]:
    """Run a block in a transaction: commit, unless it has rolled back itself; roll back on errors."""
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
    """Translate an error of the driver; None: it is a programming error."""
    text = f"PostgreSQL: {_text_of(error)}"
    if isinstance(error, asyncpg.InvalidCachedStatementError):  # the tables were altered; a retry prepares it again
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
