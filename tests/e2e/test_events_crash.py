"""Every committed change is delivered at least once, whoever is killed at whatever moment: an audit of positions.

The server contains the relay. It is killed a hundred times in all, on SQLite and on PostgreSQL, there with a second
server beside it, while adapters report, somebody creates and changes clusters, and consumers pull through the API.
PostgreSQL is killed too: it may forget the last writes to queues, because these are not flushed.

`HYPERFLEET_TEST_EVENT_KILLS=1000 make test ARGS=tests/e2e/test_events_crash.py` is a long soak.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest
from msgspec import Struct

from hyperfleet.messaging import Topic
from tests.e2e.audit import await_silence, copy_of, query
from tests.e2e.changes import Changes
from tests.e2e.lanes import Lane, Traffic
from tests.e2e.pulling import QUIET, Puller, expected_messages, find_faults, repeated
from tests.e2e.server import PATIENCE, Server, await_state, migrated, running
from tests.servers import PostgresServer

pytestmark = pytest.mark.long

KILLS: Final = int(os.environ.get("HYPERFLEET_TEST_EVENT_KILLS", "100"))
DATABASE_KILLS: Final = 8
SEED: Final = os.environ.get("HYPERFLEET_TEST_SEED", "1")
ADAPTERS: Final = ("validation", "dns", "infrastructure", "hypershift")  # those that the built-in policy requires
TOPICS: Final[dict[str, Topic]] = {"work": "clusterEvents", "log": "statusUpdates"}  # by subscription

Look = Callable[[], Awaitable[str]]  # the address of a database that may be looked at


def test_sqlite(tmp_path: Path) -> None:
    file = tmp_path / "fleet.db"

    async def database() -> str:
        return copy_of(file, tmp_path)

    with running(tmp_path, f"sqlite:{file}", **QUIET) as server:
        asyncio.run(Crashes([server], database).run(KILLS // 2))


def test_two_servers_on_postgresql(tmp_path: Path, postgres_url: str) -> None:
    async def database() -> str:
        return postgres_url

    migrated(postgres_url)
    with running(tmp_path, postgres_url, **QUIET) as one, running(tmp_path, postgres_url, **QUIET) as other:
        asyncio.run(Crashes([one, other], database).run(KILLS - KILLS // 2))
        asyncio.run(await_silence(postgres_url))


def test_postgresql_itself(tmp_path: Path, postgres_server: PostgresServer) -> None:
    database = migrated(postgres_server.url())
    with running(tmp_path, database, **QUIET) as server:
        asyncio.run(kill_databases(server, postgres_server))


async def kill_databases(server: Server, postgres: PostgresServer) -> None:
    """Kill PostgreSQL again and again: what it forgets of the queues is published again."""
    chance = random.Random(SEED)
    pullers = subscribe(server, lambda: server.port)
    changes = Changes(lambda: server.port)
    changes.start()
    for puller in pullers.values():
        puller.start()
    for _ in range(DATABASE_KILLS):
        await changes.await_more(chance.randrange(20, 60))
        await asyncio.sleep(chance.uniform(0, 0.2))
        await asyncio.to_thread(postgres.kill9)
        await asyncio.to_thread(postgres.start)
    await changes.stop()
    await drain(server, pullers)
    for name, puller in pullers.items():
        expected = await expected_messages(postgres.url(), TOPICS[name])
        faults = list(find_faults(puller, expected, may_forget=True))
        assert not faults, "\n".join([f"{TOPICS[name]}, seed {SEED}", *faults])
        print(  # noqa: T201  # the numbers of the proof
            f"\n{DATABASE_KILLS} kills of PostgreSQL; {TOPICS[name]}: {len(expected)} messages, "
            f"{len(puller.deliveries)} deliveries, {len(puller.late)} after their ack was answered"
        )


def subscribe(server: Server, port: Callable[[], int]) -> dict[str, Puller]:
    """Create the subscriptions, and consumers of them."""
    for name, topic in TOPICS.items():
        server.http.put(f"/subscriptions/{name}", json={"topic": topic}).raise_for_status()
    return {name: Puller(name, port) for name in TOPICS}


async def drain(server: Server, pullers: Mapping[str, Puller]) -> None:
    """Wait until everything is published and acknowledged."""
    ask = server.http.get

    def is_done() -> bool:
        relay, queues = ask("/pubsub"), ask("/subscriptions")
        if relay.status_code != 200 or queues.status_code != 200:
            return False
        left = [each["waiting"] + each["inFlight"] for each in queues.json()["items"]]
        return relay.json()["position"] == relay.json()["head"] and not any(left)

    await asyncio.to_thread(await_state, is_done)
    for puller in pullers.values():
        await puller.stop()
    assert [each["deadLetters"] for each in ask("/subscriptions").json()["items"]] == [0, 0]


class Window(Struct, frozen=True):
    """What may be published twice because of a kill: above the position that was saved, up to the head."""

    saved: int
    head: int
    time: float

    def covers(self, position: int) -> bool:
        """Tell whether a change may have been published before the kill, and again after it."""
        return self.saved < position <= self.head


class Crashes:
    """Servers over one database that are killed again and again, and everything that keeps them busy."""

    def __init__(self, servers: Sequence[Server], database: Look) -> None:
        self._servers = servers
        self._database = database
        self._chance = random.Random(f"{SEED} {len(servers)}")
        self._pullers = subscribe(servers[0], self._port)
        self._windows: list[Window] = []
        self._outages: list[float] = []  # seconds from a kill until something newer was delivered

    async def run(self, kills: int) -> None:
        """Kill so often, and audit."""
        reports, changes = Traffic(self._create_lanes(), self._port), Changes(self._port)
        reports.start()
        changes.start()
        for puller in self._pullers.values():
            puller.start()
        while len(self._windows) < kills:
            await self._kill_one(reports, self._chance.choice(self._servers))
        await reports.stop()
        await changes.stop()
        await drain(self._servers[0], self._pullers)
        for server in self._servers:
            assert await asyncio.to_thread(server.stop) == 0
        await self._audit(reports.acknowledged + changes.acknowledged)

    def _port(self) -> int:
        ports = [server.port for server in self._servers if server.is_running() and server.port]
        return self._chance.choice(ports or [1])  # nobody listens at port 1

    def _create_lanes(self) -> list[Lane]:
        post = self._servers[0].http.post
        bodies = [{"name": f"crash-{number}", "spec": {}} for number in range(4)]
        ids = [post("/clusters", json=body).raise_for_status().json()["id"] for body in bodies]
        return [Lane(id_, adapter) for id_ in ids for adapter in ADAPTERS]

    async def _kill_one(self, reports: Traffic, server: Server) -> None:
        """Kill a server: often soon after events flow again, else at any moment, also while it starts."""
        await self._await_reports(reports, self._chance.randrange(1, 60))
        if self._chance.random() < 0.4:
            await self._await_news()
            await asyncio.sleep(self._chance.uniform(0, 0.3))
        await self._kill(server)
        while self._chance.random() < 0.35:  # once more, while it starts
            await asyncio.to_thread(server.launch)
            await asyncio.sleep(self._chance.uniform(0, 0.8))
            await self._kill(server)
        await asyncio.to_thread(server.start)

    async def _kill(self, server: Server) -> None:
        server.port = 0
        await asyncio.to_thread(server.kill9)
        statement = "select r.position, h.position from readers r, head h where r.name = 'relay'"
        ((saved, head),) = await query(await self._database(), statement)
        self._windows.append(Window(saved, head, time.monotonic()))

    async def _await_reports(self, reports: Traffic, number: int) -> None:
        """Wait until some more reports were acknowledged."""
        enough = reports.acknowledged + number
        async with asyncio.timeout(PATIENCE):
            while reports.acknowledged < enough:
                await asyncio.sleep(0.001)

    async def _await_news(self) -> None:
        """Wait until something was delivered that was committed after the last kill."""
        if not self._windows:
            return
        async with asyncio.timeout(PATIENCE):
            while max(puller.newest for puller in self._pullers.values()) <= self._windows[-1].head:
                await asyncio.sleep(0.01)
        self._outages.append(time.monotonic() - self._windows[-1].time)

    async def _audit(self, writes: int) -> None:
        """Compare what was delivered with what the log makes."""
        database, twice = await self._database(), set()
        summary = [f"{len(self._windows)} kills, {writes} writes acknowledged"]
        for name, puller in self._pullers.items():
            expected = await expected_messages(database, TOPICS[name])
            faults = list(find_faults(puller, expected))
            assert not faults, "\n".join([f"{TOPICS[name]}, seed {SEED}", *faults])
            again = repeated(puller.deliveries)
            summary.append(
                f"{TOPICS[name]}: {len(expected)} messages, {len(puller.deliveries)} deliveries, "
                f"{len(again)} published twice"
            )
            twice |= again
        unexplained = [each for each in sorted(twice) if not any(window.covers(each) for window in self._windows)]
        assert not unexplained, f"published twice without a crash: {unexplained[:10]}"
        summary.append(_describe(self._outages))
        print("\n".join(["", *summary]))  # noqa: T201  # the numbers of the proof


def _describe(outages: Sequence[float]) -> str:
    ordered = sorted(outages)
    middle, last = ordered[len(ordered) // 2], ordered[-1]
    return f"from a kill to the first newer event: median {middle:.2f} s, at most {last:.2f} s, {len(ordered)} times"
