"""Leases and queues: the same on every store."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.messaging import Message, Subscription, Topic
from hyperfleet.ports import Store
from tests.contract.clocks import TestTime
from tests.contract.conftest import DURABLE
from tests.contract.stores import created, make_record, write

pytestmark = pytest.mark.anyio

_MINUTE = timedelta(minutes=1)
_SHORT = timedelta(milliseconds=20)
_NOW = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


@pytest.fixture(params=["memory", *DURABLE])
def engine(request: pytest.FixtureRequest) -> str:
    """Give the name of each kind of store."""
    name: str = request.param
    return name


@pytest.fixture
def place(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give where a new store of that kind may be."""
    return str(request.getfixturevalue("postgres_url") if engine == "postgres" else tmp_path / "fleet.db")


@pytest.fixture
async def time(anyio_backend: str) -> AsyncIterator[TestTime]:
    """Give a time that can be set."""
    made = TestTime()
    yield made
    await made.close()


def message(id_: str, tenant: str = "acme", topic: Topic = "clusterEvents", *, is_for_all: bool = False) -> Message:
    """Make a message about one resource."""
    data = b'{"id":"cls-1","text":"\xc3\xbc"}'
    type_ = "io.hyperfleet.cluster.reconcile"
    return Message(
        topic, id_, "/hyperfleet/x/relay", type_, "Cluster/cls-1", _NOW, tenant, "cls-1", data, is_for_all=is_for_all
    )


async def test_a_lease_has_one_holder_until_it_expires(store: Store) -> None:
    first = await store.take_lease("relay", "a", _MINUTE)
    assert first is not None
    assert await store.take_lease("relay", "b", _MINUTE) is None
    again = await store.take_lease("relay", "a", _SHORT)
    assert again == first, "extending it keeps the epoch"
    await asyncio.sleep(0.05)
    second = await store.take_lease("relay", "b", _MINUTE)
    assert second is not None
    assert second.epoch > first.epoch
    assert await store.take_lease("relay", "a", _MINUTE) is None
    assert await store.take_lease("other", "a", _MINUTE) is not None, "each name is a lease of its own"


async def test_a_released_lease_is_free_at_once_and_only_its_holder_can_release_it(store: Store) -> None:
    held = await store.take_lease("relay", "a", _MINUTE)
    assert held is not None
    await store.release_lease(held)
    taken = await store.take_lease("relay", "b", _MINUTE)
    assert taken is not None
    await store.release_lease(held)
    assert await store.take_lease("relay", "c", _MINUTE) is None, "a former holder releases nothing"


async def test_a_store_keeps_its_id(store: Store) -> None:
    assert await store.store_id() == await store.store_id() != ""


async def test_messages_go_to_every_subscription_of_their_topic(store: Store) -> None:
    queues = store.queues
    assert await queues.subscribe(Subscription("one"))
    assert await queues.subscribe(Subscription("two"))
    assert await queues.subscribe(Subscription("status", "statusUpdates"))
    assert not await queues.subscribe(Subscription("one", "statusUpdates")), "a subscription keeps its topic"
    await queues.enqueue([message("1"), message("2"), message("2-s", topic="statusUpdates")])
    for name in ("one", "two"):
        taken = await queues.take(name, 10, _MINUTE, 3)
        assert [each.message for each in taken] == [message("1"), message("2")]
    assert [each.message.id for each in await queues.take("status", 10, _MINUTE, 3)] == ["2-s"]
    assert await queues.take("nobody", 10, _MINUTE, 3) == ()


async def test_messages_of_other_tenants_never_reach_a_scoped_queue(store: Store) -> None:
    queues = store.queues
    await queues.subscribe(Subscription("scoped", tenants=frozenset({"acme", "it's"})))
    await queues.subscribe(Subscription("none", tenants=frozenset()))
    await queues.enqueue([message("1", "globex"), message("2"), message("3", "it's"), message("4", "")])
    await queues.enqueue([message("5", "", is_for_all=True)])
    assert [each.message.id for each in await queues.take("scoped", 10, _MINUTE, 3)] == ["2", "3", "5"]
    assert [each.message.id for each in await queues.take("none", 10, _MINUTE, 3)] == ["5"]


