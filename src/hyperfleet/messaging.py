"""The port of brokers, and the values that cross it: messages, subscriptions, deliveries.

The relay publishes through it, workers receive through it. The in-process broker keeps its queues in the store;
RabbitMQ and Google Pub/Sub keep their own. All of them pass the same contract tests.

A message is delivered at least once to every subscription of its topic that may see its tenant. Publishing is in order
per resource. Consumers must not depend on order: they read the resource, and never act on an older generation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal, Protocol

from msgspec import Meta, Struct

Provider = Literal["in-process", "rabbitmq", "gcp-pubsub"]
Topic = Literal["clusterEvents", "statusUpdates"]
TOPICS: Final[tuple[Topic, ...]] = ("clusterEvents", "statusUpdates")


# What both RabbitMQ and Pub/Sub allow; short enough for the names of queues that are made of it.
TopicName = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z][A-Za-z0-9._~+-]{2,149}$",
        extra={"expected": "the name of a topic such as hyperfleet.cluster.events"},
    ),
]


class TopicNames(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The names of the topics at the broker."""

    cluster_events: Annotated[TopicName, Meta(description="Look at a resource again")] = "hyperfleet.cluster.events"
    status_updates: Annotated[TopicName, Meta(description="The status of a resource changed")] = (
        "hyperfleet.status.updates"
    )

    def name_of(self, topic: Topic) -> str:
        """Return the name of a topic at the broker."""
        return self.cluster_events if topic == "clusterEvents" else self.status_updates

    def topic_of(self, name: str) -> Topic | None:
        """Return the topic that has a name at the broker."""
        return next((topic for topic in TOPICS if self.name_of(topic) == name), None)


class Message(Struct, frozen=True):
    """One CloudEvent. `data` is JSON."""

    topic: Topic
    id: str
    source: str
    type: str
    subject: str
    time: datetime | None  # None: the sender gives none, as the Go sentinel
    tenant: str
    partition_key: str  # the id of the resource: messages with the same key are published in order
    data: bytes
    traceparent: str = ""
    is_for_all: bool = False  # every subscription of the topic gets it, whatever its tenants; it names no resource


class RetryPolicy(Struct, frozen=True):
    """How often a message that was not handled is delivered again, and after how long; then it is a dead letter."""

    max_retries: int = 3
    interval: timedelta = timedelta(seconds=30)


class PubSubBlock(Struct, frozen=True):
    """The block `pubsub` of a policy file."""

    provider: Provider | None = None  # None: whichever the settings give an address of, or in process
    topics: TopicNames = TopicNames()
    retry: RetryPolicy = RetryPolicy()


class Subscription(Struct, frozen=True):
    """A named queue of the messages of one topic. Consumers of the same name share the messages."""

    name: str
    topic: Topic = "clusterEvents"
    tenants: frozenset[str] | None = None  # only messages of these tenants; None: of all

    def admits(self, message: Message) -> bool:
        """Tell whether a message belongs into this queue."""
        is_visible = self.tenants is None or message.is_for_all or message.tenant in self.tenants
        return message.topic == self.topic and is_visible


class SubscriptionState(Struct, frozen=True):
    """A subscription and what is in its queue; None: the broker does not tell."""

    subscription: Subscription
    waiting: int | None = None
    in_flight: int | None = None
    dead: int | None = None
    oldest: datetime | None = None  # time of the oldest message that was not handled


class DeadLetter(Struct, frozen=True):
    """A message that was given up, and the error of the last attempt."""

    key: str  # names it in the queue of dead letters
    message: Message
    error: str
    attempts: int
    time: datetime | None = None  # when it was given up


class QueuedMessage(Struct, frozen=True):
    """A message that was taken from a queue of the store. The receipt names this attempt."""

    receipt: str
    message: Message
    attempt: int


def write_receipt(sequence: int, attempt: int) -> str:
    """Return the receipt of one attempt."""
    return f"{sequence}.{attempt}"


def read_receipts(receipts: Sequence[str]) -> list[tuple[int, int]]:
    """Return the messages and attempts of receipts; leave out what is not a receipt."""
    return [read for receipt in receipts if (read := read_receipt(receipt)) is not None]


def read_receipt(receipt: str) -> tuple[int, int] | None:
    """Return the message and the attempt of a receipt; None: it is not one."""
    sequence, _, attempt = receipt.partition(".")
    is_valid = sequence.isascii() and sequence.isdigit() and attempt.isascii() and attempt.isdigit()
    if not is_valid or len(sequence) > 18 or len(attempt) > 9:
        return None
    return int(sequence), int(attempt)


