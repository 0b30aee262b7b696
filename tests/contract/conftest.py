"""Stores to test. They use the real time: PostgreSQL has a clock of its own, so tests date rows from `Loaded.now`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hyperfleet.backends.memory import MemoryStore
from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.messaging import Broker
from hyperfleet.ports import Store
from tests.contract.brokers import Brokers, InProcessBrokers, RabbitBrokers
from tests.contract.pubsub_brokers import PubSubBrokers
from tests.contract.stores import DurableStore
from tests.pubsub import PubSubServer, named_address, temporary_pubsub
from tests.servers import ServerMissingError

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


@pytest.fixture(params=["memory", *DURABLE, pytest.param("rabbit", marks=pytest.mark.rabbit), "pubsub"])
def unopened_brokers(request: pytest.FixtureRequest, tmp_path: Path) -> Brokers:
    """Give a broker of each kind that is yet to be opened. Not a coroutine: some servers need a loop of their own."""
    if request.param == "rabbit":
        return RabbitBrokers(request.getfixturevalue("rabbit_url"))
    if request.param == "pubsub":
        return PubSubBrokers(request.getfixturevalue("pubsub_address"))
    return InProcessBrokers(MemoryStore() if request.param == "memory" else _stores_of(request, tmp_path)())


@pytest.fixture
async def brokers(unopened_brokers: Brokers, anyio_backend: str) -> AsyncIterator[Brokers]:
    """Give a broker of each kind, to be reached as by processes of their own."""
    await unopened_brokers.open()
    yield unopened_brokers
    await unopened_brokers.close()


@pytest.fixture
async def broker(brokers: Brokers) -> Broker:
    """Give an open broker of each kind."""
    return await brokers.connect()


@pytest.fixture(scope="session")
def pubsub_address() -> Iterator[str]:
    """Give the address of a server of Google Pub/Sub; each test uses a project of its own."""
    named = named_address()
    if named is not None:
        yield named
        return
    with _or_skip(), temporary_pubsub() as server:
        yield server.address


@pytest.fixture
def pubsub_server() -> Iterator[PubSubServer]:
    """Give a server of the test's own, to be stopped and started at will."""
    with _or_skip(), temporary_pubsub() as server:
        yield server


@contextmanager
def _or_skip() -> Iterator[None]:
    try:
        yield
    except ServerMissingError as error:
        # The words are those by which `tests/conftest.py` repeats it at the end of a run.
        pytest.skip(f"Server missing: {error}")


def _stores_of(request: pytest.FixtureRequest, directory: Path) -> NewStore:
    if request.param == "sqlite":
        return lambda: SqliteStore(directory / "fleet.db")
    url: str = request.getfixturevalue("postgres_url")
    return lambda: PostgresStore(url)
