"""A broker.yaml of the Go programs becomes options of Google Pub/Sub."""

from __future__ import annotations

from datetime import timedelta

from hyperfleet.backends.google_pubsub_options import PubSubOptions, find_problems
from hyperfleet.messaging import RetryPolicy, TopicNames
from hyperfleet.settings.broker_file import parse_broker_file
from hyperfleet.settings.google_options import make_pubsub_options

_TOPICS, _RETRY = TopicNames(cluster_events="clusters"), RetryPolicy(max_retries=7)


def test_without_a_file_the_defaults_hold() -> None:
    expected = PubSubOptions(project="fleet-1", topics=_TOPICS, retry=_RETRY)
    assert make_pubsub_options("fleet-1", _TOPICS, _RETRY) == expected
    assert expected.creates_topics
    assert expected.creates_subscriptions
    assert expected.is_ordered


def test_what_a_file_does_not_give_has_the_defaults() -> None:
    text = "broker:\n  type: googlepubsub\n  googlepubsub:\n    project_id: fleet-1\n    expiration_ttl: 0\n"
    section = parse_broker_file(text, "broker.yaml", {}).google
    made = make_pubsub_options("fleet-1", _TOPICS, _RETRY, section)
    assert made == PubSubOptions(project="fleet-1", topics=_TOPICS, retry=_RETRY)


def test_what_a_file_gives_is_used() -> None:
    text = """\
broker:
  type: googlepubsub
  googlepubsub:
    project_id: fleet-1
    ack_deadline_seconds: 30
    message_retention_duration: 1d
    expiration_ttl: 31d
    enable_message_ordering: false
    retry_min_backoff: 10s
    retry_max_backoff: 60s
    dead_letter_max_attempts: 20
    max_outstanding_messages: 100
    max_outstanding_bytes: 1000000
    create_topic_if_missing: false
    create_subscription_if_missing: false
"""
    section = parse_broker_file(text, "broker.yaml", {}).google
    made = make_pubsub_options("fleet-1", _TOPICS, _RETRY, section)
    assert made == PubSubOptions(
        project="fleet-1",
        topics=_TOPICS,
        retry=_RETRY,
        ack_deadline=timedelta(seconds=30),
        message_retention=timedelta(days=1),
        expiration=timedelta(days=31),
        is_ordered=False,
        min_backoff=timedelta(seconds=10),
        max_backoff=timedelta(seconds=60),
        max_attempts=20,
        max_outstanding_messages=100,
        max_outstanding_bytes=1_000_000,
        creates_topics=False,
        creates_subscriptions=False,
    )
    assert find_problems(made) == ()
    assert made.service_attempts == 20
