"""What is SQLite's own: its file, its durability, other processes, and what goes wrong with files."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from hyperfleet.backends import sqlite_reading
from hyperfleet.backends.listing import Latest, Since, Start, build_count, build_find
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.backends.sqlite_connection import SQL, connect, make_durable, migrate, transaction
from hyperfleet.backends.sqlite_reading import DIALECT
from hyperfleet.backends.sqlite_session import Session
from hyperfleet.errors import SchemaMismatch, StoreUnavailable
from hyperfleet.ports import EVERYTHING, Needs, Query, Scope, StoredAnswer, TokenTerm
from tests.contract.stores import START, SettableClock, created, ids_of, look, make_record, write


def run(path: Path, story: Callable[[SqliteStore], Awaitable[None]]) -> None:
    async def told() -> None:
        store = SqliteStore(path)
        await store.open()
        try:
            await story(store)
        finally:
            await store.close()

    asyncio.run(told())


def refuse(path: Path) -> str:
    """Return why a file cannot be opened."""
    with pytest.raises((StoreUnavailable, SchemaMismatch)) as caught:
        asyncio.run(SqliteStore(path).open())
    return str(caught.value)


# ── files that are not what they should be ───────────────────────────────────────────────────────────────────────


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    assert f"the directory {tmp_path / 'none'} does not exist" in refuse(tmp_path / "none" / "fleet.db")


def test_a_directory_is_not_a_database(tmp_path: Path) -> None:
    assert "is a directory" in refuse(tmp_path)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    path.write_text("hello, I am a letter" * 100)
    assert "not a database" in refuse(path)
    assert path.read_text().startswith("hello")


def test_a_database_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    connection = sqlite3.connect(path)
    connection.execute("create table theirs (a)")
    connection.close()
    assert "not one of hyperfleet" in refuse(path)


def test_a_database_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    asyncio.run(SqliteStore(path).migrate())
    connection = sqlite3.connect(path)
    connection.execute("insert into schema_migrations values (99, '0099_future', 0)")
    connection.commit()
    connection.close()
    assert "has schema version 99" in refuse(path)


def test_asking_for_the_version_of_a_missing_file_does_not_make_one(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    assert asyncio.run(SqliteStore(path).schema_version()) == 0
    assert not path.exists()


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    connection = connect(path, cache_mib=1)
    connection.execute("create view resources as select 1")  # in the way of the first migration, and no table
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, path, SettableClock())
    assert connection.execute("select count(*) from sqlite_master where type = 'table'").fetchone() == (0,)
    connection.close()


# ── durability ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_commits_are_flushed_to_a_write_ahead_log(tmp_path: Path) -> None:
    connection = connect(tmp_path / "fleet.db", cache_mib=1)
    make_durable(connection, tmp_path / "fleet.db")
    assert connection.execute("pragma synchronous").fetchone() == (2,)
    assert connection.execute("pragma journal_mode").fetchone() == ("wal",)
    connection.close()


def test_closing_moves_the_log_into_the_file(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"

    async def story(store: SqliteStore) -> None:
        await write(store, created(make_record("cls-1")))
        assert (tmp_path / "fleet.db-wal").stat().st_size > 0

    run(path, story)
    assert [file.name for file in tmp_path.iterdir()] == ["fleet.db"]


COUNTER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(*connection.execute("select count(*) from resources").fetchone())
connection.close()
"""


