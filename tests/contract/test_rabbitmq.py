"""What only RabbitMQ has: the names and forms that Go programs expect, and what servers refuse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import aio_pika
import msgspec
import pytest
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from aio_pika.exceptions import ChannelNotFoundEntity
from msgspec.structs import replace

from hyperfleet.backends.clock import SystemClock
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.backends.rabbitmq import RabbitBroker
from hyperfleet.backends.rabbitmq_topology import RabbitOptions
from hyperfleet.errors import BrokerUnavailable
from hyperfleet.events.making import Origin
from hyperfleet.events.relay import Relay
from hyperfleet.messaging import Subscription
from tests.contract.brokers import (
    PATIENCE,
    RabbitBrokers,
    consuming,
    eventually,
    message,
    messages,
    take,
    take_ids,
)
from tests.servers import free_port

pytestmark = [pytest.mark.anyio, pytest.mark.rabbit]

_DNS: Final = Subscription("dns")
# As the Go sentinel sends it: no time, no subject, no extensions of ours.
_GO_MESSAGE: Final = {
    "specversion": "1.0",
    "id": "5a6ae74d-2f0e-4a34-8ac5-021d95d43bfa",
    "source": "hyperfleet-sentinel",
    "type": "com.redhat.hyperfleet.cluster.reconcile",
    "datacontenttype": "application/json",
    "data": {"id": "cls-1", "kind": "Cluster", "href": "/api/hyperfleet/v1/clusters/cls-1", "generation": 2},
}


@pytest.fixture
async def fleet(rabbit_url: str, anyio_backend: str) -> AsyncIterator[RabbitBrokers]:
    """Give brokers on one server, with topics of the test's own."""
    brokers = RabbitBrokers(rabbit_url)
    yield brokers
    await brokers.close()


@pytest.fixture
async def rabbit(fleet: RabbitBrokers) -> RabbitBroker:
    """Give one of them."""
    broker = await fleet.connect()
    assert isinstance(broker, RabbitBroker)
    return broker


@pytest.fixture
async def channel(rabbit_url: str, anyio_backend: str) -> AsyncIterator[AbstractChannel]:
    """Give a channel of another program."""
    connection = await aio_pika.connect(rabbit_url)
    async with connection, connection.channel() as channel:
        yield channel


async def get(channel: AbstractChannel, queue: str) -> AbstractIncomingMessage:
    """Take a message from a queue."""
    found = await channel.get_queue(queue, ensure=False)
    async with asyncio.timeout(PATIENCE):
        while (incoming := await found.get(no_ack=True, fail=False)) is None:
            await asyncio.sleep(0.02)
    return incoming


async def send(channel: AbstractChannel, exchange: str, body: bytes, **more: Any) -> None:
    """Publish as another program."""
    found = await channel.get_exchange(exchange, ensure=False)
    await found.publish(aio_pika.Message(body, **more), "", mandatory=False)


async def test_exchanges_are_there_before_the_first_event(
    fleet: RabbitBrokers, rabbit: RabbitBroker, channel: AbstractChannel
) -> None:
    """So a consumer can bind its queue before it needs events."""
    store = MemoryStore(SystemClock())
    await store.open()
    relay = Relay(store, rabbit, SystemClock(), "one", lambda store_id: Origin(store_id, lambda *_: "", lambda _: None))
    await relay.start()
    async with asyncio.timeout(PATIENCE):
        for name in (fleet.options.topics.cluster_events, fleet.options.topics.status_updates):
            while not await has_exchange(channel, name):
                await asyncio.sleep(0.05)
    await relay.stop()


async def has_exchange(channel: AbstractChannel, name: str) -> bool:
    """Tell whether there is an exchange; a refusal closes the channel."""
    try:
        await channel.get_exchange(name)
    except ChannelNotFoundEntity:
        await channel.reopen()
        return False
    return True


async def test_a_go_consumer_receives_our_messages(
    fleet: RabbitBrokers, rabbit: RabbitBroker, channel: AbstractChannel
) -> None:
    """It declares the exchange with its type, and a durable queue bound with an empty key."""
    topic = fleet.options.topics.cluster_events
    await rabbit.check()
    await channel.declare_exchange(topic, "topic", durable=True)
    queue = await channel.declare_queue(f"{topic}-validation", durable=True)
    await queue.bind(topic, "")
    await rabbit.publish([message("7")])
    incoming = await get(channel, f"{topic}-validation")
    await channel.queue_delete(f"{topic}-validation")
    assert incoming.content_type == "application/cloudevents+json; charset=UTF-8"
    assert all(isinstance(value, str) for value in incoming.headers.values()), "it refuses other headers"
    assert incoming.delivery_mode == aio_pika.DeliveryMode.PERSISTENT
    event = msgspec.json.decode(incoming.body)
    assert (event["specversion"], event["id"], event["data"]["id"]) == ("1.0", "7", "cls-1")


