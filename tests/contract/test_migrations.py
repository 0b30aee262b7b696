"""Databases of earlier versions: they are brought up to date with what they hold, and promise nothing they lack."""
# ruff: noqa: S608  # statements are put together from the words in this file

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import asyncpg
import pytest
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.backends.migrations import load_migrations
from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.backends.postgres_loading import SQL as POSTGRES_SQL
from hyperfleet.backends.pulse import Beat, encode_pulse
from hyperfleet.backends.rows import encode, to_micros
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.backends.sqlite_connection import SQL as SQLITE_SQL
from hyperfleet.backends.statements import Engine
from hyperfleet.errors import HistoryPruned
from hyperfleet.ports import EVERYTHING, ChangeQuery, Changes, Needs, NewPolicy, PolicyVersion, Record
from tests.contract.conftest import DURABLE
from tests.contract.heartbeats import beat, begin, heard
from tests.contract.pasts import Historian
from tests.contract.stores import (
    START,
    DurableStore,
    look,
    make_draft,
    make_record,
    make_resource,
    make_stored,
    must_read,
    write,
)

pytestmark = pytest.mark.anyio

HOUR = timedelta(hours=1)
EARLY = START - 1000 * HOUR


class OldDatabase(Struct, frozen=True):
    """A database of the first version: what runs scripts in it, how it writes values, and its store of today."""

    engine: Engine
    first_table: str  # the statement that creates the table of migrations
    run: Callable[[str], Awaitable[None]]
    time: Callable[[datetime], str]
    bytes: Callable[[str], str]  # of their digits
    store: DurableStore


@pytest.fixture(params=DURABLE)
def blank(request: pytest.FixtureRequest, tmp_path: Path) -> OldDatabase:
    """Give a database without tables."""
    return (
        _sqlite(tmp_path / "fleet.db")
        if request.param == "sqlite"
        else _postgres(request.getfixturevalue("postgres_url"))
    )


@pytest.fixture
async def old(blank: OldDatabase, anyio_backend: str) -> OldDatabase:
    """Give a database as the first version made it."""
    applied = f"insert into schema_migrations values (1, '0001_initial', {blank.time(START)})"
    await blank.run(f"{blank.first_table}; {applied}; {load_migrations(blank.engine)[0].script}")
    return blank


def _sqlite(path: Path) -> OldDatabase:
    async def run(script: str) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)

    table = SQLITE_SQL["create_schema_migrations"]
    return OldDatabase(
        "sqlite", table, run, lambda time: str(to_micros(time)), lambda digits: f"x'{digits}'", SqliteStore(path)
    )


def _postgres(url: str) -> OldDatabase:
    async def run(script: str) -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(script)
        finally:
            await connection.close()

    table = POSTGRES_SQL["create_migrations_table"]
    return OldDatabase(
        "postgres",
        table,
        run,
        lambda time: f"'{time.isoformat()}'",
        lambda digits: f"'\\x{digits}'::bytea",
        PostgresStore(url),
    )


async def fill(old: OldDatabase, kept: Iterable[int], head: int) -> None:
    """Write events of one cluster, an hour apart, with a report in the log for each."""
    blob = "blob" if old.engine == "sqlite" else "bytea"
    rows = [
        f"({at}, '{'Created' if at == 1 else 'StatusChanged'}', 'cls-1', 'Cluster', null, 'acme', 1, "
        f"{old.time(EARLY + at * HOUR)}, cast('{at}' as {blob}))"
        for at in kept
    ]
    log = [
        f"('cls-1', 'dns', 1, {at}, {old.time(EARLY + at * HOUR)}, {old.time(EARLY)}, 'rep-{at}', "
        f"'{encode(make_stored(said=str(at))).decode()}')"
        for at in kept
    ]
    await old.run(
        f"""
        insert into events (position, type, resource_id, kind, parent_id, tenant, generation, time, answer)
        values {", ".join(rows)};
        insert into report_log
            (resource_id, adapter, generation, position, received_time, effective_time, report_id, body)
        values {", ".join(log)};
        update head set position = {head};
        """
    )


