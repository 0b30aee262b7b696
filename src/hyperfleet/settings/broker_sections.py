"""The shape of a broker.yaml of the Go programs, with the limits that Google sets. `broker_file` reads it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from hyperfleet.documents.durations import Duration
from hyperfleet.settings.endpoints import conceal

BrokerType = Literal["rabbitmq", "googlepubsub"]
ExchangeType = Literal["direct", "fanout", "topic", "headers"]
_Count = Annotated[int, Meta(ge=1, le=1_000_000)]

_DAY: Final = timedelta(days=1)


class RabbitSection(Struct, frozen=True):
    """`broker.rabbitmq`; empty texts and 0 mean: not given."""

    url: str = ""
    exchange: str = ""
    exchange_type: ExchangeType = "fanout"  # the default of the Go programs, whose charts set `topic`
    queue: str = ""
    routing_key: str = ""
    prefetch_count: Annotated[int, Meta(ge=0, le=65_535)] = 0
    prefetch_size: int = 0
    consumer_tag: str = ""
    publisher_confirm: bool = False

    def __repr__(self) -> str:
        """Write it without the password: tracebacks and logs show this."""
        return f"RabbitSection({conceal(self.url)!r})"


class GoogleSection(Struct, frozen=True):
    """`broker.googlepubsub`; None means: not given."""

    project_id: str = ""
    ack_deadline_seconds: Annotated[int, Meta(ge=10, le=600)] | None = None
    message_retention_duration: Duration | None = None
    expiration_ttl: Duration | None = None  # 0: never
    enable_message_ordering: bool | None = None
    retry_min_backoff: Duration | None = None
    retry_max_backoff: Duration | None = None
    dead_letter_topic: str = ""
    dead_letter_max_attempts: Annotated[int, Meta(ge=5, le=100)] | None = None
    topic_retention_duration: Duration | None = None
    max_outstanding_messages: _Count | None = None
    max_outstanding_bytes: Annotated[int, Meta(ge=1)] | None = None
    num_goroutines: _Count | None = None
    create_topic_if_missing: bool | None = None
    create_subscription_if_missing: bool | None = None


class BrokerSection(Struct, frozen=True):
    """`broker`."""

    type: BrokerType
    rabbitmq: RabbitSection = RabbitSection()
    googlepubsub: GoogleSection = GoogleSection()


class SubscriberSection(Struct, frozen=True):
    """`subscriber`."""

    parallelism: Annotated[int, Meta(ge=1, le=10_000)] = 1


class BrokerDocument(Struct, frozen=True):
    """The whole file."""

    broker: BrokerSection
    subscriber: SubscriberSection = SubscriberSection()
    log_config: bool = False


def check_google(google: GoogleSection) -> Iterator[tuple[str, str]]:
    """Yield the keys whose values Google refuses, and why."""
    retention, expiration = google.message_retention_duration, google.expiration_ttl
    low, high = google.retry_min_backoff, google.retry_max_backoff
    if retention is not None and not timedelta(minutes=10) <= retention <= 31 * _DAY:
        yield "message_retention_duration", "expected 10m to 31d"
    if expiration and expiration < max(_DAY, retention or _DAY):
        yield "expiration_ttl", "expected 0, or at least 1d and message_retention_duration"
    for key, value in (("retry_min_backoff", low), ("retry_max_backoff", high)):
        if value is not None and value > timedelta(minutes=10):
            yield key, "expected 0s to 600s"
    if low is not None and high is not None and low > high:
        yield "retry_max_backoff", "expected at least retry_min_backoff"
