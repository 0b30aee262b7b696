"""Databases of earlier versions: they are brought up to date with what they hold, and promise nothing they lack."""
# ruff: noqa: S608  # statements are put together from the words in this file

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterable
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
from hyperfleet.backends.rows import encode, to_micros
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.backends.sqlite_connection import SQL as SQLITE_SQL
from hyperfleet.backends.statements import Engine
from hyperfleet.errors import HistoryPruned
from hyperfleet.ports import EVERYTHING, Needs, NewPolicy, PolicyVersion, Record, WriteSet
from tests.contract.conftest import DURABLE
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
        f"'{encode(make_stored(said=str(at), id=f'rep-{at}')).decode()}')"
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
    assert version.position == 2
    assert await old.store.read_version("Cluster", "cls-1", EVERYTHING, EARLY) is None
    (report,) = await old.store.read_reports_past("cls-1", EVERYTHING, EARLY + 2 * HOUR)
    assert report.id == "rep-2"
    assert await write(old.store, WriteSet(events=[make_draft(make_resource())])) == 5
    assert [entry.position for entry in (await old.store.read_events(4, 10)).entries] == [5, 6]
    await old.store.close()


async def test_the_present_is_what_it_was(old: OldDatabase) -> None:
    await fill(old, [1], 1)
    record = replace(await fill_present(old), revision=1)
    await migrate_and_open(old.store)
    next_look = (await must_read(old.store, "cls-1")).look
    now = (await look(old.store, Needs())).now
    assert next_look.at is not None
    assert now - HOUR < next_look.at <= now + timedelta(minutes=10), "the sentinel looks at it soon"
    record = replace(record, look=next_look)
    assert await must_read(old.store, "cls-1") == record
    assert (await look(old.store, Needs(ids=frozenset({"cls-1"})))).records == {"cls-1": record}
    later = replace(record.reports["dns"], last_heard=START + HOUR)
    await write(old.store, WriteSet(reports=[("cls-1", later)]))
    assert (await must_read(old.store, "cls-1")).reports["dns"] == later
    await old.store.close()


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
