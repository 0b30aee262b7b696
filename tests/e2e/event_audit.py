"""A fleet that changes all the time, its relays on RabbitMQ, and the audit: was every change delivered?"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

import httpx
from msgspec.structs import replace

from hyperfleet.api.wire import BASE
from hyperfleet.backends.clock import SystemClock
from hyperfleet.backends.rabbitmq import RabbitBroker
from hyperfleet.backends.rabbitmq_topology import RabbitOptions
from hyperfleet.bootstrap import System, open_tables
from hyperfleet.events.making import Origin, messages_of
from hyperfleet.events.relay import Relay
from hyperfleet.messaging import Delivery, RetryPolicy, Subscription, TopicNames
from hyperfleet.ports import ChangeQuery
from hyperfleet.settings import Settings

EVENTS: Final = Subscription("audit")
UPDATES: Final = Subscription("audit", "statusUpdates")
PATIENCE: Final = 240.0  # seconds; recovery of a server on a busy machine takes some

_WRITERS: Final = 4
_WRITE_PAUSE: Final = 0.01  # seconds; more would only fill the machine

Handler = Callable[[Delivery], Any]


def origin_of(store_id: str) -> Origin:
    """Return the origin of events; the audit looks at their ids only."""
    return Origin(store_id, lambda _, id_, __: id_, lambda _: None)


class AuditedFleet:
    """A server without sockets, with writers that never rest. Its own relay is stopped: tests start others."""

    def __init__(self, system: System, options: RabbitOptions, stack: AsyncExitStack) -> None:
        """Observe a fleet whose events go to a RabbitMQ server."""
        self.system = system
        self.options = options
        self.received: Counter[str] = Counter()
        self.failures = 0
        self._stack = stack
        self._writers: list[asyncio.Task[None]] = []
        self._consumers: list[asyncio.Task[None]] = []
        self._is_writing = True

    def start_writers(self) -> None:
        """Write for as long as the audit has not begun."""
        self._writers = [asyncio.create_task(self._write(number)) for number in range(_WRITERS)]

    async def start_relay(self, holder: str = "relay", url: str = "") -> Relay:
        """Start a relay with connections of its own."""
        broker = await self.new_broker(url)
        relay = Relay(self.system.store, broker, SystemClock(), holder, origin_of)
        relay.on_failure = self._count_failure
        await relay.start()
        self._stack.push_async_callback(relay.stop)
        return relay

    async def new_broker(self, url: str = "") -> RabbitBroker:
        """Return a broker with connections of its own."""
        broker = RabbitBroker(replace(self.options, url=url) if url else self.options)
        self._stack.push_async_callback(broker.close)
        return broker

    async def consume(self, handle: Handler | None = None, prefetch: int = 16, url: str = "") -> None:
        """Start a consumer of each topic; `handle` is called before the acknowledgement."""
        for subscription in (EVENTS, UPDATES):
            broker = await self.new_broker(url)
            await broker.subscribe(subscription)
            task = asyncio.create_task(self._consume(broker, subscription, handle, prefetch))
            self._consumers.append(task)
            self._stack.push_async_callback(_cancel, task)

    async def stop_consumers(self, count: int) -> None:
        """Stop the oldest consumers."""
        for task in self._consumers[:count]:
            await _cancel(task)

    def use(self, url: str) -> None:
        """Use another address from now on."""
        self.options = replace(self.options, url=url)

    def with_interval(self, seconds: float) -> RabbitOptions:
        """Return the options with another time between attempts."""
        return replace(self.options, retry=RetryPolicy(max_retries=3, interval=timedelta(seconds=seconds)))

    async def settle(self, title: str, *, poison: Collection[str] = ()) -> None:
        """Stop the writers, wait until everything is delivered and handled, and print the numbers."""
        self._is_writing = False
        await asyncio.gather(*self._writers)
        expected = await self.expected()
        await self.wait_until(lambda: expected <= self.received.keys())
        while (dead := await self.count_dead()) < len(poison):  # the last one may still be on its way
            await asyncio.sleep(0.1)
        delivered, changes = sum(self.received.values()), len(expected)
        print(  # noqa: T201 - the numbers are what the test is for
            f"\n{title}: {changes} messages of changes, {delivered} delivered, {delivered - changes} duplicates, "
            f"{dead} dead, {self.failures} failed publications"
        )
        assert dead == len(poison)

    async def expected(self) -> set[str]:
        """Return the ids of the messages that the whole log makes."""
        ids: set[str] = set()
        after, is_last = 0, False
        origin = origin_of("")
        while not is_last:
            page = await self.system.store.read_changes(ChangeQuery(after=after, limit=1_000))
            ids |= {message.id for change in page.changes for message in messages_of(change, origin)}
            after, is_last = page.upto, page.is_last
        return ids

    async def count_dead(self) -> int:
        """Return the number of dead letters of both topics."""
        broker = await self.new_broker()
        states = [await broker.state_of(subscription) for subscription in (EVENTS, UPDATES)]
        return sum(state.dead or 0 for state in states if state is not None)

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.05)

    async def send(self, method: str, path: str, body: Any) -> Any:
        """Send a request to the server; return the answer."""
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self.system.app)) as client:
            answer = await client.request(method, f"http://localhost{BASE}{path}", json=body)
        assert answer.is_success, answer.text
        return answer.json()

    async def _write(self, number: int) -> None:
        cluster = await self.send("POST", "/clusters", {"name": f"c{number}", "spec": {}})
        count = 0
        while self._is_writing:
            count += 1
            await self.send("PATCH", f"/clusters/{cluster['id']}", {"labels": {"n": str(count)}})
            await asyncio.sleep(_WRITE_PAUSE)

    async def _consume(
        self, broker: RabbitBroker, subscription: Subscription, handle: Handler | None, prefetch: int
    ) -> None:
        async with broker.receive(subscription, prefetch=prefetch) as deliveries:
            async for delivery in deliveries:
                self.received[delivery.message.id] += 1
                if handle is None:
                    await delivery.ack()
                else:
                    await handle(delivery)

    def _count_failure(self) -> None:
        self.failures += 1


@asynccontextmanager
async def audited_fleet(database: str, rabbit: str) -> AsyncIterator[AuditedFleet]:
    """Run a fleet for the length of a block, with topics of its own."""
    await open_tables(database).migrate()
    prefix = uuid4().hex
    topics = TopicNames(cluster_events=f"{prefix}.events", status_updates=f"{prefix}.updates")
    async with AsyncExitStack() as stack:
        system = System(Settings(database=database))
        await system.start()
        stack.push_async_callback(system.stop)
        await system.events.relay.stop()
        yield AuditedFleet(system, RabbitOptions(url=rabbit, topics=topics), stack)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
