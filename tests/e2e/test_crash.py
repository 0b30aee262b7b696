"""Nothing that was acknowledged is ever lost, and nothing is ever half done, whoever is killed at whatever moment.

`HYPERFLEET_TEST_KILLS=1000 make test ARGS=tests/e2e/test_crash.py` is a long soak; the seed of a run that failed is in
its message, and `HYPERFLEET_TEST_SEED` repeats its moments as well as a machine can repeat them.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.audit import auditing, await_silence, copy_of
from tests.e2e.lanes import Lane, Traffic
from tests.e2e.server import PATIENCE, Server, run_command, running
from tests.servers import PostgresServer

pytestmark = pytest.mark.long

KILLS: Final = int(os.environ.get("HYPERFLEET_TEST_KILLS", "50"))
SEED: Final = os.environ.get("HYPERFLEET_TEST_SEED", "1")
ADAPTERS: Final = ("validation", "dns", "infrastructure", "hypershift")  # those that the built-in policy requires
CLUSTERS: Final = 6


def share(of_fifty: int) -> int:
    """Return how many of all kills are for one test."""
    return max(1, KILLS * of_fifty // 50)


def test_sqlite_survives_its_server_being_killed(tmp_path: Path) -> None:
    file = tmp_path / "fleet.db"

    async def database() -> str:
        return copy_of(file, tmp_path)

    with running(tmp_path, f"sqlite:{file}") as server:
        asyncio.run(kill_servers(server, share(24), database))


def test_postgresql_survives_its_server_being_killed(tmp_path: Path, postgres_url: str) -> None:
    async def database() -> str:
        await await_silence(postgres_url)
        return postgres_url

    migrate(postgres_url)
    with running(tmp_path, postgres_url) as server:
        asyncio.run(kill_servers(server, share(16), database))


def test_a_server_survives_postgresql_being_killed(tmp_path: Path, postgres_server: PostgresServer) -> None:
    migrate(postgres_server.url())
    with running(tmp_path, postgres_server.url()) as server:
        asyncio.run(kill_databases(server, postgres_server, share(10)))


async def kill_servers(server: Server, kills: int, database: Callable[[], Awaitable[str]]) -> None:
    """Kill a server again and again, now and then while it starts; look at what it left each time."""
    chance = random.Random(f"{SEED} {kills}")
    traffic = Traffic(create_lanes(server), lambda: server.port)
    for kill in range(kills):
        traffic.start()
        await until(traffic, traffic.acknowledged + chance.randrange(1, 200))
        await asyncio.sleep(chance.uniform(0, 0.01))
        server.kill9()
        await traffic.stop()
        await must_be_in_order(await database(), traffic.lanes, f"kill {kill + 1} of {kills}, seed {SEED}")
        if kill % 4 == 3:  # once more, while it starts
            server.launch()
            await asyncio.sleep(chance.uniform(0, 0.8))
            server.kill9()
        server.start()
    assert answers(traffic.lanes) == {0, 200}
    assert server.stop() == 0
    await must_be_in_order(await database(), traffic.lanes, "after a stop in good order")


async def kill_databases(server: Server, postgres: PostgresServer, kills: int) -> None:
    """Kill PostgreSQL again and again; the server must say that it is away, and go on by itself when it is back."""
    chance = random.Random(SEED)
    traffic = Traffic(create_lanes(server), lambda: server.port)
    for kill in range(kills):
        traffic.start()
        await until(traffic, traffic.acknowledged + chance.randrange(1, 200))
        await asyncio.sleep(chance.uniform(0, 0.01))
        postgres.kill9()
        await until_refused(traffic)
        must_say_that_it_is_away(server, traffic.lanes[0].cluster)
        postgres.start()
        await until(traffic, traffic.acknowledged + len(traffic.lanes))
        await traffic.stop()
        await must_be_in_order(postgres.url(), traffic.lanes, f"kill {kill + 1} of {kills}, seed {SEED}")
    assert answers(traffic.lanes) == {200, 503}
    assert server.is_ready()
    assert "Traceback" not in server.log


def migrate(database: str) -> None:
    """Create the tables."""
    done = run_command("db", "migrate", database=database)
    assert done.returncode == 0, done.stderr


def create_lanes(server: Server) -> list[Lane]:
    """Create clusters, and a lane for each adapter of each."""
    ids = []
    for number in range(CLUSTERS):
        answer = server.http.post("/clusters", json={"name": f"crash-{number}", "spec": {}})
        ids.append(answer.raise_for_status().json()["id"])
    return [Lane(id_, adapter) for id_ in ids for adapter in ADAPTERS]


async def until(traffic: Traffic, acknowledged: int) -> None:
    """Wait until so many reports were acknowledged."""
    async with asyncio.timeout(PATIENCE):
        while traffic.acknowledged < acknowledged:
            await asyncio.sleep(0.001)


async def until_refused(traffic: Traffic) -> None:
    """Wait until every lane was told once more that the store is away."""
    before = [lane.answers.get(503, 0) for lane in traffic.lanes]
    async with asyncio.timeout(PATIENCE):
        while any(lane.answers.get(503, 0) == count for lane, count in zip(traffic.lanes, before, strict=True)):
            await asyncio.sleep(0.001)


def must_say_that_it_is_away(server: Server, cluster: str) -> None:
    """Ask a server without a database for something: it must say why not, and when to ask again."""
    answers = [
        server.http.get(f"/clusters/{cluster}"),
        server.http.get("/clusters"),
        server.http.post("/clusters", json={"name": "never", "spec": {}}),
    ]
    for answer in answers:
        assert answer.status_code == 503
        assert answer.json()["code"] == "StoreUnavailable"
        assert int(answer.headers["Retry-After"]) >= 1
    assert not server.is_ready()
    assert server.http.get(f"{server.url}/healthz").status_code == 200


async def must_be_in_order(database: str, lanes: Sequence[Lane], moment: str) -> None:
    """Audit a database that nobody writes to."""
    async with auditing(database) as audit:
        faults = await audit.find_faults(lanes)
    assert not faults, "\n".join([moment, *faults])
    assert {each.outcome for lane in lanes for each in lane.acknowledged} == {"aggregated"}


def answers(lanes: Sequence[Lane]) -> set[int]:
    """Return every status that was answered, and 0 if an answer was lost."""
    return {status for lane in lanes for status in lane.answers}


@pytest.fixture(autouse=True)
def _tell_the_seed(record_property: Callable[[str, object], None]) -> None:
    """Keep the seed with the result."""
    record_property("seed", SEED)
