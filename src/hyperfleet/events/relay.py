"""★ The relay: reads the log and publishes what it makes of it, in order, at least once.

The log is the outbox: an event is committed with the change that made it. The relay is a named reader of the log. Of
all replicas one publishes at a time: the holder of a lease (`leased_reader`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

from hyperfleet.errors import BrokerUnavailable
from hyperfleet.events.leased_reader import RENEWAL, SAVING, LeasedReader, LogBatch
from hyperfleet.events.making import Origin, gap_message, messages_of
from hyperfleet.events.trace_context import with_traceparent
from hyperfleet.messaging import TOPICS, Broker, Message
from hyperfleet.ports import Clock, Store
from hyperfleet.services.loops import Loop
from hyperfleet.services.repeated_warning import RepeatedWarning
from hyperfleet.services.traced_commits import TracedCommits
from hyperfleet.services.tracing import UNTRACED, Tracer

READER: Final = "relay"

_LOG: Final = logging.getLogger(__name__)
_PAGE: Final = 500  # changes per batch: some 10 ms of work, and one confirmation of the broker
_CHECK: Final = 15.0  # seconds without a publication after which an idle relay asks whether the broker is there
_RETRIES: Final = (0.1, 0.5, 1.0, 2.0, 5.0)  # seconds after a failed publication; the last one for ever


class Relay:
    """Publishes the changes of the log. Runs in `loop`, on every replica; one of them does the work."""

    def __init__(
        self, store: Store, broker: Broker, clock: Clock, holder: str, make_origin: Callable[[str], Origin]
    ) -> None:
        """Publish the log of `store`; `holder` names this process among the replicas.

        `make_origin` makes the origin of events from the id of the store.
        """
        self._store = store
        self._broker = broker
        self._clock = clock
        self._make_origin = make_origin
        self._origin: Origin | None = None
        self._reader = LeasedReader(store, READER, holder)
        self._failures = 0
        self._trouble = ""  # why the broker did not take the last batch
        self._warning = RepeatedWarning(_LOG)
        self.on_published: Callable[[str, int], None] | None = None  # called with a topic and a number of messages
        self.on_failure: Callable[[], None] | None = None  # called when the broker did not take messages
        self.on_gap: Callable[[], Awaitable[None]] | None = (
            None  # called when changes were lost, before they are passed
        )
        self.tracer: Tracer = UNTRACED  # has a span for each batch
        self.traced_commits = TracedCommits()  # of this process; the spans are linked to them
        self._reached_at: float | None = None  # when the broker last answered; None: not since this replica publishes
        self._unpublished: datetime | None = None  # time of the oldest change that is not published
        self.loop = Loop("relay", self._turn)

    @property
    def is_publishing(self) -> bool:
        """Tell whether this replica holds the lease."""
        return self._reader.lease is not None

    @property
    def lag_seconds(self) -> float:
        """Return for how long the oldest unpublished change has waited; 0 on replicas without the lease."""
        if self._unpublished is None:
            return 0.0
        return max((self._clock.now() - self._unpublished).total_seconds(), 0.0)

    def describe_trouble(self) -> str:
        """Return why events cannot be published now; empty: they can, or another replica publishes."""
        if self._trouble and self._unpublished is None:
            return f"events could not be published now: {self._trouble}"
        return self._trouble and f"changes wait for {self.lag_seconds:.0f} s to be published: {self._trouble}"

    async def start(self) -> None:
        """Open the reader, so that nothing from now on is missed, and start the loop."""
        await self._reader.open()
        self.loop.start()

    async def stop(self) -> None:
        """Stop, and let another replica continue at once."""
        await self.loop.stop()
        await self._reader.release()

    async def _turn(self) -> float:
        """Publish everything that is new, if this replica holds the lease."""
        reader = self._reader
        while await reader.hold() is not None:
            batch = await reader.read(_PAGE)
            if batch.upto > reader.position:
                self._unpublished = batch.changes[0].time if batch.changes else None
                if not await self._publish(batch):
                    return self._retry_pause
                reader.position = batch.upto
            self._unpublished = None
            # After a page that is not full there was nothing more: a commit since then has woken the loop again.
            if await reader.save_if_due() and len(batch.changes) < _PAGE:
                if reader.is_unsaved:
                    return SAVING
                return RENEWAL if await self._reaches_broker() else self._retry_pause
        self._unpublished, self._trouble, self._reached_at = None, "", None
        return RENEWAL

    @property
    def _retry_pause(self) -> float:
        return _RETRIES[min(self._failures, len(_RETRIES)) - 1]

    async def _publish(self, batch: LogBatch) -> bool:
        """Publish changes of the log; False: the broker did not take them, and they must be published again."""
        messages = await self._make_messages(batch)
        try:
            if messages:
                await self._send(messages, batch.upto)
                self._note_success()
        except BrokerUnavailable as error:
            self._note_failure("messages were not published", error)
            return False
        if batch.gap is not None and self.on_gap is not None:
            await self.on_gap()
        self._count(messages)
        return True

    async def _make_messages(self, batch: LogBatch) -> list[Message]:
        if self._origin is None:
            self._origin = self._make_origin(await self._store.store_id())
        messages = [message for change in batch.changes for message in messages_of(change, self._origin)]
        if (gap := batch.gap) is not None:
            _LOG.error("changes %d to %d were pruned before they could be published", gap.after + 1, gap.upto)
            messages[:0] = [gap_message(gap, self._origin, topic) for topic in TOPICS]
        return messages

    async def _send(self, messages: list[Message], upto: int) -> None:
        """Publish in a span that the messages name, and that is linked to the requests that made the changes."""
        origins = self.traced_commits.between(self._reader.position, upto)
        with self.tracer.span("publish events", {"hyperfleet.batch.size": len(messages)}, origins or None):
            await self._broker.publish(with_traceparent(messages))
        self.traced_commits.forget(upto)

    async def _reaches_broker(self) -> bool:
        """Ask the broker now and then while there is nothing to publish: a quiet fleet must show that it is away.

        The first time, this makes the topics, so that others can subscribe before there are events.
        """
        if self._reached_at is not None and _now() - self._reached_at < _CHECK:
            return True
        try:
            await self._broker.check()
        except BrokerUnavailable as error:
            self._note_failure("the broker cannot be reached", error)
            return False
        self._note_success()
        return True

    def _note_success(self) -> None:
        self._failures, self._trouble, self._reached_at = 0, "", _now()
        self._warning.end()

    def _note_failure(self, what: str, error: BrokerUnavailable) -> None:
        self._failures += 1
        self._trouble = str(error)
        self._warning.log(f"{what}, trying again: {error}")
        if self.on_failure is not None:
            self.on_failure()

    def _count(self, messages: list[Message]) -> None:
        if self.on_published is not None:
            for topic, count in Counter(message.topic for message in messages).items():
                self.on_published(topic, count)


def _now() -> float:
    return asyncio.get_running_loop().time()
