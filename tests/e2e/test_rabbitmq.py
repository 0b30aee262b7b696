"""A real RabbitMQ fails in every way we know, under load: every change is delivered, dead letters are poison only."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hyperfleet.errors import BrokerUnavailable
from hyperfleet.messaging import Delivery
from tests.e2e.event_audit import EVENTS, UPDATES, AuditedFleet, audited_fleet
from tests.programs import ROOT
from tests.rabbit_server import RabbitServer

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.rabbit]


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests in asyncio."""
    return "asyncio"


@pytest.fixture
async def fleet(rabbit_server: RabbitServer, tmp_path: Path, anyio_backend: str) -> AsyncIterator[AuditedFleet]:
    """Give a fleet on SQLite whose events go to a server of the test's own."""
    async with audited_fleet(f"sqlite:{tmp_path / 'fleet.db'}", rabbit_server.url) as fleet:
        yield fleet


async def run(fleet: AuditedFleet, count: int = 200) -> None:
    """Start consumers, a relay and writers, and wait until some messages went through."""
    await fleet.consume()
    await fleet.start_relay()
    fleet.start_writers()
    await fleet.wait_until(lambda: len(fleet.received) >= count)


async def more(fleet: AuditedFleet, count: int = 200) -> None:
    """Wait until some more messages went through."""
    before = len(fleet.received)
    await fleet.wait_until(lambda: len(fleet.received) >= before + count)


async def test_a_server_that_is_stopped_for_a_minute(fleet: AuditedFleet, rabbit_server: RabbitServer) -> None:
    await run(fleet)
    await asyncio.to_thread(rabbit_server.stop)
    await asyncio.sleep(60)
    assert fleet.failures > 0
    await asyncio.to_thread(rabbit_server.start)
    await more(fleet)
    await fleet.settle("Stopped for 60 s")


async def test_a_server_that_is_killed_while_messages_are_published(
    fleet: AuditedFleet, rabbit_server: RabbitServer
) -> None:
    await run(fleet)
    for _ in range(3):
        await asyncio.to_thread(rabbit_server.kill9)
        await asyncio.to_thread(rabbit_server.start)
        await more(fleet)
    await fleet.settle("Killed 3 times")


async def test_a_server_that_is_short_of_memory(fleet: AuditedFleet, rabbit_server: RabbitServer) -> None:
    await run(fleet)
    await asyncio.to_thread(rabbit_server.control, "set_vm_memory_high_watermark", "0.0000001")
    await fleet.wait_until(lambda: fleet.failures > 1)
    connections = await asyncio.to_thread(rabbit_server.control, "list_connections", "name")
    assert len(connections.splitlines()) < 12, "it does not open another one each time"
    await asyncio.to_thread(rabbit_server.control, "set_vm_memory_high_watermark", "0.6")
    await more(fleet)
    await fleet.settle("Memory alarm")


async def test_credentials_that_are_rotated(fleet: AuditedFleet, rabbit_server: RabbitServer) -> None:
    """Connections that are open stay so; when they are closed, those with the old password are refused."""
    await fleet.consume()
    relay = await fleet.start_relay()
    fleet.start_writers()
    await fleet.wait_until(lambda: len(fleet.received) >= 200)
    old = await fleet.new_broker()
    rabbit_server.password = "a-new-password"  # noqa: S105 - of a server that lives for this test
    await asyncio.to_thread(rabbit_server.control, "change_password", rabbit_server.user, rabbit_server.password)
    await asyncio.to_thread(rabbit_server.control, "close_all_connections", "rotated")
    await fleet.wait_until(lambda: fleet.failures > 1)
    with pytest.raises(BrokerUnavailable) as refused:
        await old.check()
    assert str(refused.value) == "RabbitMQ: the user or the password was refused"
    await relay.stop()  # as a server that is restarted with the new password
    await fleet.start_relay("again", rabbit_server.url)
    await fleet.consume(url=rabbit_server.url)
    await more(fleet)
    fleet.use(rabbit_server.url)
    await fleet.settle("Credentials rotated")


