"""The relay on every durable store: everything is published, in order, by one replica at a time."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from hyperfleet.api.wire import BASE
from hyperfleet.backends.clock import SystemClock
from hyperfleet.bootstrap import System, open_tables
from hyperfleet.errors import BrokerUnavailable, StoreUnavailable
from hyperfleet.events.in_process import InProcessBroker
from hyperfleet.events.making import Origin
from hyperfleet.events.relay import READER, Relay
from hyperfleet.messaging import Message, Subscription
from hyperfleet.ports import Lease, LogReader, Pruning, Store
from hyperfleet.settings import Settings
from tests.contract.conftest import DURABLE

pytestmark = pytest.mark.anyio

_MINUTE = timedelta(minutes=1)


@pytest.fixture(params=DURABLE)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'fleet.db'}"
    address: str = request.getfixturevalue("postgres_url")
    return address


@pytest.fixture
async def systems(url: str, anyio_backend: str) -> AsyncIterator[AsyncExitStack]:
    """Give what stops systems at the end; the database has tables."""
    await open_tables(url).migrate()
    async with AsyncExitStack() as stack:
        yield stack


async def start(url: str, stack: AsyncExitStack) -> System:
    """Start a server without sockets."""
    system = System(Settings(database=url))
    await system.start()
    stack.push_async_callback(system.stop)
    return system


async def send(system: System, method: str, path: str, body: Any = None) -> Any:
    """Send a request and return the answer."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(system.app)) as client:
        answer = await client.request(method, f"http://localhost{BASE}{path}", json=body)
    assert answer.is_success, answer.text
    return answer.json()


async def create(system: System, count: int, prefix: str = "c") -> list[str]:
    """Create clusters; return their ids."""
    bodies = [{"name": f"{prefix}{number}", "spec": {}} for number in range(count)]
    return [(await send(system, "POST", "/clusters", body))["id"] for body in bodies]


async def pull(system: System, name: str, count: int) -> list[Message]:
    """Take and acknowledge messages until there are enough."""
    queues = system.store.queues
    found: list[Message] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            taken = await queues.take(name, 100, _MINUTE, 3)
            await queues.ack(name, [each.receipt for each in taken])
            found += [each.message for each in taken]
            await asyncio.sleep(0 if taken else 0.01)
    return found


async def test_every_change_is_published_in_order(url: str, systems: AsyncExitStack) -> None:
    system = await start(url, systems)
    await send(system, "PUT", "/subscriptions/dns", {})
    await send(system, "PUT", "/subscriptions/log", {"topic": "statusUpdates"})
    (id_,) = await create(system, 1)
    await send(system, "PATCH", f"/clusters/{id_}", {"labels": {"env": "prod"}})
    await send(system, "POST", f"/clusters/{id_}:reconcile")
    await send(system, "POST", "/clusters:reconcile?labelSelector=env%3Dprod")
    await send(system, "DELETE", f"/clusters/{id_}")
    messages = await pull(system, "dns", 5)
    reasons = [msgspec.json.decode(each.data)["reason"] for each in messages]
    assert reasons == ["Created", "SpecChanged", "Requested", "Requested", "DeletionRequested"]
    assert {each.partition_key for each in messages} == {id_}
    assert [int(each.id) for each in messages] == [1, 2, 3, 4, 5]
    updates = await pull(system, "log", 2)
    assert updates[0].id == "1-s"


async def test_an_adapter_that_completes_wakes_the_others(url: str, systems: AsyncExitStack) -> None:
    system = await start(url, systems)
    await send(system, "PUT", "/subscriptions/dns", {})
    (id_,) = await create(system, 1)
    await pull(system, "dns", 1)
    conditions = [{"type": each, "status": "True", "reason": "Done"} for each in ("Available", "Applied", "Health")]
    report = {"adapter": "validation", "observedGeneration": 1, "conditions": conditions}
    await send(system, "POST", f"/clusters/{id_}/statuses", report)
    await send(system, "POST", f"/clusters/{id_}/statuses", report)
    (message,) = await pull(system, "dns", 1)
    data = msgspec.json.decode(message.data)
    assert (data["reason"], data["adapter"]) == ("AdapterChanged", "validation")
    await send(system, "POST", f"/clusters/{id_}:reconcile")
    (following,) = await pull(system, "dns", 1)
    assert msgspec.json.decode(following.data)["reason"] == "Requested", "a heartbeat makes no event"


async def test_two_replicas_publish_each_change_once_and_replace_each_other(url: str, systems: AsyncExitStack) -> None:
    first = await start(url, systems)
    await asyncio.sleep(0.2)
    second = await start(url, systems)
    await send(first, "PUT", "/subscriptions/dns", {})
    await create(first, 5, "a")
    await create(second, 5, "b")
    ids = [each.id for each in await pull(first, "dns", 10)]
    assert sorted(ids, key=int) == [str(number) for number in range(1, 11)]
    assert [each.events.relay.is_publishing for each in (first, second)] == [True, False]
    await first.events.relay.stop()
    await create(second, 3, "c")
    ids = [each.id for each in await pull(second, "dns", 3)]
    assert [int(id_) for id_ in ids] == [11, 12, 13]


