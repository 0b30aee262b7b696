"""`consume`: a handler is called for every event of a subscription, and its result is the answer.

On an event loop this is the worker of `hyperfleet.events`, over deliveries that are pulled through the API. In
synchronous code it is a loop over the events, one at a time. Loaded with the first call, as it needs asyncio.
"""

from __future__ import annotations

import asyncio
import logging  # noqa: TID251  # this loop runs without a caller who could be told
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import Final

from msgspec import Struct

from hyperfleet.client.answers.pubsub import PulledMessage
from hyperfleet.client.pubsub import acknowledge, pull, put_subscription, reject
from hyperfleet.client.receiving import DEADLINE, MAX_PREFETCH, ReceivedEvent, SubscribeOptions
from hyperfleet.client.transport import AsyncLink
from hyperfleet.events.cloud_events import MalformedEvent, decode_event
from hyperfleet.events.received import Event, Poison, describe_error
from hyperfleet.events.worker import Handler, Worker
from hyperfleet.messaging import Message, Topic

CONCURRENCY: Final = 8
_WAITING: Final = 4  # events in hand per handler: enough to merge those of a busy resource, few enough to be in time

_LOG: Final = logging.getLogger(__name__)


# ── synchronous ──────────────────────────────────────────────────────────────────────────────────────────────────


def handle_each(events: Iterable[ReceivedEvent], handler: Callable[[Event], None]) -> None:
    """Call a handler for one event after the other, and answer each with the result."""
    for event in events:
        try:
            handler(event)
        except Exception as error:  # noqa: BLE001  # whatever a handler raises concerns this event only
            _LOG.warning("event %s about %s was not handled: %s", event.id, event.subject, describe_error(error))
            is_poison = isinstance(error, Poison)
            _warn_if_late(event.id, event.nack(describe_error(error), dead_letter=is_poison))
        else:
            _warn_if_late(event.id, event.ack())


# ── on an event loop ─────────────────────────────────────────────────────────────────────────────────────────────


async def consume(
    link: AsyncLink,
    name: str,
    handler: Handler,
    *,
    concurrency: int,
    stop: asyncio.Event | None,
    options: SubscribeOptions,
) -> None:
    """Subscribe, and handle events until `stop` is set."""
    topic = options.get("topic", "clusterEvents")
    worker = Worker(handler, concurrency=concurrency, coalesces=topic == "clusterEvents")
    puller = _Puller(link, name, topic, options, options.get("prefetch", min(concurrency * _WAITING, MAX_PREFETCH)))
    await link.run(put_subscription(name, topic, link.retry))
    stopping = asyncio.create_task(_stop_with(worker, stop)) if stop is not None else None
    try:
        async with aclosing(puller.deliveries()) as deliveries:
            await worker.run(deliveries)
    finally:
        if stopping is not None:
            stopping.cancel()


async def _stop_with(worker: Worker, stop: asyncio.Event) -> None:
    await stop.wait()
    worker.stop()


class _Puller:
    """Pulls as many messages as there is room for."""

    def __init__(self, link: AsyncLink, name: str, topic: Topic, options: SubscribeOptions, room: int) -> None:
        self.link = link
        self.name = name
        self._topic = topic
        self._deadline = options.get("deadline", DEADLINE)
        self._room = asyncio.Semaphore(room)
        self._free = room  # besides the one that is being pulled

    async def deliveries(self) -> AsyncGenerator[_PulledDelivery, None]:
        """Yield deliveries; at most as many as there is room for wait for their answer."""
        feed = pull(self.name, lambda: self._free + 1, self._deadline, self.link.retry, lambda: False)
        async with aclosing(self.link.iterate(feed)) as messages:
            while True:
                await self._room.acquire()
                self._free -= 1
                pulled = await anext(messages)
                try:
                    message = decode_event(bytes(pulled.event), self._topic)
                except MalformedEvent as error:
                    await self.answer(pulled, error=describe_error(error), is_poison=True)
                    continue
                yield _PulledDelivery(self, pulled, message)

    async def answer(self, pulled: PulledMessage, *, error: str | None = None, is_poison: bool = False) -> None:
        """Answer a delivery, and make room for another one."""
        self._free += 1
        self._room.release()
        retry = self.link.retry
        if error is None:
            in_time = await self.link.run(acknowledge(self.name, pulled.receipt, retry))
        else:
            in_time = await self.link.run(reject(self.name, pulled.receipt, error, retry, is_dead=is_poison))
        _warn_if_late(pulled.receipt, in_time)


class _PulledDelivery(Struct, frozen=True):
    """A message that was pulled."""

    puller: _Puller
    pulled: PulledMessage
    message: Message

    @property
    def attempt(self) -> int:
        """Return how often it was delivered, this time included."""
        return self.pulled.attempt

    async def ack(self) -> None:
        """Remove the message from the queue."""
        await self.puller.answer(self.pulled)

    async def reject(self, error: str, *, is_poison: bool = False) -> None:
        """Deliver it again later, or make it a dead letter."""
        await self.puller.answer(self.pulled, error=error, is_poison=is_poison)


def _warn_if_late(name: str, in_time: bool) -> None:
    if not in_time:
        _LOG.warning("event %s was answered after its deadline and is delivered again; allow a longer one", name)