async def test_a_slow_consumer_and_duplicates(fleet: AuditedFleet) -> None:
    """What is slow holds back nothing else; what is delivered twice is handled twice and counted once."""
    is_hurried = asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        if not is_hurried.is_set():
            await asyncio.sleep(0.2)
        if delivery.attempt == 1 and delivery.message.id.endswith("7"):
            return  # forgotten: it comes again when the consumer ends
        await delivery.ack()

    await fleet.consume(handle, prefetch=4)
    await fleet.start_relay()
    fleet.start_writers()
    await fleet.wait_until(lambda: len(fleet.received) >= 10)
    state = None
    broker = await fleet.new_broker()
    while state is None or (state.waiting or 0) < 200:
        state = await broker.state_of(EVENTS)
        await asyncio.sleep(0.05)
    await fleet.consume()  # faster ones share the queue
    is_hurried.set()
    await more(fleet)
    await fleet.stop_consumers(2)  # the slow ones end, and what they forgot is delivered again
    await fleet.settle("Slow consumer, duplicates")


async def test_only_poison_becomes_a_dead_letter(fleet: AuditedFleet) -> None:
    poison: set[str] = set()

    async def handle(delivery: Delivery) -> None:
        if delivery.message.id.endswith("33"):
            poison.add(delivery.message.id)
            await delivery.reject("a bug", is_poison=True)
        elif delivery.message.id.endswith("5") and delivery.attempt == 1:
            await delivery.reject("the API is away")
        else:
            await delivery.ack()

    fleet.options = fleet.with_interval(0.5)
    await fleet.consume(handle)
    await fleet.start_relay()
    fleet.start_writers()
    await fleet.wait_until(lambda: len(fleet.received) >= 500)
    await fleet.settle("Poison", poison=poison)
    assert poison


async def test_two_relays_at_once(fleet: AuditedFleet) -> None:
    await fleet.consume()
    first = await fleet.start_relay("first")
    second = await fleet.start_relay("second")
    fleet.start_writers()
    await fleet.wait_until(lambda: len(fleet.received) >= 200)
    assert [first.is_publishing, second.is_publishing].count(True) == 1
    for number in range(6):
        await first.stop()
        await more(fleet, 50)
        first, second = second, await fleet.start_relay(f"relay {number}")
    await fleet.settle("Two relays, replaced 6 times")


@contextmanager
def process(fleet: AuditedFleet, work: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a relay or a consumer in a process of its own."""
    topics = fleet.options.topics
    command = [sys.executable, "-m", "tests.e2e.event_process", work, fleet.options.url]
    with subprocess.Popen(  # noqa: S603 - our own module
        [*command, topics.cluster_events, topics.status_updates, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        try:
            yield started
        finally:
            started.kill()


async def says(started: subprocess.Popen[str], word: str) -> None:
    """Wait until a process prints a word."""
    assert started.stdout is not None
    async with asyncio.timeout(60):
        while (line := await asyncio.to_thread(started.stdout.readline)).strip() != word:
            assert line, "it ended"


@pytest.mark.postgres
async def test_a_relay_that_is_frozen_and_woken(rabbit_server: RabbitServer, postgres_url: str) -> None:
    async with audited_fleet(postgres_url, rabbit_server.url) as fleet:
        await fleet.consume()
        fleet.start_writers()
        with process(fleet, "relay", postgres_url, "one") as one:
            await says(one, "publishing")
            await more(fleet)
            with process(fleet, "relay", postgres_url, "two") as two:
                await says(two, "waiting")
                one.send_signal(signal.SIGSTOP)
                frozen_at = asyncio.get_running_loop().time()
                await says(two, "publishing")
                print(f"\nhand-over after {asyncio.get_running_loop().time() - frozen_at:.1f} s")  # noqa: T201 - a number
                await more(fleet)
                one.send_signal(signal.SIGCONT)
                await says(one, "waiting")
                await more(fleet)
                await fleet.settle("Frozen and woken")


async def test_a_consumer_that_crashes_between_work_and_acknowledgement(fleet: AuditedFleet, tmp_path: Path) -> None:
    broker = await fleet.new_broker()
    for subscription in (EVENTS, UPDATES):
        await broker.subscribe(subscription)
    await fleet.start_relay()
    fleet.start_writers()
    file, crashes = tmp_path / "done", 0
    for _ in range(10):
        with process(fleet, "consumer", str(file)) as consumer:
            assert await asyncio.to_thread(consumer.wait, 120) == -signal.SIGKILL
            crashes += 1
    await fleet.consume()  # takes the rest
    done = Counter(file.read_text().split())
    fleet.received.update(done)
    print(f"\n{crashes} crashes, {done.total() - len(done)} handled twice by those that crashed")  # noqa: T201 - numbers
    await fleet.settle("Consumer crashes")
