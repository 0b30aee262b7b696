"""Databases of the version before report rows, with data: all that it could tell is still told, and life goes on.

`tests/data/README.md` says how they were made. What only times of heartbeats told is told as of the next change.
"""

from __future__ import annotations

import asyncio
import gzip
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import asyncpg
import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.api.wire import present
from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.errors import HistoryPruned
from hyperfleet.model.kind import Kinds
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import (
    EVERYTHING,
    AdapterRecord,
    HistoryQuery,
    LoggedEvent,
    Needs,
    Pruning,
    Record,
    RecordedTransition,
    StatusCause,
)
from hyperfleet.services.callers import ANONYMOUS
from hyperfleet.services.committer import Committer
from hyperfleet.services.policies import PolicyRegistry, PolicyText
from hyperfleet.services.reports import AcceptReports, Submission
from hyperfleet.services.results import Reported
from hyperfleet.services.upkeep import recompute_all
from hyperfleet.services.verification import Verification
from tests.contract.conftest import DURABLE
from tests.contract.stores import START, DurableStore, look, must_read, prune_all
from tests.unit.services.desk import target_of
from tests.world import make_report

pytestmark = pytest.mark.anyio

DATA: Final = Path(__file__).parent.parent / "data"


class Told(Struct, frozen=True):
    """What the version before read of one resource; `versions` and `past` are as of each of the moments."""

    kind: str
    record: Record | None
    versions: tuple[LoggedEvent | None, ...]
    past: tuple[tuple[StoredReport, ...], ...]
    generations: tuple[tuple[StoredReport, ...], ...]
    log: tuple[StoredReport, ...]  # with one for each heartbeat
    transitions: tuple[RecordedTransition, ...]


class Everything(Struct, frozen=True):
    """What it read of everything."""

    policy: str
    moments: tuple[datetime, ...]
    head: int
    events: tuple[LoggedEvent, ...]  # that are still events
    adapters: tuple[AdapterRecord, ...]
    resources: dict[str, Told]


class OldData(Struct, frozen=True):
    """A database with data, migrated and open, and what it must tell."""

    store: DurableStore
    told: Everything


