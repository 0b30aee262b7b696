"""Events and subscriptions, as the server answers them."""

from __future__ import annotations

from datetime import datetime

from msgspec import Raw, Struct, field

from hyperfleet.client.answers.document import ApiDocument
from hyperfleet.client.errors import UnexpectedAnswer
from hyperfleet.events.cloud_events import MalformedEvent, decode_event
from hyperfleet.events.received import Event, event_of


class PubSub(ApiDocument, frozen=True, rename="camel", dict=True):
    """Where events go, and how far the relay is."""

    provider: str = ""
    cluster_events: str = ""  # the name of the topic at the broker
    status_updates: str = ""
    store_id: str = ""
    position: int = 0  # everything up to here is published
    head: int = 0
    unpublished_since: datetime | None = None


class Subscription(ApiDocument, frozen=True, rename="camel", dict=True):
    """A subscription and what is in its queue; a count is None if the broker does not tell it."""

    name: str = ""
    topic: str = ""
    tenants: tuple[str, ...] | None = None  # None: messages of all tenants
    waiting: int | None = None
    in_flight: int | None = None
    dead_letters: int | None = None
    oldest: datetime | None = None


class DeadLetter(ApiDocument, frozen=True, dict=True):
    """An event that was given up, and the error of the last attempt."""

    key: str = ""
    error: str = ""
    attempts: int = 0
    event_json: Raw = field(default_factory=Raw, name="event")
    time: datetime | None = None

    @property
    def event(self) -> Event:
        """Return the event."""
        return read_event(self.event_json, self.attempts)


class PulledMessage(Struct, frozen=True):
    """A message that was pulled and waits for its answer."""

    receipt: str = ""
    attempt: int = 1
    event: Raw = field(default_factory=Raw)


class PulledMessages(ApiDocument, frozen=True, dict=True):
    """Messages, the oldest first."""

    messages: tuple[PulledMessage, ...] = ()


class AcknowledgedMessages(ApiDocument, frozen=True, dict=True):
    """How many deliveries were answered in time."""

    acknowledged: int = 0


class ReplayedMessages(ApiDocument, frozen=True, dict=True):
    """How many dead letters were put back."""

    replayed: int = 0


def read_event(text: Raw, attempt: int) -> Event:
    """Read a CloudEvent."""
    try:
        return event_of(decode_event(bytes(text), "clusterEvents"), attempt)
    except MalformedEvent as error:
        raise UnexpectedAnswer(f"what the server sent is not an event: {error}") from error
