"""How Google Pub/Sub is used, and what it allows. The settings fill this in; it needs no package of Google's."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from msgspec import Struct

from hyperfleet.messaging import TOPICS, RetryPolicy, Subscription, Topic, TopicNames

# What the service allows.
_ACK_DEADLINES: Final = (timedelta(seconds=10), timedelta(seconds=600))
_RETENTIONS: Final = (timedelta(minutes=10), timedelta(days=31))
_SHORTEST_EXPIRATION: Final = timedelta(days=1)
_LONGEST_BACKOFF: Final = timedelta(seconds=600)
_FEWEST_ATTEMPTS, MOST_ATTEMPTS = 5, 100
_NAME: Final = re.compile(r"(?!goog)[A-Za-z][A-Za-z0-9\-_.~+%]{2,254}")
_PROJECT: Final = re.compile(r"[a-z][a-z0-9.:\-]{2,98}[a-z0-9]")  # also those of a domain, as example.com:fleet


class PubSubOptions(Struct, frozen=True, kw_only=True):
    """The project, the names, and how subscriptions are made. Those that exist already are used as they are."""

    project: str
    topics: TopicNames = TopicNames()
    retry: RetryPolicy = RetryPolicy()
    emulator: str | None = None  # HOST:PORT without TLS; None: what PUBSUB_EMULATOR_HOST says, else the service
    ack_deadline: timedelta = timedelta(seconds=60)  # extended while a delivery is handled
    max_extension: timedelta = timedelta(hours=1)  # a delivery that nobody answers is given to another consumer then
    message_retention: timedelta = timedelta(days=7)  # of messages that wait; as long as the service keeps them unasked
    dead_letter_retention: timedelta = timedelta(days=31)  # the most that the service allows: people look at them late
    expiration: timedelta | None = None  # unused subscriptions are deleted after this long; None: never
    is_ordered: bool = True
    min_backoff: timedelta | None = None  # None: the interval of `retry`
    max_backoff: timedelta | None = None  # None: the interval of `retry`
    max_attempts: int | None = None  # deliveries before the service itself makes a dead letter; None: from `retry`
    max_outstanding_messages: int | None = None  # an upper limit for the prefetch of consumers
    max_outstanding_bytes: int = 64 * 1024 * 1024  # at a consumer
    creates_topics: bool = True
    creates_subscriptions: bool = True
    publish_timeout: timedelta = timedelta(seconds=10)  # for each request; then the relay tries again

    @property
    def last_attempt(self) -> int:
        """Return the attempt after which a consumer of ours makes a dead letter."""
        return min(self.retry.max_retries + 1, MOST_ATTEMPTS)

    @property
    def service_attempts(self) -> int:
        """Return after how many deliveries the service makes a dead letter: later than our consumers.

        It does not know the error, so it is the safety net for messages that no consumer of ours has answered.
        """
        return min(max(self.max_attempts or 0, self.last_attempt + 1, _FEWEST_ATTEMPTS), MOST_ATTEMPTS)

    @property
    def backoffs(self) -> tuple[timedelta, timedelta]:
        """Return the shortest and the longest time before a message is delivered again."""
        shortest = min(self.retry.interval if self.min_backoff is None else self.min_backoff, _LONGEST_BACKOFF)
        longest = min(self.retry.interval if self.max_backoff is None else self.max_backoff, _LONGEST_BACKOFF)
        return shortest, max(shortest, longest)

    def topic_path(self, topic: Topic) -> str:
        """Return the full name of a topic."""
        return self.named_topic_path(self.topics.name_of(topic))

    def named_topic_path(self, name: str) -> str:
        """Return the full name of the topic with a name."""
        return f"projects/{self.project}/topics/{name}"

    def subscription_path(self, name: str) -> str:
        """Return the full name of the subscription with a name at the service."""
        return f"projects/{self.project}/subscriptions/{name}"

    def subscription_name(self, name: str, topic: Topic) -> str:
        """Return the name that a subscription has at the service."""
        return f"{self.topics.name_of(topic)}-{name}"

    def dead_letter_name(self, subscription: Subscription) -> str:
        """Return the name of the topic for the dead letters of a subscription, and of the subscription to it."""
        return f"{self.subscription_name(subscription.name, subscription.topic)}-dlq"


def find_problems(options: PubSubOptions) -> tuple[str, ...]:
    """Return everything that the service would not accept."""
    shortest, longest = options.min_backoff or timedelta(), options.max_backoff or _LONGEST_BACKOFF
    allowed = {
        f"the project {options.project!r} is not the id of a project": _PROJECT.fullmatch(options.project),
        "the ack deadline must be 10s to 600s": _is_within(options.ack_deadline, _ACK_DEADLINES),
        "messages must be kept for 10m to 31d": _is_within(options.message_retention, _RETENTIONS),
        "dead letters must be kept for 10m to 31d": _is_within(options.dead_letter_retention, _RETENTIONS),
        "the expiration of subscriptions must be at least 1d, and as long as messages are kept": (
            options.expiration is None or options.expiration >= max(_SHORTEST_EXPIRATION, options.message_retention)
        ),
        "back-offs must be 0s to 600s, the shortest first": timedelta() <= shortest <= longest <= _LONGEST_BACKOFF,
        f"dead letters are made after {_FEWEST_ATTEMPTS} to {MOST_ATTEMPTS} attempts": (
            options.max_attempts is None or _FEWEST_ATTEMPTS <= options.max_attempts <= MOST_ATTEMPTS
        ),
        "at least one message and one byte must be outstanding": (
            (options.max_outstanding_messages is None or options.max_outstanding_messages > 0)
            and options.max_outstanding_bytes > 0
        ),
    }
    names = {
        f"the topic {name!r} is not a name of Google Pub/Sub": _NAME.fullmatch(name)
        for name in map(options.topics.name_of, TOPICS)
    }
    return tuple(problem for problem, is_fine in {**allowed, **names}.items() if not is_fine)


def find_limits(options: PubSubOptions) -> tuple[str, ...]:
    """Return what is asked for and the service cannot do; it does what comes nearest."""
    retry = options.retry
    limits = {
        f"Google Pub/Sub delivers at most {MOST_ATTEMPTS} times, not {retry.max_retries + 1}": (
            retry.max_retries >= MOST_ATTEMPTS
        ),
        f"Google Pub/Sub delivers again after at most 600s, not {retry.interval.total_seconds():g}s": (
            retry.interval > _LONGEST_BACKOFF
        ),
    }
    return tuple(limit for limit, is_exceeded in limits.items() if is_exceeded)


def is_name(name: str) -> bool:
    """Tell whether the service accepts the name of a topic or a subscription."""
    return _NAME.fullmatch(name) is not None


def _is_within(value: timedelta, bounds: tuple[timedelta, timedelta]) -> bool:
    return bounds[0] <= value <= bounds[1]
