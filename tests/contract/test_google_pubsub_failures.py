"""Google Pub/Sub when consumers are slow or die, and when the service goes away while changes are published."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from hyperfleet.backends.clock import SystemClock
from hyperfleet.backends.google_pubsub import PubSubBroker
from hyperfleet.bootstrap import open_tables
from hyperfleet.errors import BrokerUnavailable
from hyperfleet.events.making import Origin
from hyperfleet.events.relay import READER, Relay
from hyperfleet.messaging import Subscription
from hyperfleet.ports import Store
from tests.contract.brokers import RETRY, consuming, eventually, message, messages, take, take_ids
from tests.contract.pubsub_brokers import PubSubBrokers
from tests.contract.test_relay import create, start
from tests.pubsub import PubSubServer

pytestmark = [pytest.mark.anyio, pytest.mark.long]

_DNS: Final = Subscription("dns")
_SHORT: Final = timedelta(seconds=1)


@pytest.fixture
async def brokers(pubsub_server: PubSubServer, anyio_backend: str) -> AsyncIterator[PubSubBrokers]:
    """Give brokers on the test's own server."""
    found = PubSubBrokers(pubsub_server.address)
    yield found
    await found.close()


async def test_a_slow_consumer_keeps_its_messages(brokers: PubSubBrokers) -> None:
    """Each is handled for longer than the deadline, which is extended; another consumer is there all the time."""
    await (await brokers.connect()).subscribe(_DNS)
    broker = await brokers.connect_with(ack_deadline=_SHORT)
    async with consuming(broker, _DNS) as found:
        await broker.publish(messages(4))
        held = [await take(found) for _ in range(4)]
        async with consuming(await brokers.connect(), _DNS) as others:
            await asyncio.sleep(3 * _SHORT.total_seconds())
            for each in held:
                await each.ack()
            await broker.publish([message("5")])
            ready = [asyncio.create_task(take(queue)) for queue in (found, others)]
            done, _ = await asyncio.wait(ready, return_when=asyncio.FIRST_COMPLETED)
            assert [task.result().message.id for task in done] == ["5"], "nothing was delivered twice before it"
            for task in ready:
                task.cancel()
    assert {each.attempt for each in held} == {1}
    assert await broker.dead_letters(_DNS, 10) == ()


async def test_a_message_that_no_consumer_survives_is_a_dead_letter(brokers: PubSubBrokers) -> None:
    broker = await brokers.connect()
    await broker.subscribe(_DNS)
    await broker.publish([message("1")])
    for attempt in range(1, RETRY.max_retries + 2):
        doomed = await brokers.connect(is_doomed=True)
        async with consuming(doomed, _DNS) as found:
            assert (await take(found)).attempt == attempt
            await brokers.crash(doomed)
    async with consuming(broker, _DNS) as found:
        await eventually(lambda: _has_a_letter(broker))
        assert found.empty()
    (letter,) = await broker.dead_letters(_DNS, 10)
    assert letter.message == message("1")
    assert letter.error == f"it was delivered {RETRY.max_retries + 1} times, and nobody answered"


async def test_the_relay_publishes_on_when_the_service_is_back(
    brokers: PubSubBrokers, pubsub_server: PubSubServer, tmp_path: Path
) -> None:
    """The server forgets what it has; topics and subscriptions are made again, and nothing of the log is skipped."""
    url = f"sqlite:{tmp_path / 'fleet.db'}"
    await open_tables(url).migrate()
    broker = await brokers.connect()
    async with AsyncExitStack() as stack, consuming(broker, _DNS) as found:
        system = await start(url, stack)
        await system.events.relay.stop()
        origin = Origin("test", lambda _, id_, __: id_, lambda _: None)
        relay = Relay(system.store, broker, SystemClock(), "pubsub", lambda _: origin)
        await relay.start()
        stack.push_async_callback(relay.stop)
        await create(system, 20, "before")
        assert sorted(map(int, await take_ids(found, 20))) == list(range(1, 21))
        failures: list[None] = []
        relay.on_failure = lambda: failures.append(None)
        pubsub_server.stop()
        await create(system, 20, "during")
        await eventually(lambda: _is_so(bool(failures)))
        pubsub_server.start()
        await eventually(lambda: _is_subscribed(broker))
        await create(system, 20, "after")
        ids: set[int] = set()
        while not ids.issuperset(range(41, 61)):
            ids.update(map(int, await take_ids(found, 1)))
        await eventually(lambda: _is_published(system.store, 60))
        assert not ids & set(range(1, 21)), "what was published before is not published again"


async def _is_so(value: bool) -> bool:
    return value


async def _is_published(store: Store, position: int) -> bool:
    return (await store.open_reader(READER)).position >= position


async def _is_subscribed(broker: PubSubBroker) -> bool:
    try:
        return await broker.state_of(_DNS) is not None
    except BrokerUnavailable:
        return False


async def _has_a_letter(broker: PubSubBroker) -> bool:
    return len(await broker.dead_letters(_DNS, 2)) == 1
