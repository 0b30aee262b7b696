"""The options of Google Pub/Sub: from the project of the settings, or from a broker.yaml of the Go programs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hyperfleet.backends.google_pubsub_options import PubSubOptions
from hyperfleet.messaging import RetryPolicy, TopicNames
from hyperfleet.settings.broker_sections import GoogleSection


def make_pubsub_options(
    project: str, topics: TopicNames, retry: RetryPolicy, section: GoogleSection | None = None
) -> PubSubOptions:
    """Return the options; what a broker.yaml does not give has our defaults, which create what is missing."""
    given = {} if section is None else _read(section)
    return PubSubOptions(project=project, topics=topics, retry=retry, **given)


def _read(section: GoogleSection) -> dict[str, Any]:
    deadline = section.ack_deadline_seconds
    found = {
        "ack_deadline": None if deadline is None else timedelta(seconds=deadline),
        "message_retention": section.message_retention_duration,
        "expiration": section.expiration_ttl or None,  # 0 means never, as None does
        "is_ordered": section.enable_message_ordering,
        "min_backoff": section.retry_min_backoff,
        "max_backoff": section.retry_max_backoff,
        "max_attempts": section.dead_letter_max_attempts,
        "max_outstanding_messages": section.max_outstanding_messages,
        "max_outstanding_bytes": section.max_outstanding_bytes,
        "creates_topics": section.create_topic_if_missing,
        "creates_subscriptions": section.create_subscription_if_missing,
    }
    return {name: value for name, value in found.items() if value is not None}
