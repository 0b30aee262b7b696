"""What goes wrong between the store and PostgreSQL, and that it mends by itself."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import pytest

from hyperfleet.backends.postgres import AdvisoryClaim, PostgresStore
from hyperfleet.backends.postgres_connections import Connections, Timeouts, transaction, translate
from hyperfleet.errors import Contended, StoreUnavailable
from hyperfleet.ports import EVERYTHING, Loaded, Needs, Query, WriteSet
from tests.contract.stores import changed, created, make_record, must_read, write
from tests.servers import PostgresServer
from tests.unit.backends.test_postgres import LOCKING, ask, opened, run

KILL_EVERYBODY_ELSE = (
    "select pg_terminate_backend(pid) from pg_stat_activity"
    " where application_name = 'hyperfleet' and datname = current_database()"
)


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (asyncpg.DeadlockDetectedError("deadlock"), Contended),
        (asyncpg.SerializationError("could not serialize"), Contended),
        (asyncpg.UniqueViolationError("duplicate key"), Contended),
        (asyncpg.LockNotAvailableError("lock timeout"), Contended),
        (asyncpg.InvalidCachedStatementError("cached plan"), Contended),
        (asyncpg.ConnectionDoesNotExistError("connection was closed"), StoreUnavailable),
        (asyncpg.CannotConnectNowError("the database system is starting up"), StoreUnavailable),
        (asyncpg.TooManyConnectionsError("sorry, too many clients already"), StoreUnavailable),
        (asyncpg.AdminShutdownError("terminating connection"), StoreUnavailable),
        (asyncpg.QueryCanceledError("statement timeout"), StoreUnavailable),
        (asyncpg.DiskFullError("no space left on device"), StoreUnavailable),
        (asyncpg.ReadOnlySQLTransactionError("read-only transaction"), StoreUnavailable),
        (asyncpg.InvalidPasswordError("password authentication failed"), StoreUnavailable),
        (asyncpg.InterfaceError("connection is closed"), StoreUnavailable),
        # A session that was ended while it idled: its farewell has arrived, but not yet that the line is dead.
        (
            asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
            StoreUnavailable,
        ),
        (ConnectionResetError("reset by peer"), StoreUnavailable),
        (TimeoutError(), StoreUnavailable),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
def test_an_error_of_the_driver_means_one_of_ours(error: Exception, meaning: type[Exception]) -> None:
    translated = translate(error)
    assert type(translated) is meaning
    assert (str(error) or "TimeoutError") in str(translated)


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.UndefinedColumnError("no such column"),
        asyncpg.DataError("invalid input for query argument $1: 'closed'"),
        asyncpg.InterfaceError("another operation is in progress"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_mistake_of_ours_stays_what_it_is(error: Exception) -> None:
    assert translate(error) is None


def test_a_server_that_is_not_there_is_unavailable() -> None:
    store = PostgresStore("postgresql://nobody@127.0.0.1:1/nothing")
    for doing in (store.open, store.migrate, store.schema_version):
        with pytest.raises(StoreUnavailable, match="cannot connect to PostgreSQL"):
            asyncio.run(doing())


def test_a_killed_server_is_unavailable_and_then_there_again_with_all_that_was_committed(
    postgres_server: PostgresServer,
) -> None:
    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        await asyncio.gather(*(store.count(Query("Cluster", EVERYTHING)) for _ in range(8)))
        assert await store.read_answer("Cluster", "cls-1", EVERYTHING)
        await asyncio.to_thread(postgres_server.kill9)
        await everything_is_unavailable(store)
        await asyncio.to_thread(postgres_server.start)
        assert (await must_read(store, "cls-1")).revision == 1
        assert await write(store, changed(make_record("cls-1"))) == 1
        answer = await store.read_answer("Cluster", "cls-1", EVERYTHING)
        assert answer is not None
        assert answer.revision == 2
        assert await store.count(Query("Cluster", EVERYTHING)) == 1
        claim = await store.claim("task")
        assert claim is not None
        async with claim:
            await store.check()

    run(postgres_server.url(), story)


async def everything_is_unavailable(store: PostgresStore) -> None:
    with pytest.raises(StoreUnavailable):
        await store.read_answer("Cluster", "cls-1", EVERYTHING)
    with pytest.raises(StoreUnavailable):
        await store.read_record("Cluster", "cls-1", EVERYTHING)
    with pytest.raises(StoreUnavailable):
        await store.find(Query("Cluster", EVERYTHING))
    with pytest.raises(StoreUnavailable):
        await write(store, changed(make_record("cls-1")))
    with pytest.raises(StoreUnavailable):
        await store.check()
    with pytest.raises(StoreUnavailable):
        await store.claim("task")


def test_a_server_that_dies_during_work_leaves_nothing_written(postgres_server: PostgresServer) -> None:
    def work(_: Loaded) -> WriteSet:
        postgres_server.kill9()
        return changed(make_record("cls-1", "Failed"))

    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        with pytest.raises(StoreUnavailable):
            await store.transact(Needs(ids=frozenset({"cls-1"})), work)
        await asyncio.to_thread(postgres_server.start)
        assert (await must_read(store, "cls-1")).revision == 1

    run(postgres_server.url(), story)


def test_a_session_that_was_ended_is_replaced_before_anybody_notices(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        await must_read(store, "cls-1")
        await ask(postgres_url, KILL_EVERYBODY_ELSE)
        while any(not connection.is_closed() for connection in store._opened().writers._idle):
            await asyncio.sleep(0)  # the news is on its way
        await write(store, changed(make_record("cls-1")))
        async with store._opened().writers.take() as connection:
            assert await connection.fetchval("select max(revision) from resources") == 2

    run(postgres_url, story)


def test_who_waits_too_long_for_a_lock_may_try_again(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        connections = Connections(postgres_url, 1, Timeouts())
        async with connections.take() as other, transaction(other):
            await other.execute("select from resources for update")
            with pytest.raises(Contended, match="lock timeout"):
                await write(store, changed(make_record("cls-1")))
        await connections.close()
        assert await write(store, changed(make_record("cls-1"))) == 1

    run(postgres_url, story, timeouts=Timeouts(lock=0.05))


def test_a_writer_that_freezes_loses_its_locks(postgres_url: str) -> None:
    def freeze(_: Loaded) -> WriteSet:
        time.sleep(0.5)
        return changed(make_record("cls-1", "Failed"))

    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        with pytest.raises(StoreUnavailable):
            await store.transact(Needs(ids=frozenset({"cls-1"}), keys=LOCKING), freeze)
        assert await write(store, changed(make_record("cls-1"))) == 1

    run(postgres_url, story, timeouts=Timeouts(idle=0.05))


def test_a_statement_that_takes_too_long_is_given_up(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        with pytest.raises(StoreUnavailable, match="statement timeout"):
            async with store._opened().scans.take() as connection:
                await connection.execute("select pg_sleep(60)")
        assert await store.count(Query("Cluster", EVERYTHING)) == 0

    run(postgres_url, story, timeouts=Timeouts(statement=0.2))


def test_a_task_whose_session_ended_can_be_taken_by_another(postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        async with opened(postgres_url) as other:
            claim = await store.claim("deadlines")
            assert claim is not None
            async with claim:
                assert await other.claim("deadlines") is None
                await ask(postgres_url, KILL_EVERYBODY_ELSE)
                while (second := await take_patiently(other)) is None:
                    await asyncio.sleep(0)
            async with second:
                assert await store.claim("deadlines") is None

    run(postgres_url, story)


async def take_patiently(store: PostgresStore) -> AdvisoryClaim | None:
    """Claim a task; a session that has just been ended may not know it yet."""
    try:
        return await store.claim("deadlines")
    except StoreUnavailable:
        return None


@pytest.mark.parametrize("pause", [0, 1, 2, 5, 20])
def test_sessions_that_are_ended_again_and_again_give_answers_or_are_unavailable(pause: int, postgres_url: str) -> None:
    async def story(store: PostgresStore) -> None:
        await write(store, created(make_record("cls-1")))
        for _ in range(8):
            await must_read_in_the_end(store)
            await ask(postgres_url, KILL_EVERYBODY_ELSE)
            for _ in range(pause):
                await asyncio.sleep(0)
            await must_read_in_the_end(store)

    run(postgres_url, story)


async def must_read_in_the_end(store: PostgresStore) -> None:
    """Read until it works: a broken connection is thrown away, so that takes no more tries than there are of them."""
    for _ in range(10):
        try:
            assert (await must_read(store, "cls-1")).revision == 1
        except StoreUnavailable:
            continue
        return
    pytest.fail("a broken connection was kept")
