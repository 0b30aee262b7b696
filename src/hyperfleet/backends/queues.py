"""Queues of the in-process broker: the logic that all stores share. No SQL here."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

from hyperfleet.events.cloud_events import decode_event
from hyperfleet.messaging import (
    DeadLetter,
    OverdueQueue,
    QueuedMessage,
    Subscription,
    SubscriptionState,
    Topic,
    write_receipt,
)

UNANSWERED: Final = "delivered as often as allowed, and never acknowledged"
MAX_ERROR: Final = 2_000  # characters of an error that are kept with a dead letter


def queued_message(sequence: int, body: bytes, attempt: int, topic: Topic) -> QueuedMessage:
    """Make what is taken of a row."""
    return QueuedMessage(write_receipt(sequence, attempt), decode_event(body, topic), attempt)


def dead_letter(
    sequence: int, body: bytes, error: str, attempts: int, time: datetime | None, topic: Topic
) -> DeadLetter:
    """Make a dead letter of a row."""
    return DeadLetter(str(sequence), decode_event(body, topic), error, attempts, time)


def subscription_of(name: str, topic: Topic, tenants: Collection[str] | None) -> Subscription:
    """Make a subscription of a row."""
    return Subscription(name, topic, None if tenants is None else frozenset(tenants))


def overdue_queue(name: str, topic: Topic, tenants: Collection[str] | None, oldest: bytes, newest: int) -> OverdueQueue:
    """Make an overdue queue of a row."""
    return OverdueQueue(subscription_of(name, topic, tenants), decode_event(oldest, topic), newest)


def subscription_state(
    name: str,
    topic: Topic,
    tenants: Collection[str] | None,
    counts: tuple[int, int, int],
    oldest: bytes | None,
) -> SubscriptionState:
    """Make the state of a subscription of a row; `oldest` is the body of its oldest message."""
    subscription = subscription_of(name, topic, tenants)
    time = None if oldest is None else decode_event(oldest, topic).time
    return SubscriptionState(subscription, *counts, time)
