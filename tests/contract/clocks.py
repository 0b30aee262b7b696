"""Stores in a time that tests set: also PostgreSQL, whose own clock is hidden behind functions of the same names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import asyncpg

from hyperfleet.backends.memory import MemoryStore
from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.ports import Store
from tests.contract.stores import START, SettableClock

# What is called without its schema is looked for here before it is looked for in pg_catalog.
_HIDE_CLOCK: Final = """
create schema clocked;
create table clocked.clock (instant timestamptz not null);
insert into clocked.clock values ('{start}');
create function clocked.statement_timestamp() returns timestamptz language sql stable
    as 'select instant from clocked.clock';
create function clocked.clock_timestamp() returns timestamptz language sql volatile
    as 'select instant from clocked.clock';
alter database {database} set search_path = clocked, pg_catalog, public;
"""


class TestTime:
    """A time that stands until it is set, for every store that is made with it."""

    __test__ = False

    def __init__(self) -> None:
        self.clock = SettableClock()
        self._tell: list[Callable[[datetime], Awaitable[None]]] = []
        self._close: list[Callable[[], Awaitable[None]]] = []
        self._hidden: set[str] = set()

    @property
    def now(self) -> datetime:
        """Return what it is."""
        return self.clock.instant

    async def set(self, instant: datetime) -> None:
        """Set it, also back."""
        self.clock.instant = instant
        for tell in self._tell:
            await tell(instant)

    async def advance(self, duration: timedelta) -> None:
        """Let time pass."""
        await self.set(self.now + duration)

    async def new_store(self, engine: str, place: Path | str) -> Store:
        """Return an open store; `place` is a file, or the address of a database that is empty or has one already."""
        store: Any
        if engine == "memory":
            store = MemoryStore(self.clock)
        elif engine == "sqlite":
            store = SqliteStore(Path(place), self.clock)
            await store.migrate()
        else:
            await self._hide_clock(str(place))
            store = PostgresStore(str(place))
            await store.migrate()
        await store.open()
        self._close.append(store.close)
        opened: Store = store
        return opened

    async def close(self) -> None:
        """Close every store."""
        for close in self._close:
            await close()

    async def _hide_clock(self, url: str) -> None:
        """Hide the clock of a database, unless that is done: several stores may share one."""
        if url in self._hidden:
            return
        self._hidden.add(url)
        connection = await asyncpg.connect(url)
        await connection.execute(_HIDE_CLOCK.format(start=START.isoformat(), database=urlsplit(url).path[1:]))

        async def tell(instant: datetime) -> None:
            await connection.execute("update clocked.clock set instant = $1", instant)

        await tell(self.now)
        self._tell.append(tell)
        self._close.insert(0, connection.close)