async def test_a_message_is_taken_once_until_its_deadline(store: Store) -> None:
    queues = store.queues
    await queues.subscribe(Subscription("one"))
    await queues.enqueue([message("1"), message("2")])
    (first,) = await queues.take("one", 1, _SHORT, 3)
    (second,) = await queues.take("one", 10, _MINUTE, 3)
    assert (first.message.id, first.attempt, second.message.id) == ("1", 1, "2")
    await asyncio.sleep(0.05)
    (again,) = await queues.take("one", 10, _MINUTE, 3)
    assert (again.message.id, again.attempt) == ("1", 2)
    assert await queues.ack("one", [first.receipt]) == 0, "the receipt of an earlier attempt is no longer valid"
    assert await queues.ack("one", [again.receipt, second.receipt, "rubbish", "9.9"]) == 2
    (state,) = await queues.subscriptions("one")
    assert (state.waiting, state.in_flight, state.dead, state.oldest) == (0, 0, 0, None)


async def test_a_message_that_is_never_acknowledged_becomes_a_dead_letter(store: Store) -> None:
    queues = store.queues
    await queues.subscribe(Subscription("one"))
    await queues.enqueue([message("1")])
    for attempt in (1, 2, 3):
        (taken,) = await queues.take("one", 1, _SHORT, 2)
        assert taken.attempt == attempt
        await asyncio.sleep(0.05)
    assert await queues.take("one", 1, _SHORT, 2) == ()
    (dead,) = await queues.dead_letters("one", 10)
    assert (dead.message, dead.attempts) == (message("1"), 3)
    assert "never acknowledged" in dead.error
    assert dead.time is not None


async def test_what_is_behind_dead_letters_is_taken_in_the_same_go(store: Store) -> None:
    queues = store.queues
    await queues.subscribe(Subscription("one"))
    await queues.enqueue([message(str(number)) for number in range(6)])
    assert len(await queues.take("one", 4, _SHORT, 0)) == 4
    await asyncio.sleep(0.05)
    assert [each.message.id for each in await queues.take("one", 2, _MINUTE, 0)] == ["4", "5"]
    assert len(await queues.dead_letters("one", 10)) == 4
    assert await queues.take("one", 2, _MINUTE, 0) == ()


async def test_a_rejected_message_waits_or_becomes_a_dead_letter(store: Store) -> None:
    queues = store.queues
    await queues.subscribe(Subscription("one"))
    await queues.enqueue([message("1"), message("2")])
    first, second = await queues.take("one", 2, _MINUTE, 3)
    assert await queues.nack("one", [first.receipt, "rubbish"], "the API is away", _SHORT) == 1
    assert await queues.nack("one", [second.receipt], "no such cluster \x00 ü" + "x" * 9_000, None) == 1
    assert await queues.nack("one", [second.receipt], "again", None) == 0
    await asyncio.sleep(0.05)
    (state,) = await queues.subscriptions()
    assert state.dead == 1
    assert state.oldest == _NOW
    (letter,) = await queues.dead_letters("one", 10)
    assert letter.message.id == "2"
    assert letter.error.startswith("no such cluster")
    assert len(letter.error) <= 2_000
    assert await queues.replay_dead_letters("one", 10) == 1
    ids = [each.message.id for each in await queues.take("one", 10, _MINUTE, 3)]
    assert "2" in ids


async def test_a_deleted_subscription_takes_its_queue_along(store: Store) -> None:
    queues = store.queues
    await queues.subscribe(Subscription("one"))
    await queues.enqueue([message("1")])
    assert await queues.unsubscribe("one")
    assert not await queues.unsubscribe("one")
    await queues.subscribe(Subscription("one"))
    assert await queues.take("one", 10, _MINUTE, 3) == ()


