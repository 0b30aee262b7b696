"""Subscriptions and receiving their events: a part of `Fleet` and of `AsyncFleet`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Unpack

from hyperfleet.client import pubsub
from hyperfleet.client.answers.pubsub import DeadLetter, PubSub, Subscription
from hyperfleet.client.effects import Flow
from hyperfleet.client.operation import AsyncFace, Face, SyncFace, operation
from hyperfleet.client.receiving import DEADLINE, AsyncReceivedEvent, ReceivedEvent, SubscribeOptions, Topic, receive

if TYPE_CHECKING:
    import asyncio
    import threading
    from collections.abc import Awaitable

    from hyperfleet.events.received import Event


class SubscriptionOperations(Face):
    """The operations on subscriptions."""

    @operation
    def pubsub(self) -> Flow[PubSub]:
        """Read where events go, and how far the relay is."""
        return (yield from pubsub.read_pubsub(self._retry))

    @operation
    def put_subscription(self, name: str, *, topic: Topic = "clusterEvents") -> Flow[Subscription]:
        """Subscribe: create a queue that keeps events from now on; one that exists stays as it is.

        Raises `Conflict` if it has another topic, or if events go to another broker.
        """
        return (yield from pubsub.put_subscription(name, topic, self._retry))

    @operation
    def subscriptions(self) -> Flow[tuple[Subscription, ...]]:
        """List the subscriptions, and what is in their queues."""
        return (yield from pubsub.list_subscriptions(self._retry))

    @operation
    def subscription(self, name: str, *, topic: Topic | None = None) -> Flow[Subscription]:
        """Read one subscription, and what is in its queue.

        RabbitMQ and Google Pub/Sub have one of that name for each topic; without `topic`, that to clusterEvents.
        """
        return (yield from pubsub.read_subscription(name, topic, self._retry))

    @operation
    def delete_subscription(self, name: str) -> Flow[Subscription | None]:
        """Delete a subscription with everything in its queue; return its last state, if that is known."""
        return (yield from pubsub.delete_subscription(name, self._retry))

    @operation
    def dead_letters(
        self, name: str, *, topic: Topic | None = None, limit: int | None = None
    ) -> Flow[tuple[DeadLetter, ...]]:
        """List the events of a subscription that were given up, the oldest first; `topic` as in `subscription`."""
        return (yield from pubsub.list_dead_letters(name, topic, limit, self._retry))

    @operation
    def replay_dead_letters(self, name: str, *, topic: Topic | None = None, limit: int | None = None) -> Flow[int]:
        """Put dead letters back into their queue, the oldest first; return how many. `topic` as in `subscription`."""
        return (yield from pubsub.replay_dead_letters(name, topic, limit, self._retry))


class Subscribing(SubscriptionOperations, SyncFace):
    """Receives events, synchronously."""

    def subscribe(self, name: str, **options: Unpack[SubscribeOptions]) -> Generator[ReceivedEvent, None, None]:
        """Subscribe, and yield events as they come, for ever; each waits for its `ack` or `nack`.

        A server that is away is waited for. Events of the same name are shared by all programs that receive them.
        """
        yield from self._receive(name, options, lambda: False)

    def consume(
        self,
        name: str,
        handler: Callable[[Event], None],
        *,
        stop: threading.Event | None = None,
        **options: Unpack[SubscribeOptions],
    ) -> None:
        """Subscribe, and call a handler for one event after the other: a return acknowledges, an exception rejects.

        An event is handled again after an exception; after the last attempt, or if the handler raises `Poison`, it is
        a dead letter with the error. Returns some seconds after `stop` is set.
        """
        from hyperfleet.client.consuming import handle_each  # noqa: PLC0415  # needs asyncio

        is_stopping = stop.is_set if stop is not None else lambda: False
        handle_each(self._receive(name, options, is_stopping), handler)

    def _receive(
        self, name: str, options: SubscribeOptions, is_stopping: Callable[[], bool]
    ) -> Generator[ReceivedEvent, None, None]:
        self.put_subscription(name, topic=options.get("topic", "clusterEvents"))
        size, deadline = options.get("prefetch", 1), options.get("deadline", DEADLINE)
        feed = pubsub.pull(name, lambda: size, deadline, self._retry, is_stopping)
        with closing(self._link.iterate(feed)) as messages:
            for pulled in messages:
                yield receive(ReceivedEvent, self._link, name, pulled)


class AsyncSubscribing(SubscriptionOperations, AsyncFace):
    """Receives events, asynchronously."""

    async def subscribe(
        self, name: str, **options: Unpack[SubscribeOptions]
    ) -> AsyncGenerator[AsyncReceivedEvent, None]:
        """Subscribe, and yield events as they come, for ever; each waits for its `ack` or `nack`.

        A server that is away is waited for. Events of the same name are shared by all programs that receive them.
        """
        await self.put_subscription(name, topic=options.get("topic", "clusterEvents"))
        size, deadline = options.get("prefetch", 1), options.get("deadline", DEADLINE)
        feed = pubsub.pull(name, lambda: size, deadline, self._retry, lambda: False)
        async with aclosing(self._link.iterate(feed)) as messages:
            async for pulled in messages:
                yield receive(AsyncReceivedEvent, self._link, name, pulled)

    async def consume(
        self,
        name: str,
        handler: Callable[[Event], Awaitable[None]],
        *,
        concurrency: int = 8,
        stop: asyncio.Event | None = None,
        **options: Unpack[SubscribeOptions],
    ) -> None:
        """Subscribe, and call a handler for every event: a return acknowledges it, an exception rejects it.

        `concurrency` resources are handled at once, one event of each at a time; cluster events of a resource that
        wait are handled as one, the newest (`event.older` has the others). An event is handled again after an
        exception; after the last attempt, or if the handler raises `Poison`, it is a dead letter with the error. When
        `stop` is set, handlers that run are waited for.
        """
        from hyperfleet.client.consuming import consume  # noqa: PLC0415  # needs asyncio

        await consume(self._link, name, handler, concurrency=concurrency, stop=stop, options=options)