async def fill_present(old: OldDatabase) -> Record:
    """Write a cluster with two reports; return it as it must be found."""
    record = make_record("cls-1", reports={name: make_stored(name) for name in ("apply", "dns")})
    resource, no = record.resource, "0" if old.engine == "sqlite" else "false"
    answer = f"cast('{record.answer.decode()}' as {'blob' if old.engine == 'sqlite' else 'bytea'})"
    reports = [f"('cls-1', '{name}', 1, '{encode(each).decode()}')" for name, each in record.reports.items()]
    await old.run(
        f"""
        insert into resources
            (id, kind, tenant, name, created_time, is_deleting, severity, revision, policy_version, answer, status,
             resource)
        values ('cls-1', 'Cluster', 'acme', 'cls-1', {old.time(resource.created_time)}, {no}, 3, 0, 0, {answer},
            '{encode(record.status).decode()}', '{encode(resource).decode()}');
        insert into reports (resource_id, adapter, generation, body) values {", ".join(reports)};
        """
    )
    return record


async def migrate_and_open(store: DurableStore) -> None:
    applied = await store.migrate()
    assert "0001_initial" not in applied
    assert "0002_past" in applied
    await store.open()


async def test_a_past_that_is_whole_can_be_told_from_the_beginning(old: OldDatabase) -> None:
    await fill(old, range(1, 6), 5)
    await migrate_and_open(old.store)
    found = await old.store.read_events(0, 10)
    assert [(entry.position, entry.answer, entry.facets) for entry in found.entries] == [
        (at, str(at).encode(), None) for at in range(1, 6)
    ]
    version = await old.store.read_version("Cluster", "cls-1", EVERYTHING, EARLY + 2 * HOUR)
    assert version is not None
    assert version.revision == 2
    assert await old.store.read_version("Cluster", "cls-1", EVERYTHING, EARLY) is None
    (report,) = await old.store.read_reports_past("cls-1", EVERYTHING, EARLY + 2 * HOUR)
    assert report.id == "rep-2"
    assert await write(old.store, Changes(events=[make_draft(make_resource())])) == 5
    assert [entry.position for entry in (await old.store.read_events(4, 10)).entries] == [5, 6]
    await old.store.close()


async def test_the_present_is_what_it_was(old: OldDatabase) -> None:
    record = await fill_present(old)
    await migrate_and_open(old.store)
    assert await must_read(old.store, "cls-1") == record
    assert (await look(old.store, Needs(ids=frozenset({"cls-1"})))).records == {"cls-1": record}
    await write(old.store, beat(record, "dns", 1))
    assert (await must_read(old.store, "cls-1")).reports["dns"].last_heard == START + timedelta(seconds=1)
    await old.store.close()


@pytest.mark.postgres
async def test_what_an_earlier_version_writes_in_the_meantime_counts(postgres_url: str, anyio_backend: str) -> None:
    """Replicas are replaced one by one: those of the version before know no pulse."""
    database = _postgres(postgres_url)
    await database.store.migrate()
    await database.store.open()
    record = await begin(database.store)
    await write(database.store, beat(record, "dns", 1))
    later = make_stored("dns", said="later", last_heard=START + HOUR, effective_time=START + HOUR)
    status = heard(record, later).status
    await database.run(f"update reports set body = '{encode(later).decode()}' where adapter = 'dns'")
    await database.run(f"update records set status = '{encode(status).decode()}'")
    found = await must_read(database.store, "cls-1")
    assert found.reports == {**record.reports, "dns": later}
    assert found.status == status
    await database.store.close()


@pytest.mark.postgres
async def test_what_an_earlier_version_retires_in_the_meantime_is_gone(postgres_url: str, anyio_backend: str) -> None:
    database = _postgres(postgres_url)
    await database.store.migrate()
    await database.store.open()
    await write(database.store, beat(await begin(database.store), "dns", 1))
    await database.run("delete from reports where adapter = 'dns'; update resources set answer = 'without dns'")
    for seconds in (2, 3):
        found = await must_read(database.store, "cls-1")
        assert list(found.reports) == ["apply"]
        await write(database.store, beat(found, "apply", seconds))
    await database.store.close()


@pytest.mark.postgres
async def test_adapters_that_an_earlier_version_adds_count_though_its_clock_is_late(
    postgres_url: str, anyio_backend: str
) -> None:
    database = _postgres(postgres_url)
    await database.store.migrate()
    await database.store.open()
    record = await begin(database.store)
    await write(database.store, beat(record, "dns", 1))
    adapters = record.status.adapters
    status = replace(record.status, adapters=(*adapters, replace(adapters[0], name="new")))
    await database.run(f"update records set status = '{encode(status).decode()}'")
    assert (await must_read(database.store, "cls-1")).status == status
    await database.store.close()


