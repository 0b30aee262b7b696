"""RabbitMQ: consumers, and the answers to what they receive.

A message that was not handled is copied to the queue of those that wait, or of dead letters, and acknowledged when the
server has confirmed the copy. So it may be there twice after a crash, but is never lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import Final

import msgspec
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from aio_pika.exceptions import CONNECTION_EXCEPTIONS, ChannelInvalidStateError

from hyperfleet.backends.clock import SystemClock
from hyperfleet.backends.rabbitmq_link import Link, translated
from hyperfleet.backends.rabbitmq_publishing import Outgoing, Publisher
from hyperfleet.backends.rabbitmq_topology import QueueNames
from hyperfleet.errors import BrokerUnavailable
from hyperfleet.events.cloud_events import CONTENT_TYPE, MalformedEvent, decode_event
from hyperfleet.messaging import DeadLetter, Message, RetryPolicy, Subscription, Topic

_LOG: Final = logging.getLogger(__name__)
_PAUSES: Final = (0.2, 0.5, 1.0, 2.0, 5.0)  # seconds before the next attempt to connect; the last one for ever
_COPY_PAUSE: Final = 1.0  # seconds before the next attempt to copy a message
_MAX_ERROR: Final = 2_000  # characters of an error that are kept, as in queues of the store
_MAX_CRASHES: Final = 20  # deliveries without an answer; outages cause a few, a message that kills consumers all
_SHOWN: Final = 1_000  # characters of a malformed message that are shown

_ATTEMPT: Final = "x-hyperfleet-attempt"  # of the next delivery
_ATTEMPTS: Final = "x-hyperfleet-attempts"
_ERROR: Final = "x-hyperfleet-error"
_TIME: Final = "x-hyperfleet-time"
_KEY: Final = "x-hyperfleet-key"


class Answers:
    """What becomes of messages of one subscription that were not handled."""

    def __init__(self, publisher: Publisher, names: QueueNames, retry: RetryPolicy) -> None:
        """Copy messages with `publisher` to the queues of a subscription."""
        self._publisher = publisher
        self._names = names
        self.retry = retry

    async def repeat_later(self, incoming: AbstractIncomingMessage, attempt: int) -> None:
        """Deliver a message again after the interval."""
        headers = {_ATTEMPT: str(attempt + 1)}
        await self._copy(incoming, self._names.retry, headers)

    async def give_up(self, incoming: AbstractIncomingMessage, attempts: int, error: str) -> None:
        """Make a message a dead letter."""
        now = SystemClock().now()
        headers = {
            _ATTEMPTS: str(attempts),
            _ERROR: error[:_MAX_ERROR],
            _TIME: now.isoformat(),
            _KEY: f"{now:%Y%m%dT%H%M%S.%f}-{incoming.delivery_tag}",
        }
        await self._copy(incoming, self._names.dead, headers)

    async def _copy(self, incoming: AbstractIncomingMessage, queue: str, headers: dict[str, str]) -> None:
        """Copy a message to a queue and acknowledge it. Without the copy it waits for an answer, so it is not lost."""
        expiration = self.retry.interval if queue == self._names.retry else None
        outgoing = Outgoing("", queue, incoming.body, incoming.content_type or CONTENT_TYPE, headers, expiration)
        while _can_be_answered(incoming):
            try:
                if not await self._publisher.publish([outgoing]):
                    await acknowledge(incoming)
                    return
                _LOG.warning("the queue %s is missing; a message waits until it is there again", queue)
            except BrokerUnavailable as error:
                _LOG.warning("a message could not be put into %s, trying again: %s", queue, error)
            await asyncio.sleep(_COPY_PAUSE)


def _can_be_answered(incoming: AbstractIncomingMessage) -> bool:
    """Tell whether the message is still ours: it is delivered again after its channel was closed."""
    try:
        return not incoming.channel.is_closed
    except ChannelInvalidStateError:
        return False


async def acknowledge(incoming: AbstractIncomingMessage) -> None:
    """Remove a message from its queue. If the connection was lost, it is delivered again."""
    with suppress(*CONNECTION_EXCEPTIONS):
        await incoming.ack()


class RabbitDelivery:
    """A message that was delivered."""

    def __init__(self, answers: Answers, incoming: AbstractIncomingMessage, message: Message) -> None:
        """Take a message with what is to be done with it."""
        self._answers = answers
        self._incoming = incoming
        self._message = message

    @property
    def message(self) -> Message:
        """Return the message."""
        return self._message

    @property
    def attempt(self) -> int:
        """Return how often it was delivered, this time included."""
        return rejections_of(self._incoming) + crashes_of(self._incoming) + 1

    async def ack(self) -> None:
        """Remove the message from the queue."""
        await acknowledge(self._incoming)

    async def reject(self, error: str, *, is_poison: bool = False) -> None:
        """Deliver it again later, or make it a dead letter. Lost connections do not count as attempts."""
        attempt = rejections_of(self._incoming) + 1
        if is_poison or attempt > self._answers.retry.max_retries:
            await self._answers.give_up(self._incoming, attempt, error)
        else:
            await self._answers.repeat_later(self._incoming, attempt)


def rejections_of(incoming: AbstractIncomingMessage) -> int:
    """Return how often a message was rejected."""
    return max(_number(incoming, _ATTEMPT) - 1, 0)


def crashes_of(incoming: AbstractIncomingMessage) -> int:
    """Return how often a message was delivered without an answer. A classic queue knows only: at least once."""
    count = _number(incoming, "x-delivery-count")
    return count or int(bool(incoming.redelivered))


def _number(incoming: AbstractIncomingMessage, header: str) -> int:
    text = str(incoming.headers.get(header, ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


class Consumer:
    """Receives the messages of one subscription, over as many connections as it takes."""

    def __init__(
        self, link: Link, subscription: Subscription, answers: Answers, prepare: Callable[[], Awaitable[object]]
    ) -> None:
        """Receive over `link`; `prepare` creates the queues, as they may be gone after an outage."""
        self._link = link
        self._subscription = subscription
        self._answers = answers
        self._prepare = prepare
        self._session: _Session | None = None
        self._is_closed = False

    async def close(self) -> None:
        """Let the deliveries end; what was not answered goes back into the queue."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()

    async def deliveries(self, queue: str, prefetch: int) -> AsyncIterator[RabbitDelivery]:
        """Yield deliveries until this is closed."""
        failures = 0
        while not self._is_closed:
            try:
                self._session = session = await self._begin(queue, prefetch)
            except BrokerUnavailable as error:
                pause = _PAUSES[min(failures, len(_PAUSES) - 1)]
                _LOG.warning("no messages of %s, trying again in %.1f s: %s", queue, pause, error)
                failures += 1
                await asyncio.sleep(pause)
                continue
            failures = 0
            try:
                while (incoming := await session.incoming.get()) is not None and not self._is_closed:
                    if (delivery := await self._accept(incoming)) is not None:
                        yield delivery
            finally:
                await session.close()

    async def _begin(self, queue: str, prefetch: int) -> _Session:
        await self._prepare()
        session = _Session(await self._link.open_channel())
        with translated():
            async with asyncio.timeout(self._link.timeout):
                await session.start(queue, prefetch)
        return session

    async def _accept(self, incoming: AbstractIncomingMessage) -> RabbitDelivery | None:
        """Return the delivery of a message; None: it was answered here."""
        try:
            message = decode_event(incoming.body, self._subscription.topic)
        except MalformedEvent as error:
            await self._answers.give_up(incoming, rejections_of(incoming) + 1, str(error))
            return None
        if not self._subscription.admits(message):
            await acknowledge(incoming)
            return None
        if (crashes := crashes_of(incoming)) >= _MAX_CRASHES:
            await self._answers.give_up(incoming, crashes, "never acknowledged: consumers end when they handle it")
            return None
        return RabbitDelivery(self._answers, incoming, message)


