"""The metrics of one process about events: the relay, the sentinel, webhooks.

Part of `measures.Measures`. The composition root of events connects them with what is measured. How far named readers
lag, in events, and what is in the queues are metrics of the store: `fleet_figures`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hyperfleet.services.instruments import QUICK, Counter, Gauge, Histogram


class PublishingRelay(Protocol):
    """What is measured of the relay."""

    on_published: Callable[[str, int], None] | None
    on_failure: Callable[[], None] | None

    @property
    def lag_seconds(self) -> float:
        """Return for how long the oldest unpublished change has waited."""
        ...

    @property
    def is_publishing(self) -> bool:
        """Tell whether this replica publishes."""
        ...


class PassingSentinel(Protocol):
    """What is measured of the sentinel of a server."""

    on_pass: Callable[[float], None] | None
    last_pass: float

    @property
    def due(self) -> int:
        """Return how many resources are due."""
        ...

    @property
    def lag_seconds(self) -> float:
        """Return for how long the first of them has been due."""
        ...


class PublishingLooks(Protocol):
    """What is measured of the server's part of sentinels."""

    on_published: Callable[[str, int], None] | None


class EventMeasures:
    """Every instrument of events."""

    def __init__(self) -> None:
        """Start at zero."""
        self.published = Counter(
            "hyperfleet_events_published_total", "Messages that the broker has taken over, by topic.", "topic"
        )
        self.unroutable = Counter(
            "hyperfleet_events_unroutable_total",
            "Messages that the broker has taken over and that no queue of it takes: their topic has no subscription.",
            "topic",
        )
        self.publish_failures = Counter(
            "hyperfleet_publish_failures_total",
            "Publications that the broker did not take, and checks that it did not answer; both are repeated.",
        )
        self.relay_lag = Gauge(
            "hyperfleet_relay_lag_seconds",
            "For how long the oldest unpublished change has waited; 0 on other replicas.",
        )
        self.relay_active = Gauge("hyperfleet_relay_active", "1 on the replica that publishes events.")
        self.sentinel_events = Counter(
            "hyperfleet_sentinel_events_published_total",
            "Events that sentinels published through this server, by rule; other: rules of sentinels elsewhere.",
            "rule",
        )
        self.sentinel_passes = Histogram(
            "hyperfleet_sentinel_pass_duration_seconds", "Duration of the passes of this server's sentinel.", QUICK
        )
        self.sentinel_due = Gauge("hyperfleet_sentinel_due", "Resources that sentinels should look at now.")
        self.sentinel_lag = Gauge(
            "hyperfleet_sentinel_lag_seconds", "For how long the first of the resources that are due has been due."
        )
        self.sentinel_last_pass = Gauge(
            "hyperfleet_sentinel_last_pass_timestamp_seconds",
            "When this server's sentinel last finished a pass; 0: it has not, or is switched off.",
        )
        self.webhook_messages = Counter(
            "hyperfleet_webhook_messages_total",
            "Messages of webhooks by result: sent, or failed and repeated.",
            *("webhook", "result"),
        )

    @property
    def counters(self) -> tuple[Counter, ...]:
        """Return all counters."""
        return (self.published, self.unroutable, self.publish_failures, self.sentinel_events, self.webhook_messages)

    @property
    def gauges(self) -> tuple[Gauge, ...]:
        """Return all gauges."""
        return (self.relay_lag, self.relay_active, self.sentinel_due, self.sentinel_lag, self.sentinel_last_pass)

    def observe_relay(self, relay: PublishingRelay) -> None:
        """Count what a relay publishes, and show its lag."""
        relay.on_published = lambda topic, count: self.published.add(topic, amount=count)
        relay.on_failure = self.publish_failures.add
        self.relay_lag.look = lambda: relay.lag_seconds
        self.relay_active.look = lambda: float(relay.is_publishing)

    def count_unroutable(self, topic: str, count: int) -> None:
        """Count messages that no queue of the broker takes."""
        self.unroutable.add(topic, amount=count)

    def observe_sentinel(self, sentinel: PassingSentinel, looking: PublishingLooks) -> None:
        """Count what sentinels publish, and show what is due."""
        looking.on_published = lambda rule, count: self.sentinel_events.add(rule, amount=count)
        sentinel.on_pass = self.sentinel_passes.observe
        self.sentinel_due.look = lambda: float(sentinel.due)
        self.sentinel_lag.look = lambda: sentinel.lag_seconds
        self.sentinel_last_pass.look = lambda: sentinel.last_pass