class OverdueQueue(Struct, frozen=True):
    """A queue whose oldest message has waited for too long, and the number of its newest message."""

    subscription: Subscription
    oldest: Message
    newest: int


class MessageQueues(Protocol):
    """The queues of the in-process broker, one per subscription, in the store.

    Subscriptions and messages are durable. That a message was taken, acknowledged or rejected is not: a crash of the
    database may lose the last of that, and the message is delivered again.
    """

    async def subscribe(self, subscription: Subscription) -> bool:
        """Add a subscription; False: one of that name exists, and keeps its topic and tenants."""
        ...

    async def unsubscribe(self, name: str) -> bool:
        """Delete a subscription with its queue; False: there was none."""
        ...

    async def find(self, name: str) -> Subscription | None:
        """Return a subscription; None: there is none."""
        ...

    async def subscriptions(self, name: str | None = None) -> tuple[SubscriptionState, ...]:
        """Return all subscriptions by name, or one, and what is in their queues: this counts every message."""
        ...

    async def enqueue(self, messages: Sequence[Message], only: str | None = None) -> None:
        """Add messages to the queue of every subscription that admits them, or to one of these queues."""
        ...

    async def overdue(self, max_lag: timedelta) -> tuple[OverdueQueue, ...]:
        """Return queues whose oldest message could have been taken for longer than `max_lag`."""
        ...

    async def discard(self, name: str, upto: int, limit: int) -> int:
        """Delete messages that are not dead letters, up to a number; at most `limit`, the oldest first."""
        ...

    async def take(self, name: str, limit: int, deadline: timedelta, retries: int) -> tuple[QueuedMessage, ...]:
        """Take the oldest messages that wait; without an answer they wait again after `deadline`.

        A message that was delivered `retries` times again without an answer becomes a dead letter.
        """
        ...

    async def ack(self, name: str, receipts: Sequence[str]) -> int:
        """Delete messages that were handled; return the number of those whose receipt is still valid."""
        ...

    async def nack(self, name: str, receipts: Sequence[str], error: str, delay: timedelta | None) -> int:
        """Let messages wait for `delay`; None: they become dead letters. Return the number of valid receipts."""
        ...

    async def dead_letters(self, name: str, limit: int) -> tuple[DeadLetter, ...]:
        """Return dead letters, the oldest first."""
        ...

    async def replay_dead_letters(self, name: str, limit: int) -> int:
        """Put dead letters back, the oldest first; return their number."""
        ...


class Delivery(Protocol):
    """A message that was delivered and waits for `ack` or `reject`. Without either it is delivered again."""

    @property
    def message(self) -> Message:
        """Return the message."""
        ...

    @property
    def attempt(self) -> int:
        """Return how often it was delivered, this time included."""
        ...

    async def ack(self) -> None:
        """Remove the message from the queue: it was handled."""
        ...

    async def reject(self, error: str, *, is_poison: bool = False) -> None:
        """Deliver it again later; after the last attempt, or if it is poison, make it a dead letter with the error."""
        ...


class Broker(Protocol):
    """Takes messages over from the relay and delivers them. Raises `BrokerUnavailable` when it cannot be reached."""

    async def open(self) -> None:
        """Connect; may return before the broker can be reached, `publish` waits or fails then."""
        ...

    async def close(self) -> None:
        """Finish what is running and disconnect."""
        ...

    async def check(self) -> None:
        """Return if messages can be published now."""
        ...

    async def publish(self, messages: Sequence[Message]) -> None:
        """Publish messages in their order; return when the broker has taken all of them over durably."""
        ...

    async def subscribe(self, subscription: Subscription) -> None:
        """Create the queue of a subscription; from now on it gets messages, whether somebody receives or not."""
        ...

    async def unsubscribe(self, name: str, topic: Topic = "clusterEvents") -> bool:
        """Delete a subscription with everything in its queue; False: there was none."""
        ...

    def receive(
        self, subscription: Subscription, *, prefetch: int = 16
    ) -> AbstractAsyncContextManager[AsyncIterator[Delivery]]:
        """Subscribe, and yield deliveries for the length of a block; at most `prefetch` wait for an ack at once."""
        ...

    async def state_of(self, subscription: Subscription) -> SubscriptionState | None:
        """Return what is in the queue of a subscription; None: there is no such subscription."""
        ...

    async def dead_letters(self, subscription: Subscription, limit: int) -> tuple[DeadLetter, ...]:
        """Return dead letters, the oldest first; they stay in the queue."""
        ...

    async def replay_dead_letters(self, subscription: Subscription, limit: int) -> int:
        """Put dead letters back into the queue of their subscription; return their number."""
        ...
