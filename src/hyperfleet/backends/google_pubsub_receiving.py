"""Receiving from Google Pub/Sub: one stream per consumer, opened again for ever, and the messages that it holds.

The service sends at most as many messages as a consumer may hold. Their deadlines are extended until they are answered,
so a slow consumer loses none of them to another one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from datetime import timedelta
from typing import Final

from google.pubsub_v1.types import PubsubMessage, ReceivedMessage, StreamingPullRequest

from hyperfleet.backends.google_pubsub_messages import decode_message, is_for, make_dead_letter
from hyperfleet.backends.google_pubsub_options import PubSubOptions
from hyperfleet.backends.google_pubsub_service import PubSubMissing, PubSubService
from hyperfleet.errors import BrokerUnavailable
from hyperfleet.events.cloud_events import MalformedEvent
from hyperfleet.messaging import Message, Subscription

_LOG: Final = logging.getLogger(__name__)
_RETRIES: Final = (0.1, 0.5, 1.0, 2.0, 5.0)  # seconds after a stream broke; the last one for ever
_HEARTBEAT: Final = 30.0  # seconds after which an idle stream is used, as by Google's own client: proxies end idle ones
_NOW: Final = timedelta()


class Receiver:
    """Receives the messages of one subscription for one consumer."""

    def __init__(
        self,
        service: PubSubService,
        options: PubSubOptions,
        subscription: Subscription,
        create: Callable[[Subscription], Awaitable[None]],
        prefetch: int,
    ) -> None:
        """Receive for a subscription; `create` makes it again if the service has lost it."""
        self._service = service
        self._options = options
        self._subscription = subscription
        self._create = create
        self._prefetch = min(prefetch, options.max_outstanding_messages or prefetch)
        self._name = options.subscription_name(subscription.name, subscription.topic)
        self._path = options.subscription_path(self._name)
        self._room = asyncio.Semaphore(self._prefetch)  # deliveries that are not answered
        self._arrived: asyncio.Queue[PubSubDelivery] = asyncio.Queue()
        self._held: dict[str, float] = {}  # since when we have the messages that are not answered, by receipt
        self._failures = 0
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start to receive."""
        self._tasks = [asyncio.create_task(self._read_for_ever()), asyncio.create_task(self._extend_for_ever())]

    async def stop(self) -> None:
        """Stop, and give back what was not answered, so that other consumers get it at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        held, self._held = list(self._held), {}
        with suppress(BrokerUnavailable):  # without it they are delivered again after their deadline
            await self._service.set_deadline(self._path, held, _NOW)

    async def deliveries(self) -> AsyncIterator[PubSubDelivery]:
        """Yield deliveries; waits while as many as allowed are not answered."""
        while True:
            await self._room.acquire()
            yield await self._arrived.get()

    async def ack(self, receipt: str) -> None:
        """Remove a message from the queue."""
        self._release(receipt)
        with self._unanswered():
            await self._service.acknowledge(self._path, [receipt])

    async def reject(self, received: ReceivedMessage, attempt: int, error: str, *, is_poison: bool) -> None:
        """Deliver a message again after the back-off of the subscription, or make it a dead letter."""
        self._release(received.ack_id)
        with self._unanswered():
            if is_poison or attempt >= self._options.last_attempt:
                await self._give_up(received, attempt, error)
            else:
                await self._service.set_deadline(self._path, [received.ack_id], _NOW)

    @contextmanager
    def _unanswered(self) -> Iterator[None]:
        """Go on when an answer does not reach the service: the message is delivered again after its deadline."""
        try:
            yield
        except BrokerUnavailable as error:
            _LOG.warning("a message of %s is going to be delivered again: %s", self._name, error)

    def _release(self, receipt: str) -> None:
        if self._held.pop(receipt, None) is not None:
            self._room.release()

    async def _read_for_ever(self) -> None:
        while True:
            try:
                async with aclosing(self._service.stream(self._requests())) as answers:
                    async for answer in answers:
                        self._failures = 0
                        await self._take(answer.received_messages)
            except PubSubMissing as error:
                self._note_failure(error)
                with suppress(BrokerUnavailable):  # then the next attempt finds it missing again
                    await self._create(self._subscription)
            except BrokerUnavailable as error:
                self._note_failure(error)
            # The service ends streams now and then, without an error.
            await asyncio.sleep(_RETRIES[min(self._failures, len(_RETRIES) - 1)])

    async def _requests(self) -> AsyncIterator[StreamingPullRequest]:
        """Yield what opens a stream, and then what keeps it open."""
        yield StreamingPullRequest(
            subscription=self._path,
            stream_ack_deadline_seconds=int(self._options.ack_deadline.total_seconds()),
            max_outstanding_messages=self._prefetch,
            max_outstanding_bytes=self._options.max_outstanding_bytes,
        )
        while True:
            await asyncio.sleep(_HEARTBEAT)
            yield StreamingPullRequest()

    async def _take(self, batch: Sequence[ReceivedMessage]) -> None:
        """Hold new messages for the consumer. Those that are not for it are removed, or made dead letters."""
        skipped: list[str] = []
        for received in batch:
            try:
                message = self._read(received.message)
            except MalformedEvent as error:
                await self._give_up_at_once(received, str(error))
                continue
            attempt = received.delivery_attempt or 1
            if message is None:
                skipped.append(received.ack_id)
            elif attempt > self._options.last_attempt:
                await self._give_up_at_once(received, f"it was delivered {attempt - 1} times, and nobody answered")
            else:
                self._held[received.ack_id] = asyncio.get_running_loop().time()
                self._arrived.put_nowait(PubSubDelivery(self, received, message, attempt))
        if skipped:
            await self._service.acknowledge(self._path, skipped)

    def _read(self, received: PubsubMessage) -> Message | None:
        """Read a message; None: it is not for this subscription."""
        if not is_for(received, self._name):
            return None
        message = decode_message(received, self._subscription.topic)
        return message if self._subscription.admits(message) else None

    async def _give_up_at_once(self, received: ReceivedMessage, error: str) -> None:
        """Make a message a dead letter that no consumer sees."""
        with self._unanswered():
            await self._give_up(received, received.delivery_attempt or 1, error)

    async def _give_up(self, received: ReceivedMessage, attempt: int, error: str) -> None:
        """Publish a message to the topic of dead letters, then remove it: a crash between repeats it."""
        topic = self._options.named_topic_path(self._options.dead_letter_name(self._subscription))
        await self._service.publish(topic, [make_dead_letter(received.message, error, attempt)])
        await self._service.acknowledge(self._path, [received.ack_id])
        _LOG.warning("a message of %s is a dead letter after %d deliveries: %s", self._name, attempt, error)

    async def _extend_for_ever(self) -> None:
        """Extend the deadlines of held messages three times per deadline, so that two attempts may fail."""
        deadline, longest = self._options.ack_deadline, self._options.max_extension.total_seconds()
        while True:
            await asyncio.sleep(deadline.total_seconds() / 3)
            now = asyncio.get_running_loop().time()
            receipts = [receipt for receipt, since in self._held.items() if now - since < longest]
            try:
                await self._service.set_deadline(self._path, receipts, deadline)
            except BrokerUnavailable as error:
                _LOG.warning("the deadlines of %d messages were not extended: %s", len(receipts), error)

    def _note_failure(self, error: BrokerUnavailable) -> None:
        if self._failures == 0:  # once per outage
            _LOG.warning("receiving from %s was interrupted, trying again: %s", self._name, error)
        self._failures += 1


class PubSubDelivery:
    """A message that was delivered and waits for an answer."""

    def __init__(self, receiver: Receiver, received: ReceivedMessage, message: Message, attempt: int) -> None:
        """Answer to the receiver that has taken the message."""
        self._receiver = receiver
        self._received = received
        self._message = message
        self._attempt = attempt

    @property
    def message(self) -> Message:
        """Return the message."""
        return self._message

    @property
    def attempt(self) -> int:
        """Return how often it was delivered, this time included."""
        return self._attempt

    async def ack(self) -> None:
        """Remove the message from the queue: it was handled."""
        await self._receiver.ack(self._received.ack_id)

    async def reject(self, error: str, *, is_poison: bool = False) -> None:
        """Deliver it again later, or make it a dead letter with the error."""
        await self._receiver.reject(self._received, self._attempt, error, is_poison=is_poison)
