"""Google Pub/Sub, besides the contract of brokers: what is made at the service, and what happens when it is away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final

import pytest
from google.pubsub_v1.types import PubsubMessage

from hyperfleet.backends.google_pubsub import PubSubBroker
from hyperfleet.backends.google_pubsub_options import PubSubOptions
from hyperfleet.backends.google_pubsub_service import EMULATOR, PubSubMissing, PubSubService
from hyperfleet.errors import BrokerUnavailable
from hyperfleet.events.cloud_events import decode_event
from hyperfleet.messaging import Subscription
from tests.contract.brokers import RETRY, consuming, eventually, message, messages, take, take_ids
from tests.contract.pubsub_brokers import PubSubBrokers
from tests.pubsub import PubSubServer

pytestmark = pytest.mark.anyio

_DNS: Final = Subscription("dns")
_NAME: Final = "hyperfleet.cluster.events-dns"


@pytest.fixture
async def brokers(pubsub_address: str, anyio_backend: str) -> AsyncIterator[PubSubBrokers]:
    """Give brokers of a new project."""
    found = PubSubBrokers(pubsub_address)
    yield found
    await found.close()


@pytest.fixture
async def own_brokers(pubsub_server: PubSubServer, anyio_backend: str) -> AsyncIterator[PubSubBrokers]:
    """Give brokers on the test's own server."""
    found = PubSubBrokers(pubsub_server.address)
    yield found
    await found.close()


def service_of(broker: PubSubBroker) -> PubSubService:
    """Return the service without the broker."""
    return PubSubService(broker.options)


async def test_what_is_made_at_the_service(brokers: PubSubBrokers) -> None:
    broker = await brokers.connect_with(ack_deadline=timedelta(seconds=30))
    await broker.subscribe(Subscription("dns", tenants=frozenset({"acme"})))
    service, project = service_of(broker), f"projects/{broker.options.project}"
    found = await service.find_subscription(f"{project}/subscriptions/{_NAME}")
    dead = await service.find_subscription(f"{project}/subscriptions/{_NAME}-dlq")
    await service.close()
    assert found is not None
    assert dead is not None
    assert found.topic == f"{project}/topics/hyperfleet.cluster.events"
    assert found.enable_message_ordering
    assert found.ack_deadline_seconds == 30
    assert found.retry_policy.minimum_backoff == found.retry_policy.maximum_backoff == RETRY.interval
    assert found.dead_letter_policy.dead_letter_topic == dead.topic == f"{project}/topics/{_NAME}-dlq"
    assert found.dead_letter_policy.max_delivery_attempts == 5
    assert 'attributes.tenant = "acme"' in found.filter
    assert "expiration_policy" in found
    assert not found.expiration_policy.ttl, "it never expires"
    assert dead.message_retention_duration == timedelta(days=7)


async def test_the_text_is_a_cloud_event_for_consumers_of_others(brokers: PubSubBrokers) -> None:
    broker = await brokers.connect()
    await broker.subscribe(_DNS)
    await broker.publish([message("1")])
    service = service_of(broker)
    (received,) = await service.pull(broker.options.subscription_path(_NAME), 10)
    await service.close()
    assert decode_event(received.message.data, "clusterEvents") == message("1")
    assert received.message.ordering_key == "cls-1"


async def test_a_text_that_is_no_event_is_a_dead_letter_at_once(brokers: PubSubBrokers) -> None:
    broker = await brokers.connect()
    service = service_of(broker)
    async with consuming(broker, _DNS) as found:
        poison = PubsubMessage(data=b'{"specversion":"1.0"}')
        await service.publish(broker.options.topic_path("clusterEvents"), [poison])
        await broker.publish([message("1")])
        assert await take_ids(found, 1) == ["1"]
        await eventually(lambda: _has_letters(broker, 1))
    (letter,) = await broker.dead_letters(_DNS, 10)
    await service.close()
    assert (letter.error, letter.attempts) == ("not a CloudEvent: Object missing required field `id`", 1)
    assert b"specversion" in letter.message.data


@pytest.mark.parametrize("is_filtered", [True, False])
async def test_a_replayed_letter_is_for_its_own_subscription_only(brokers: PubSubBrokers, is_filtered: bool) -> None:
    """Also where a subscription was made without our filter."""
    broker = await brokers.connect()
    other = Subscription("other")
    if not is_filtered:
        await _subscribe_without_filter(broker, other)
    async with consuming(broker, _DNS) as found, consuming(broker, other) as others:
        await broker.publish([message("1")])
        assert await take_ids(others, 1) == ["1"]
        await (await take(found)).reject("a bug", is_poison=True)
        await eventually(lambda: _has_letters(broker, 1))
        assert await broker.replay_dead_letters(_DNS, 10) == 1
        assert await take_ids(found, 1) == ["1"]
        await broker.publish([message("2")])  # the same resource, so a replayed letter would come before it
        assert await take_ids(others, 1) == ["2"]


async def test_tenants_are_kept_apart_where_the_service_does_not_filter(brokers: PubSubBrokers) -> None:
    broker = await brokers.connect()
    scoped = Subscription("dns", tenants=frozenset({"acme"}))
    await _subscribe_without_filter(broker, scoped)
    async with consuming(broker, scoped) as found:
        await broker.publish([message("1", tenant="globex"), message("2", tenant=""), message("3")])
        assert await take_ids(found, 1) == ["3"]
    assert await broker.dead_letters(scoped, 10) == ()