@pytest.fixture(params=DURABLE)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Give the file or the address of a database that is empty yet."""
    url: str = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    return url or tmp_path / "fleet.db"


@pytest.fixture
async def old(place: Path | str, anyio_backend: str) -> AsyncIterator[OldData]:
    """Load a database, migrate it and open it."""
    store = await _load_postgres(place) if isinstance(place, str) else _load_sqlite(place)
    assert [migration.partition("_")[2] for migration in await store.migrate()][:2] == ["report_rows", "log_of_changes"]
    await store.open()
    yield OldData(store, msgspec.json.decode(read_data("as-it-was.json"), type=Everything))
    await store.close()


def read_data(name: str) -> bytes:
    return gzip.decompress((DATA / f"{name}.gz").read_bytes())


def _load_sqlite(path: Path) -> DurableStore:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(read_data("schema-sqlite-4.sql").decode())
    return SqliteStore(path)


async def _load_postgres(url: str) -> DurableStore:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(read_data("schema-postgres-5.sql").decode())
    finally:
        await connection.close()
    return PostgresStore(url)


def said(reports: Sequence[StoredReport]) -> list[StoredReport]:
    """Return reports without what heartbeats moved once, and what only heartbeats need."""
    return [
        replace(
            stored,
            report=replace(stored.report, observed_time=None),
            last_unknown=None,
            digest=b"",
            is_calm=False,
            id="",
        )
        for stored in reports
    ]


def words(reports: Sequence[StoredReport]) -> list[StoredReport]:
    """Return what reports say, whenever they were heard."""
    return [replace(stored, effective_time=START, last_heard=START) for stored in said(reports)]


async def test_every_resource_and_report_is_there(old: OldData) -> None:
    for id_, told in old.told.resources.items():
        record = await old.store.read_record(told.kind, id_, EVERYTHING)
        assert (record is None) is (told.record is None), id_
        if record is None or told.record is None:
            continue
        assert record.resource == told.record.resource
        assert said([*record.reports.values()]) == said([*told.record.reports.values()]), "with the times of heartbeats"
        assert record.status.conditions == told.record.status.conditions
        assert record.revision == max(entry.position for entry in old.told.events if entry.resource_id == id_)


async def test_the_history_is_what_it_was(old: OldData) -> None:
    assert (await old.store.read_events(0, 10_000)).entries == old.told.events
    assert await old.store.position() == old.told.head
    assert await old.store.adapters(EVERYTHING) == old.told.adapters
    for id_, told in old.told.resources.items():
        assert await old.store.read_transitions(HistoryQuery(id_, EVERYTHING, limit=10_000)) == told.transitions


async def test_resources_and_reports_as_they_were(old: OldData) -> None:
    for id_, told in old.told.resources.items():
        for at, version, past in zip(old.told.moments, told.versions, told.past, strict=True):
            assert await old.store.read_version(told.kind, id_, EVERYTHING, at) == version, (id_, at)
            found = await old.store.read_reports_past(id_, EVERYTHING, at)
            assert words(found) == words(past), (id_, at)
            for mine, before in zip(found, past, strict=True):
                assert mine.last_heard >= before.last_heard or _went(old, id_, mine), "heartbeats after it count"


async def test_reports_at_a_generation_have_the_times_of_their_last_heartbeats(old: OldData) -> None:
    for id_, told in old.told.resources.items():
        for generation, before in enumerate(told.generations, 1):
            found = await old.store.read_reports_at(id_, EVERYTHING, generation)
            assert words(found) == words(before), (id_, generation)
            stay = [(new, was) for new, was in zip(found, before, strict=True) if not _went(old, id_, new)]
            assert said([new for new, _ in stay]) == said([was for _, was in stay]), (id_, generation)


async def test_the_log_holds_changes_with_when_they_were_last_heard(old: OldData) -> None:
    for id_, told in old.told.resources.items():
        begin = old.told.moments[0]
        log = await old.store.read_report_log(id_, EVERYTHING, begin)
        for adapter in {stored.report.adapter for stored in told.log}:
            beats = [stored for stored in told.log if stored.report.adapter == adapter]
            changes = [each for each in log if each.stored.report.adapter == adapter]
            for each, after in zip(changes, [*[next_.received_time for next_ in changes[1:]], None], strict=True):
                heard = [b for b in beats if b.last_heard >= each.received_time and (not after or b.last_heard < after)]
                if not _went(old, id_, each.stored):
                    assert said([each.stored]) == said(heard[-1:]), (id_, adapter)


def _went(old: OldData, id_: str, stored: StoredReport) -> bool:
    """Tell whether a report went without another in its place: when it was last heard is not kept then."""
    record = old.told.resources[id_].record
    known = {} if record is None else record.reports
    return stored.report.adapter not in known


async def test_what_is_past_its_time_goes(old: OldData) -> None:
    now = (await look(old.store, Needs())).now
    middle = old.told.moments[0] + timedelta(minutes=6)
    assert await prune_all(old.store, "events", now - middle, limit=7) > 0
    assert await prune_all(old.store, "reports", now - middle, limit=7) > 0
    with pytest.raises(HistoryPruned):
        await old.store.read_events(0, 10)
    with pytest.raises(HistoryPruned):
        await old.store.read_version("Cluster", "cls-a", EVERYTHING, middle - timedelta(minutes=2))
    told = old.told.resources["cls-a"]
    for at, version in zip(old.told.moments, told.versions, strict=True):
        if at > middle + timedelta(minutes=1):
            assert await old.store.read_version("Cluster", "cls-a", EVERYTHING, at) == version
    for generation, before in enumerate(told.generations, 1):
        found = await old.store.read_reports_at("cls-a", EVERYTHING, generation)
        stay = [(new, was) for new, was in zip(found, before, strict=True) if not _went(old, "cls-a", new)]
        assert said([new for new, _ in stay]) == said([was for _, was in stay])
    assert await old.store.prune(Pruning("events", now - middle), 7) == 0


@asynccontextmanager
async def writing(old: OldData) -> AsyncIterator[tuple[Committer, PolicyRegistry]]:
    """Start a server's write path."""
    policies = PolicyRegistry(old.store, Kinds(), present, lambda: PolicyText(old.told.policy, "policy.yaml"))
    await policies.activate()
    committer = Committer(old.store, policies)
    committer.start()
    try:
        yield committer, policies
    finally:
        await committer.close()


def beat(generation: int) -> AcceptReports:
    """Make the report that the version before stored last of `dns` on `cls-a`."""
    report = make_report("dns", "True", generation=generation, data={"zone": "b"})
    return AcceptReports(target_of("cls-a"), (Submission(report, "rpt-new"),), ANONYMOUS, "outcome")


async def test_everything_is_computed_again_and_then_heartbeats_take_the_short_way(old: OldData) -> None:
    async with writing(old) as (committer, policies):
        version = policies.rules.policy_version
        ids, _ = await old.store.outdated(version, 100)
        assert set(ids) == {id_ for id_, told in old.told.resources.items() if told.record is not None}
        await recompute_all(committer, ids, StatusCause("policy"))
        assert (await old.store.outdated(version, 100))[0] == ()
        assert [finding async for finding in Verification(old.store, policies.rules).run()] == []
        first = await committer.submit(beat(2))  # it was stale
        assert isinstance(first, Reported)
        assert first.record is not None
        before = await must_read(old.store, "cls-a")
        assert before.reports["dns"].is_calm
        await asyncio.sleep(0.001)
        second = await committer.submit(beat(2))
        assert isinstance(second, Reported)
        assert second.record is None, "it took the short way"
        assert second.results[0].report_id == before.reports["dns"].id
        after = await must_read(old.store, "cls-a")
        assert replace(after, reports={}) == replace(before, reports={})
        assert after.reports["dns"].last_heard > before.reports["dns"].last_heard
        assert [finding async for finding in Verification(old.store, policies.rules).run()] == []


async def test_a_heartbeat_before_it_is_computed_again_is_an_ordinary_write(old: OldData) -> None:
    async with writing(old) as (committer, policies):
        result = await committer.submit(beat(2))
        assert isinstance(result, Reported)
        assert result.record is not None, "no report is calm until something was written"
        assert result.record.policy_version == policies.rules.policy_version
        assert b"lastUpdated" not in result.record.answer.partition(b'"adapters"')[2].partition(b"]")[0]