class SlowBroker(InProcessBroker):
    """The broker, but its first publications are held back or refused."""

    refusals = 0
    gate: asyncio.Event | None = None
    is_away = False

    async def check(self) -> None:
        """Refuse, or look at the store."""
        if self.is_away:
            raise BrokerUnavailable("away")
        await super().check()

    async def publish(self, messages: Sequence[Message]) -> None:
        """Refuse, wait, or publish."""
        if self.refusals:
            self.refusals -= 1
            raise BrokerUnavailable("away")
        if self.gate is not None:
            await self.gate.wait()
        await super().publish(messages)


def make_origin(store_id: str) -> Origin:
    """Make the origin of events."""
    return Origin(store_id, lambda _, id_, __: id_, lambda _: None)


def relay_of(system: System, holder: str) -> tuple[Relay, SlowBroker]:
    """Make a further relay of a store."""
    broker = SlowBroker(system.store, SystemClock())
    return Relay(system.store, broker, SystemClock(), holder, make_origin), broker


async def test_a_quiet_fleet_shows_that_the_broker_is_away(url: str, systems: AsyncExitStack) -> None:
    system = await start(url, systems)
    await system.events.relay.stop()
    relay, broker = relay_of(system, "other")
    broker.is_away = True
    await relay.start()
    systems.push_async_callback(relay.stop)
    async with asyncio.timeout(20):
        while not relay.describe_trouble():
            await asyncio.sleep(0.01)
        assert relay.describe_trouble() == "events could not be published now: away"
        broker.is_away = False
        while relay.describe_trouble():
            await asyncio.sleep(0.01)


async def test_a_broker_that_is_away_loses_nothing(url: str, systems: AsyncExitStack) -> None:
    system = await start(url, systems)
    await system.events.relay.stop()
    await send(system, "PUT", "/subscriptions/dns", {})
    await create(system, 3)
    relay, broker = relay_of(system, "other")
    broker.refusals = 3
    failures: list[None] = []
    relay.on_failure = lambda: failures.append(None)
    await relay.start()
    systems.push_async_callback(relay.stop)
    assert [each.id for each in await pull(system, "dns", 3)] == ["1", "2", "3"]
    assert len(failures) == 3


async def test_a_frozen_holder_that_wakes_up_does_no_harm(url: str, systems: AsyncExitStack) -> None:
    system = await start(url, systems)
    await system.events.relay.stop()
    await send(system, "PUT", "/subscriptions/dns", {})
    await create(system, 2, "a")
    frozen, broker = relay_of(system, "frozen")
    broker.gate = asyncio.Event()
    await frozen.start()
    systems.push_async_callback(frozen.stop)
    async with asyncio.timeout(5):
        while not frozen.is_publishing:
            await asyncio.sleep(0.01)
    other, _ = relay_of(system, "other")
    await other.start()
    systems.push_async_callback(other.stop)
    await create(system, 2, "b")
    taken = [each.id for each in await pull(system, "dns", 4)]  # the lease has expired, and the other one has it
    assert taken == ["1", "2", "3", "4"]
    broker.gate.set()
    late = [each.id for each in await pull(system, "dns", 2)]
    assert late == ["1", "2"], "at least once: its batch is there twice"
    await create(system, 1, "c")
    assert [each.id for each in await pull(system, "dns", 1)] == ["5"]
    await saved(system, 5)


async def saved(system: System, position: int) -> None:
    """Wait until a relay has saved a position."""
    async with asyncio.timeout(10):
        while [each.position for each in await system.store.readers() if each.name == READER] != [position]:
            await asyncio.sleep(0.01)


