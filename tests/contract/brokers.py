"""Brokers to test, each reached as by processes of their own, and what tests do with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol
from uuid import uuid4

import aio_pika

from hyperfleet.backends.clock import SystemClock
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.backends.rabbitmq import RabbitBroker
from hyperfleet.backends.rabbitmq_topology import RabbitOptions
from hyperfleet.events.in_process import InProcessBroker
from hyperfleet.messaging import TOPICS, Broker, Delivery, Message, RetryPolicy, Subscription, TopicNames
from tests.contract.stores import DurableStore

# Few retries, and far enough apart to see that a message waits.
RETRY: Final = RetryPolicy(max_retries=2, interval=timedelta(milliseconds=300))
PATIENCE: Final = 30.0  # seconds; what is awaited takes milliseconds, but machines are busy

_TIME: Final = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
_SHORT: Final = timedelta(milliseconds=200)


class Brokers(Protocol):
    """One broker, as several processes see it."""

    async def open(self) -> None:
        """Make ready what all of them need."""
        ...

    async def connect(self, *, is_doomed: bool = False) -> Broker:
        """Return an open broker, as in a process of its own; a doomed one is going to crash."""
        ...

    async def crash(self, broker: Broker) -> None:
        """Let the process of a doomed one die."""
        ...

    async def close(self) -> None:
        """Close all that were opened, and leave nothing behind."""
        ...


class InProcessBrokers:
    """Brokers over one store. A crash is noticed when its deadline has passed."""

    def __init__(self, store: MemoryStore | DurableStore) -> None:
        self._store = store

    async def open(self) -> None:
        """Open the store."""
        if not isinstance(self._store, MemoryStore):
            await self._store.migrate()
        await self._store.open()

    async def connect(self, *, is_doomed: bool = False) -> Broker:
        """Return a broker; a doomed one answers within a short time or not at all."""
        more = {"deadline": _SHORT} if is_doomed else {}
        return InProcessBroker(self._store, SystemClock(), RETRY, **more)

    async def crash(self, broker: Broker) -> None:
        """Do nothing: what is not answered is delivered again."""

    async def close(self) -> None:
        """Close the store."""
        await self._store.close()


class RabbitBrokers:
    """Brokers on one RabbitMQ, with topics of the test's own."""

    def __init__(self, url: str) -> None:
        prefix = f"test-{uuid4().hex}"
        topics = TopicNames(cluster_events=f"{prefix}.cluster.events", status_updates=f"{prefix}.status.updates")
        self.options = RabbitOptions(url=url, topics=topics, retry=RETRY)
        self._opened: list[_ObservedBroker] = []

    async def open(self) -> None:
        """Do nothing: the server runs."""

    async def connect(self, *, is_doomed: bool = False) -> Broker:
        """Return a broker with connections of its own."""
        broker = _ObservedBroker(self.options, "test")
        await broker.open()
        self._opened.append(broker)
        return broker

    async def crash(self, broker: Broker) -> None:
        """Disconnect: the server cannot tell that from a crash."""
        await broker.close()

    async def close(self) -> None:
        """Delete queues and exchanges, and disconnect."""
        subscriptions = {subscription for broker in self._opened for subscription in broker.used}
        for broker in self._opened:
            await broker.close()
        connection = await aio_pika.connect(self.options.url)
        async with connection, connection.channel() as channel:
            for subscription in subscriptions:
                names = self.options.queues_of(subscription.name, subscription.topic)
                for queue in (names.main, names.retry, names.dead):
                    await channel.queue_delete(queue)
            for topic in TOPICS:
                await channel.exchange_delete(self.options.exchange_of(topic))


class _ObservedBroker(RabbitBroker):
    """Remembers the subscriptions, so that they can be deleted."""

    used: set[Subscription]

    def __init__(self, options: RabbitOptions, name: str) -> None:
        super().__init__(options, name)
        self.used = set()

    async def subscribe(self, subscription: Subscription) -> None:
        """Subscribe, and remember that."""
        self.used.add(subscription)
        await super().subscribe(subscription)


def message(id_: str, **more: Any) -> Message:
    """Make a message about a resource."""
    fields: dict[str, Any] = {
        "topic": "clusterEvents",
        "id": id_,
        "source": "/hyperfleet/x/relay",
        "type": "io.hyperfleet.cluster.reconcile",
        "subject": "Cluster/cls-1",
        "time": _TIME,
        "tenant": "acme",
        "partition_key": "cls-1",
        "data": b'{"id":"cls-1","text":"\xc3\xbc"}',
    }
    return Message(**(fields | more))


def messages(count: int, start: int = 1) -> list[Message]:
    """Make messages with ids that count, each about another resource: a message may hold back later ones of its own."""
    return [message(str(number), partition_key=f"cls-{number}") for number in range(start, start + count)]


@asynccontextmanager
async def consuming(
    broker: Broker, subscription: Subscription, *, prefetch: int = 16
) -> AsyncIterator[asyncio.Queue[Delivery]]:
    """Receive for the length of a block; what is delivered is in a queue."""
    found: asyncio.Queue[Delivery] = asyncio.Queue()

    async def pump(deliveries: AsyncIterator[Delivery]) -> None:
        async for delivery in deliveries:
            found.put_nowait(delivery)

    async with broker.receive(subscription, prefetch=prefetch) as deliveries:
        task = asyncio.create_task(pump(deliveries))
        try:
            yield found
        finally:
            task.cancel()
            await asyncio.wait([task])


async def take(found: asyncio.Queue[Delivery]) -> Delivery:
    """Return the next delivery."""
    async with asyncio.timeout(PATIENCE):
        return await found.get()


async def take_ids(found: asyncio.Queue[Delivery], count: int) -> list[str]:
    """Acknowledge deliveries; return the ids of their messages."""
    ids = []
    for _ in range(count):
        delivery = await take(found)
        await delivery.ack()
        ids.append(delivery.message.id)
    return ids


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(PATIENCE):
        while not await condition():
            await asyncio.sleep(0.02)