async def test_a_queue_that_nobody_pulls_from_is_overdue_and_can_be_emptied(
    engine: str, place: str, time: TestTime
) -> None:
    store = await time.new_store(engine, place)
    queues = store.queues
    for name in ("busy", "dead", "idle", "new"):
        await queues.subscribe(Subscription(name))
        await queues.enqueue([message("1"), message("2"), message("3")], only=name)
        if name == "dead":
            taken = await queues.take(name, 3, _MINUTE, 3)
            await queues.nack(name, [each.receipt for each in taken], "poison", None)
    await time.advance(10 * _MINUTE)
    assert len(await queues.take("busy", 3, _MINUTE, 3)) == 3
    await queues.ack("new", [each.receipt for each in await queues.take("new", 3, _MINUTE, 3)])
    await queues.enqueue([message("4")], only="new")
    assert await queues.overdue(11 * _MINUTE) == ()
    (overdue,) = await queues.overdue(9 * _MINUTE)
    assert (overdue.subscription, overdue.oldest) == (Subscription("idle"), message("1"))
    await queues.enqueue([message("5")], only="idle")
    assert await queues.discard("idle", overdue.newest, 2) == 2
    assert await queues.discard("idle", overdue.newest, 2) == 1
    assert await queues.discard("idle", overdue.newest, 2) == 0
    assert [each.message.id for each in await queues.take("idle", 9, _MINUTE, 3)] == ["5"]
    assert len(await queues.dead_letters("dead", 9)) == 3


async def test_a_clock_that_is_set_back_stops_neither_leases_nor_messages(
    engine: str, place: str, time: TestTime
) -> None:
    store = await time.new_store(engine, place)
    await store.queues.subscribe(Subscription("one"))
    await store.queues.enqueue([message("1")])
    first = await store.take_lease("relay", "a", _MINUTE)
    assert first is not None
    await time.advance(-_MINUTE / 2)
    assert await store.take_lease("relay", "b", _MINUTE) is None, "it may be so: the holder is there"
    assert await store.leases("relay") == (first,)
    await time.advance(-10 * _MINUTE)
    assert await store.leases("relay") == (), "its holder may have died since"
    second = await store.take_lease("relay", "b", _MINUTE)
    assert second is not None
    assert second.epoch > first.epoch
    (state,) = await store.queues.subscriptions("one")
    assert (state.waiting, state.in_flight) == (1, 0)
    assert [each.message.id for each in await store.queues.take("one", 10, _MINUTE, 3)] == ["1"]
    assert await store.queues.take("one", 10, _MINUTE, 3) == (), "a deadline is a deadline"


@pytest.mark.postgres
async def test_replicas_hear_of_each_other_at_once(postgres_url: str) -> None:
    one, other = PostgresStore(postgres_url), PostgresStore(postgres_url)
    await one.migrate()
    heard: Counter[str] = Counter()
    other.on_foreign_messages(lambda: heard.update(["messages"]))
    for store in (one, other):
        await store.open()
    other.on_foreign_commit(lambda: heard.update(["commits"]))  # also once it is open
    await one.queues.subscribe(Subscription("one"))
    await until(lambda: heard.total() >= 2)  # both are called when it begins to listen
    heard.clear()
    await one.queues.enqueue([message("1", topic="statusUpdates")])
    await write(one, created(make_record("cls-1")))
    await until(lambda: heard == Counter(commits=1))
    await one.queues.enqueue([message("1"), message("2")])
    await until(lambda: heard == Counter(commits=1, messages=1))
    lease = await one.take_lease("relay", "a", _MINUTE)
    assert lease is not None
    await one.release_lease(lease)
    await until(lambda: heard == Counter(commits=2, messages=1))
    for store in (one, other):
        await store.close()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def test_replicas_share_a_queue(replicas: list[Store]) -> None:
    one, two = (each.queues for each in replicas)
    await one.subscribe(Subscription("work"))
    await one.enqueue([message(str(number)) for number in range(50)])
    taken = await asyncio.gather(*(queue.take("work", 10, _MINUTE, 3) for queue in (one, two) * 3))
    ids = [each.message.id for some in taken for each in some]
    assert sorted(ids, key=int) == [str(number) for number in range(50)], "each is taken once"
