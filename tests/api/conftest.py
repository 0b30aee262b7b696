"""The fixtures of the API's tests. Every test that takes `client` runs on every store there is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from hyperfleet.api.context import RequestLimits
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.ports import Store
from tests.api.fleet import Fleet, HandClock, open_fleet
from tests.api.tenants import Keys, World, open_world

STORES = ("memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres))


@pytest.fixture
def clock() -> HandClock:
    """Give the clock of a store that has none; PostgreSQL has its own and does not look at it."""
    return HandClock()


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock) -> Store:
    """Give an empty store of each sort."""
    return make_store(request, tmp_path, clock, "postgres_url")


def make_store(request: pytest.FixtureRequest, directory: Path, clock: HandClock, database: str) -> Store:
    """Make the store that a fixture is to have; `database` names the fixture that lends one."""
    match request.param:
        case "memory":
            return MemoryStore(clock)
        case "sqlite":
            return SqliteStore(directory / "fleet.db", clock)
        case _:
            url = request.getfixturevalue(database)
            asyncio.run(PostgresStore(url).migrate())
            return PostgresStore(url)


@pytest.fixture
def limits() -> RequestLimits:
    """Give the limits of the server; a test module may have its own."""
    return RequestLimits()


@pytest.fixture
def client(store: Store, clock: HandClock, limits: RequestLimits) -> Iterator[Fleet]:
    """Give a client of a server with an empty store."""
    with open_fleet(store, clock, limits) as fleet:
        yield fleet


@pytest.fixture
def memory_client(clock: HandClock, limits: RequestLimits) -> Iterator[Fleet]:
    """Give a client for what no store has a part in."""
    with open_fleet(MemoryStore(clock), clock, limits) as fleet:
        yield fleet


@pytest.fixture(scope="module", params=STORES)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Give a server with two tenants to all tests of a module that write nothing: it takes seconds to settle."""
    clock = HandClock()
    store = make_store(request, tmp_path_factory.mktemp("world"), clock, "lasting_postgres_url")
    with open_fleet(store, clock, RequestLimits(), authenticator=Keys()) as fleet:
        world = open_world(fleet)
        position = fleet.run(store.position())
        yield world
        assert fleet.run(store.position()) == position, "who writes takes `own_world`"


@pytest.fixture
def own_world(store: Store, clock: HandClock, limits: RequestLimits) -> Iterator[World]:
    """Give a server with two tenants to one test, which may write."""
    with open_fleet(store, clock, limits, authenticator=Keys()) as fleet:
        yield open_world(fleet)
