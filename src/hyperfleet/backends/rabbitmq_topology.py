"""RabbitMQ: the options of the broker, and the exchanges and queues that it needs.

A topic is an exchange. A subscription is three quorum queues: its messages, those that wait for their next attempt
(`….retry`), and dead letters (`….dead`). What exists is used as it is: a Go program may have created it in another way.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final, Literal

from aio_pika.exceptions import ChannelNotFoundEntity, ChannelPreconditionFailed
from msgspec import Struct

from hyperfleet.backends.rabbitmq_link import Link, translated
from hyperfleet.messaging import RetryPolicy, Subscription, Topic, TopicNames

ExchangeType = Literal["direct", "fanout", "topic", "headers"]

_LOOKS: Final = 50  # most of them; it takes milliseconds, and other consumers may have taken the messages meanwhile
_LOOK_PAUSE: Final = 0.02  # seconds
_MAX_NAME: Final = 255  # bytes; AMQP writes the length of a name as one byte
_QUORUM: Final = {
    "x-queue-type": "quorum",
    # Newer servers drop a message after 20 deliveries without an answer. We count ourselves, and drop nothing.
    "x-delivery-limit": 1_000_000_000,
}


class RabbitOptions(Struct, frozen=True, kw_only=True):
    """How to use a RabbitMQ server. What a broker.yaml of the Go programs may override is for cluster events only."""

    url: str
    topics: TopicNames = TopicNames()
    retry: RetryPolicy = RetryPolicy()
    exchange: str = ""  # in place of the name of the topic
    exchange_type: ExchangeType = "topic"  # if there is none yet
    queue: str = ""  # the beginning of the names of queues, in place of the name of the topic
    routing_key: str = ""
    prefetch: int = 0  # in place of what receivers ask for; 0: what they ask for
    timeout: timedelta = timedelta(seconds=10)  # for a confirmation, and for a connection

    def __repr__(self) -> str:
        """Write it without the URL, which has a password: tracebacks and logs show this."""
        return f"RabbitOptions(topics={self.topics!r}, retry={self.retry!r})"

    def exchange_of(self, topic: Topic) -> str:
        """Return the exchange of a topic."""
        override = self.exchange if topic == "clusterEvents" else ""
        return override or self.topics.name_of(topic)

    def routing_key_of(self, topic: Topic) -> str:
        """Return the routing key of messages; Go consumers bind with an empty one."""
        return self.routing_key if topic == "clusterEvents" else ""

    def queues_of(self, name: str, topic: Topic) -> QueueNames:
        """Return the queues of a subscription."""
        override = self.queue if topic == "clusterEvents" else ""
        return QueueNames(f"{override or self.topics.name_of(topic)}-{name}")


class QueueNames(Struct, frozen=True):
    """The queues of one subscription."""

    main: str

    @property
    def retry(self) -> str:
        """Return the queue of messages that wait for their next attempt."""
        return f"{self.main}.retry"

    @property
    def dead(self) -> str:
        """Return the queue of dead letters."""
        return f"{self.main}.dead"

    @property
    def is_too_long(self) -> bool:
        """Return whether the protocol has no room for one of the names."""
        return len(self.retry.encode()) > _MAX_NAME

    @property
    def retry_arguments(self) -> dict[str, Any]:
        """Return how messages come back: when they expire, and without being lost on the way."""
        return {
            **_QUORUM,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": self.main,
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",  # which that strategy needs
        }


async def ensure_exchange(link: Link, options: RabbitOptions, topic: Topic) -> None:
    """Create the exchange of a topic, unless there is one of any type."""
    name = options.exchange_of(topic)
    type_ = options.exchange_type if topic == "clusterEvents" else "topic"
    with translated():
        try:
            async with link.channel() as channel:
                await channel.get_exchange(name)
        except ChannelNotFoundEntity:
            await _declare_exchange(link, name, type_)


async def _declare_exchange(link: Link, name: str, type_: ExchangeType) -> None:
    try:
        async with link.channel() as channel:
            await channel.declare_exchange(name, type_, durable=True)
    except ChannelPreconditionFailed:
        return  # somebody else was faster, with another type


async def ensure_queues(link: Link, options: RabbitOptions, subscription: Subscription) -> QueueNames:
    """Create the queues of a subscription, and bind the first of them to the exchange."""
    names = options.queues_of(subscription.name, subscription.topic)
    await ensure_exchange(link, options, subscription.topic)
    await _ensure_queue(link, names.dead, _QUORUM)
    await _ensure_queue(link, names.retry, names.retry_arguments)
    await _ensure_queue(link, names.main, _QUORUM)
    with translated():
        async with link.channel() as channel:
            queue = await channel.get_queue(names.main, ensure=False)
            # `#` matches every key at a topic exchange, and ours matches at a direct one.
            for key in {"#", options.routing_key_of(subscription.topic)}:
                await queue.bind(options.exchange_of(subscription.topic), key)
    return names


async def _ensure_queue(link: Link, name: str, arguments: dict[str, Any]) -> None:
    if await count_messages(link, name) is not None:
        return
    with translated():
        async with link.channel() as channel:
            await channel.declare_queue(name, durable=True, arguments=arguments)


async def count_messages(link: Link, queue: str) -> int | None:
    """Return how many messages of a queue no consumer has taken; None: there is no such queue."""
    with translated():
        try:
            async with link.channel() as channel:
                found = await channel.declare_queue(queue, passive=True)
                return found.declaration_result.message_count or 0
        except ChannelNotFoundEntity:
            return None


async def wait_for_messages(link: Link, queue: str, count: int) -> None:
    """Wait until messages are back in a queue that were given back: the server does not confirm that."""
    for _ in range(_LOOKS):
        if (await count_messages(link, queue) or 0) >= count:
            return
        await asyncio.sleep(_LOOK_PAUSE)


async def delete_queues(link: Link, names: QueueNames) -> bool:
    """Delete the queues of a subscription with everything in them; False: there was none."""
    is_there = await count_messages(link, names.main) is not None
    with translated():
        async with link.channel() as channel:
            for name in (names.main, names.retry, names.dead):
                await channel.queue_delete(name)
    return is_there
