"""Watching through kills: ordered, complete, unique, resumable from any position, nothing that a crash took back.

Adapters report and node pools come and go while watchers listen and reconnect as they like, and the server is killed
again and again. Then what each watcher was told is compared with the log, read behind the server's back. The seed of
a run is in its message; `HYPERFLEET_TEST_KILLS` and `HYPERFLEET_TEST_SEED` are those of `test_crash.py`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from hyperfleet.bootstrap import open_store
from hyperfleet.ports import LoggedEvent
from tests.api.listening import Ear, Heard
from tests.e2e.audit import copy_of
from tests.e2e.lanes import BASE, Channel, Lane, LostError, Traffic, report_body
from tests.e2e.server import PATIENCE, Server, await_state, running
from tests.e2e.test_crash import ADAPTERS, SEED, create_lanes, migrate, share, until
from tests.e2e.watchers import Told, View, Watcher, expect, find_faults
from tests.servers import PostgresServer

pytestmark = pytest.mark.long

FAILED: Final = "Failed"


def is_failed(answer: dict[str, Any]) -> bool:
    """Tell what `phase=Failed` asks for."""
    return bool(answer["status"]["phase"] == FAILED)


def is_not_ready(answer: dict[str, Any]) -> bool:
    """Tell what `conditions=Ready!=True` asks for."""
    return any(each["type"] == "Ready" and each["status"] != "True" for each in answer["status"]["conditions"])


def is_even(answer: dict[str, Any]) -> bool:
    """Tell what the label `turn` says."""
    return bool(answer["metadata"]["labels"].get("turn") == "even")


VIEWS: Final = (
    View("/clusters?watch=true", "Cluster", bool),
    View("/nodepools?watch=true", "NodePool", bool),
    View("/clusters?watch=true&phase=Failed", "Cluster", is_failed),
    View("/clusters?watch=true&conditions=Ready!%3DTrue", "Cluster", is_not_ready),
    View("/nodepools?watch=true&labelSelector=turn%3Deven", "NodePool", is_even),
)

Database = Callable[[], str]


def test_watches_of_sqlite_survive_kills(tmp_path: Path) -> None:
    file = tmp_path / "fleet.db"
    with running(tmp_path, f"sqlite:{file}") as server:
        asyncio.run(watch_and_kill([server], share(12), lambda: copy_of(file, tmp_path)))


def test_watches_of_postgresql_survive_kills(tmp_path: Path, postgres_url: str) -> None:
    migrate(postgres_url)
    with running(tmp_path, postgres_url) as server:
        asyncio.run(watch_and_kill([server], share(10), lambda: postgres_url))


def test_two_replicas_tell_the_same(tmp_path: Path, postgres_url: str) -> None:
    """Watchers change from replica to replica; each must be told what any other would have been told."""
    migrate(postgres_url)
    with running(tmp_path, postgres_url) as one, running(tmp_path, postgres_url) as other:
        asyncio.run(watch_and_kill([one, other], share(4), lambda: postgres_url))


async def watch_and_kill(servers: Sequence[Server], kills: int, database: Database) -> None:
    """Kill servers in turn while others write and watch; then compare what was told with the log."""
    chance = random.Random(f"{SEED} {kills}")
    lanes = create_lanes(servers[0])
    traffic = Traffic(lanes, lambda: chance.choice(servers).port)
    gardener = Gardener(lanes[0].cluster, lambda: chance.choice(servers).port)
    watchers = [Watcher(view, lambda: [each.port for each in servers], f"{SEED} {n}") for view in VIEWS for n in (1, 2)]
    async with listening(watchers):
        for kill in range(kills):
            traffic.start()
            gardening = asyncio.create_task(gardener.run())
            await until(traffic, traffic.acknowledged + chance.randrange(50, 300))
            await asyncio.sleep(chance.uniform(0, 0.05))
            victim = servers[kill % len(servers)]
            victim.kill9()
            await traffic.stop()
            await gardener.stop(gardening)
            victim.start()
        for watcher in watchers:
            watcher.settle()
        log = await read_log(database())
        await until_all_is_told(watchers, log)
        for server in servers:
            assert server.stop() == 0
            assert "were not complete" not in server.log, "streams must not hold up a stop"
    faults = [fault for watcher in watchers for fault in find_faults(watcher, log)]
    assert not faults, "\n".join([f"seed {SEED}", *faults])
    assert sum(watcher.connections for watcher in watchers) > kills * len(servers)
    assert {each.event for watcher in watchers for each in watcher.told} == {"added", "modified", "deleted"}


class Gardener:
    """Makes node pools, changes and removes them; each name is used once."""

    def __init__(self, cluster: str, port: Callable[[], int]) -> None:
        self._path = f"{BASE}/clusters/{cluster}/nodepools"
        self._channel = Channel(port)
        self._number = 0
        self._is_stopping = False

    async def run(self) -> None:
        """Work until told to stop."""
        while not self._is_stopping:
            try:
                await self._grow()
            except LostError:
                await asyncio.sleep(0.02)

    async def stop(self, task: asyncio.Task[None]) -> None:
        """Finish what was begun."""
        self._is_stopping = True
        await task
        self._channel.close()
        self._is_stopping = False

    async def _grow(self) -> None:
        self._number += 1
        turn = "even" if self._number % 2 == 0 else "odd"
        body = {"name": f"np-{self._number}", "spec": {}, "labels": {"turn": turn}}
        status, pool = await self._channel.request("POST", self._path, body)
        if status != 201:
            return
        path = f"{self._path}/{pool['id']}"
        for number in range(self._number % 4):
            turn = "even" if number % 2 else "odd"
            await self._channel.request("PATCH", path, {"labels": {"turn": turn, "number": str(number)}})
        if self._number % 3:
            await self._channel.request("DELETE", path)


@asynccontextmanager
async def listening(watchers: Sequence[Watcher]) -> AsyncIterator[None]:
    """Let watchers listen for the length of a block."""
    tasks = [asyncio.create_task(watcher.run()) for watcher in watchers]
    try:
        yield
    finally:
        for watcher in watchers:
            watcher.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until_all_is_told(watchers: Sequence[Watcher], log: Sequence[LoggedEvent]) -> None:
    """Wait until everybody was told the last thing that concerns them."""
    due = {watcher.view: expect(watcher.view, log) for watcher in watchers}
    async with asyncio.timeout(PATIENCE):
        while any(not due[each.view] or each.position < due[each.view][-1].position for each in watchers):
            await asyncio.sleep(0.02)


async def read_log(database: str) -> list[LoggedEvent]:
    """Read the whole log, which nobody writes to."""
    store = open_store(database)
    await store.open()
    try:
        entries: list[LoggedEvent] = []
        while page := (await store.read_events(len(entries), 1_000)).entries:
            entries += page
    finally:
        await store.close()
    assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
    return entries


def test_every_position_can_be_resumed_from(tmp_path: Path) -> None:
    """Ask for what came after each position of a log in turn; it must be the rest of the log."""
    file = tmp_path / "fleet.db"
    with running(tmp_path, f"sqlite:{file}") as server:
        asyncio.run(resume_everywhere(server, lambda: copy_of(file, tmp_path)))


async def resume_everywhere(server: Server, database: Database) -> None:
    lanes = [Lane(lane.cluster, lane.adapter) for lane in create_lanes(server)[: 2 * len(ADAPTERS)]]
    traffic = Traffic(lanes, lambda: server.port)
    traffic.start()
    await until(traffic, 150)
    await traffic.stop()
    log = await read_log(database())
    due = expect(VIEWS[0], log)
    starts = range(0, len(log), 7)
    watchers = [Watcher(VIEWS[0], lambda: [server.port], "") for _ in starts]
    for watcher, start in zip(watchers, starts, strict=True):
        watcher.first = watcher.position = start
    async with listening(watchers):
        await until_all_is_told(watchers, log)
    for watcher, start in zip(watchers, starts, strict=True):
        assert watcher.told == [each for each in due if each.position > start]
        assert not watcher.faults


def test_a_watch_survives_the_database_being_away(tmp_path: Path, postgres_server: PostgresServer) -> None:
    migrate(postgres_server.url())
    with running(tmp_path, postgres_server.url()) as server:
        asyncio.run(outlive(server, postgres_server))


async def outlive(server: Server, postgres: PostgresServer) -> None:
    """Kill the database under a watch; the same connection must tell what happens when it is back."""
    create_lanes(server)
    heard: list[Heard] = []
    async with (
        httpx.AsyncClient(timeout=PATIENCE) as client,
        client.stream("GET", f"{server.api}/clusters?watch=true") as response,
    ):
        pieces, ear = response.aiter_raw(), Ear()
        while not any(each.event == "synced" for each in heard):
            heard += ear.take(await anext(pieces))
        postgres.kill9()
        await client.get(f"{server.api}/clusters")
        postgres.start()
        await asyncio.to_thread(await_state, server.is_ready)
        created = await client.post(f"{server.api}/clusters", json={"name": "back", "spec": {}})
        while heard[-1].data != created.json():
            heard += ear.take(await anext(pieces))
    assert heard[-1].event == "added"


def test_a_slow_reader_is_waited_for_and_holds_nobody_up(tmp_path: Path) -> None:
    file = tmp_path / "fleet.db"
    with running(tmp_path, f"sqlite:{file}") as server:
        asyncio.run(dawdle(server, lambda: copy_of(file, tmp_path)))


async def dawdle(server: Server, database: Database) -> None:
    """Leave more unread than any buffer on the way holds, and read it in the end."""
    lanes = create_lanes(server)
    traffic = Traffic(lanes, lambda: server.port)
    quick = Watcher(VIEWS[0], lambda: [server.port], "")
    quick.settle()
    async with (
        listening([quick]),
        httpx.AsyncClient(timeout=PATIENCE) as client,
        client.stream("GET", f"{server.api}/clusters?watch=true&after=0") as slow,
    ):
        traffic.start()
        await until(traffic, 12_000)
        await traffic.stop()
        log = await read_log(database())
        await until_all_is_told([quick], log)
        due, told, ear = expect(VIEWS[0], log), [], Ear()
        async for piece in slow.aiter_raw():
            told += [Told(each.id, each.event, each.data) for each in ear.take(piece) if each.id and each.data]
            if told and told[-1].position >= due[-1].position:
                break
    assert sum(len(entry.answer or b"") for entry in log) > 8 * 2**20
    assert told == due


def test_who_hangs_up_leaves_their_seat(tmp_path: Path) -> None:
    with running(tmp_path, f"sqlite:{tmp_path / 'fleet.db'}", limits_max_watches="1") as server:
        cluster = create_lanes(server)[0].cluster
        with server.http.stream("GET", "/clusters?watch=true") as stream:
            assert stream.status_code == 200
            assert ask_for_seat(server, cluster) == 503
        await_state(lambda: ask_for_seat(server, cluster) == 200)
        with pytest.raises(httpx.ReadTimeout):
            server.http.get(f"/clusters/{cluster}:wait?for=phase=Ready&timeout=1h", timeout=0.5)
        await_state(lambda: ask_for_seat(server, cluster) == 200)


def ask_for_seat(server: Server, cluster: str) -> int:
    """Return how a wait that need not wait is answered."""
    return server.http.get(f"/clusters/{cluster}:wait?for=phase=Pending").status_code


def test_a_wait_is_answered_by_whichever_replica_it_is_sent_to(tmp_path: Path, postgres_url: str) -> None:
    migrate(postgres_url)
    with running(tmp_path, postgres_url) as one, running(tmp_path, postgres_url) as other:
        cluster = create_lanes(one)[0].cluster
        asyncio.run(wait_elsewhere(one, other, f"/clusters/{cluster}"))


async def wait_elsewhere(one: Server, other: Server, path: str) -> None:
    """Wait at one replica for what another one is told."""
    async with httpx.AsyncClient(timeout=PATIENCE) as client:
        waiting = asyncio.create_task(client.get(f"{one.api}{path}:wait?for=adapter=dns&timeout=1m"))
        reported = await client.post(f"{other.api}{path}/statuses", json=report_body("dns", 1))
        answer = await waiting
    assert reported.status_code == 200, reported.text
    assert answer.status_code == 200, answer.text
    assert answer.json()["outcome"] == "met"
