"""The worker: one event of a resource at a time, the newest wins, and every delivery gets the answer it should."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperfleet.backends.clock import SystemClock
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.errors import BrokerUnavailable
from hyperfleet.events.in_process import InProcessBroker
from hyperfleet.events.received import MAX_ERROR, Event, Poison, event_of, merge
from hyperfleet.events.worker import Worker
from hyperfleet.messaging import Message, RetryPolicy, Subscription

pytestmark = pytest.mark.anyio


def message(resource: str, number: int = 0, **data: Any) -> Message:
    """Make a message about a resource."""
    body = {"id": resource, "kind": "Cluster", "href": f"/{resource}", "generation": 1, "reason": "Requested", **data}
    text = msgspec.json.encode(body)
    return Message("clusterEvents", str(number), "/s", "t", f"Cluster/{resource}", None, "", resource, text)


class Given:
    """A delivery that remembers its answers."""

    def __init__(self, message: Message, attempt: int = 1, failure: Exception | None = None) -> None:
        self.message = message
        self.attempt = attempt
        self.failure = failure
        self.answers: list[tuple[str, str]] = []

    async def ack(self) -> None:
        """Take note, or fail as a broker that is away."""
        if self.failure is not None:
            raise self.failure
        self.answers.append(("ack", ""))

    async def reject(self, error: str, *, is_poison: bool = False) -> None:
        """Take note, or fail as a broker that is away."""
        if self.failure is not None:
            raise self.failure
        self.answers.append(("poison" if is_poison else "reject", error))


async def deliver(*deliveries: Given) -> AsyncIterator[Given]:
    """Deliver some messages at once; then there are no more."""
    for each in deliveries:
        yield each


async def endless(*deliveries: Given) -> AsyncIterator[Given]:
    """Deliver some messages, and wait for ever."""
    for each in deliveries:
        yield each
    await asyncio.Event().wait()


async def await_until(condition: Callable[[], bool]) -> None:
    """Let others run until something holds."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0)


async def test_a_delivery_is_acknowledged_after_its_handler() -> None:
    gate, delivery = asyncio.Event(), Given(message("a"))
    handled: list[Event] = []

    async def handle(event: Event) -> None:
        handled.append(event)
        await gate.wait()

    task = asyncio.create_task(Worker(handle).run(deliver(delivery)))
    await await_until(lambda: bool(handled))
    assert delivery.answers == []
    gate.set()
    await task
    assert delivery.answers == [("ack", "")]
    assert (handled[0].resource_id, handled[0].kind, handled[0].reason) == ("a", "Cluster", "Requested")


async def test_the_newest_of_the_waiting_events_of_a_resource_stands_for_all() -> None:
    deliveries = [Given(message("a", number, generation=number, reason=f"r{number}")) for number in (1, 2, 3, 4)]
    gate, handled = asyncio.Event(), list[Event]()

    async def handle(event: Event) -> None:
        handled.append(event)
        await gate.wait()

    worker = Worker(handle)
    results: list[str] = []
    worker.on_result = lambda event, result: results.append(f"{event.id} {result}")
    task = asyncio.create_task(worker.run(deliver(*deliveries)))
    await await_until(lambda: bool(handled))
    await asyncio.sleep(0)
    gate.set()
    await task
    assert [event.id for event in handled] == ["1", "4"], "the first one ran when the others came"
    assert [event.id for event in handled[1].older] == ["2", "3"]
    assert handled[1].reasons == ("r2", "r3", "r4")
    assert all(delivery.answers == [("ack", "")] for delivery in deliveries)
    assert results == ["1 handled", "2 handled", "3 handled", "4 handled"]


@pytest.mark.parametrize(
    ("adapters", "merged", "because"),
    [
        (["dns", "dns"], "dns", "that adapter ignores both"),
        (["dns", "vpc"], "", "each must look, as the other one has changed"),
        (["", "dns"], "", "the older one is for every adapter"),
        (["dns", ""], "", "the newer one is for every adapter"),
    ],
)
def test_a_merged_event_names_an_adapter_only_if_all_agree(adapters: list[str], merged: str, because: str) -> None:
    more: list[dict[str, str]] = [{"adapter": each} if each else {} for each in adapters]
    events = [event_of(message("a", number, **each)) for number, each in enumerate(more)]
    assert merge(events).adapter == merged, because
    assert [event.adapter for event in events] == adapters, "the others stay as they are"


