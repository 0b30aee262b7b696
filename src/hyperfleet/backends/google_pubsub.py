"""The broker Google Pub/Sub. The composition root loads this only if it is asked for: it needs the extra `pubsub`.

A topic of ours is a topic there; a subscription has the name `{topic}-{subscription}`, and a topic and a subscription
`{topic}-{subscription}-dlq` for its dead letters. The ordering key of a message is its resource.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

from hyperfleet.backends.google_pubsub_options import PubSubOptions, find_limits, is_name
from hyperfleet.errors import BrokerUnavailable, MissingPackage
from hyperfleet.messaging import TOPICS, DeadLetter, Message, Subscription, SubscriptionState, Topic

try:
    from google.pubsub_v1.types import (
        DeadLetterPolicy,
        ExpirationPolicy,
        PubsubMessage,
        ReceivedMessage,
        RetryPolicy,
    )
    from google.pubsub_v1.types import Subscription as ServiceSubscription
except ModuleNotFoundError as error:
    raise MissingPackage("google-cloud-pubsub", "pubsub") from error

from hyperfleet.backends.google_pubsub_messages import (
    encode_message,
    make_replay,
    read_dead_letter,
    split_requests,
    write_filter,
)
from hyperfleet.backends.google_pubsub_receiving import PubSubDelivery, Receiver
from hyperfleet.backends.google_pubsub_service import PubSubMissing, PubSubService

_LOG: Final = logging.getLogger(__name__)
_DEAD_LETTER_DEADLINE: Final = timedelta(seconds=60)  # for a replay of one page, which takes a second
_LOOK_AHEAD: Final = 1_000  # dead letters that are looked at to find the oldest: the service has no order of them


class PubSubBroker:
    """Publishes to topics of a Google Cloud project and receives from subscriptions to them."""

    def __init__(self, options: PubSubOptions) -> None:
        """Use a project. Nothing is connected yet."""
        self.options = options
        self._service = PubSubService(options)

    async def open(self) -> None:
        """Look for credentials. The service need not be reachable."""
        for limit in find_limits(self.options):
            _LOG.warning("%s", limit)
        try:
            await self._service.connect()
        except BrokerUnavailable as error:
            _LOG.warning("nothing can be published yet: %s", error)

    async def close(self) -> None:
        """Finish what is running and disconnect."""
        await self._service.close()

    async def check(self) -> None:
        """Return if the topics can be reached; a missing one is created when it is first used, if that is allowed."""
        for topic in TOPICS:
            path = self.options.topic_path(topic)
            if not await self._service.has_topic(path) and not self.options.creates_topics:
                raise PubSubMissing(f"the topic {path} does not exist, and must not be created")

    async def publish(self, messages: Sequence[Message]) -> None:
        """Publish messages in order per topic. After an error publish all of them again: nothing stays paused."""
        queues: dict[Topic, list[PubsubMessage]] = {}
        for message in messages:
            encoded = encode_message(message, is_ordered=self.options.is_ordered)
            queues.setdefault(message.topic, []).append(encoded)
        results = await asyncio.gather(*(self._publish(*queue) for queue in queues.items()), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def subscribe(self, subscription: Subscription) -> None:
        """Create a subscription, unless there is one, which stays as it is."""
        name = self.options.subscription_name(subscription.name, subscription.topic)
        found = await self._service.find_subscription(self.options.subscription_path(name))
        if found is None:
            await self._create(subscription, name)
        else:
            self._look_at(found, subscription)

    async def unsubscribe(self, name: str, topic: Topic = "clusterEvents") -> bool:
        """Delete a subscription with everything in its queue, dead letters too; False: there was none."""
        dead = self.options.dead_letter_name(Subscription(name, topic))
        path = self.options.subscription_path(self.options.subscription_name(name, topic))
        was_there = await self._service.delete_subscription(path)
        await self._service.delete_subscription(self.options.subscription_path(dead))
        await self._service.delete_topic(self.options.named_topic_path(dead))
        return was_there

    @asynccontextmanager
    async def receive(
        self, subscription: Subscription, *, prefetch: int = 16
    ) -> AsyncIterator[AsyncIterator[PubSubDelivery]]:
        """Subscribe, and yield deliveries for the length of a block; those without an answer are given back."""
        await self.subscribe(subscription)
        receiver = Receiver(self._service, self.options, subscription, self.subscribe, prefetch)
        receiver.start()
        try:
            yield receiver.deliveries()
        finally:
            await receiver.stop()

    async def state_of(self, subscription: Subscription) -> SubscriptionState | None:
        """Return whether there is a subscription; how much waits is told by Google's monitoring only."""
        name = self.options.subscription_name(subscription.name, subscription.topic)
        if not is_name(self.options.dead_letter_name(subscription)):
            return None
        found = await self._service.find_subscription(self.options.subscription_path(name))
        return None if found is None else SubscriptionState(subscription)

    async def dead_letters(self, subscription: Subscription, limit: int) -> tuple[DeadLetter, ...]:
        """Return dead letters, the oldest first; they stay in the queue."""
        path = self._dead_letter_path(subscription)
        taken = await self._take_dead_letters(path, limit)
        await self._give_back(path, taken)
        return tuple(read_dead_letter(each, subscription.topic) for each in taken[:limit])

    async def replay_dead_letters(self, subscription: Subscription, limit: int) -> int:
        """Publish dead letters again, marked for their subscription only; return their number."""
        name = self.options.subscription_name(subscription.name, subscription.topic)
        path = self._dead_letter_path(subscription)
        taken = await self._take_dead_letters(path, limit)
        chosen = taken[:limit]
        await self._give_back(path, taken[limit:])
        messages = [make_replay(each.message, name, is_ordered=self.options.is_ordered) for each in chosen]
        await self._publish(subscription.topic, messages)
        await self._service.acknowledge(path, [each.ack_id for each in chosen])
        return len(chosen)

    async def _publish(self, topic: Topic, messages: Sequence[PubsubMessage]) -> None:
        """Publish messages of one topic, one request after the other: that keeps their order."""
        path = self.options.topic_path(topic)
        for request in split_requests(messages):
            try:
                await self._service.publish(path, request)
            except PubSubMissing:
                if not self.options.creates_topics:
                    raise
                await self._service.create_topic(path)
                await self._service.publish(path, request)

    async def _take_dead_letters(self, path: str, limit: int) -> list[ReceivedMessage]:
        """Take all dead letters, or enough of them; the oldest first."""
        enough = max(limit, _LOOK_AHEAD)
        taken: dict[str, ReceivedMessage] = {}  # by id: the service may send one twice
        try:
            while len(taken) < enough and (batch := await self._service.pull(path, enough - len(taken))):
                taken.update({each.message.message_id: each for each in batch})
        except PubSubMissing:
            return []
        return sorted(taken.values(), key=lambda each: each.message.publish_time)

    async def _give_back(self, path: str, taken: Sequence[ReceivedMessage]) -> None:
        await self._service.set_deadline(path, [each.ack_id for each in taken], timedelta())

    def _dead_letter_path(self, subscription: Subscription) -> str:
        return self.options.subscription_path(self.options.dead_letter_name(subscription))

    async def _create(self, subscription: Subscription, name: str) -> None:
        options, dead = self.options, self.options.dead_letter_name(subscription)
        if not is_name(dead):
            raise BrokerUnavailable(f"{dead!r} is not a name of Google Pub/Sub: choose another one")
        if not options.creates_subscriptions:
            raise PubSubMissing(f"the subscription {name} does not exist, and must not be created")
        if options.creates_topics:
            await self._service.create_topic(options.topic_path(subscription.topic))
            await self._service.create_topic(options.named_topic_path(dead))
        await self._service.create_subscription(self._describe_dead_letters(dead))
        await self._service.create_subscription(self._describe(subscription, name))

    def _describe(self, subscription: Subscription, name: str) -> ServiceSubscription:
        options = self.options
        shortest, longest = options.backoffs
        return ServiceSubscription(
            name=options.subscription_path(name),
            topic=options.topic_path(subscription.topic),
            ack_deadline_seconds=int(options.ack_deadline.total_seconds()),
            message_retention_duration=options.message_retention,
            enable_message_ordering=options.is_ordered,
            filter=write_filter(subscription, name),
            retry_policy=RetryPolicy(minimum_backoff=shortest, maximum_backoff=longest),
            expiration_policy=_write_expiration(options.expiration),
            dead_letter_policy=DeadLetterPolicy(
                dead_letter_topic=options.named_topic_path(options.dead_letter_name(subscription)),
                max_delivery_attempts=options.service_attempts,
            ),
        )

    def _describe_dead_letters(self, name: str) -> ServiceSubscription:
        return ServiceSubscription(
            name=self.options.subscription_path(name),
            topic=self.options.named_topic_path(name),
            ack_deadline_seconds=int(_DEAD_LETTER_DEADLINE.total_seconds()),
            message_retention_duration=self.options.dead_letter_retention,
            expiration_policy=_write_expiration(None),
        )

    def _look_at(self, found: ServiceSubscription, subscription: Subscription) -> None:
        """Refuse a subscription to another topic, or to one that was deleted; warn if attempts are not counted."""
        expected = self.options.topic_path(subscription.topic)
        if found.topic != expected:
            raise BrokerUnavailable(f"{found.name} belongs to the topic {found.topic}, not to {expected}: delete it")
        if not found.dead_letter_policy.dead_letter_topic:
            _LOG.warning(
                "%s has no dead letter policy, so Google Pub/Sub does not count attempts: "
                "messages that fail are delivered again for ever",
                found.name,
            )


def _write_expiration(after: timedelta | None) -> ExpirationPolicy:
    """Return when an unused subscription is deleted. A policy without a time means never; no policy means 31 days."""
    return ExpirationPolicy() if after is None else ExpirationPolicy(ttl=after)
