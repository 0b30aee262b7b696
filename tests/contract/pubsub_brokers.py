"""Google Pub/Sub to test, on Google's own in-memory server.

That server differs from the service: it delivers some 100 messages per second, at most one of a resource at a time;
it ignores back-offs; it counts the deliveries of a message for all subscriptions together; and it keeps messages for at
most seven days.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from hyperfleet.backends.google_pubsub import PubSubBroker
from hyperfleet.backends.google_pubsub_options import PubSubOptions
from hyperfleet.backends.google_pubsub_service import PubSubService
from hyperfleet.errors import BrokerUnavailable
from hyperfleet.messaging import Broker
from tests.contract.brokers import RETRY

_LONGEST: Final = timedelta(days=7)
_SHORT: Final = timedelta(seconds=1)


class PubSubBrokers:
    """Brokers of one project, which is new."""

    def __init__(self, address: str) -> None:
        self._options: Final[dict[str, Any]] = {
            "project": f"test-{uuid4().hex}",
            "emulator": address,
            "retry": RETRY,
            "dead_letter_retention": _LONGEST,
        }
        self._opened: list[PubSubBroker] = []

    async def open(self) -> None:
        """Do nothing: a project is there as soon as it is used."""

    async def connect(self, *, is_doomed: bool = False) -> PubSubBroker:
        """Return a broker; a doomed one answers within a short time or not at all."""
        return await self.connect_with(ack_deadline=_SHORT) if is_doomed else await self.connect_with()

    async def connect_with(self, **more: Any) -> PubSubBroker:
        """Return a broker with options of its own."""
        broker = PubSubBroker(PubSubOptions(**{**self._options, **more}))
        await broker.open()
        self._opened.append(broker)
        return broker

    async def crash(self, broker: Broker) -> None:
        """Break its connection: it cannot give anything back."""
        await broker.close()

    async def close(self) -> None:
        """Close all that were opened, and wait until gRPC has noticed.

        It has one queue of events for all loops of a process, and none may come after the end of a test's loop. When
        two more requests are answered, the events of ended streams have come.
        """
        for broker in self._opened:
            await broker.close()
        last = PubSubService(PubSubOptions(**self._options))
        for _ in range(2):
            with suppress(BrokerUnavailable):
                await last.has_topic("projects/none/topics/none")
        await last.close()
