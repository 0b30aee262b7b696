"""Brokers: the same on all of them."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from hyperfleet.backends.google_pubsub import PubSubBroker
from hyperfleet.messaging import Broker, Delivery, Subscription
from tests.contract.brokers import RETRY, Brokers, consuming, eventually, message, messages, take, take_ids

pytestmark = pytest.mark.anyio

_DNS = Subscription("dns")


async def test_every_subscription_of_the_topic_gets_every_message(broker: Broker) -> None:
    subscriptions = [_DNS, Subscription("validation"), Subscription("log", "statusUpdates")]
    for subscription in subscriptions:
        await broker.subscribe(subscription)
    status = message("2-s", topic="statusUpdates", type="io.hyperfleet.cluster.status.changed")
    await broker.publish([message("1"), status, message("2")])
    for subscription, expected in zip(subscriptions, (["1", "2"], ["1", "2"], ["2-s"]), strict=True):
        async with consuming(broker, subscription) as found:
            assert await take_ids(found, len(expected)) == expected


async def test_a_message_arrives_as_it_was_sent(broker: Broker) -> None:
    sent = [
        message("1", traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        message("2", time=None, subject="", tenant="", data=b"{}"),
        message("3", tenant="\xfcn\xef", data=b'{"a":[1,2.5,null,"\xc3\xbc"]}'),
        message("4", type="io.hyperfleet.gap", tenant="", partition_key="gap", is_for_all=True),
    ]
    async with consuming(broker, _DNS) as found:
        await broker.publish(sent)
        received = []
        for _ in sent:
            delivery = await take(found)
            assert delivery.attempt == 1
            await delivery.ack()
            received.append(replace(delivery.message, is_for_all=False))  # that matters only before it is in a queue
    expected = [replace(each, is_for_all=False) for each in sent]
    assert sorted(received, key=lambda each: each.id) == expected, "messages of different resources have no order"


async def test_a_message_without_a_subscription_is_no_error(broker: Broker) -> None:
    await broker.check()
    await broker.publish([])
    await broker.publish([message("1")])


async def test_messages_wait_for_the_first_consumer(brokers: Brokers, broker: Broker) -> None:
    await broker.subscribe(_DNS)
    await broker.subscribe(_DNS)
    await broker.publish(messages(3))
    async with consuming(await brokers.connect(), _DNS) as found:
        assert sorted(await take_ids(found, 3)) == ["1", "2", "3"]


async def test_consumers_of_one_name_share_the_messages(brokers: Brokers, broker: Broker) -> None:
    one, two = await brokers.connect(), await brokers.connect()
    async with consuming(one, _DNS, prefetch=1) as first, consuming(two, _DNS, prefetch=1) as second:
        await broker.publish(messages(20))
        held = [await take(first), await take(second)]
        assert held[0].message.id != held[1].message.id
        await asyncio.gather(*(delivery.ack() for delivery in held))
        ids = [delivery.message.id for delivery in held]
        while len(ids) < 20:
            ready = await _first_of(first, second)
            await ready.ack()
            ids.append(ready.message.id)
    assert sorted(ids, key=int) == [each.id for each in messages(20)], "each is delivered to one of them"


async def test_messages_of_a_resource_are_in_order(broker: Broker) -> None:
    """Published in several batches, each with several resources."""
    sent = [message(str(number), partition_key=f"cls-{number % 7}") for number in range(1, 211)]
    async with consuming(broker, _DNS, prefetch=300) as found:
        for start in range(0, 210, 30):
            await broker.publish(sent[start : start + 30])
        ids = [int(each) for each in await take_ids(found, len(sent))]
    for key in range(7):
        of_key = [each for each in ids if each % 7 == key]
        assert of_key == sorted(of_key)
    assert sorted(ids) == [int(each.id) for each in sent]


async def test_a_large_batch_is_published_whole(broker: Broker) -> None:
    count = 200 if isinstance(broker, PubSubBroker) else 2_000  # its test server delivers 100 in a second
    async with consuming(broker, _DNS, prefetch=count) as found:
        await broker.publish(messages(count))
        ids = [(await take(found)).message.id for _ in range(count)]
    assert sorted(ids, key=int) == [each.id for each in messages(count)]


async def test_a_rejected_message_comes_again_after_the_interval(broker: Broker) -> None:
    loop = asyncio.get_running_loop()
    async with consuming(broker, _DNS) as found:
        await broker.publish(messages(2))
        first = await take(found)
        rejected_at = loop.time()
        await first.reject("the API is away")
        taken = [await take(found) for _ in range(2)]
        waited = loop.time() - rejected_at
        other, again = sorted(taken, key=lambda each: each.attempt)
        assert (again.message, again.attempt) == (first.message, 2)
        assert other.message.id != first.message.id
        if not isinstance(broker, PubSubBroker):  # its test server ignores the interval
            assert taken == [other, again], "it does not hold back those of other resources"
            assert waited >= RETRY.interval.total_seconds() * 0.9  # clocks of servers may differ a little
        for each in taken:
            await each.ack()


async def test_after_the_last_attempt_a_message_is_a_dead_letter_with_the_error(broker: Broker) -> None:
    async with consuming(broker, _DNS) as found:
        await broker.publish([message("1")])
        for attempt in range(1, RETRY.max_retries + 2):
            delivery = await take(found)
            assert delivery.attempt == attempt
            await delivery.reject(f"failure {attempt}: «ü»\nand more" + "x" * 9_000)
        await eventually(lambda: _has_dead(broker, 1))
        for _ in range(2):  # looking at them leaves them there
            (letter,) = await broker.dead_letters(_DNS, 10)
            assert (letter.message, letter.attempts) == (message("1"), RETRY.max_retries + 1)
            assert letter.error.startswith(f"failure {RETRY.max_retries + 1}: «ü»")
            assert len(letter.error) <= 2_000
            assert letter.time is not None
            assert letter.key
        assert found.empty()


async def test_poison_is_a_dead_letter_at_once(broker: Broker) -> None:
    async with consuming(broker, _DNS) as found:
        await broker.publish(messages(4))
        taken = [await take(found) for _ in range(4)]
        for delivery in sorted(taken, key=lambda each: each.message.id):
            if delivery.message.id in ("1", "3"):
                await delivery.reject("no such kind", is_poison=True)
            else:
                await delivery.ack()
        await eventually(lambda: _has_dead(broker, 2))
        letters = await broker.dead_letters(_DNS, 10)
        assert [(each.message.id, each.error, each.attempts) for each in letters] == [
            ("1", "no such kind", 1),
            ("3", "no such kind", 1),
        ]
        assert [each.message.id for each in await broker.dead_letters(_DNS, 1)] == ["1"]
        assert len({each.key for each in letters}) == 2


async def test_dead_letters_are_replayed(broker: Broker) -> None:
    async with consuming(broker, _DNS) as found:
        await broker.publish(messages(3))
        taken = [await take(found) for _ in range(3)]
        for delivery in sorted(taken, key=lambda each: each.message.id):
            await delivery.reject("a bug", is_poison=True)
        await eventually(lambda: _has_dead(broker, 3))
        assert await broker.replay_dead_letters(_DNS, 2) == 2
        assert sorted(await take_ids(found, 2)) == ["1", "2"]
        assert await broker.replay_dead_letters(_DNS, 10) == 1
        again = await take(found)
        assert (again.message, again.attempt) == (messages(3)[2], 1), "it has all its attempts again"
        await again.ack()
        assert await broker.replay_dead_letters(_DNS, 10) == 0
        assert await broker.dead_letters(_DNS, 10) == ()


async def test_what_a_crashed_consumer_did_not_acknowledge_is_delivered_again(brokers: Brokers, broker: Broker) -> None:
    await broker.subscribe(_DNS)
    await broker.publish(messages(3))
    doomed = await brokers.connect(is_doomed=True)
    async with consuming(doomed, _DNS) as found:
        taken = [await take(found) for _ in range(3)]
        await taken[0].ack()
        await brokers.crash(doomed)
    async with consuming(broker, _DNS) as found:
        again = [await take(found) for _ in range(2)]
        assert {each.message.id for each in again} == {each.message.id for each in taken[1:]}
        assert {each.attempt for each in again} == {2}
        for each in again:
            await each.ack()
    await eventually(lambda: _is_empty(broker))
    assert await broker.dead_letters(_DNS, 10) == ()


async def test_an_answer_that_comes_too_late_does_no_harm(brokers: Brokers, broker: Broker) -> None:
    await broker.subscribe(_DNS)
    await broker.publish(messages(2))
    doomed = await brokers.connect(is_doomed=True)
    async with consuming(doomed, _DNS) as found:
        late = [await take(found) for _ in range(2)]
        await brokers.crash(doomed)
    async with consuming(broker, _DNS) as found:
        again = [await take(found) for _ in range(2)]
        await late[0].ack()
        await late[1].reject("too late")
        for each in again:
            await each.ack()
    await eventually(lambda: _is_empty(broker))


async def test_at_most_so_many_messages_wait_for_an_ack(broker: Broker) -> None:
    async with consuming(broker, _DNS, prefetch=2) as found:
        await broker.publish(messages(5))
        held = [await take(found) for _ in range(2)]
        await eventually(lambda: _is_waiting(broker, 3))
        assert found.empty()
        await held[0].ack()
        assert (await take(found)).message.id not in {each.message.id for each in held}
        assert found.empty()


async def test_a_scoped_consumer_gets_the_messages_of_its_tenants(broker: Broker) -> None:
    scoped = Subscription("scoped", tenants=frozenset({"acme", "it's"}))
    gap = message("5", type="io.hyperfleet.gap", tenant="", is_for_all=True)
    foreign = [message("1", tenant="globex"), message("4", tenant="")]
    async with consuming(broker, scoped) as found:
        await broker.publish([foreign[0], message("2"), message("3", tenant="it's"), foreign[1], gap])
        assert await take_ids(found, 3) == ["2", "3", "5"]
    await eventually(lambda: _is_empty(broker, scoped))
    assert await broker.dead_letters(scoped, 10) == ()


async def test_a_deleted_subscription_takes_its_messages_along(broker: Broker) -> None:
    await broker.subscribe(_DNS)
    await broker.subscribe(Subscription("other"))
    await broker.publish([message("1")])
    assert await broker.unsubscribe("dns")
    assert await broker.state_of(_DNS) is None
    assert not await broker.unsubscribe("dns")
    await broker.publish([message("2")])
    async with consuming(broker, _DNS) as found:
        await broker.publish([message("3")])
        assert await take_ids(found, 1) == ["3"]
    async with consuming(broker, Subscription("other")) as found:
        assert await take_ids(found, 3) == ["1", "2", "3"]


async def test_the_state_counts_what_is_in_the_queue(broker: Broker) -> None:
    assert await broker.state_of(_DNS) is None
    await broker.subscribe(_DNS)
    await broker.publish(messages(5))
    await eventually(lambda: _is_waiting(broker, 5))
    async with consuming(broker, _DNS, prefetch=2) as found:
        await (await take(found)).reject("poison", is_poison=True)
        await take_ids(found, 1)
        await eventually(lambda: _is_waiting(broker, 1))
        state = await broker.state_of(_DNS)
        assert state is not None
        assert (state.subscription.name, state.subscription.topic) == ("dns", "clusterEvents")
        assert state.in_flight in (2, None)
        assert state.dead in (1, None)


async def test_a_rejected_message_counts_as_waiting(broker: Broker) -> None:
    async with consuming(broker, _DNS) as found:
        await broker.publish([message("1")])
        await (await take(found)).reject("later")
        state = await broker.state_of(_DNS)
        assert state is not None
        assert state.waiting in (1, 0, None)  # 0: it has been delivered again already; None: it does not tell
        assert state.dead in (0, None)
        assert await take_ids(found, 1) == ["1"]


async def test_status_updates_have_subscriptions_too(broker: Broker) -> None:
    updates = Subscription("updates", "statusUpdates")
    await broker.subscribe(updates)
    await broker.publish([replace(message("1-s"), topic="statusUpdates"), message("1")])
    async with consuming(broker, updates) as found:
        delivery = await take(found)
        assert delivery.message.topic == "statusUpdates"
        await delivery.ack()
    assert await broker.unsubscribe("updates", "statusUpdates")


async def _first_of(*queues: asyncio.Queue[Delivery]) -> Delivery:
    while True:
        for queue in queues:
            if not queue.empty():
                return queue.get_nowait()
        await asyncio.sleep(0.002)


async def _has_dead(broker: Broker, count: int) -> bool:
    state = await broker.state_of(_DNS)
    if state is not None and state.dead is None:  # the broker does not count them
        return len(await broker.dead_letters(_DNS, count + 1)) == count
    return state is not None and state.dead == count


async def _is_waiting(broker: Broker, count: int) -> bool:
    state = await broker.state_of(_DNS)
    return state is not None and state.waiting in (count, None)


async def _is_empty(broker: Broker, subscription: Subscription = _DNS) -> bool:
    state = await broker.state_of(subscription)
    return state is not None and not state.waiting and not state.in_flight