async def test_we_receive_what_the_go_sentinel_sends(
    fleet: RabbitBrokers, rabbit: RabbitBroker, channel: AbstractChannel
) -> None:
    async with consuming(rabbit, _DNS) as found:
        body = msgspec.json.encode(_GO_MESSAGE)
        headers = {"_watermill_message_uuid": "3f746a5c-445e-4b0c-b8ed-30c76de30c76"}
        await send(channel, fleet.options.topics.cluster_events, body, headers=headers)
        delivery = await take(found)
        await delivery.ack()
    received = delivery.message
    assert (received.id, received.type) == (_GO_MESSAGE["id"], "com.redhat.hyperfleet.cluster.reconcile")
    assert (received.partition_key, received.time, received.tenant) == ("cls-1", None, "")
    assert msgspec.json.decode(received.data) == _GO_MESSAGE["data"]


@pytest.mark.parametrize("type_", ["fanout", "direct", "topic", "headers"])
async def test_an_exchange_of_any_type_is_used_as_it_is(
    fleet: RabbitBrokers, rabbit: RabbitBroker, channel: AbstractChannel, type_: str
) -> None:
    await channel.declare_exchange(fleet.options.topics.cluster_events, type_, durable=True)
    async with consuming(rabbit, _DNS) as found:
        await rabbit.publish([message("1")])
        assert await take_ids(found, 1) == ["1"]
        await asyncio.sleep(0)
        assert found.empty(), "two bindings, one message"


async def test_a_queue_that_a_go_consumer_left_is_taken_over(
    fleet: RabbitBrokers, rabbit: RabbitBroker, channel: AbstractChannel
) -> None:
    topic = fleet.options.topics.cluster_events
    await channel.declare_exchange(topic, "topic", durable=True)
    queue = await channel.declare_queue(f"{topic}-dns", durable=True)
    await queue.bind(topic, "")
    await rabbit.publish([message("1")])
    async with consuming(rabbit, _DNS) as found:
        first = await take(found)
        assert (first.message.id, first.attempt) == ("1", 1)
        await first.reject("later")
        again = await take(found)
        assert (again.message.id, again.attempt) == ("1", 2)
        await again.ack()


async def test_names_of_a_go_deployment(fleet: RabbitBrokers, channel: AbstractChannel, rabbit_url: str) -> None:
    """A broker.yaml may name the exchange, its type, the queue and the routing key; for cluster events only."""
    prefix = fleet.options.topics.cluster_events
    options = replace(
        fleet.options,
        exchange=f"{prefix}.own",
        exchange_type="direct",
        queue=f"{prefix}.queue",
        routing_key="fleet",
        prefetch=1,
    )
    fleet.options = options
    broker = await fleet.connect()
    async with consuming(broker, _DNS, prefetch=50) as found:
        await broker.publish(messages(3))
        delivery = await take(found)
        await eventually(lambda: _has_ready(channel, f"{prefix}.queue-dns", 2))
        await delivery.ack()
        assert await take_ids(found, 2) == ["2", "3"]
    async with consuming(broker, Subscription("log", "statusUpdates")) as found:
        await broker.publish([replace(message("1-s"), topic="statusUpdates")])
        assert await take_ids(found, 1) == ["1-s"]


async def test_a_message_that_is_no_event_is_a_dead_letter_at_once(
    fleet: RabbitBrokers, rabbit: RabbitBroker, channel: AbstractChannel
) -> None:
    bad = [b"", b"\xff\x00 no JSON", b"[]", b'{"specversion":"0.3","id":"1","source":"s","type":"t"}', b"x" * 300_000]
    async with consuming(rabbit, _DNS) as found:
        for body in bad:
            await send(channel, fleet.options.topics.cluster_events, body, headers={"n": 5, "list": [1]})
        await rabbit.publish([message("9")])
        assert await take_ids(found, 1) == ["9"]
        await eventually(lambda: _has_dead(rabbit, len(bad)))
        letters = await rabbit.dead_letters(_DNS, 10)
        assert all("CloudEvent" in each.error or "specversion is 0.3" in each.error for each in letters)
        assert {each.attempts for each in letters} == {1}
        assert all(len(each.message.data) < 5_000 for each in letters)
        assert await rabbit.replay_dead_letters(_DNS, 10) == len(bad)
        await eventually(lambda: _has_dead(rabbit, len(bad)))
        assert found.empty()