def test_an_older_generation_that_came_late_does_not_win() -> None:
    merged = merge([event_of(message("a", 1, generation=7)), event_of(message("a", 2, generation=6))])
    assert (merged.id, merged.generation, [event.id for event in merged.older]) == ("1", 7, ["2"])


async def test_without_coalescing_every_event_is_handled_in_order() -> None:
    handled: list[str] = []

    async def handle(event: Event) -> None:
        handled.append(event.id)
        await asyncio.sleep(0)

    deliveries = [Given(message("a", number)) for number in range(5)]
    await Worker(handle, coalesces=False).run(deliver(*deliveries))
    assert handled == ["0", "1", "2", "3", "4"]


async def test_resources_are_handled_at_once_up_to_the_limit() -> None:
    running, most, total = set[str](), 0, 0

    async def handle(event: Event) -> None:
        nonlocal most, total
        assert event.resource_id not in running, "one event of a resource at a time"
        running.add(event.resource_id)
        most, total = max(most, len(running)), total + 1
        await asyncio.sleep(0)
        running.remove(event.resource_id)

    deliveries = [Given(message(f"r{number % 7}", number)) for number in range(40)]
    await Worker(handle, concurrency=3).run(deliver(*deliveries))
    assert most == 3
    assert all(delivery.answers == [("ack", "")] for delivery in deliveries)


async def test_an_error_rejects_and_poison_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    async def handle(event: Event) -> None:
        raise {"poison": Poison("no such zone"), "silent": ValueError()}.get(event.resource_id, ValueError("x" * 5_000))

    failed, poison, silent = Given(message("a")), Given(message("poison")), Given(message("silent"))
    with caplog.at_level(logging.WARNING):
        await Worker(handle).run(deliver(failed, poison, silent))
    ((answer, error),) = failed.answers
    assert (answer, len(error), error[:14]) == ("reject", MAX_ERROR, "ValueError: xx")
    assert poison.answers == [("poison", "Poison: no such zone")]
    assert silent.answers == [("reject", "ValueError")]
    assert "about Cluster/poison was not handled: Poison: no such zone" in caplog.text


async def test_an_event_that_cannot_be_read_is_poison() -> None:
    async def handle(event: Event) -> None:
        raise AssertionError(event)

    for text in (b"[]", b"{", b'"\xff"'):
        delivery = Given(msgspec.structs.replace(message("a"), data=text))
        await Worker(handle).run(deliver(delivery))
        assert [answer for answer, _ in delivery.answers] == ["poison"], text


async def test_an_answer_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async def handle(event: Event) -> None:
        if event.resource_id == "b":
            raise ValueError("no")

    away = BrokerUnavailable("away")
    last = Given(message("c"))
    await Worker(handle).run(deliver(Given(message("a"), failure=away), Given(message("b"), failure=away), last))
    assert last.answers == [("ack", "")]
    assert "was handled and will be delivered again" in caplog.text
    assert "could not be rejected" in caplog.text


async def test_a_stop_finishes_what_runs_and_gives_back_the_rest() -> None:
    gate, handled = asyncio.Event(), list[str]()

    async def handle(event: Event) -> None:
        handled.append(event.resource_id)
        await gate.wait()

    worker = Worker(handle, concurrency=2)
    deliveries = [Given(message(resource)) for resource in "abac"]
    task = asyncio.create_task(worker.run(endless(*deliveries)))
    await await_until(lambda: len(handled) == 2)
    worker.stop()
    await asyncio.sleep(0)
    assert not task.done()
    gate.set()
    async with asyncio.timeout(20):
        await task
    assert handled == ["a", "b"]
    assert [delivery.answers for delivery in deliveries] == [[("ack", "")], [("ack", "")], [], []]


async def test_cancelling_cancels_the_handlers_and_answers_nothing() -> None:
    cancelled, begun = asyncio.Event(), asyncio.Event()

    async def handle(event: Event) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    delivery = Given(message("a"))
    task = asyncio.create_task(Worker(handle).run(endless(delivery)))
    await begun.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert cancelled.is_set()
    assert delivery.answers == []


