"""The worker on every broker: all events are handled, one of a resource at a time, and only poison is given up."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from hyperfleet.events.received import Event, Poison
from hyperfleet.events.worker import Handler, Worker
from hyperfleet.messaging import Broker, Message, Subscription
from tests.contract.brokers import Brokers, eventually, message

pytestmark = pytest.mark.anyio

_DNS = Subscription("dns")


def event(number: int, resource: str) -> Message:
    """Make an event about a resource."""
    return message(
        str(number), partition_key=resource, data=msgspec.json.encode({"id": resource, "generation": number})
    )


@asynccontextmanager
async def working(broker: Broker, handler: Handler) -> AsyncIterator[Worker]:
    """Run a worker for the length of a block; in the end it finishes what it has begun."""
    worker = Worker(handler, concurrency=4)
    async with broker.receive(_DNS) as deliveries:
        task = asyncio.create_task(worker.run(deliveries))
        try:
            yield worker
        finally:
            worker.stop()
            await task


async def test_everything_is_handled_and_poison_is_a_dead_letter(broker: Broker) -> None:
    newest: dict[str, int] = {}
    running: set[str] = set()

    async def handle(event: Event) -> None:
        assert event.resource_id not in running, "one event of a resource at a time"
        running.add(event.resource_id)
        await asyncio.sleep(0.001)
        running.remove(event.resource_id)
        if event.resource_id == "poison":
            raise Poison("no such zone")
        newest[event.resource_id] = max(event.generation, newest.get(event.resource_id, 0))

    async def is_done() -> bool:
        letters = await broker.dead_letters(_DNS, 10)
        return newest == expected and [each.error for each in letters] == ["Poison: no such zone"]

    expected = {f"r{number}": 91 + number for number in range(10)}
    async with working(broker, handle):
        await broker.publish(
            [event(1, "poison"), *(event(number, f"r{(number - 1) % 10}") for number in range(2, 102))]
        )
        expected["r0"] = 101
        await eventually(is_done)


async def test_a_handler_that_fails_is_called_again(broker: Broker) -> None:
    calls: Counter[str] = Counter()

    async def handle(event: Event) -> None:
        calls[event.resource_id] += 1
        if event.resource_id == "slow" and event.attempt < 2:
            raise ValueError("not yet")

    async def is_done() -> bool:
        return calls["slow"] >= 2 and calls["quick"] >= 1

    async with working(broker, handle):
        await broker.publish([event(1, "slow"), event(2, "quick")])
        await eventually(is_done)
    assert await broker.dead_letters(_DNS, 10) == ()


async def test_what_a_stopped_worker_gave_back_is_handled_by_another(brokers: Brokers, broker: Broker) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()
    handled: list[str] = []

    async def hold(event: Event) -> None:
        begun.set()
        await gate.wait()
        handled.append(event.resource_id)

    async def handle(event: Event) -> None:
        handled.append(event.resource_id)

    async def is_done() -> bool:
        return set(handled) == {f"r{number}" for number in range(8)}

    await broker.subscribe(_DNS)
    await broker.publish([event(number, f"r{number}") for number in range(8)])
    doomed = await brokers.connect(is_doomed=True)
    worker = Worker(hold, concurrency=1)
    async with doomed.receive(_DNS) as deliveries:
        task = asyncio.create_task(worker.run(deliveries))
        await begun.wait()
        worker.stop()
        gate.set()
        await task
    assert len(handled) == 1
    await brokers.crash(doomed)  # brokers deliver again what a consumer that is gone has not answered
    async with working(broker, handle):
        await eventually(is_done)
