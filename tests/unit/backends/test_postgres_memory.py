"""Writing from memory: one statement on records that this process wrote last, or the ordinary way if they changed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Self

import asyncpg
import pytest
from msgspec.structs import replace

from hyperfleet.backends import postgres_transactions
from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.ports import Changes, Loaded, Needs, NewPolicy
from tests.contract.stores import changed, created, make_pool, make_record, make_stored, must_read, write
from tests.unit.backends.test_postgres import ask, opened, run


class Spy:
    """A piece of work that keeps what it was given each time."""

    def __init__(self, answer: bytes, **more: Any) -> None:
        self.answer = answer
        self.more = more
        self.seen: list[Loaded] = []

    def __call__(self, loaded: Loaded) -> Changes:
        self.seen.append(loaded)
        record = next(iter(loaded.records.values()))
        return changed(replace(record, answer=self.answer), **self.more)


ONE = Needs(ids=frozenset({"cls-1"}))


def test_the_next_write_rests_on_the_one_before(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        for number in range(1, 5):
            spy = Spy(b"%d" % number, reports=[("cls-1", make_stored("dns", said=str(number)))])
            assert await store.transact(ONE, spy) == number
            assert len(spy.seen) == 1
            assert (await must_read(store, "cls-1")).answer == b"%d" % number
        [last] = spy.seen
        assert last.records["cls-1"].answer == b"3"
        assert last.records["cls-1"].reports["dns"].report.data == make_stored("dns", said="3").report.data
        assert last.records["cls-1"].revision == 4

    run(postgres_url, story)


def test_what_another_replica_wrote_is_seen_before_it_is_overwritten(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        async with opened(postgres_url) as other:
            await other.transact(ONE, Spy(b"theirs"))
        spy = Spy(b"ours")
        assert await store.transact(ONE, spy) == 2
        assert [loaded.records["cls-1"].answer for loaded in spy.seen] == [make_record("cls-1").answer, b"theirs"]

    run(postgres_url, story)


def test_a_report_alone_makes_memory_old(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        async with opened(postgres_url) as other:
            theirs = Spy(make_record("cls-1").answer, reports=[("cls-1", make_stored("dns", said="theirs"))])
            await other.transact(ONE, theirs)
        spy = Spy(b"ours")
        await store.transact(ONE, spy)
        assert "dns" in spy.seen[-1].records["cls-1"].reports

    run(postgres_url, story)


def test_a_parent_that_moved_makes_memory_of_its_child_old(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        pool = make_record(make_pool("np-1", "cls-1"))
        await write(store, created(make_record("cls-1"), pool))
        async with opened(postgres_url) as other:
            await other.transact(ONE, Spy(b"theirs"))
        seen: list[Loaded] = []

        def work(loaded: Loaded) -> Changes:
            seen.append(loaded)
            return changed(replace(loaded.records["np-1"], answer=b"ours"))

        await store.transact(Needs(ids=frozenset({"np-1"})), work)
        assert [loaded.records["cls-1"].answer for loaded in seen] == [make_record("cls-1").answer, b"theirs"]

    run(postgres_url, story)


def test_a_refusal_does_not_rest_on_memory(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        async with opened(postgres_url) as other:
            await other.transact(ONE, Spy(b"theirs"))
        seen: list[Loaded] = []

        def refuse(loaded: Loaded) -> Changes:
            seen.append(loaded)
            return Changes()

        assert await store.transact(ONE, refuse) == 2
        assert seen[-1].records["cls-1"].answer == b"theirs"

    run(postgres_url, story)


def test_memory_of_another_policy_is_not_written(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await store.activate_policy(NewPolicy("first", "text", "file"))
        await write(store, created(make_record("cls-1")))
        async with opened(postgres_url) as other:
            await other.activate_policy(NewPolicy("second", "text", "file"))
        spy = Spy(b"ours")
        await store.transact(ONE, spy)
        assert [loaded.policy_version for loaded in spy.seen] == [1, 2]

    run(postgres_url, story)


def test_a_fault_on_what_is_remembered_is_tried_on_what_is_there(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        seen: list[Loaded] = []

        def stumble(loaded: Loaded) -> Changes:
            seen.append(loaded)
            if len(seen) == 1:
                raise ValueError("only the first time")
            return changed(replace(loaded.records["cls-1"], answer=b"ours"))

        assert await store.transact(ONE, stumble) == 1
        assert (await must_read(store, "cls-1")).answer == b"ours"

    run(postgres_url, story)


def test_the_clock_of_the_database_counts_from_the_first_write_on(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fast(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + timedelta(hours=1)

    async def story(store: PostgresStore) -> None:
        async with opened(postgres_url) as other:
            await write(other, created(make_record("cls-1")))
        monkeypatch.setattr(postgres_transactions, "datetime", Fast)
        await store.transact(ONE, lambda _: Changes())  # tells the policy, and nothing of the time
        for number in range(2):
            spy = Spy(b"%d" % number)
            await store.transact(ONE, spy)
            [loaded] = spy.seen
            assert loaded.now < datetime.now(UTC) + timedelta(minutes=1)

    run(postgres_url, story)


def test_where_others_write_memory_is_tried_less_and_less(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        tries = []
        async with opened(postgres_url) as other:
            for number in range(12):
                await other.transact(ONE, Spy(b"theirs %d" % number))
                spy = Spy(b"ours %d" % number)
                await store.transact(ONE, spy)
                tries.append(len(spy.seen))
        assert tries[0] == 2
        assert sum(tries) < 12 + 5
        assert (await must_read(store, "cls-1")).revision == 25

    run(postgres_url, story)


@pytest.mark.parametrize(
    ("statement", "end", "tries"),
    [
        ("update resources set answer = 'theirs'", "commit", 2),
        ("update resources set answer = 'theirs'", "rollback", 1),
        ("select from resources for update", "commit", 1),
        ("update head set position = position + 1", "commit", 1),
        ("update head set policy_version = 7", "commit", 2),
    ],
)
def test_who_had_to_wait_for_another_sees_what_that_one_wrote(
    statement: str, end: str, tries: int, postgres_url: str
) -> None:
    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        other = await asyncpg.connect(postgres_url)
        await other.execute("begin")
        await other.execute(statement)
        spy = Spy(b"ours")
        writing = asyncio.create_task(store.transact(ONE, spy))
        while not await ask(postgres_url, "select from pg_locks where not granted"):
            await asyncio.sleep(0.01)
        await other.execute(end)
        await other.close()
        base = await writing
        assert len(spy.seen) == tries
        assert (await must_read(store, "cls-1")).revision == base + 1 == await store.position()

    run(postgres_url, story)