@pytest.mark.parametrize(
    ("kept", "head", "missing", "because"),
    [
        ([2, 5, 6], 6, 4, "events between them went"),
        ([3, 4], 4, 2, "the first ones went"),
        ([1, 2, 3], 5, 5, "the last ones went with their resource"),
    ],
)
async def test_of_a_past_with_gaps_only_what_came_after_them_is_promised(
    old: OldDatabase, kept: list[int], head: int, missing: int, because: str
) -> None:
    await fill(old, kept, head)
    await migrate_and_open(old.store)
    with pytest.raises(HistoryPruned):
        await old.store.read_events(missing - 1, 10)
    found = await old.store.read_events(missing, 10)
    assert [entry.position for entry in found.entries] == [at for at in kept if at > missing], because
    with pytest.raises(HistoryPruned):
        await old.store.read_version("Cluster", "cls-1", EVERYTHING, EARLY + 100 * HOUR)
    await old.store.close()


async def test_a_database_without_events_promises_nothing_of_before(old: OldDatabase) -> None:
    await old.run("update head set position = 7")
    await migrate_and_open(old.store)
    with pytest.raises(HistoryPruned):
        await old.store.read_events(6, 10)
    assert (await old.store.read_events(7, 10)).head == 7
    await old.store.close()


async def test_what_a_replica_of_the_first_version_prunes_is_noticed(old: OldDatabase) -> None:
    await fill(old, range(1, 6), 5)
    await migrate_and_open(old.store)
    await old.run("delete from events where position = 2")
    for after in (0, 1):
        with pytest.raises(HistoryPruned):
            await old.store.read_events(after, 10)
    assert len((await old.store.read_events(2, 10)).entries) == 3
    await old.run("delete from events where position = 5")
    with pytest.raises(HistoryPruned):
        await old.store.read_events(4, 10)
    await old.store.close()


async def test_versions_of_an_earlier_schema_came_from_files_or_are_built_in(old: OldDatabase) -> None:
    rows = [
        f"({number}, 'd{number}', 'text', '{file}', {old.time(START + number * HOUR)})"
        for number, file in ((1, "built in"), (2, "/etc/policy.yaml"))
    ]
    await old.run(
        f"insert into policies (version, digest, text, file, time) values {', '.join(rows)};"
        "update head set policy_version = 2"
    )
    await old.store.migrate()
    await old.store.open()
    found = await old.store.policy_versions(None, 10)
    assert [(each.version, each.source, each.author, each.restores) for each in found] == [
        (2, "file", "", None),
        (1, "built-in", "", None),
    ]
    assert (await old.store.active_policy()) == PolicyVersion(2, "d2", "text", "/etc/policy.yaml", START + 2 * HOUR)
    unchanged = await old.store.activate_policy(NewPolicy("d3", "", ""), lambda _, file_digest: file_digest != "d2")
    assert unchanged.version == 2
    await old.store.close()


# ── heartbeats of both forms ─────────────────────────────────────────────────────────────────────────────────────


def beating_as_before(database: OldDatabase) -> Callable[[Changes], Awaitable[int]]:
    """Return what writes a heartbeat as the version before does: in both logs, and leading to no other."""

    behind: dict[str, Beat] = {}

    async def write_both(changes: Changes) -> int:
        (draft,), (logged,), (record,) = changes.events, changes.log, changes.updated
        resource, stored, base = draft.resource, logged.stored, await database.store.position()
        behind[stored.report.adapter] = Beat.of(stored, None)
        pulse = encode_pulse(record, behind).hex()
        await database.run(
            f"""
            insert into events (position, type, resource_id, kind, parent_id, tenant, generation, time)
            values ({base + 1}, 'Reported', '{resource.id}', 'Cluster', null, 'acme', {resource.generation},
                {database.time(draft.time)});
            insert into report_log
                (resource_id, adapter, generation, position, received_time, effective_time, report_id)
            values ('{resource.id}', '{stored.report.adapter}', {stored.report.observed_generation}, {base + 1},
                {database.time(stored.last_heard)}, {database.time(stored.effective_time)}, '{stored.id}');
            update head set position = {base + 1};
            update resources set revision = {base + 1}, pulse = {database.bytes(pulse)} where id = '{resource.id}';
            """
        )
        return base

    return write_both


async def beat_for_a_while(historian: Historian, times: int) -> None:
    for number in range(1, times + 1):
        historian.wait(HOUR)
        await historian.report("cls-1", "apply" if number % 9 == 0 else "dns", "a")


