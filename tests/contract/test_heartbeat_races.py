"""Heartbeats that meet other writes, from two servers on one database: nothing acknowledged is lost.

`docs/adr/0022` names the locks. A third connection holds one of them until both sides stand where they shall meet.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest
from msgspec.structs import replace

from hyperfleet.backends.postgres_transactions import record_heartbeats
from hyperfleet.model.kind import CLUSTER
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import EVERYTHING, HistoryQuery, Record, StatusCause
from hyperfleet.services.callers import ANONYMOUS
from hyperfleet.services.reports import AcceptReports, Submission
from hyperfleet.services.resources import Create, Delete, Edit
from hyperfleet.services.results import Refusal, Reported, ResourceEdit
from hyperfleet.services.upkeep import Recompute
from tests.contract.clocks import TestTime
from tests.contract.conftest import DURABLE
from tests.contract.stores import must_read
from tests.contract.ways import Writer
from tests.unit.services.desk import accept_all, target_of
from tests.world import make_report

pytestmark = pytest.mark.anyio

SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
POLICY: Final = "requiredAdapters: [dns, apply]\npolicies: {staleThreshold: 5m, staleAction: degraded}"
IMPATIENT: Final = POLICY.replace("5m", "1m")


class Servers:
    """Two servers on one database, in one time."""

    def __init__(self, time: TestTime, writers: list[Writer]) -> None:
        self.time = time
        self.first, self.second = self.writers = writers
        self._number = 0

    def reporting(self, adapter: str = "dns", said: str = "True", id_: str = "cls-a", **more: Any) -> AcceptReports:
        """Make the command for one report; `observed` is its time."""
        self._number += 1
        report = replace(make_report(adapter, said, **_without(more, "observed")), observed_time=more.get("observed"))
        return AcceptReports(target_of(id_), (Submission(report, f"rpt-{self._number}"),), ANONYMOUS, "outcome")

    async def report(self, adapter: str = "dns", said: str = "True", **more: Any) -> Reported:
        """Have the first server take a report."""
        result = await self.first.committer.submit(self.reporting(adapter, said, **more))
        assert isinstance(result, Reported), result
        return result

    async def beat(self, adapter: str = "dns", **more: Any) -> None:
        """Have the first server take a heartbeat, which must take the short way."""
        result = await self.report(adapter, **more)
        assert result.heartbeat is not None, "it did not take the short way"

    async def begin(self, *ids: str) -> None:
        """Store clusters on which both adapters have reported: all is calm."""
        for id_ in ids or ("cls-a",):
            await self.first.committer.submit(Create(CLUSTER, id_, id_, {}, {}, ANONYMOUS, accept_all))
            for adapter in ("dns", "apply"):
                await self.time.advance(SECOND)
                await self.report(adapter, id_=id_)
        await self.time.advance(SECOND)

    async def read(self, id_: str = "cls-a") -> Record:
        """Read what both servers must see alike."""
        record = await must_read(self.second.store, id_)
        assert record == await must_read(self.first.store, id_)
        return record

    async def stored(self, adapter: str = "dns") -> StoredReport:
        """Return the report of an adapter."""
        return (await self.read()).reports[adapter]

    async def verify(self) -> None:
        """See that every status is the function of what is stored beside it."""
        for writer in self.writers:
            await writer.policies.refresh()
        await self.first.verify()


def _without(given: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != name}


@asynccontextmanager
async def serving(engine: str, place: Path | str) -> AsyncIterator[Servers]:
    """Run two servers for a block."""
    time = TestTime()
    writers = [Writer(await time.new_store(engine, place)) for _ in range(2)]
    for writer in writers:
        await writer.use(POLICY)
        writer.committer.start()
    try:
        yield Servers(time, writers)
    finally:
        for writer in writers:
            await writer.committer.close()
        await time.close()


@pytest.fixture(params=DURABLE)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path | str]:
    """Give the name of an engine, and a place for an empty database."""
    if request.param == "postgres":
        return "postgres", request.getfixturevalue("postgres_url")
    return "sqlite", tmp_path / "fleet.db"


@pytest.fixture
async def servers(place: tuple[str, Path | str], anyio_backend: str) -> AsyncIterator[Servers]:
    """Give two servers on one database of each kind."""
    async with serving(*place) as running:
        yield running


# ── where two stand, on PostgreSQL ───────────────────────────────────────────────────────────────────────────────


class Barrier:
    """A third connection, which holds locks and sees who waits."""

    def __init__(self, url: str) -> None:
        self._url = url

    @asynccontextmanager
    async def held(self, statement: str) -> AsyncIterator[Any]:
        """Hold the locks of a statement for a block, then let them go."""
        connection = await asyncpg.connect(self._url)
        try:
            async with connection.transaction():
                await connection.execute(statement)
                yield connection
        finally:
            await connection.close()

    async def until_waiting(self, number: int = 1) -> None:
        """Return when so many sessions wait for locks."""
        connection = await asyncpg.connect(self._url)
        try:
            async with asyncio.timeout(30):
                while await connection.fetchval(_COUNT_WAITING) < number:
                    await asyncio.sleep(0.01)
        finally:
            await connection.close()


_COUNT_WAITING: Final = (
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
)
# Whoever makes an event has locked, loaded and computed before, and waits here before anything is written.
HEAD: Final = "select from head for update"
REPORT: Final = "select from reports where resource_id = 'cls-a' and adapter = 'dns' for update"


@pytest.fixture
async def barred(postgres_url: str, anyio_backend: str) -> AsyncIterator[tuple[Servers, Barrier]]:
    """Give two servers on one PostgreSQL, with a cluster on which all is calm, and what bars their way."""
    async with serving("postgres", postgres_url) as running:
        await running.begin()
        yield running, Barrier(postgres_url)


Barred = tuple[Servers, Barrier]


async def behind(barrier: Barrier, coroutine: Awaitable[Any], waiting: int = 1) -> asyncio.Task[Any]:
    """Begin something, and return when it waits for a lock."""
    task = asyncio.ensure_future(coroutine)
    await barrier.until_waiting(waiting)
    return asyncio.ensure_future(task)


async def test_news_that_waited_for_a_heartbeat_is_judged_by_the_times_that_it_left(barred: Barred) -> None:
    """The first lock: rows are read after the wait, or the heartbeat would be overwritten by what is older."""
    servers, barrier = barred
    middle = servers.time.now
    await servers.time.advance(MINUTE)
    heartbeat = servers.reporting().wants.heartbeat
    assert heartbeat is not None
    async with barrier.held("select 1") as connection:
        assert await record_heartbeats(connection, [heartbeat]) != [None]
        news = servers.reporting(said="False/Broken", observed=middle)
        late = await behind(barrier, servers.second.committer.submit(news))
    result = await late
    assert result.results[0].cause == "OutOfOrder"
    stored = await servers.stored()
    assert (stored.effective_time, stored.report.status_of("Available")) == (servers.time.now, "True")
    await servers.verify()


async def test_a_heartbeat_that_waited_for_news_is_news_itself(barred: Barred) -> None:
    servers, barrier = barred
    async with barrier.held(HEAD):
        news = await behind(barrier, servers.second.committer.submit(servers.reporting(said="False/Broken")))
        await servers.time.advance(SECOND)
        beat = await behind(barrier, servers.report(), 2)
    assert (await news).results[0].outcome == "aggregated"
    result = await beat
    assert (result.heartbeat, result.results[0].outcome) == (None, "aggregated")
    history = await servers.first.store.read_transitions(HistoryQuery("cls-a", EVERYTHING, frozenset({"Ready"})))
    assert [each.transition.after for each in history][:3] == ["True", "False", "True"], "neither is lost"
    await servers.verify()


async def test_a_timer_marks_no_adapter_whose_heartbeat_came_meanwhile(barred: Barred) -> None:
    """The second lock: calm is cleared only where the times are those that were read."""
    servers, barrier = barred
    before = await servers.read()
    await servers.time.advance(4 * MINUTE)
    await servers.beat("apply")
    await servers.time.advance(MINUTE)
    async with barrier.held(HEAD):
        timer = await behind(barrier, servers.second.committer.submit(Recompute("cls-a", StatusCause("deadline"))))
        await servers.beat()
    await timer
    record = await servers.read()
    assert [summary.stale for summary in record.status.adapters] == [False, False]
    assert record.reports["dns"].last_heard == servers.time.now
    assert record.reports["dns"].is_calm
    assert record.revision == before.revision
    await servers.verify()


async def test_a_heartbeat_that_waited_for_a_timer_wakes_its_adapter_up(barred: Barred) -> None:
    servers, barrier = barred
    await servers.time.advance(6 * MINUTE)
    async with barrier.held(REPORT):
        timer = await behind(barrier, servers.second.committer.submit(Recompute("cls-a", StatusCause("deadline"))))
        beat = await behind(barrier, servers.report(), 2)
    await timer
    assert (await beat).results[0].outcome == "aggregated"
    stored = await servers.stored()
    assert stored.last_heard == servers.time.now
    dns = next(each for each in (await servers.read()).status.adapters if each.name == "dns")
    assert not dns.stale
    await servers.verify()


async def test_an_edit_takes_nothing_back_that_a_heartbeat_moved(barred: Barred) -> None:
    servers, barrier = barred
    edit = Edit(target_of("cls-a"), ResourceEdit(spec={"a": 1}), ANONYMOUS, accept_all)
    await servers.time.advance(MINUTE)
    async with barrier.held(HEAD):
        edited = await behind(barrier, servers.second.committer.submit(edit))
        await servers.beat()
    await edited
    record = await servers.read()
    assert (record.resource.generation, record.reports["dns"].last_heard) == (2, servers.time.now)
    await servers.verify()


async def test_news_of_one_adapter_takes_nothing_back_of_another(barred: Barred) -> None:
    servers, barrier = barred
    await servers.time.advance(MINUTE)
    async with barrier.held(HEAD):
        news = await behind(barrier, servers.second.committer.submit(servers.reporting("apply", "False/Broken")))
        await servers.beat()
    await news
    record = await servers.read()
    assert record.reports["dns"].last_heard == servers.time.now
    assert record.status.phase == "Failed"
    await servers.verify()


async def test_a_resource_that_goes_takes_its_heartbeats_along(barred: Barred) -> None:
    servers, barrier = barred
    await servers.second.committer.submit(Delete(target_of("cls-a"), ANONYMOUS))
    done: dict[str, Any] = {"generation": 2, "extra": {"Finalized": "True"}}
    await servers.report(**done)
    await servers.time.advance(MINUTE)
    async with barrier.held(HEAD):
        last = await behind(barrier, servers.second.committer.submit(servers.reporting("apply", **done)))
        await servers.beat(**done)
    assert (await last).is_gone
    assert await servers.first.store.read_record("Cluster", "cls-a", EVERYTHING) is None
    refused = await servers.first.committer.submit(servers.reporting(**done))
    assert isinstance(refused, Refusal)
    assert refused.code == "NotFound"


async def test_a_heartbeat_that_waits_for_a_removal_finds_nothing(barred: Barred) -> None:
    servers, barrier = barred
    await servers.second.committer.submit(Delete(target_of("cls-a"), ANONYMOUS))
    done: dict[str, Any] = {"generation": 2, "extra": {"Finalized": "True"}}
    await servers.report("apply", **done)
    await servers.time.advance(MINUTE)
    async with barrier.held(HEAD):
        last = await behind(barrier, servers.second.committer.submit(servers.reporting(**done)))
        late = await behind(barrier, servers.first.committer.submit(servers.reporting(generation=1)), 2)
    assert (await last).is_gone
    refused = await late
    assert isinstance(refused, Refusal)
    assert refused.code == "NotFound"


async def test_another_policy_is_computed_from_the_times_of_heartbeats_that_came_meanwhile(barred: Barred) -> None:
    servers, barrier = barred
    await servers.time.advance(2 * MINUTE)
    await servers.second.use(IMPATIENT)
    async with barrier.held(HEAD):
        again = await behind(barrier, servers.second.committer.submit(Recompute("cls-a", StatusCause("policy"))))
        await servers.beat()
    await again
    stale = {summary.name: summary.stale for summary in (await servers.read()).status.adapters}
    assert stale == {"apply": True, "dns": False}
    await servers.verify()


async def test_a_heartbeat_under_the_policy_before_counts_when_the_new_one_is_computed(barred: Barred) -> None:
    servers, _ = barred
    await servers.second.use(IMPATIENT)
    await servers.time.advance(2 * MINUTE)
    await servers.beat()
    record = await servers.read()
    await servers.second.recompute(["cls-a"])
    after = await servers.read()
    assert after.policy_version > record.policy_version
    assert {summary.name: summary.stale for summary in after.status.adapters} == {"apply": True, "dns": False}
    await servers.verify()


# ── many at once, on both ────────────────────────────────────────────────────────────────────────────────────────

Accepted = dict[tuple[str, str], dict[tuple[int, datetime], str]]  # what each adapter said, by generation and time


class Crowd:
    """Adapters, people and timers that do as they please, and what was acknowledged."""

    def __init__(self, servers: Servers, ids: list[str], seed: int) -> None:
        self._servers = servers
        self._ids = ids
        self._random = random.Random(seed)
        self._tick = 0
        self.accepted: Accepted = {}
        self.recorded = 0

    async def adapter(self, id_: str, adapter: str, times: int) -> None:
        """Repeat itself, and say something new now and then; through whichever server there is."""
        said = "True"
        for _ in range(times):
            if self._random.random() < 0.2:
                said = self._random.choice(("True", "False/Broken", "False/JobRunning"))
            record = await must_read(self._servers.first.store, id_)
            generation = record.resource.generation - (self._random.random() < 0.1 and record.resource.generation > 1)
            self._tick += 1
            age = self._random.randrange(1, 4) * SECOND - timedelta(microseconds=self._tick)  # no two are alike
            observed = self._servers.time.now - age
            command = self._servers.reporting(adapter, said, id_, generation=generation, observed=observed)
            result = await self._any().committer.submit(command)
            assert isinstance(result, Reported), result
            self.recorded += result.heartbeat is not None
            if result.results[0].outcome == "aggregated":
                self.accepted.setdefault((id_, adapter), {})[generation, observed] = said

    async def person(self, times: int) -> None:
        """Edit, and change the policy."""
        for number in range(times):
            id_ = self._random.choice(self._ids)
            edit = Edit(target_of(id_), ResourceEdit(spec={"n": number}), ANONYMOUS, accept_all)
            await self._any().committer.submit(edit)
            await asyncio.sleep(0.01)
            if number % 4 == 3:
                writer = self._any()
                await writer.use(self._random.choice((POLICY, IMPATIENT)))
                await writer.recompute(self._ids)

    async def timer(self, times: int) -> None:
        """Let time pass, and compute what is due."""
        for _ in range(times):
            await self._servers.time.advance(self._random.choice((1, 20, 61)) * SECOND)
            await self._any().wake(self._ids)
            await asyncio.sleep(0.005)

    def _any(self) -> Writer:
        return self._random.choice(self._servers.writers)


@pytest.mark.parametrize("seed", range(2))
async def test_nothing_acknowledged_is_lost_however_many_write(servers: Servers, seed: int) -> None:
    ids = ["cls-a", "cls-b"]
    await servers.begin(*ids)
    crowd = Crowd(servers, ids, seed)
    adapters = [crowd.adapter(id_, adapter, 40) for id_ in ids for adapter in ("dns", "apply")]
    await asyncio.gather(*adapters, crowd.person(12), crowd.timer(25))
    for (id_, adapter), said in crowd.accepted.items():
        stored = (await servers.read(id_)).reports[adapter]
        last = max(said)
        assert (stored.report.observed_generation, stored.effective_time) == last, "the latest is what is stored"
        available = stored.report.condition("Available")
        assert available is not None
        assert said[last].partition("/")[::2] == (available.status, available.reason or "")
    for writer in servers.writers:
        await writer.policies.refresh()
    await servers.first.recompute(ids)
    await servers.first.wake(ids)
    await servers.verify()
    assert crowd.recorded > 0, "some of them took the short way"
