"""★ The worker: receives events and has a handler look at their resources.

It handles one event of a resource at a time; what arrives meanwhile is merged, and the newest stands for all of it. A
delivery is answered after the handler: with an ack if it returned, with a rejection and the error if it raised. So a
crash at any time repeats work and forgets none. The client's `consume` and adapters use it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from hyperfleet.errors import HyperFleetError
from hyperfleet.events.cloud_events import MalformedEvent
from hyperfleet.events.coalescing import Work, WorkQueue
from hyperfleet.events.received import Event, Poison, describe_error, event_of, merge
from hyperfleet.messaging import Delivery

Handler: TypeAlias = Callable[[Event], Awaitable[None]]
Result: TypeAlias = Literal["handled", "failed", "poison"]

_LOG: Final = logging.getLogger(__name__)


class _Received(Struct, frozen=True):
    """An event and the delivery that waits for its answer."""

    event: Event
    delivery: Delivery


class Worker:
    """Handles events, several resources at once."""

    def __init__(self, handler: Handler, *, concurrency: int = 8, coalesces: bool = True) -> None:
        """Call `handler` for up to `concurrency` resources at once.

        `coalesces`: events of a resource that wait are handled as one. Right for "look again"; wrong for status
        updates, where each one has transitions of its own.
        """
        if concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, not {concurrency}")
        self._handler = handler
        self._concurrency = concurrency
        self._queue: WorkQueue[_Received] = WorkQueue(coalesces=coalesces)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self.on_result: Callable[[Event, Result], None] | None = None  # called for every event, merged ones included

    def stop(self) -> None:
        """Begin nothing new; `run` returns when what is running has ended."""
        self._stopping.set()

    async def run(self, deliveries: AsyncIterator[Delivery]) -> None:
        """Handle deliveries until they end or `stop` is called; what was not begun stays unanswered.

        An unanswered delivery is delivered again. If this is cancelled, so are the handlers.
        """
        reading = asyncio.create_task(self._read(deliveries))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            self._end_reading(reading)
            while self._tasks:
                await asyncio.wait(self._tasks)
            await asyncio.gather(reading, return_exceptions=True)
        finally:
            await _cancel(reading, stopping, *self._tasks)
        if not reading.cancelled() and (error := reading.exception()) is not None:
            raise error

    async def _read(self, deliveries: AsyncIterator[Delivery]) -> None:
        async for delivery in deliveries:
            try:
                event = event_of(delivery.message, delivery.attempt)
            except MalformedEvent as error:
                await self._reject(delivery, describe_error(error), is_poison=True)
                continue
            self._queue.add(_key_of(delivery), _Received(event, delivery))
            self._begin()

    def _end_reading(self, reading: asyncio.Task[None]) -> None:
        """Give back what was not begun, if there was a stop; otherwise everything that arrived is still handled."""
        if self._stopping.is_set():
            reading.cancel()
            self._queue.drain()

    def _begin(self) -> None:
        while self._queue.running < self._concurrency and not self._stopping.is_set():
            work = self._queue.take()
            if work is None:
                return
            task = asyncio.create_task(self._perform(work))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _perform(self, work: Work[_Received]) -> None:
        try:
            await self._handle(work)
        finally:
            self._queue.finish(work)
            self._begin()

    async def _handle(self, work: Work[_Received]) -> None:
        event = merge([received.event for received in work.items])
        try:
            await self._handler(event)
        except Exception as error:  # noqa: BLE001  # whatever a handler raises concerns this event only
            is_poison = isinstance(error, Poison)
            _LOG.warning("event %s about %s was not handled: %s", event.id, event.subject, describe_error(error))
            self._report(work, "poison" if is_poison else "failed")
            await asyncio.gather(
                *(self._reject(each.delivery, describe_error(error), is_poison=is_poison) for each in work.items)
            )
        else:
            self._report(work, "handled")
            await asyncio.gather(*(self._ack(each.delivery) for each in work.items))

    async def _ack(self, delivery: Delivery) -> None:
        try:
            await delivery.ack()
        except HyperFleetError as error:
            _LOG.warning("event %s was handled and will be delivered again: %s", delivery.message.id, error)

    async def _reject(self, delivery: Delivery, error: str, *, is_poison: bool) -> None:
        try:
            await delivery.reject(error, is_poison=is_poison)
        except HyperFleetError as failure:
            _LOG.warning("event %s could not be rejected: %s", delivery.message.id, failure)

    def _report(self, work: Work[_Received], result: Result) -> None:
        if self.on_result is not None:
            for received in work.items:
                self.on_result(received.event, result)


def _key_of(delivery: Delivery) -> str:
    """Return what names the resource; an event that names none is handled by itself."""
    message = delivery.message
    return message.partition_key or message.subject or message.id


async def _cancel(*tasks: asyncio.Task[None] | asyncio.Task[Literal[True]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