async def test_nothing_is_made_where_that_is_not_allowed(brokers: PubSubBrokers) -> None:
    broker = await brokers.connect_with(creates_topics=False, creates_subscriptions=False)
    with pytest.raises(PubSubMissing, match=r"hyperfleet\.cluster\.events does not exist, and must not be created"):
        await broker.check()
    with pytest.raises(BrokerUnavailable, match=r"does not know it: topic .*hyperfleet\.cluster\.events"):
        await broker.publish([message("1")])
    with pytest.raises(PubSubMissing, match=rf"the subscription {_NAME} does not exist, and must not be created"):
        await broker.subscribe(_DNS)
    assert await broker.state_of(_DNS) is None
    assert await broker.dead_letters(_DNS, 10) == ()


async def test_a_subscription_without_its_topic_is_refused(brokers: PubSubBrokers) -> None:
    broker = await brokers.connect()
    await broker.subscribe(_DNS)
    service = service_of(broker)
    await service.delete_topic(broker.options.topic_path("clusterEvents"))
    await service.close()
    with pytest.raises(BrokerUnavailable, match=r"belongs to the topic _deleted-topic_.*: delete it"):
        await broker.subscribe(_DNS)


async def test_a_name_that_the_service_does_not_take_is_refused(brokers: PubSubBrokers) -> None:
    broker = await brokers.connect()
    with pytest.raises(BrokerUnavailable, match="is not a name of Google Pub/Sub"):
        await broker.subscribe(Subscription("a b"))


async def test_the_emulator_of_the_environment_is_used(pubsub_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EMULATOR, pubsub_address)
    broker = PubSubBroker(PubSubOptions(project="of-the-environment"))
    await broker.open()
    await broker.check()
    await broker.close()
    with pytest.raises(BrokerUnavailable, match="closed"):
        await broker.check()


async def test_duplicates_are_delivered(brokers: PubSubBrokers) -> None:
    """A relay that has crashed publishes again; consumers must expect it."""
    broker = await brokers.connect()
    async with consuming(broker, _DNS) as found:
        await broker.publish([message("1"), message("2")])
        await broker.publish([message("1"), message("2")])
        assert await take_ids(found, 4) == ["1", "2", "1", "2"]


async def test_what_a_block_did_not_answer_is_given_back_at_once(brokers: PubSubBrokers) -> None:
    broker = await brokers.connect_with(ack_deadline=timedelta(seconds=600))
    async with consuming(broker, _DNS) as found:
        await broker.publish(messages(3))
        await take_ids(found, 1)
        await take(found)
    async with consuming(broker, _DNS) as found:
        assert len(set(await take_ids(found, 2))) == 2


async def test_after_an_outage_ordering_keys_are_published_again(
    pubsub_server: PubSubServer, own_brokers: PubSubBrokers
) -> None:
    broker = await own_brokers.connect()
    sent = [message(str(number), partition_key=f"cls-{number % 3}") for number in range(9)]
    await broker.publish(sent)
    pubsub_server.stop()
    with pytest.raises(BrokerUnavailable, match="Google Pub/Sub answered UNAVAILABLE"):
        await broker.publish(sent)
    with pytest.raises(BrokerUnavailable):
        await broker.check()
    pubsub_server.start()
    await eventually(lambda: _is_reachable(broker))
    async with consuming(broker, _DNS) as found:
        await broker.publish(sent)
        ids = await take_ids(found, 9)
    for key in range(3):
        of_key = [int(each) for each in ids if int(each) % 3 == key]
        assert of_key == sorted(of_key), "nothing stays paused, and the order holds"


async def test_a_consumer_survives_a_server_that_lost_everything(
    pubsub_server: PubSubServer, own_brokers: PubSubBrokers
) -> None:
    broker = await own_brokers.connect()
    async with consuming(broker, _DNS) as found:
        await broker.publish(messages(2))
        held = [await take(found) for _ in range(2)]
        pubsub_server.stop()
        await held[0].ack()  # does not reach it, which is no error: it would be delivered again
        pubsub_server.start()
        await eventually(lambda: _is_subscribed(broker))
        await broker.publish(messages(2, start=3))
        assert sorted(await take_ids(found, 2)) == ["3", "4"]
        await held[1].reject("too late")


async def _is_reachable(broker: PubSubBroker) -> bool:
    try:
        await broker.check()
    except BrokerUnavailable:
        return False
    return True


async def _is_subscribed(broker: PubSubBroker) -> bool:
    try:
        return await broker.state_of(_DNS) is not None
    except BrokerUnavailable:
        return False


async def _has_letters(broker: PubSubBroker, count: int) -> bool:
    return len(await broker.dead_letters(_DNS, count + 1)) == count


async def _subscribe_without_filter(broker: PubSubBroker, subscription: Subscription) -> None:
    """Make a subscription as other programs do."""
    service, options = service_of(broker), broker.options
    await broker.subscribe(subscription)
    path = options.subscription_path(options.subscription_name(subscription.name, subscription.topic))
    found = await service.find_subscription(path)
    assert found is not None
    assert found.filter
    found.filter = ""
    await service.delete_subscription(path)
    await service.create_subscription(found)
    await service.close()