def test_a_store_that_is_closed_leaves_the_locks_of_another_in_its_process(tmp_path: Path) -> None:
    file = tmp_path / "fleet.db"

    def count_elsewhere() -> str:
        command = [sys.executable, "-c", COUNTER, str(file)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603

    async def story() -> None:
        one, other = SqliteStore(file), SqliteStore(file)
        await one.open()
        await other.open()
        await write(one, created(make_record("cls-1")))
        await one.close()
        assert count_elsewhere() == "1"  # who closes last takes the log away, and must not believe to be that one
        await write(other, created(make_record("cls-2")))
        assert count_elsewhere() == "2"
        await other.close()

    asyncio.run(story())


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    command = [sys.executable, "-c", _WRITE_AND_DIE, str(path)]
    process = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  # our own program
    assert process.returncode == -9, process.stderr.decode()

    async def story(store: SqliteStore) -> None:
        assert isinstance(await store.read_answer("Cluster", "cls-1", EVERYTHING), StoredAnswer)

    run(path, story)


# ── callers that go away ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_job_whose_caller_went_away_is_done_before_the_next_transaction_begins(tmp_path: Path) -> None:
    is_begun, may_end = threading.Event(), threading.Event()

    def dawdle(connection: sqlite3.Connection) -> None:
        with transaction(connection):
            is_begun.set()
            may_end.wait()
            connection.execute("update head set position = 7")

    async def story() -> None:
        session = Session.open(tmp_path / "fleet.db", SettableClock())
        job = asyncio.create_task(session.write(dawdle))
        await asyncio.to_thread(is_begun.wait)
        job.cancel()
        asyncio.get_running_loop().call_later(0, may_end.set)
        async with session.writing() as connection:
            assert connection.execute(SQL["read_position"]).fetchone() == (7,)
        with pytest.raises(asyncio.CancelledError):
            await job
        await session.close()

    asyncio.run(story())


# ── the log ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def fill(session: Session, mark: str) -> None:
    """Write enough for the log to be worth moving, and wait until that is over."""
    async with session.writing() as connection:
        connection.execute("create table if not exists filling (mark text, text text)")
        connection.executemany("insert into filling values (?, ?)", [(mark, "x" * 900)] * 8_000)
    while session.checkpointer.is_moving:
        await asyncio.sleep(0.001)


def test_the_log_is_moved_into_the_file_beside_the_writing_and_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"

    async def story() -> None:
        session = Session.open(path, SettableClock())
        for mark in "abcdefghijkl":
            await fill(session, mark)
        assert path.stat().st_size > 12 * 8_000 * 900, "all of it is in the file before anybody closes it"
        assert path.with_name("fleet.db-wal").stat().st_size < path.stat().st_size / 4, "the log was written over"
        await session.close()

    asyncio.run(story())


def test_large_rows_are_moved_soon_too(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"

    async def story() -> None:
        session = Session.open(path, SettableClock())
        for _ in range(40):
            async with session.writing() as connection:
                connection.execute("create table if not exists filling (text blob)")
                connection.execute("insert into filling values (zeroblob(4000000))")
            while session.checkpointer.is_moving:
                await asyncio.sleep(0.001)
        assert path.with_name("fleet.db-wal").stat().st_size < 64_000_000, "160 MB were written in 40 rows"
        await session.close()

    asyncio.run(story())


def test_a_check_writes_something(tmp_path: Path) -> None:
    log = tmp_path / "fleet.db-wal"

    async def story(store: SqliteStore) -> None:
        for _ in range(3):
            before = log.stat().st_size
            await store.check()
            assert log.stat().st_size > before, "a full disk would have shown"

    run(tmp_path / "fleet.db", story)


def test_nobody_else_may_read_the_files(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        run(tmp_path / "fleet.db", lambda store: store.check())
        session = Session.open(tmp_path / "open.db", SettableClock())
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("*.db*") if path.suffix != ".lock"}
        asyncio.run(session.close())
    finally:
        os.umask(previous)
    assert modes.keys() >= {"fleet.db", "open.db", "open.db-wal"}
    assert set(modes.values()) == {0o600}, modes


def test_a_checkpoint_that_fails_is_logged_and_stops_no_writes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        session = Session.open(tmp_path / "fleet.db", SettableClock())
        session.checkpointer.close()
        await fill(session, "a")
        await fill(session, "b")
        assert session.point.execute("select count(*) from filling").fetchone() == (16_000,)
        await session.close()

    asyncio.run(story())
    assert "the checkpoint of the database failed" in caplog.text


# ── other processes ──────────────────────────────────────────────────────────────────────────────────────────────


def test_processes_that_open_and_write_one_new_file_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    command = [sys.executable, "-c", _COUNT, str(path)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]  # noqa: S603  # our own program
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()

    async def story(store: SqliteStore) -> None:
        loaded = await look(store, Needs(ids=frozenset({"cls-1"})))
        assert loaded.records["cls-1"].resource.generation == 1 + 3 * 10
        assert loaded.records["cls-1"].revision == 1 + 3 * 10

    run(path, story)


def test_a_claim_ends_with_the_process_that_has_it(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    command = [sys.executable, "-c", _CLAIM, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603  # our own program
    assert process.stdout is not None
    assert process.stdout.readline() == b"taken\n"

    async def story(store: SqliteStore) -> None:
        assert await store.claim("deadlines") is None
        process.kill()
        process.communicate()
        claim = await store.claim("deadlines")
        assert claim is not None
        async with claim:
            pass

    run(path, story)


_PREAMBLE = """
import asyncio, os, signal, sys
from msgspec.structs import replace
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.errors import Contended
from hyperfleet.ports import Needs
from tests.contract.stores import changed, created, insist, make_record, write
from tests.contract.test_store import counting
"""

_WRITE_AND_DIE = (
    _PREAMBLE
    + """
async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    await write(store, created(make_record("cls-1")))
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
)

_COUNT = (
    _PREAMBLE
    + """
async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    try:
        await write(store, created(make_record("cls-1")))
    except Contended:
        pass
    for _ in range(10):
        await insist(store, Needs(ids=frozenset({"cls-1"})), counting)
    await store.close()
asyncio.run(main())
"""
)

_CLAIM = (
    _PREAMBLE
    + """
async def main():
    claim = await SqliteStore(sys.argv[1]).claim("deadlines")
    print("taken", flush=True)
    await asyncio.sleep(3600)
asyncio.run(main())
"""
)


# ── plans ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("query", "start", "expected"),
    [
        (Query("Cluster", EVERYTHING), None, "resources_by_name"),
        (Query("Cluster", EVERYTHING, order="createdAt"), None, "resources_by_created_time"),
        (Query("Cluster", EVERYTHING, order="severity", is_descending=True), None, "resources_by_severity"),
        (Query("NodePool", EVERYTHING, parent_id="cls-1"), None, "resources_by_parent"),
        (Query("NodePool", EVERYTHING, parent_id="cls-1", order="createdAt"), None, "resources_by_parent"),
        (Query("Cluster", EVERYTHING, after=("a", "b"), terms=(TokenTerm(("t",)),)), None, "resources_by_name"),
        (
            Query("Cluster", EVERYTHING, terms=(TokenTerm(("t",)),)),
            TokenTerm(("t",)),
            "SEARCH r USING INTEGER PRIMARY KEY",
        ),
        (Query("Cluster", EVERYTHING, updated_since=START), Since(0, START), "SEARCH e USING INTEGER PRIMARY KEY"),
        (
            Query("Cluster", EVERYTHING, order="updatedAt", is_descending=True),
            Latest(0),
            "SEARCH e USING INTEGER PRIMARY KEY",
        ),
    ],
)
def test_lists_walk_an_index_and_never_the_whole_table(
    tmp_path: Path, query: Query, start: Start, expected: str
) -> None:
    connection = connect(tmp_path / "fleet.db", cache_mib=1)
    migrate(connection, tmp_path / "fleet.db", SettableClock())
    statement = build_find(query, DIALECT, start)
    rows = connection.execute(f"explain query plan {statement.sql}", statement.parameters).fetchall()
    plan = "\n".join(row[3] for row in rows)
    assert expected in plan
    assert "SCAN r" not in plan
    assert not isinstance(start, Latest) or "TEMP B-TREE" not in plan, "the walk must end with the page"
    connection.close()


@pytest.mark.parametrize(
    "name",
    [
        "read_events",
        "read_first_event",
        "read_event_at",
        "read_events_since",
        "walk_resources",
        "walk_events",
        "walk_reports",
        "find_orphans",
        "read_time_at",
        "existed",
    ],
)
def test_the_past_is_found_by_an_index(tmp_path: Path, name: str) -> None:
    connection = connect(tmp_path / "fleet.db", cache_mib=1)
    migrate(connection, tmp_path / "fleet.db", SettableClock())
    number = max((int(mark) for mark in re.findall(r"\?(\d+)", SQL[name])), default=SQL[name].count("?"))
    rows = connection.execute(f"explain query plan {SQL[name]}", ["[]"] * number).fetchall()
    scanned = [row[3] for row in rows if row[3].startswith("SCAN") and "json_each" not in row[3]]
    assert set(scanned) <= {
        "SCAN head",
        "SCAN first",
        "SCAN s",
        "SCAN k",
        "SCAN keys",
        "SCAN search",
        "SCAN (subquery-1)",
        "SCAN (subquery-3)",  # of one row
    }
    assert not any("TEMP B-TREE" in row[3] for row in rows)
    connection.close()


def test_the_tenant_of_a_resource_is_told_without_reading_its_row(tmp_path: Path) -> None:
    connection = connect(tmp_path / "fleet.db", cache_mib=1)
    migrate(connection, tmp_path / "fleet.db", SettableClock())
    statement = build_count(Query("Cluster", Scope(frozenset({"acme"}))), DIALECT)
    ((*_, plan),) = connection.execute(f"explain query plan {statement.sql}", statement.parameters)
    assert "COVERING INDEX" in plan
    connection.close()


def test_the_latest_are_found_among_all_when_events_are_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_reading, "_RECENT", 3)

    async def story(store: SqliteStore) -> None:
        await write(store, created(*(make_record(f"cls-{place}") for place in range(8))))
        query = Query("Cluster", EVERYTHING, order="updatedAt", is_descending=True, limit=5)
        page = await store.find(query)
        assert ids_of(page) == [f"cls-{place}" for place in (7, 6, 5, 4, 3)]
        rest = await store.find(replace(query, after=(page[-1].key, page[-1].id)))
        assert ids_of(rest) == ["cls-2", "cls-1", "cls-0"]

    run(tmp_path / "fleet.db", story)