class WatchedStore:
    """A store that counts attempts to take the lease, and may fail once when a reader is opened."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.attempts = 0
        self.fails = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def take_lease(self, name: str, holder: str, duration: timedelta) -> Lease | None:
        """Count."""
        self.attempts += 1
        return await self._store.take_lease(name, holder, duration)

    async def open_reader(self, name: str) -> LogReader:
        """Fail once."""
        if self.fails:
            self.fails = False
            raise StoreUnavailable("away")
        return await self._store.open_reader(name)


async def test_a_new_holder_that_cannot_read_the_position_reads_it_later(url: str, systems: AsyncExitStack) -> None:
    system = await start(url, systems)
    await create(system, 3, "a")
    await saved(system, 3)
    await system.events.relay.stop()
    await send(system, "PUT", "/subscriptions/dns", {})
    watched: Any = WatchedStore(system.store)
    relay = Relay(watched, InProcessBroker(system.store, SystemClock()), SystemClock(), "other", make_origin)
    await relay.start()
    watched.fails = True
    systems.push_async_callback(relay.stop)
    await create(system, 1, "b")
    assert [each.id for each in await pull(system, "dns", 1)] == ["4"], "it starts where the last one stopped"


async def test_a_replica_without_the_lease_does_not_ask_for_it_with_every_commit(
    url: str, systems: AsyncExitStack
) -> None:
    system = await start(url, systems)
    watched: Any = WatchedStore(system.store)
    relay = Relay(watched, InProcessBroker(system.store, SystemClock()), SystemClock(), "other", make_origin)
    await relay.start()
    systems.push_async_callback(relay.stop)
    async with asyncio.timeout(10):
        while not watched.attempts:
            await asyncio.sleep(0.01)
    before, began = watched.attempts, asyncio.get_running_loop().time()
    for _ in range(200):
        relay.loop.nudge()
        await asyncio.sleep(0.001)
    took = asyncio.get_running_loop().time() - began
    assert not relay.is_publishing
    assert watched.attempts - before <= 1 + took / 0.25


async def test_lost_changes_are_announced(url: str, systems: AsyncExitStack) -> None:
    system = await start(url, systems)
    await create(system, 1, "a")
    await saved(system, 1)
    await system.events.relay.stop()
    await send(system, "PUT", "/subscriptions/dns", {})
    await send(system, "PUT", "/subscriptions/log", {"topic": "statusUpdates"})
    (id_,) = await create(system, 1, "b")
    for number in range(5):
        await send(system, "PATCH", f"/clusters/{id_}", {"labels": {"n": str(number)}})
    await system.store.drop_readers(timedelta())
    assert await system.store.prune(Pruning("events", timedelta()), 100) > 0
    relay, _ = relay_of(system, "other")
    gaps: list[None] = []

    async def note_gap() -> None:
        gaps.append(None)

    relay.on_gap = note_gap
    await relay.start()
    systems.push_async_callback(relay.stop)
    for name in ("dns", "log"):
        first, *_ = await pull(system, name, 1)
        assert msgspec.json.decode(first.data)["reason"] == "Gap", "subscribers of both topics have missed something"
    assert gaps == [None]


async def test_what_a_power_cut_takes_from_queues_is_published_again(tmp_path: Path, anyio_backend: str) -> None:
    file = tmp_path / "fleet.db"
    async with AsyncExitStack() as systems:
        system = await start(f"sqlite:{file}", systems)
        await send(system, "PUT", "/subscriptions/dns", {})
        for number in range(1, 16):
            await create(system, 1, f"c{number}-")
            await saved(system, number)
        database, log = (Path(f"{file}{ending}").read_bytes() for ending in ("", "-wal"))
    seen = set()
    for end in range(32, len(log), 24 + 4096):  # the disk has the beginning of the log, up to any of its pages
        (tmp_path / "cut.db").write_bytes(database)
        (tmp_path / "cut.db-wal").write_bytes(log[:end])
        (tmp_path / "cut.db-shm").unlink(missing_ok=True)
        with closing(sqlite3.connect(tmp_path / "cut.db")) as cut:
            published, queued = read_published(cut)
        assert queued >= published, "the relay never forgets what the queues have forgotten"
        seen.add(published)
    assert len(seen) > 5, "otherwise nothing was cut"


def read_published(database: sqlite3.Connection) -> tuple[int, int]:
    """Return how far everything is published, and how many messages there are; each change makes one."""
    try:
        ((position,),) = database.execute("select position from readers")
        ((count,),) = database.execute("select count(*) from messages")
    except (sqlite3.OperationalError, ValueError):  # there are no tables yet, or no reader
        return 0, 0
    return position, count


async def test_an_abandoned_subscription_gets_a_gap_in_place_of_its_messages(url: str, systems: AsyncExitStack) -> None:
    system = await start(url, systems)
    await send(system, "PUT", "/subscriptions/dns", {})
    await create(system, 5)
    await saved(system, 5)
    assert await system.events.drop_overdue(_MINUTE) == ()
    assert await system.events.drop_overdue(timedelta()) == ("dns",)
    (gap,) = await pull(system, "dns", 1)
    assert msgspec.json.decode(gap.data) == {"reason": "Gap", "after": 0, "upto": 5}
    assert (gap.id, gap.tenant) == ("gap-0-5", ""), "it is not about one tenant"
    assert await system.events.drop_overdue(timedelta()) == (), "it is empty"


async def test_consumers_in_this_process_share_a_subscription(url: str, systems: AsyncExitStack) -> None:
    system = await start(url, systems)
    broker = system.context.events.queues
    assert broker is not None
    subscription, seen = Subscription("work"), []

    async def consume() -> None:
        async with broker.receive(subscription, prefetch=2) as deliveries:
            async for delivery in deliveries:
                seen.append(delivery.message.id)
                if delivery.attempt == 1 and delivery.message.id == "2":
                    await delivery.reject("poison", is_poison=True)
                else:
                    await delivery.ack()

    async def is_unanswered() -> bool:
        state = await broker.state_of(subscription)
        return state is None or bool(state.in_flight)

    await broker.subscribe(subscription)
    tasks = [asyncio.create_task(consume()) for _ in range(2)]
    await create(system, 6)
    async with asyncio.timeout(10):
        while len(seen) < 6 or await is_unanswered():
            await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert sorted(seen) == ["1", "2", "3", "4", "5", "6"]
    (letter,) = await broker.dead_letters(subscription, 10)
    assert (letter.message.id, letter.error) == ("2", "poison")
    state = await broker.state_of(subscription)
    assert state is not None
    assert (state.waiting, state.dead) == (0, 1)
