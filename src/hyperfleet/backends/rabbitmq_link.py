"""RabbitMQ: one connection that is made when it is needed, and again after it was lost.

We do not use the `Robust…` classes of aio-pika: they restore consumers behind our back, but lose publications.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import CONNECTION_EXCEPTIONS, InvalidFrameError, ProbableAuthenticationError
from yarl import URL

from hyperfleet.errors import BrokerUnavailable

_HEARTBEAT: Final = 15  # seconds; three without a sign of life, and the connection counts as lost
_CLOSING: Final = 5.0  # seconds to say goodbye; a server that blocks publishers does not listen

# They log every lost connection with a traceback. We report it in one line, and try again.
for _name in ("aiormq", "aio_pika"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)


@contextmanager
def translated() -> Iterator[None]:
    """Turn errors of the library into ours. Channels that do not exist keep theirs if they are caught inside."""
    try:
        yield
    except (*CONNECTION_EXCEPTIONS, TimeoutError) as error:
        raise BrokerUnavailable(f"RabbitMQ: {describe(error)}") from error


def describe(error: BaseException) -> str:
    """Describe an error of the library. None of its texts has a password."""
    if isinstance(error, ProbableAuthenticationError):
        return "the user or the password was refused"
    if isinstance(error, InvalidFrameError):  # what the library makes of this refusal
        return "the connection was refused: does the vhost exist, and may the user use it?"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return f"{type(error).__name__} {' '.join(str(each) for each in error.args)}".strip()


class Link:
    """A connection. Publishing and receiving need one each: a server that is short of memory stops the first only."""

    def __init__(self, url: str, name: str, timeout: float) -> None:
        """Connect to `url` when needed; `name` is what administrators of the server see."""
        query = {"heartbeat": str(_HEARTBEAT), "name": name, **URL(url).query}
        self._url = URL(url).with_query(query)
        self.timeout = timeout
        self._connection: AbstractConnection | None = None
        self._lock = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    async def connection(self) -> AbstractConnection:
        """Return the connection, a new one if there is none or if it was lost."""
        async with self._lock:
            found = self._connection
            if found is None or not found.connected.is_set():
                await self.drop()
                with translated():
                    async with asyncio.timeout(self.timeout):
                        self._connection = found = await _connect(self._url)
            return found

    @asynccontextmanager
    async def channel(self, *, is_long: bool = False) -> AsyncIterator[AbstractChannel]:
        """Open a channel for the length of a block. A refused request closes it, so each needs its own."""
        channel = await self.open_channel()
        try:
            async with asyncio.timeout(None if is_long else self.timeout):
                yield channel
        finally:
            with suppress(*CONNECTION_EXCEPTIONS, TimeoutError):
                async with asyncio.timeout(self.timeout):
                    await channel.close()

    async def open_channel(self, *, confirms: bool = False) -> AbstractChannel:
        """Open a channel; with `confirms`, publications return when the server has taken them over."""
        connection = await self.connection()
        with translated():
            async with asyncio.timeout(self.timeout):
                channel = connection.channel(publisher_confirms=confirms, on_return_raises=False)
                await channel.initialize()
        return channel

    async def wait_until_unblocked(self) -> None:
        """Return when the server takes messages; raise if it does not for too long."""
        transport = (await self.connection()).transport
        try:
            async with asyncio.timeout(self.timeout):
                await (transport.ready() if transport else asyncio.sleep(0))
        except TimeoutError as error:
            raise BrokerUnavailable("RabbitMQ takes no messages: it is short of memory or disk") from error

    async def is_blocked(self) -> bool:
        """Tell whether the server takes no messages now, though it can be reached."""
        connection = self._connection
        if connection is None or connection.transport is None or not connection.connected.is_set():
            return False
        try:
            async with asyncio.timeout(0):
                await connection.transport.ready()
        except TimeoutError:
            return True
        return False

    async def drop(self) -> None:
        """Give the connection up, without waiting for the server."""
        connection, self._connection = self._connection, None
        if connection is not None:
            task = asyncio.create_task(_close(connection))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Disconnect."""
        await self.drop()
        if self._closing:
            await asyncio.wait(self._closing)


async def _connect(url: URL) -> AbstractConnection:
    """Connect. An attempt that failed is closed here: the library would do it when it is collected, on any thread."""
    connection = aio_pika.Connection(url)
    try:
        await connection.connect()
    except BaseException:
        await connection.close()
        raise
    return connection


async def _close(connection: AbstractConnection) -> None:
    with suppress(*CONNECTION_EXCEPTIONS, TimeoutError):
        async with asyncio.timeout(_CLOSING):
            await connection.close()