class _Session:
    """A consumer on one channel. Ends when the channel is closed, or when its queue is deleted."""

    def __init__(self, channel: AbstractChannel) -> None:
        self._channel = channel
        self.incoming: asyncio.Queue[AbstractIncomingMessage | None] = asyncio.Queue()

    async def start(self, queue: str, prefetch: int) -> None:
        """Ask for messages."""
        self._channel.close_callbacks.add(self._end)
        (await self._channel.get_underlay_channel()).on_consumer_cancel_callbacks.add(self._end)
        await self._channel.set_qos(prefetch_count=prefetch)
        found = await self._channel.get_queue(queue, ensure=False)
        await found.consume(self._take)

    async def close(self) -> None:
        """Give what was not answered back to the queue."""
        with suppress(*CONNECTION_EXCEPTIONS, TimeoutError):
            await self._channel.close()

    async def _take(self, incoming: AbstractIncomingMessage) -> None:
        self.incoming.put_nowait(incoming)

    def _end(self, *_: object) -> None:
        self.incoming.put_nowait(None)


# ── dead letters ─────────────────────────────────────────────────────────────────────────────────────────────────────


def read_dead_letter(incoming: AbstractIncomingMessage, topic: Topic) -> DeadLetter:
    """Return a dead letter. One that is not an event shows the beginning of its text."""
    try:
        message = decode_event(incoming.body, topic)
    except MalformedEvent:
        text = incoming.body[:_SHOWN].decode("utf-8", "replace")
        message = Message(topic, "", "", "malformed", "", None, "", "", msgspec.json.encode({"text": text}))
    error, key = (str(incoming.headers.get(name, "")) for name in (_ERROR, _KEY))
    return DeadLetter(key, message, error, max(_number(incoming, _ATTEMPTS), 1), _time_of(incoming))


def _time_of(incoming: AbstractIncomingMessage) -> datetime | None:
    try:
        return datetime.fromisoformat(str(incoming.headers.get(_TIME, "")))
    except ValueError:
        return None