async def see_it_told(database: OldDatabase, historian: Historian) -> None:
    store, chronicle = database.store, historian.chronicle
    for entry in chronicle.entries:
        for at in (entry.time, entry.time + HOUR / 2):
            version = await store.read_version("Cluster", "cls-1", EVERYTHING, at)
            assert version == chronicle.version("cls-1", at), at
            assert await store.read_reports_past("cls-1", EVERYTHING, at) == chronicle.reports_past("cls-1", at), at
            assert await store.read_report_log("cls-1", EVERYTHING, at) == chronicle.report_log("cls-1", at), at
    for generation in (1, 2):
        found = await store.read_reports_at("cls-1", EVERYTHING, generation)
        assert found == chronicle.reports_at("cls-1", generation)
    assert list((await store.read_events(0, 1000)).entries) == chronicle.entries


@pytest.fixture
async def historian(blank: OldDatabase, anyio_backend: str) -> AsyncIterator[Historian]:
    """Give somebody who has begun to write to a database of today."""
    await blank.store.migrate()
    await blank.store.open()
    historian = Historian(blank.store, EARLY)
    await historian.create("cls-1")
    for adapter in ("dns", "apply"):
        await historian.report("cls-1", adapter, "a")
    yield historian
    await blank.store.close()


async def test_the_past_is_told_across_the_first_heartbeat_that_stands_alone(
    blank: OldDatabase, historian: Historian
) -> None:
    """Take away what the last migrations added: so the version before them left the database."""
    write_now, historian.write = historian.write, beating_as_before(blank)
    await beat_for_a_while(historian, 40)
    await blank.store.close()
    await blank.run(_undo_beats(blank))
    assert await blank.store.migrate() == [each.name for each in load_migrations(blank.engine)[-2:]]
    await blank.store.open()
    historian.write = write_now
    await beat_for_a_while(historian, 40)
    await historian.report("cls-1", "dns", "b")
    await see_it_told(blank, historian)


async def test_the_version_before_may_beat_in_between(blank: OldDatabase, historian: Historian) -> None:
    forms = (historian.write, beating_as_before(blank))
    for number in range(12):
        historian.write = forms[number % 2]
        await beat_for_a_while(historian, 7)
    historian.write = forms[0]
    await historian.edit("cls-1")
    await historian.report("cls-1", "dns", "b")
    await see_it_told(blank, historian)


async def test_who_was_retired_in_the_meantime_by_an_earlier_version_may_report_again(
    blank: OldDatabase, historian: Historian
) -> None:
    await beat_for_a_while(historian, 3)
    await blank.store.close()
    await blank.run("delete from reports where adapter = 'dns'")
    await blank.store.open()
    historian.wait(HOUR)
    await historian.report("cls-1", "dns", "b")
    await historian.remove("cls-1")


def _undo_beats(database: OldDatabase) -> str:
    columns = {
        "resources": ("last_beat", "beats_passed"),
        "events": ("previous", "adapter", "observed_generation", "effective_time", "report_id", "pulse"),
    }
    drops = [f"alter table {table} drop column {each};" for table, some in columns.items() for each in some]
    return f"""
        drop index events_by_resource;
        {" ".join(drops)}
        create index events_by_resource on events (resource_id, position);
        create index if not exists report_log_in_words on report_log (resource_id, adapter, generation, sequence)
            where body is not null;
        drop table readers;
        delete from forgotten where log in ('beats', 'transitions');
        delete from schema_migrations where version >= {load_migrations(database.engine)[-2].version};
    """


async def test_transitions_that_were_pruned_before_the_migration_are_known_to_be_gone(old: OldDatabase) -> None:
    await fill(old, range(1, 6), 5)
    rows = [
        f"({at}, 0, 'cls-1', 'phase', null, 'Ready', {old.time(EARLY + at * HOUR)}, '', '', 'report', '', '1')"
        for at in (4, 5)
    ]
    await old.run(f"insert into transitions values {', '.join(rows)}")
    await migrate_and_open(old.store)
    with pytest.raises(HistoryPruned):
        await old.store.read_changes(ChangeQuery(after=2))
    with pytest.raises(HistoryPruned):
        await old.store.read_changes(ChangeQuery(since=EARLY + 3 * HOUR))
    page = await old.store.read_changes(ChangeQuery())
    assert [(each.position, len(each.transitions)) for each in page.changes] == [(4, 1), (5, 1)]
    await old.store.close()
