"""The broker on RabbitMQ 3.10 or newer: CloudEvents in structured mode, confirmed, acknowledged by hand.

Publishing and receiving have a connection each. Both are made when they are needed, and again after they were lost.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from aio_pika.exceptions import ChannelNotFoundEntity

from hyperfleet.backends.rabbitmq_link import Link, translated
from hyperfleet.backends.rabbitmq_publishing import Outgoing, Publisher
from hyperfleet.backends.rabbitmq_receiving import Answers, Consumer, RabbitDelivery, acknowledge, read_dead_letter
from hyperfleet.backends.rabbitmq_topology import (
    RabbitOptions,
    count_messages,
    delete_queues,
    ensure_exchange,
    ensure_queues,
    wait_for_messages,
)
from hyperfleet.events.cloud_events import CONTENT_TYPE, encode_event
from hyperfleet.messaging import TOPICS, DeadLetter, Message, Subscription, SubscriptionState, Topic


class RabbitBroker:
    """Publishes to exchanges, and receives from quorum queues."""

    def __init__(self, options: RabbitOptions, name: str = "hyperfleet") -> None:
        """Use a server; `name` is what its administrators see of us."""
        seconds = options.timeout.total_seconds()
        self._options = options
        self._sending = Link(options.url, f"{name} publishing", seconds)
        self._receiving = Link(options.url, f"{name} receiving", seconds)
        self._publisher = Publisher(self._sending, self._ensure_exchange)
        self._consumers: set[Consumer] = set()
        self.on_unroutable: Callable[[Topic, int], None] | None = None  # called with messages that no queue takes

    async def open(self) -> None:
        """Do nothing: the first use connects."""

    async def close(self) -> None:
        """Let consumers end, and disconnect."""
        for consumer in tuple(self._consumers):
            await consumer.close()
        await self._sending.close()
        await self._receiving.close()

    async def check(self) -> None:
        """Return if messages can be published now."""
        await self._publisher.channel({self._options.exchange_of(topic) for topic in TOPICS})

    async def publish(self, messages: Sequence[Message]) -> None:
        """Publish messages in their order; return when all of them are confirmed."""
        outgoing = [self._outgoing(message) for message in messages]
        unroutable = await self._publisher.publish(outgoing)
        if unroutable and self.on_unroutable is not None:
            for topic in TOPICS:
                exchange = self._options.exchange_of(topic)
                if count := sum(each.exchange == exchange for each in unroutable):
                    self.on_unroutable(topic, count)

    async def subscribe(self, subscription: Subscription) -> None:
        """Create the queues of a subscription, unless they are there. Its tenants matter to receivers only."""
        await ensure_queues(self._receiving, self._options, subscription)

    async def unsubscribe(self, name: str, topic: Topic = "clusterEvents") -> bool:
        """Delete a subscription with everything in its queues; False: there was none."""
        return await delete_queues(self._receiving, self._options.queues_of(name, topic))

    @asynccontextmanager
    async def receive(
        self, subscription: Subscription, *, prefetch: int = 16
    ) -> AsyncIterator[AsyncIterator[RabbitDelivery]]:
        """Subscribe, and yield deliveries for the length of a block."""
        await self.subscribe(subscription)
        names = self._options.queues_of(subscription.name, subscription.topic)
        answers = Answers(self._publisher, names, self._options.retry)
        consumer = Consumer(self._receiving, subscription, answers, lambda: self.subscribe(subscription))
        self._consumers.add(consumer)
        try:
            yield consumer.deliveries(names.main, self._options.prefetch or prefetch)
        finally:
            self._consumers.discard(consumer)
            await consumer.close()

    async def state_of(self, subscription: Subscription) -> SubscriptionState | None:
        """Return what is in the queues; the server does not tell what is in flight."""
        names = self._options.queues_of(subscription.name, subscription.topic)
        if names.is_too_long:
            return None
        waiting = await count_messages(self._receiving, names.main)
        if waiting is None:
            return None
        later = await count_messages(self._receiving, names.retry) or 0
        dead = await count_messages(self._receiving, names.dead) or 0
        return SubscriptionState(subscription, waiting=waiting + later, dead=dead)

    async def dead_letters(self, subscription: Subscription, limit: int) -> tuple[DeadLetter, ...]:
        """Return dead letters, the oldest first; they go back into their queue when the channel is closed."""
        names = self._options.queues_of(subscription.name, subscription.topic)
        found: list[DeadLetter] = []
        with translated():
            try:
                async with self._receiving.channel(is_long=True) as channel:
                    queue = await channel.get_queue(names.dead, ensure=False)
                    while len(found) < limit and (incoming := await queue.get(fail=False)) is not None:
                        found.append(read_dead_letter(incoming, subscription.topic))
            except ChannelNotFoundEntity:
                return ()
        await wait_for_messages(self._receiving, names.dead, len(found))
        return tuple(found)

    async def replay_dead_letters(self, subscription: Subscription, limit: int) -> int:
        """Put dead letters back into the queue of their subscription; return their number."""
        names = self._options.queues_of(subscription.name, subscription.topic)
        # Those that are there now: poison comes back while we are at it.
        most = min(limit, await count_messages(self._receiving, names.dead) or 0)
        count = 0
        with translated():
            try:
                async with self._receiving.channel(is_long=True) as channel:
                    queue = await channel.get_queue(names.dead, ensure=False)
                    while count < most and (incoming := await queue.get(fail=False)) is not None:
                        again = Outgoing("", names.main, incoming.body, incoming.content_type or CONTENT_TYPE)
                        if await self._publisher.publish([again]):
                            break  # the queue was deleted
                        await acknowledge(incoming)
                        count += 1
            except ChannelNotFoundEntity:
                return 0
        return count

    def _outgoing(self, message: Message) -> Outgoing:
        exchange = self._options.exchange_of(message.topic)
        return Outgoing(exchange, self._options.routing_key_of(message.topic), encode_event(message), CONTENT_TYPE)

    async def _ensure_exchange(self, exchange: str) -> None:
        for topic in TOPICS:
            if self._options.exchange_of(topic) == exchange:
                await ensure_exchange(self._sending, self._options, topic)
