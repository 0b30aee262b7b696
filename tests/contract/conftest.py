"""Stores to test. They use the real time: PostgreSQL has a clock of its own, so tests date rows from `Loaded.now`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hyperfleet.backends.memory import MemoryStore
from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.ports import Store
from tests.contract.stores import DurableStore

NewStore = Callable[[], DurableStore]

DURABLE = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests in asyncio."""
    return "asyncio"


@pytest.fixture(params=DURABLE)
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    """Give what makes stores of one database that has no tables yet."""
    return _stores_of(request, tmp_path)


@pytest.fixture(params=["memory", *DURABLE])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> MemoryStore | DurableStore:
    """Give a store of each kind that is yet to be migrated and opened."""
    return MemoryStore() if request.param == "memory" else _stores_of(request, tmp_path)()


@pytest.fixture
async def store(any_store: MemoryStore | DurableStore, anyio_backend: str) -> AsyncIterator[Store]:
    """Give an empty open store of each kind."""
    if not isinstance(any_store, MemoryStore):
        await any_store.migrate()
    await any_store.open()
    yield any_store
    await any_store.close()


@pytest.fixture
async def replicas(new_store: NewStore, anyio_backend: str) -> AsyncIterator[list[Store]]:
    """Give two open stores of one database."""
    stores = [new_store(), new_store()]
    await stores[0].migrate()
    for each in stores:
        await each.open()
    yield list(stores)
    for each in stores:
        await each.close()


def _stores_of(request: pytest.FixtureRequest, directory: Path) -> NewStore:
    if request.param == "sqlite":
        return lambda: SqliteStore(directory / "fleet.db")
    url: str = request.getfixturevalue("postgres_url")
    return lambda: PostgresStore(url)