async def test_messages_that_no_queue_takes_are_counted(rabbit: RabbitBroker) -> None:
    counted: list[tuple[str, int]] = []
    rabbit.on_unroutable = lambda topic, count: counted.append((topic, count))
    status = replace(message("1-s"), topic="statusUpdates")
    await rabbit.subscribe(_DNS)
    await rabbit.publish([*messages(3), status])
    assert counted == [("statusUpdates", 1)]
    await rabbit.unsubscribe("dns")
    await rabbit.publish([*messages(3), status])
    assert counted[1:] == [("clusterEvents", 3), ("statusUpdates", 1)]


async def test_a_message_that_ends_its_consumers_becomes_a_dead_letter(
    fleet: RabbitBrokers, rabbit: RabbitBroker, channel: AbstractChannel
) -> None:
    """After 20 deliveries without an answer; here another program gives it back as often."""
    await rabbit.subscribe(_DNS)
    await rabbit.publish([message("1")])
    queue = await channel.get_queue(f"{fleet.options.topics.cluster_events}-dns", ensure=False)
    for _ in range(20):
        async with asyncio.timeout(PATIENCE):
            while (incoming := await queue.get(fail=False)) is None:
                await asyncio.sleep(0.01)
        await incoming.nack(requeue=True)
    async with consuming(rabbit, _DNS) as found:
        await eventually(lambda: _has_dead(rabbit, 1))
        assert found.empty()
    (letter,) = await rabbit.dead_letters(_DNS, 10)
    assert (letter.message.id, letter.attempts) == ("1", 20)
    assert "never acknowledged" in letter.error


async def test_what_was_deleted_is_created_again(
    fleet: RabbitBrokers, rabbit: RabbitBroker, channel: AbstractChannel
) -> None:
    async with consuming(rabbit, _DNS) as found:
        await rabbit.publish([message("1")])
        assert await take_ids(found, 1) == ["1"]
        await channel.exchange_delete(fleet.options.topics.cluster_events)
        with pytest.raises(BrokerUnavailable, match="no exchange"):
            await rabbit.publish([message("2")])
        await rabbit.publish([message("2")])  # the relay repeats it
        await channel.queue_delete(f"{fleet.options.topics.cluster_events}-dns")
        async with asyncio.timeout(PATIENCE):
            while found.empty():  # the first ones may be faster than the new queue
                await rabbit.publish([message("3")])
                await asyncio.sleep(0.05)


async def test_wrong_credentials_are_told_without_the_password(rabbit_url: str) -> None:
    for url in (rabbit_url.replace("://", "://x"), rabbit_url.replace("@", "secret-word@")):
        broker = RabbitBroker(RabbitOptions(url=url))
        for attempt in (broker.check(), broker.publish(messages(1)), broker.subscribe(_DNS)):
            with pytest.raises(BrokerUnavailable) as refused:
                await attempt
            assert str(refused.value) == "RabbitMQ: the user or the password was refused"
        await broker.close()
        assert "secret-word" not in repr(RabbitOptions(url=url))


async def test_servers_that_cannot_be_used(rabbit_url: str) -> None:
    away = f"amqp://u:secret-word@127.0.0.1:{free_port()}/"
    for url, expected in ((away, "Connect call failed"), (rabbit_url.rstrip("/") + "/other", "does the vhost exist")):
        broker = RabbitBroker(RabbitOptions(url=url))
        with pytest.raises(BrokerUnavailable, match=expected) as refused:
            await broker.publish(messages(1))
        assert "secret-word" not in str(refused.value)
        await broker.close()


async def _has_ready(channel: AbstractChannel, queue: str, count: int) -> bool:
    found = await channel.declare_queue(queue, passive=True)
    return found.declaration_result.message_count == count


async def _has_dead(broker: RabbitBroker, count: int) -> bool:
    state = await broker.state_of(_DNS)
    return state is not None and state.dead == count and state.waiting == 0
