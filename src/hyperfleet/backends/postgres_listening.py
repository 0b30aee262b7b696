"""Listens for what other replicas do: PostgreSQL sends one notification for each transaction with events or messages.

Notifications only make things quicker. Where they do not arrive, as behind a pooler that shares sessions, readers of
the log and consumers notice by polling.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal

import asyncpg

from hyperfleet.backends.postgres_connections import DRIVER_ERRORS, Timeouts

_LOG: Final = logging.getLogger(__name__)
_RETRY: Final = 1.0  # seconds before it connects again
_ALIVE: Final = 15.0  # seconds between checks of the connection: a lost one is not noticed otherwise

Channel = Literal["hyperfleet", "hyperfleet_messages"]  # commits with events, or released leases; messages of queues
Callbacks = Mapping[Channel, Sequence[Callable[[], None]]]


async def listen(url: str, timeouts: Timeouts, callbacks: Callbacks) -> None:
    """Call back after each notification, for ever; reconnects. Callbacks may be added meanwhile."""
    while True:
        try:
            await _listen_once(url, timeouts, callbacks)
        except DRIVER_ERRORS as error:
            _LOG.debug("not listening for commits of other replicas: %s", error)
        await asyncio.sleep(_RETRY)


async def _listen_once(url: str, timeouts: Timeouts, callbacks: Callbacks) -> None:
    """Listen until the connection breaks."""
    connection = await asyncpg.connect(
        url, timeout=timeouts.connect, server_settings={"application_name": "hyperfleet listener"}
    )
    closed = asyncio.Event()
    try:
        connection.add_termination_listener(lambda _: closed.set())
        for channel, some in callbacks.items():
            await connection.add_listener(channel, lambda *_, some=some: _call(some))
        for some in callbacks.values():
            _call(some)  # something may have happened before
        while not closed.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(closed.wait(), _ALIVE)
            await connection.execute("select 1", timeout=timeouts.statement)
    finally:
        connection.terminate()


def _call(callbacks: Iterable[Callable[[], None]]) -> None:
    for callback in callbacks:
        callback()