async def test_an_error_of_the_source_is_raised_after_the_work_is_done() -> None:
    async def broken() -> AsyncIterator[Given]:
        yield delivery
        raise BrokerUnavailable("gone")

    async def handle(event: Event) -> None:
        await asyncio.sleep(0)

    delivery = Given(message("a"))
    with pytest.raises(BrokerUnavailable, match="gone"):
        await Worker(handle).run(broken())
    assert delivery.answers == [("ack", "")]


def test_a_worker_needs_at_least_one_handler() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Worker(lambda event: asyncio.sleep(0), concurrency=0)


# What happens: an event of a resource arrives, or the handlers run for a while, and some of them fail.
STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.booleans()), max_size=40)


@settings(deadline=None, max_examples=60)
@given(STEPS, st.integers(1, 3), st.booleans())
def test_no_event_is_answered_before_a_handler_that_began_after_it(
    steps: list[tuple[str, int, bool]], concurrency: int, coalesces: bool
) -> None:
    asyncio.run(_check_answers(steps, concurrency, coalesces))


async def _check_answers(steps: list[tuple[str, int, bool]], concurrency: int, coalesces: bool) -> None:
    now = 0
    seen: dict[str, list[tuple[int, bool]]] = {}  # resource → when handlers that have ended had begun, and succeeded
    arrivals: list[tuple[Given, int]] = []

    class Watched(Given):
        async def ack(self) -> None:
            self._check(succeeded=True)
            await super().ack()

        async def reject(self, error: str, *, is_poison: bool = False) -> None:
            self._check(succeeded=False)
            await super().reject(error, is_poison=is_poison)

        def _check(self, *, succeeded: bool) -> None:
            arrival = next(when for each, when in arrivals if each is self)
            ended = seen.get(self.message.partition_key, [])
            assert any(began > arrival and result == succeeded for began, result in ended)

    async def handle(event: Event) -> None:
        nonlocal now
        now += 1
        began, fails = now, event.data["fails"]
        await asyncio.sleep(0)
        seen.setdefault(event.resource_id, []).append((began, not fails))
        if fails:
            raise ValueError("as told")

    async def source() -> AsyncIterator[Given]:
        nonlocal now
        for number, (resource, pauses, fails) in enumerate(steps):
            delivery = Watched(message(resource, number, fails=fails))
            now += 1
            arrivals.append((delivery, now))
            yield delivery
            for _ in range(pauses):
                await asyncio.sleep(0)

    await Worker(handle, concurrency=concurrency, coalesces=coalesces).run(source())
    assert all(len(delivery.answers) == 1 for delivery, _ in arrivals), "each is answered once"


async def test_with_a_broker_everything_is_handled_and_poison_is_kept() -> None:
    store = MemoryStore()
    await store.open()
    broker = InProcessBroker(store, SystemClock(), RetryPolicy(max_retries=3, interval=timedelta(milliseconds=1)))
    subscription = Subscription("dns")
    await broker.subscribe(subscription)
    await broker.publish([message(f"r{number % 5}", number) for number in range(50)])
    await broker.publish([message("poison", 50)])
    attempts: Counter[str] = Counter()

    async def handle(event: Event) -> None:
        attempts[event.resource_id] += 1
        if event.resource_id == "poison":
            raise Poison("never")
        if event.resource_id == "r1" and event.attempt < 3:
            raise ValueError("not yet")

    worker = Worker(handle)

    async def is_done() -> bool:
        state = await broker.state_of(subscription)
        return state is not None and not state.waiting and not state.in_flight

    async with broker.receive(subscription) as deliveries:
        task = asyncio.create_task(worker.run(deliveries))
        async with asyncio.timeout(20):
            while not await is_done():
                await asyncio.sleep(0.01)
        worker.stop()
        await task
    assert attempts.keys() == {"r0", "r1", "r2", "r3", "r4", "poison"}
    assert attempts["r1"] >= 3
    (letter,) = await broker.dead_letters(subscription, 10)
    assert (letter.message.partition_key, letter.error) == ("poison", "Poison: never")
    await store.close()
