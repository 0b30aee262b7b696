"""The in-process broker: queues in the store, so that nothing is lost and every replica serves every subscription.

Consumers in this process receive from it directly; those in other processes pull through the API.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Final

from hyperfleet.errors import BrokerUnavailable, StoreError
from hyperfleet.messaging import (
    DeadLetter,
    Message,
    OverdueQueue,
    QueuedMessage,
    RetryPolicy,
    Subscription,
    SubscriptionState,
    Topic,
    read_receipt,
)
from hyperfleet.ports import Clock, Store

DEADLINE: Final = timedelta(seconds=60)  # for an ack; then a message is delivered again
# Seconds between looks for messages that wait for their next attempt, or that another replica has put into a queue of a
# store that does not tell of it.
_POLL: Final = 0.25
_WAIT: Final = 30.0  # seconds that a consumer waits for its next message before it looks again
_BATCH: Final = 1_000  # messages that are dropped in one transaction, so that others hardly wait
_RETRY: Final = 1.0  # seconds after the store was away


class InProcessBroker:
    """Publishes into queues of the store, and takes messages out of them."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008  # frozen
        deadline: timedelta = DEADLINE,
    ) -> None:
        """Use the queues of an open store; a consumer of this process that gives no answer has until `deadline`."""
        self.store = store
        self._clock = clock
        self.retry = retry
        self._deadline = deadline
        self._news = asyncio.Event()  # a new one for each publication

    async def open(self) -> None:
        """Follow what other replicas put into the queues: the store is open."""
        self.store.on_foreign_messages(self._wake)

    async def close(self) -> None:
        """Wake the consumers, so that they end."""
        self._wake()

    async def check(self) -> None:
        """Return if messages can be published now."""
        try:
            await self.store.check()
        except StoreError as error:
            raise BrokerUnavailable(f"the store takes no messages: {error}") from error

    async def publish(self, messages: Sequence[Message]) -> None:
        """Put messages into the queues of their subscriptions, in one transaction."""
        try:
            await self.store.queues.enqueue(messages)
        except StoreError as error:
            raise BrokerUnavailable(f"the store did not take messages: {error}") from error
        self._wake()

    async def subscribe(self, subscription: Subscription) -> None:
        """Create the queue of a subscription, unless there is one."""
        await self.store.queues.subscribe(subscription)

    async def unsubscribe(self, name: str, topic: Topic = "clusterEvents") -> bool:
        """Delete a subscription with everything in its queue; False: there was none."""
        return await self.store.queues.unsubscribe(name)

    async def pull(self, name: str, limit: int, deadline: timedelta, wait: float) -> tuple[QueuedMessage, ...]:
        """Take messages; if there is none, wait for the first one for up to `wait` seconds."""
        until = asyncio.get_running_loop().time() + wait
        while True:
            news = self._news
            taken = await self.store.queues.take(name, limit, deadline, self.retry.max_retries)
            left = until - asyncio.get_running_loop().time()
            if taken or left <= 0:
                return taken
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, _POLL)):
                    await news.wait()

    async def drop_overdue(self, max_lag: timedelta, make_gap: Callable[[OverdueQueue], Message]) -> Mapping[str, int]:
        """Replace what is in queues that nobody has pulled from for `max_lag` by one message: look at everything.

        Return how many messages were dropped, by subscription. A queue that is never pulled must not fill the disk.
        """
        dropped: dict[str, int] = {}
        for queue in await self.store.queues.overdue(max_lag):
            name = queue.subscription.name
            await self.store.queues.enqueue([make_gap(queue)], only=name)  # first: a crash repeats it
            dropped[name] = 0
            while count := await self.store.queues.discard(name, queue.newest, _BATCH):
                dropped[name] += count
        return dropped

    async def reject(self, name: str, receipts: Sequence[str], error: str, *, is_poison: bool = False) -> int:
        """Deliver messages again later; after the last attempt, or if they are poison, make them dead letters.

        Return the number of receipts that are still valid.
        """
        last = [each for each in receipts if is_poison or _attempt_of(each) > self.retry.max_retries]
        rest = [each for each in receipts if each not in set(last)]
        count = 0
        for some, delay in ((last, None), (rest, self.retry.interval)):
            if some:
                count += await self.store.queues.nack(name, some, error, delay)
        return count

    async def replay(self, name: str, limit: int) -> int:
        """Put dead letters back into the queue of their subscription; return their number."""
        count = await self.store.queues.replay_dead_letters(name, limit)
        self._wake()
        return count

    @asynccontextmanager
    async def receive(
        self, subscription: Subscription, *, prefetch: int = 16
    ) -> AsyncIterator[AsyncIterator[_QueuedDelivery]]:
        """Subscribe, and yield deliveries for the length of a block."""
        await self.subscribe(subscription)
        yield self._deliver(subscription.name, prefetch)

    async def state_of(self, subscription: Subscription) -> SubscriptionState | None:
        """Return what is in the queue of a subscription; None: there is no such subscription."""
        states = await self.store.queues.subscriptions(subscription.name)
        return states[0] if states else None

    async def dead_letters(self, subscription: Subscription, limit: int) -> tuple[DeadLetter, ...]:
        """Return dead letters, the oldest first."""
        return await self.store.queues.dead_letters(subscription.name, limit)

    async def replay_dead_letters(self, subscription: Subscription, limit: int) -> int:
        """Put dead letters back into the queue of their subscription."""
        return await self.replay(subscription.name, limit)

    async def _deliver(self, name: str, prefetch: int) -> AsyncIterator[_QueuedDelivery]:
        room = _Room(prefetch)
        while True:
            await room.wait()
            try:
                taken = await self.pull(name, room.free, self._deadline, wait=_WAIT)
            except StoreError:
                await asyncio.sleep(_RETRY)
                continue
            room.free -= len(taken)
            for queued in taken:
                yield _QueuedDelivery(self, name, queued, room)

    async def ack(self, name: str, receipts: Sequence[str]) -> int:
        """Remove messages from a queue: they were handled."""
        return await self.store.queues.ack(name, receipts)

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


def _attempt_of(receipt: str) -> int:
    _, attempt = read_receipt(receipt) or (0, 0)
    return attempt


class _Room:
    """How many more messages a consumer takes before it has answered some."""

    def __init__(self, free: int) -> None:
        self.free = free
        self._change = asyncio.Event()

    async def wait(self) -> None:
        """Wait until there is room for one."""
        while self.free <= 0:
            self._change.clear()
            await self._change.wait()

    def release(self) -> None:
        """Make room for one more."""
        self.free += 1
        self._change.set()


class _QueuedDelivery:
    """A message that was taken from a queue."""

    def __init__(self, broker: InProcessBroker, name: str, queued: QueuedMessage, room: _Room) -> None:
        self._broker = broker
        self._name = name
        self._queued = queued
        self._room = room

    @property
    def message(self) -> Message:
        """Return the message."""
        return self._queued.message

    @property
    def attempt(self) -> int:
        """Return how often it was delivered, this time included."""
        return self._queued.attempt

    async def ack(self) -> None:
        """Remove the message from the queue."""
        self._room.release()
        await self._broker.ack(self._name, [self._queued.receipt])

    async def reject(self, error: str, *, is_poison: bool = False) -> None:
        """Deliver it again later, or make it a dead letter."""
        self._room.release()
        await self._broker.reject(self._name, [self._queued.receipt], error, is_poison=is_poison)
