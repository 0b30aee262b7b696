"""Events that were pulled from a subscription and wait for their answer, on both faces."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, TypedDict, TypeVar

import msgspec

from hyperfleet.client.answers.pubsub import PulledMessage, read_event
from hyperfleet.client.effects import Flow
from hyperfleet.client.operation import AsyncFace, Face, SyncFace, operation
from hyperfleet.client.pubsub import acknowledge, reject
from hyperfleet.client.transport import AsyncLink, Link
from hyperfleet.events.received import MAX_ERROR, Event

Topic: TypeAlias = Literal["clusterEvents", "statusUpdates"]

DEADLINE: Final = 60  # seconds; the server's own default
MAX_PREFETCH: Final = 1_000  # the most messages that the server gives at once


class SubscribeOptions(TypedDict, total=False):
    """How to receive events.

    `topic`: `clusterEvents` (the default) or `statusUpdates`. `deadline`: seconds for an answer, up to 600; an event
    without one is delivered again. `prefetch`: how many events are pulled at once; the deadline of all of them runs.
    """

    topic: Topic
    deadline: int
    prefetch: int


class EventOperations(Face):
    """The two answers to an event. Without either it is delivered again after the deadline."""

    subscription: str
    receipt: str

    @operation
    def ack(self) -> Flow[bool]:
        """Answer that the event was handled; False: the deadline has passed, so it is delivered again."""
        return (yield from acknowledge(self.subscription, self.receipt, self._retry))

    @operation
    def nack(self, error: str = "", *, dead_letter: bool = False) -> Flow[bool]:
        """Have the event delivered again later; after the last attempt, or now, make it a dead letter with the error.

        False: the deadline has passed, so it is delivered again anyway.
        """
        return (yield from reject(self.subscription, self.receipt, error[:MAX_ERROR], self._retry, is_dead=dead_letter))


class ReceivedEvent(Event, EventOperations, SyncFace, frozen=True, kw_only=True):
    """An event that waits for `ack` or `nack`."""

    subscription: str
    receipt: str
    _link: Link

    def __repr__(self) -> str:
        """Show the event, not the connection."""
        return _describe(self)


class AsyncReceivedEvent(Event, EventOperations, AsyncFace, frozen=True, kw_only=True):
    """An event that waits for `ack` or `nack`, asynchronously."""

    subscription: str
    receipt: str
    _link: AsyncLink

    def __repr__(self) -> str:
        """Show the event, not the connection."""
        return _describe(self)


E = TypeVar("E", ReceivedEvent, AsyncReceivedEvent)


def receive(type_: type[E], link: Link | AsyncLink, name: str, pulled: PulledMessage) -> E:
    """Make a pulled message an event that can be answered."""
    fields = msgspec.structs.asdict(read_event(pulled.event, pulled.attempt))
    return type_(**fields, subscription=name, receipt=pulled.receipt, _link=link)  # type: ignore[arg-type]  # as the face


def _describe(event: ReceivedEvent | AsyncReceivedEvent) -> str:
    return f"{type(event).__name__}({event.type} {event.id} about {event.subject}, attempt {event.attempt})"
