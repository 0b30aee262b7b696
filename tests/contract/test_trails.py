"""Heartbeats that stand among the events alone and lead from one to the one before: the past is told as if all did."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import asyncpg
import pytest
from msgspec import Struct

from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.errors import HistoryPruned
from hyperfleet.ports import EVERYTHING, Needs, Scope, Store
from hyperfleet.services.reports import TakeReports
from tests.contract.conftest import DURABLE
from tests.contract.pasts import ADAPTERS, Chronicle, Historian, live_long
from tests.contract.stores import DurableStore, SettableClock, look, prune_all
from tests.contract.twins import SECOND, Forgetful, ForgetfulPostgres, ForgetfulSqlite, Twins, open_twins

pytestmark = pytest.mark.anyio

DAY: Final = timedelta(days=1)
MINUTE: Final = timedelta(minutes=1)
TICK: Final = timedelta(microseconds=1)
IDS: Final = ("cls-0", "cls-1", "cls-2")
LONG: Final = 400  # reports: more than three milestones of each of these
NEVER: Final = datetime.min.replace(tzinfo=SettableClock().now().tzinfo)


@pytest.fixture
async def historian(store: Store) -> Historian:
    """Give somebody who writes to the store from four days ago on."""
    return Historian(store, (await look(store, Needs())).now - 4 * DAY)


def some_moments(chronicle: Chronicle, count: int, seed: int = 3) -> list[datetime]:
    """Return moments at which something happened, and those right before; and one after everything."""
    times = sorted({entry.time for entry in chronicle.entries})
    chosen = {*Random(seed).sample(times, count), times[0], times[-1], times[-1] + DAY}
    return sorted({each for time in chosen for each in (time - TICK, time)})


class Cutoffs(Struct, frozen=True):
    """Up to when events and reports were forgotten: what came later must be told."""

    events: datetime = NEVER
    reports: datetime = NEVER


async def compare(store: Store, chronicle: Chronicle, id_: str, at: datetime, cut: Cutoffs) -> int:
    """Let a store tell of the past what was, or that it is forgotten if it may be; return how much it told."""
    told = 0
    expected = chronicle.version(id_, at)
    is_heartbeat = expected is not None and expected.revision != expected.entry.position
    try:
        assert await store.read_version("Cluster", id_, EVERYTHING, at) == expected, (id_, at)
        told += 1
    except HistoryPruned:
        assert at < cut.events or (is_heartbeat and at < cut.reports), (id_, at)
    try:
        assert await store.read_reports_past(id_, EVERYTHING, at) == chronicle.reports_past(id_, at), (id_, at)
        told += 1
    except HistoryPruned:
        assert at < cut.reports, (id_, at)
    if at >= cut.reports:
        assert await store.read_report_log(id_, EVERYTHING, at) == chronicle.report_log(id_, at), (id_, at)
    return told


async def compare_generations(store: Store, chronicle: Chronicle, id_: str) -> None:
    """See what each generation ended with."""
    for generation in range(1, chronicle.events_of(id_)[-1].generation + 1):
        found = await store.read_reports_at(id_, EVERYTHING, generation)
        assert found == chronicle.reports_at(id_, generation), (id_, generation)


async def compare_feed(store: Store, chronicle: Chronicle, cut: Cutoffs) -> None:
    """See that whoever follows the events gets all of them or is told that some are missing."""
    entries = chronicle.entries
    for after in range(0, len(entries), 7):
        try:
            assert list((await store.read_events(after, len(entries))).entries) == entries[after:]
        except HistoryPruned:
            assert entries[after].time < cut.events, after


# ── a long past ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_long_past_is_told_as_it_was(store: Store, historian: Historian) -> None:
    await live_long(historian, LONG, IDS)
    chronicle = historian.chronicle
    for id_ in IDS:
        assert len([entry for entry in chronicle.events_of(id_) if entry.type == "Reported"]) > 3 * 32
        for at in some_moments(chronicle, 20):
            await compare(store, chronicle, id_, at, Cutoffs())
        await compare_generations(store, chronicle, id_)
    await compare_feed(store, chronicle, Cutoffs())


@pytest.mark.parametrize(
    ("shares", "because"),
    [
        ([(0.4, 0.4), (0.8, 0.8)], "both are kept as long"),
        ([(0.2, 0.7), (0.4, 0.9)], "events are kept longer"),
        ([(0.7, 0.2), (0.9, 0.4)], "reports are kept longer"),
        ([(0.0, 1.0), (1.0, 1.0)], "first only reports go, then everything does"),
    ],
)
async def test_what_is_forgotten_is_not_told_wrongly_and_nothing_else_is(
    store: Store, historian: Historian, shares: Sequence[tuple[float, float]], because: str
) -> None:
    await live_long(historian, LONG, IDS)
    chronicle = historian.chronicle
    start = chronicle.entries[0].time
    for of_events, of_reports in shares:
        cut = Cutoffs(*(start + (historian.now - start) * share for share in (of_events, of_reports)))
        now = (await look(store, Needs())).now
        for _ in range(2):  # reports go after events, and events that reports kept go then
            await prune_all(store, "events", now - cut.events, limit=23)
            await prune_all(store, "reports", now - cut.reports, limit=23)
        later = Cutoffs(cut.events + MINUTE, cut.reports + MINUTE)  # the store's clock went on meanwhile
        for id_ in IDS:
            told = [await compare(store, chronicle, id_, at, later) for at in some_moments(chronicle, 12)]
            assert told[-1] == 2, because
            await compare_generations(store, chronicle, id_)
        await compare_feed(store, chronicle, later)


async def test_it_is_known_that_heartbeats_went_where_nothing_else_did(store: Store, historian: Historian) -> None:
    await historian.create("cls-1")
    await historian.report("cls-1", "dns", "a")
    now = (await look(store, Needs())).now
    for beats in (0, 100):
        for _ in range(beats):
            historian.wait(MINUTE)
            await historian.report("cls-1", "dns", "a")
        for log in ("events", "reports"):
            await prune_all(store, log, now - historian.now - MINUTE, limit=9)
    early = historian.now - 90 * MINUTE
    with pytest.raises(HistoryPruned):
        await store.read_version("Cluster", "cls-1", EVERYTHING, early)
    with pytest.raises(HistoryPruned):
        await store.read_reports_past("cls-1", EVERYTHING, early)
    with pytest.raises(HistoryPruned):
        await store.read_events(5, 1000)
    assert await compare(store, historian.chronicle, "cls-1", historian.now + 2 * MINUTE, Cutoffs()) == 2


async def test_others_are_told_nothing_of_heartbeats(store: Store, historian: Historian) -> None:
    await live_long(historian, 120, IDS[:1])
    other = Scope(frozenset({"b"}))
    for at in some_moments(historian.chronicle, 10):
        assert await store.read_version("Cluster", "cls-0", other, at) is None
        assert await store.read_reports_past("cls-0", other, at) == ()
        assert await store.read_report_log("cls-0", other, at) == ()
        assert await store.read_reports_at("cls-0", other, 1) == ()


# ── what is left in the tables ───────────────────────────────────────────────────────────────────────────────────

Count = Callable[[str, str], Awaitable[int]]  # the rows of a table that are one resource's


class Shelf(Struct, frozen=True):
    """A store, and how many rows it has of a resource."""

    store: DurableStore
    count: Count


@pytest.fixture(params=DURABLE)
def bare_shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Shelf:
    """Give a store of each kind that has tables, before it has any."""
    if request.param == "sqlite":
        path = tmp_path / "fleet.db"
        return Shelf(SqliteStore(path), _counting_in_file(path))
    url: str = request.getfixturevalue("postgres_url")
    return Shelf(PostgresStore(url), _counting_in_database(url))


@pytest.fixture
async def shelf(bare_shelf: Shelf, anyio_backend: str) -> AsyncIterator[Shelf]:
    """Give an empty open store of each kind that has tables."""
    await bare_shelf.store.migrate()
    await bare_shelf.store.open()
    yield bare_shelf
    await bare_shelf.store.close()


def _counting_in_file(path: Path) -> Count:
    async def count(table: str, id_: str) -> int:
        with closing(sqlite3.connect(path)) as connection:
            statement = f"select count(*) from {table} where resource_id = ?"  # noqa: S608  # a name of this file's
            return int(connection.execute(statement, (id_,)).fetchone()[0])

    return count


def _counting_in_database(url: str) -> Count:
    async def count(table: str, id_: str) -> int:
        connection = await asyncpg.connect(url)
        try:
            statement = f"select count(*) from {table} where resource_id = $1"  # noqa: S608  # a name of this file's
            return int(await connection.fetchval(statement, id_))
        finally:
            await connection.close()

    return count


@pytest.mark.parametrize("beats", [5, 31, 32, 110])
async def test_nothing_is_left_of_what_was_removed(shelf: Shelf, beats: int) -> None:
    now = (await look(shelf.store, Needs())).now
    historian = Historian(shelf.store, now - DAY)
    for id_ in IDS[:2]:
        await historian.create(id_)
    for number in range(beats + 1):
        historian.wait(SECOND)
        for id_ in IDS[:2]:
            await historian.report(id_, ADAPTERS[number % 20 == 7], "a")
    historian.wait(SECOND)
    await historian.remove("cls-0")
    await compare_generations(shelf.store, historian.chronicle, "cls-0")
    keep = now - historian.now - MINUTE
    await prune_all(shelf.store, "events", keep, limit=3)
    assert await shelf.count("events", "cls-0") == await shelf.count("report_log", "cls-0") == 0
    await prune_all(shelf.store, "reports", keep, limit=3)
    alone = len([entry for entry in historian.chronicle.events_of("cls-1") if entry.type == "Reported"])
    kept = alone if alone < 32 else alone % 32 + 1  # from the last milestone on
    assert await shelf.count("events", "cls-1") == 1 + kept
    assert await compare(shelf.store, historian.chronicle, "cls-1", historian.now + 2 * MINUTE, Cutoffs()) == 2


# ── several at once, and again ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=DURABLE)
def forgetful(request: pytest.FixtureRequest, tmp_path: Path, clock: SettableClock) -> Forgetful:
    """Give a store of each kind that remembers nothing."""
    if request.param == "sqlite":
        return ForgetfulSqlite(tmp_path / "fleet.db", clock)
    return ForgetfulPostgres(request.getfixturevalue("postgres_url"), clock)


@pytest.fixture
def clock() -> SettableClock:
    """Give a clock that stands until it is set."""
    return SettableClock()


@pytest.fixture
async def twins(forgetful: Forgetful, clock: SettableClock, anyio_backend: str) -> AsyncIterator[Twins]:
    """Give twins with a cluster of which two adapters have repeated themselves; all is compared in the end."""
    async with open_twins(forgetful, clock) as twins:
        await twins.create("1")
        for adapter in ("dns", "apply", "dns", "apply"):
            await twins.report("cls-1", adapter)
        yield twins
        events = await twins.forgetful.store.read_events(0, 1000)
        assert [entry.position for entry in events.entries] == list(range(1, events.head + 1))
        await twins.compare(moments=100)


def both(twins: Twins, **more: Any) -> Sequence[TakeReports]:
    """Make the commands for a report of each adapter."""
    return [twins.reporting("cls-1", adapter, **more) for adapter in ("dns", "apply")]


async def test_what_is_sent_again_beside_the_heartbeat_of_another_leaves_no_gap(twins: Twins) -> None:
    observed = twins.clock.now().isoformat()
    await twins.report("cls-1", "dns", observedTime=observed)
    again = twins.reporting("cls-1", "dns", observedTime=observed)
    await twins.submit(again, twins.reporting("cls-1", "apply"))
    await twins.report("cls-1", "dns")


async def test_who_repeated_itself_beside_another_was_heard_before_its_news(twins: Twins) -> None:
    await twins.submit(*both(twins))
    await twins.report("cls-1", "apply")
    await twins.report("cls-1", "dns", "False/Broken")


async def test_a_heartbeat_that_is_sent_again_came_when_it_came(twins: Twins) -> None:
    observed = twins.clock.now().isoformat()
    await twins.report("cls-1", "dns", observedTime=observed)
    await twins.report("cls-1", "dns", observedTime=observed)
    await twins.report("cls-1", "apply")
    await twins.edit("cls-1", region="eu")
    await twins.report("cls-1", "dns", generation=2)
    await twins.report("cls-1", "dns", generation=2)
    await twins.report("cls-1", "dns", "False/Broken", generation=2)


async def test_while_the_clock_stands_still_the_last_word_counts(twins: Twins) -> None:
    await twins.submit(*both(twins)[:1])
    for available in ("True", "True", "False/Broken", "False/Broken"):
        for command in both(twins, available=available):
            await twins.submit(command, later=timedelta())
    await twins.submit(*both(twins)[1:])
    await twins.submit(*both(twins)[1:], later=-MINUTE)
    await twins.submit(*both(twins)[:1])


async def test_who_was_heard_twice_at_one_time_was_heard_when_a_milestone_has_passed(twins: Twins) -> None:
    await twins.submit(*both(twins)[:1])
    ahead = (twins.clock.now() + MINUTE).isoformat()  # for one clock the same time, and yet no replay
    await twins.submit(*both(twins, observedTime=ahead)[:1], later=timedelta())
    for _ in range(35):
        await twins.submit(*both(twins)[1:])


async def test_who_is_retired_or_removed_was_heard_before(twins: Twins) -> None:
    await twins.report("cls-1", "extra")
    await twins.report("cls-1", "extra")
    await twins.retire("cls-1", "extra")
    await twins.report("cls-1", "dns")
    await twins.delete("cls-1")
    for adapter in ("dns", "apply"):
        await twins.report("cls-1", adapter, generation=2, extra={"Finalized": "True"})
