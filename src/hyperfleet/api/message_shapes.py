"""The answers about events, subscriptions and their messages."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from hyperfleet.api.wire import Time
from hyperfleet.messaging import Topic

Count = Annotated[int, Meta(ge=0)]
KnownCount = Count | None  # None: the broker does not tell


class ReconcileRequested(Struct, frozen=True, rename="camel"):
    """How many resources adapters are asked to look at again."""

    requested: Count
    position: Annotated[int, Meta(description="The position of the last event; 0: no resource matched.", ge=0)]


class SubscriptionAnswer(Struct, frozen=True, rename="camel"):
    """A subscription and what is in its queue. A count is null if the broker does not tell it."""

    name: str
    topic: Topic
    tenants: Annotated[tuple[str, ...] | None, Meta(description="Only messages of these tenants; null: of all.")]
    waiting: Annotated[
        KnownCount,
        Meta(description="Messages that can be pulled now; of RabbitMQ, with those that wait for their next attempt."),
    ]
    in_flight: Annotated[
        KnownCount,
        Meta(
            description="Messages that were pulled, or wait for their next attempt; only the in-process broker tells."
        ),
    ]
    dead_letters: Annotated[
        KnownCount, Meta(description="Messages that were given up; Google Pub/Sub does not tell how many.")
    ]
    oldest: Annotated[
        Time | UnsetType,
        Meta(
            description="The time of the oldest event that was not handled; absent: there is none, or the broker does "
            "not tell."
        ),
    ] = UNSET


class SubscriptionList(Struct, frozen=True):
    """All subscriptions that the caller may see."""

    items: tuple[SubscriptionAnswer, ...]


class PulledMessage(Struct, frozen=True):
    """A message that waits for an ack or nack."""

    receipt: Annotated[str, Meta(description="Names this delivery in `:ack` and `:nack`.")]
    attempt: Annotated[int, Meta(ge=1, description="How often it was delivered, this time included.")]
    event: Annotated[Raw, Meta(extra_json_schema={"type": "object"}, description="A CloudEvent 1.0.")]


class PulledMessages(Struct, frozen=True):
    """Messages, the oldest first."""

    messages: tuple[PulledMessage, ...]


class AcknowledgedMessages(Struct, frozen=True):
    """How many deliveries were answered in time; late ones were delivered again."""

    acknowledged: Count


class DeadLetterAnswer(Struct, frozen=True):
    """A message that was given up."""

    key: str
    error: str
    attempts: Annotated[int, Meta(ge=0, description="How often it was delivered; 0: the broker does not tell.")]
    event: Annotated[Raw, Meta(extra_json_schema={"type": "object"}, description="A CloudEvent 1.0.")]
    time: Annotated[Time | UnsetType, Meta(description="When it was given up.")] = UNSET


class DeadLetterList(Struct, frozen=True):
    """Dead letters of a subscription, the oldest first."""

    items: tuple[DeadLetterAnswer, ...]


class ReplayedMessages(Struct, frozen=True):
    """How many dead letters were put back."""

    replayed: Count


class PubSubAnswer(Struct, frozen=True, rename="camel"):
    """Where events go, and how far the relay is."""

    provider: Annotated[Literal["in-process", "rabbitmq", "gcp-pubsub"], Meta(description="Where events go.")]
    cluster_events: Annotated[str, Meta(description="The topic of events that ask to look at a resource again.")]
    status_updates: Annotated[str, Meta(description="The topic of transitions of phases and conditions.")]
    store_id: Annotated[str, Meta(description="Part of the source of every event.")]
    position: Annotated[int, Meta(description="Everything up to this position of the log is published.", ge=0)]
    head: Annotated[int, Meta(description="The last position of the log.", ge=0)]
    unpublished_since: Annotated[
        Time | UnsetType, Meta(description="The time of the oldest change that is not published; absent: none.")
    ] = UNSET
