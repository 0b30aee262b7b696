"""What is PostgreSQL's own: several replicas at once, plans and pages, settings of the server, gathered reads."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from msgspec.structs import replace

from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.backends.postgres_loading import SQL
from hyperfleet.errors import Contended, SchemaMismatch, StoreUnavailable
from hyperfleet.ports import EVERYTHING, Heartbeat, Loaded, NameKey, Needs, NewPolicy, Query, Scope, TokenTerm, WriteSet
from tests.contract.stores import (
    changed,
    created,
    ids_of,
    insist,
    look,
    make_pool,
    make_record,
    make_resource,
    make_stored,
    must_read,
    write,
)

Story = Callable[[PostgresStore], Awaitable[None]]

LOCKING = frozenset({"some key"})  # nobody remembers keys, so whoever needs one locks and loads


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[PostgresStore]:
    """Open a store, with its tables, for a block."""
    store = PostgresStore(url, **options)
    await store.migrate()
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def run(url: str, story: Story, **options: Any) -> None:
    async def told() -> None:
        async with opened(url, **options) as store:
            await story(store)

    asyncio.run(told())


async def ask(url: str, statement: str, *parameters: object) -> list[Any]:
    """Run a statement on a connection of its own; return its rows."""
    connection = await asyncpg.connect(url)
    try:
        return list(await connection.fetch(statement, *parameters))
    finally:
        await connection.close()


# ── writers beside each other ────────────────────────────────────────────────────────────────────────────────────


def test_families_that_many_write_to_at_once_are_locked_in_one_order(postgres_url: str) -> None:
    clusters = [f"cls-{place}" for place in range(4)]
    pools = [make_pool(f"np-{cluster}-{place}", cluster) for cluster in clusters for place in range(3)]
    choose = random.Random(1)

    def touch(loaded: Loaded) -> WriteSet:
        return changed(*loaded.records.values())

    async def story(first: PostgresStore) -> None:
        await write(first, created(*(make_record(each) for each in (*map(make_resource, clusters), *pools))))
        everyone = clusters + [pool.id for pool in pools]
        async with opened(postgres_url) as second:
            some = [Needs(ids=frozenset(choose.sample(everyone, 5)), wants_children=bool) for _ in range(60)]
            # Not one is `Contended`: no two of them wait for one another.
            await asyncio.gather(*((first, second)[turn % 2].transact(needs, touch) for turn, needs in enumerate(some)))
        rows = await ask(postgres_url, "select position from events order by position")
        assert [row["position"] for row in rows] == list(range(1, len(rows) + 1))

    run(postgres_url, story)


def test_a_write_that_was_computed_under_another_policy_is_not_written(postgres_url: str) -> None:
    async def put_in_force(other: PostgresStore) -> None:
        await other.activate_policy(NewPolicy("second", "text", "file"))

    async def story(store: PostgresStore) -> None:
        await store.activate_policy(NewPolicy("first", "text", "file"))
        await write(store, created(make_record("cls-1")))

        def work(loaded: Loaded) -> WriteSet:
            with ThreadPoolExecutor(1) as another_replica:
                another_replica.submit(run, postgres_url, put_in_force).result()
            return changed(replace(loaded.records["cls-1"], answer=b"of the first policy"))

        with pytest.raises(Contended, match="another policy"):
            await store.transact(Needs(ids=frozenset({"cls-1"}), keys=LOCKING), work)
        assert (await must_read(store, "cls-1")).revision == 1
        assert (await look(store, Needs())).policy_version == 2

    run(postgres_url, story)


def test_a_transaction_without_changes_keeps_nobody_waiting(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        needs = Needs(ids=frozenset({"cls-1"}))
        assert [await store.transact(needs, lambda _: WriteSet()) for _ in range(5)] == [1] * 5
        assert await write(store, changed(make_record("cls-1"))) == 1

    run(postgres_url, story)


# ── rows, pages and plans ────────────────────────────────────────────────────────────────────────────────────────


def test_a_heartbeat_touches_no_index_of_resources_and_reports(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        stored = make_stored()
        await write(store, created(make_record("cls-1")))
        await write(store, changed(make_record("cls-1"), reports=[("cls-1", stored)]))
        for beat in range(30):
            record = make_record("cls-1", answer=f"beat {beat}".encode())
            await write(store, changed(record, reports=[("cls-1", replace(stored, id=f"rep-{beat}"))]))

    run(postgres_url, story)  # a session hands in its statistics when it ends
    counts = asyncio.run(
        ask(
            postgres_url,
            "select relname, n_tup_upd, n_tup_hot_upd from pg_stat_user_tables"
            " where relname in ('resources', 'reports', 'head')",
        )
    )
    touched = {row["relname"]: row["n_tup_upd"] - row["n_tup_hot_upd"] for row in counts}
    assert touched.keys() == {"resources", "reports", "head"}
    # A page that another session still looks at cannot be cleaned up, so now and then a row must move all the same;
    # if an index had a column that changes, every one would.
    assert all(count <= 15 for count in touched.values()), touched
    assert all(row["n_tup_upd"] >= 30 for row in counts)


@pytest.mark.parametrize(
    "name", ["lock_resources", "lock_children", "load_records", "read_answers", "read_point_records"]
)
def test_what_is_found_by_key_is_found_by_an_index_however_empty_the_tables_were(name: str, postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        async with store._opened().writers.take() as connection:
            await connection.execute(f"prepare statement as {SQL[name]}")
            plan = "\n".join(row[0] for row in await connection.fetch("explain execute statement(array['cls-1'])"))
        assert {line.split()[-4] for line in plan.splitlines() if "Seq Scan" in line} <= {"head", "h"}, plan
        assert "Index" in plan

    run(postgres_url, story)


def test_no_column_is_moved_out_of_its_row(postgres_url: str) -> None:
    """PostgreSQL makes room in a long row by moving columns to another table, beginning with ids as long as ours."""

    async def story(store: PostgresStore) -> None:
        text = " ".join(f"word{place}" for place in range(500))
        id_, adapter = "cls-0123456789abcdefghij", "an-adapter-with-quite-a-name"
        stored = replace(make_stored(adapter, said=text), digest=b"digest", is_calm=True)
        big = make_record(make_resource(id_, spec={"text": text}, tenant=f"tenant-{id_}"), answer=text.encode() * 2)
        await write(store, created(big))
        await write(store, changed(big, reports=[(id_, stored)]))
        sent = Heartbeat("Cluster", id_, None, EVERYTHING, adapter, 1, b"digest", None)
        assert None not in [(await store.record_heartbeats([sent]))[0] for _ in range(3)]
        names = ("resources", "records", "reports", "report_bodies", "report_log", "events")
        tables = await ask(
            postgres_url,
            "select relname, pg_relation_size(reltoastrelid) from pg_class"
            " where relname = any ('{resources,records,reports,report_bodies,report_log,events}')",
        )
        assert dict(tables) == dict.fromkeys(names, 0)

    run(postgres_url, story)


# ── texts that PostgreSQL cannot hold ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("id_", ["cls-\0", "cls-\ud800"])
def test_an_id_that_cannot_be_stored_is_not_there(id_: str, postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        read = await asyncio.gather(*(store.read_answer("Cluster", each, EVERYTHING) for each in (id_, "cls-1")))
        assert [answer and answer.id for answer in read] == [None, "cls-1"]
        assert await store.read_record("Cluster", id_, EVERYTHING) is None
        assert await store.read_record("Cluster", "cls-1", EVERYTHING, id_) is None
        assert ids_of(await store.find(Query("Cluster", EVERYTHING, terms=(TokenTerm((id_,)),)))) == []
        without = Query("Cluster", EVERYTHING, terms=(TokenTerm((id_,), is_negated=True),))
        assert ids_of(await store.find(without)) == ["cls-1"]
        name = NameKey("acme", "Cluster", "", id_)
        loaded = await look(store, Needs(ids=frozenset({id_}), keys=frozenset({id_}), names=frozenset({name})))
        assert (loaded.records, loaded.idempotency_records, loaded.names) == ({}, {}, {})

    run(postgres_url, story)


# ── gathered reads ───────────────────────────────────────────────────────────────────────────────────────────────


def test_everybody_who_reads_at_once_gets_their_own_answer(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        pool = make_pool("np-1", "cls-1", tenant="umbrella")
        await write(store, created(*(make_record(f"cls-{place}") for place in range(50)), make_record(pool)))

        async def read_many(reader: int) -> None:
            for turn in range(20):
                id_ = f"cls-{(reader * 7 + turn) % 60}"
                answer = await store.read_answer("Cluster", id_, EVERYTHING)
                expected = make_record(id_).answer if int(id_[4:]) < 50 else None
                assert (answer and answer.body) == expected

        await asyncio.gather(*(read_many(reader) for reader in range(40)))
        acme, umbrella = Scope(frozenset({"acme"})), Scope(frozenset({"umbrella"}))
        ways = [(acme, None), (umbrella, None), (umbrella, "cls-1"), (umbrella, "cls-2")]
        found = await asyncio.gather(*(store.read_answer("NodePool", "np-1", *way) for way in ways))
        assert [answer is not None for answer in found] == [False, True, True, False]

    run(postgres_url, story)


def test_a_reader_who_goes_away_takes_nobody_along(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        for steps in range(10):
            readers = [asyncio.create_task(store.read_answer("Cluster", "cls-1", EVERYTHING)) for _ in range(8)]
            for _ in range(steps):
                await asyncio.sleep(0)
            readers[0].cancel()
            readers[5].cancel()
            answers = await asyncio.gather(*readers, return_exceptions=True)
            stayed = [answer for place, answer in enumerate(answers) if place not in (0, 5)]
            assert all(answer and not isinstance(answer, BaseException) for answer in stayed)

    run(postgres_url, story)


# ── the server and the schema ────────────────────────────────────────────────────────────────────────────────────


def test_a_database_without_tables_is_refused_with_what_to_do(postgres_url: str) -> None:
    with pytest.raises(SchemaMismatch, match="run: hyperfleet db migrate"):
        asyncio.run(PostgresStore(postgres_url).open())


def test_a_database_of_a_newer_program_is_refused(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await ask(postgres_url, "insert into schema_migrations (version, name) values (9999, 'later')")
        with pytest.raises(SchemaMismatch, match="9999"):
            await PostgresStore(postgres_url).open()
        with pytest.raises(SchemaMismatch, match="9999"):
            await store.migrate()

    run(postgres_url, story)


def test_of_replicas_that_migrate_at_once_one_does_it(postgres_url: str) -> None:
    async def race() -> list[list[str]]:
        return await asyncio.gather(*(PostgresStore(postgres_url).migrate() for _ in range(4)))

    assert sorted(asyncio.run(race()), key=len)[:3] == [[], [], []]


def test_a_read_only_database_is_not_writable(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await store.check()
        name = postgres_url.rsplit("/", 1)[1]
        await ask(postgres_url, f"alter database {name} set default_transaction_read_only = on")
        async with opened_as_it_is(postgres_url) as late:
            with pytest.raises(StoreUnavailable, match="read-only"):
                await late.check()
            with pytest.raises(StoreUnavailable, match="read-only"):
                await write(late, created(make_record("cls-1")))
            assert await late.count(Query("Cluster", EVERYTHING)) == 0

    run(postgres_url, story)


@asynccontextmanager
async def opened_as_it_is(url: str) -> AsyncIterator[PostgresStore]:
    """Open a store whose tables are there already."""
    store = PostgresStore(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def test_commits_are_durable_whatever_the_server_is_set_to(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        async with store._opened().writers.take() as connection:
            assert await connection.fetchval("show synchronous_commit") == "on"

    run(postgres_url, story)


def test_transactions_of_one_store_that_need_different_resources_run_beside_each_other(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        ids = [f"cls-{place}" for place in range(8)]
        await write(store, created(*(make_record(id_) for id_ in ids)))

        def touch(loaded: Loaded) -> WriteSet:
            return changed(*loaded.records.values())

        needs = [Needs(ids=frozenset({id_})) for id_ in ids * 5]
        bases = await asyncio.gather(*(insist(store, each, touch) for each in needs))
        assert sorted(bases) == list(range(8, 48))

    run(postgres_url, story, pool_size=16)
