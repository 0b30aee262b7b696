"""`python -m bench events [--quick] [--sqlite | --postgres]`: how soon events arrive, how many, and the idle cost.

Everything shares the machine: servers, their database, RabbitMQ, writers and consumers. All brokers are measured
through their port, so each is a row. A delay is the time from the commit to the delivery, of clusters that are created
one by one at an even pace; over HTTP it begins with the answer to the request, a fraction of a millisecond later.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import msgspec
import uvloop
from msgspec import Struct

from bench.load import usage
from bench.load.filling import fill
from bench.load.publishing import MakeBroker, Publishing, create_evenly, in_process, publishing, report_news
from bench.load.subject import POSTGRES, SQLITE, Database, ServerProcess
from bench.server import databases, write_policy
from bench.watch import CLUSTERS, Writers
from hyperfleet.backends.rabbitmq import RabbitBroker
from hyperfleet.backends.rabbitmq_topology import RabbitOptions
from hyperfleet.bootstrap import open_tables
from hyperfleet.messaging import Subscription
from tests.e2e.lanes import BASE, Channel
from tests.rabbit_server import temporary_rabbit
from tests.servers import ServerMissingError, temporary_directory

_IN_PROCESS: Final = "in process"
_RABBIT: Final = "RabbitMQ"
_PREFETCH: Final = 64


class Plan(Struct, frozen=True):
    """How much is measured."""

    rate: float = 50.0  # clusters that are created each second
    seconds: float = 10.0
    backlog: int = 20_000  # reports with news that wait to be published
    idle: float = 30.0  # seconds


_QUICK: Final = Plan(50.0, 3.0, 4_000, 10.0)


class Delays(Struct):
    """From commits to deliveries, in seconds."""

    seconds: list[float]

    def quantile(self, share: float) -> float:
        """Return the milliseconds that so large a share took at most."""
        ordered = sorted(self.seconds)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] * 1e3


class Broking(Struct, frozen=True):
    """A broker to measure."""

    name: str
    make: MakeBroker


def main(options: Sequence[str]) -> None:
    """Measure, and print the tables."""
    if strange := set(options) - {"--quick", "--sqlite", "--postgres"}:
        sys.exit(f"unknown option {', '.join(strange)}; known are --quick, --sqlite and --postgres")
    plan = _QUICK if "--quick" in options else Plan()
    wanted = [SQLITE] if "--sqlite" in options else [POSTGRES] if "--postgres" in options else [SQLITE, POSTGRES]
    with ExitStack() as stack:
        directory = stack.enter_context(temporary_directory())
        brokers = [Broking(_IN_PROCESS, in_process), *stack.enter_context(_rabbit())]
        found = stack.enter_context(databases(directory, ("delays", "backlog", "more", "served")))
        policy = str(write_policy(directory))
        by_kind = [[each for each in found if each.name == kind] for kind in wanted]
        measuring = [Measuring(directory, policy, plan, brokers, some) for some in by_kind if some]
        _show_delays(measuring)
        _show_throughput(measuring)
        _show_idle(measuring)


@contextmanager
def _rabbit() -> Iterator[Sequence[Broking]]:
    try:
        with temporary_rabbit() as server:
            url = server.url
            yield [Broking(_RABBIT, lambda _: RabbitBroker(RabbitOptions(url=url)))]
    except ServerMissingError as error:
        print(f"SKIPPED: everything through RabbitMQ. {error}", file=sys.stderr)
        yield []


class Measuring(Struct, frozen=True):
    """The measurements on one kind of database; there is an empty one for each purpose."""

    directory: Path
    policy: str
    plan: Plan
    brokers: Sequence[Broking]
    databases: Sequence[Database]

    @property
    def name(self) -> str:
        """Return the kind of database."""
        return self.databases[0].name

    # how soon

    def delays(self) -> Iterator[tuple[str, str, Delays]]:
        """Measure delays: the broker, the way of the event, and what was found."""
        database = self.databases[0]
        for broker in self.brokers:
            yield broker.name, "within one server", uvloop.run(self._within(database, broker))
            if self.name == POSTGRES:
                way = "written at one server, relayed and consumed at another"
                yield broker.name, way, uvloop.run(self._between(database, broker, is_relayed_here=True))
        if self.name == POSTGRES:
            way = "written and relayed at one server, consumed at another"
            yield _IN_PROCESS, way, uvloop.run(self._between(database, self.brokers[0], is_relayed_here=False))
        yield from self._delays_over_http(self.databases[3])

    async def _within(self, database: Database, broker: Broking) -> Delays:
        async with publishing(database.url, self.policy, broker.make) as own, _consuming(own) as arrived:
            await own.start()
            await create_evenly(own.system, self.plan.rate, 1)  # to warm up
            committed = await create_evenly(own.system, self.plan.rate, self.plan.seconds)
            return await _await_all(committed, arrived)

    async def _between(self, database: Database, broker: Broking, *, is_relayed_here: bool) -> Delays:
        async with publishing(database.url, self.policy, broker.make) as own, _consuming(own) as arrived:
            if is_relayed_here:
                await own.start()
                await create_evenly(own.system, self.plan.rate, 1)
            with self._process("write", database) as writer:
                await asyncio.sleep(1)  # so that its relay has the lease, if it is to have it
                committed = msgspec.json.decode(await asyncio.to_thread(writer.go), type=dict[str, float])
            return await _await_all(committed, arrived)

    def _delays_over_http(self, database: Database) -> Iterator[tuple[str, str, Delays]]:
        with self._serving(database) as server:
            yield "in process, `:pull`", "within one server", asyncio.run(self._pulled(server.port, server.port))
            if self.name == POSTGRES:
                with self._serving(database) as other:
                    found = asyncio.run(self._pulled(server.port, other.port))
                    yield "in process, `:pull`", "written at one server, pulled at another", found

    async def _pulled(self, writing: int, pulling: int) -> Delays:
        """Create clusters over HTTP and pull their events."""
        writer, puller = Channel(lambda: writing), Channel(lambda: pulling)
        name = f"bench-{pulling}-{writing}"
        await puller.request("PUT", f"{BASE}/subscriptions/{name}", {})
        arrived: dict[str, float] = {}
        task = asyncio.create_task(_pull(puller, name, arrived))
        committed, start, rate = {}, time.monotonic(), self.plan.rate
        for number in range(int(rate * self.plan.seconds)):
            await asyncio.sleep(max(start + number / rate - time.monotonic(), 0))
            body = {"name": f"pull-{pulling}-{number}", "spec": {}}
            _, answer = await writer.request("POST", f"{BASE}/clusters", body)
            committed[answer["id"]] = time.monotonic()
        found = await _await_all(committed, arrived)
        task.cancel()
        await asyncio.wait({task})
        writer.close()
        puller.close()
        return found

    # how many

    def throughput(self) -> Iterator[tuple[str, Throughput]]:
        """Measure how many events each broker takes from a backlog, and how many reports make them."""
        for broker, database in zip(self.brokers, self.databases[1:3], strict=False):
            yield broker.name, uvloop.run(self._drain(database, broker))

    async def _drain(self, database: Database, broker: Broking) -> Throughput:
        async with publishing(database.url, self.policy, broker.make) as own:
            subscriptions = [Subscription("bench"), Subscription("bench-status", "statusUpdates")]
            for subscription in subscriptions:
                await own.broker.subscribe(subscription)
            news = await report_news(own.system, self.plan.backlog)
            start = time.monotonic()
            await own.start()
            await own.catch_up()
            published = own.published / (time.monotonic() - start)
            start = time.monotonic()
            await asyncio.gather(*(_consume_all(own, subscription) for subscription in subscriptions))
            return Throughput(news, published, own.published / (time.monotonic() - start), own.published)

    def news_over_http(self) -> tuple[float, float]:
        """Return how many reports with news a server takes over HTTP, and for how long events lag behind at the end."""
        database = self.databases[3]
        fill(database.url, self.policy, range(CLUSTERS))
        with self._serving(database) as server:
            server.http.put("/subscriptions/http", json={}).raise_for_status()
            written = asyncio.run(Writers(server.port).write(self.plan.seconds, rate=0))
            end = time.monotonic()
            while (state := server.http.get("/pubsub").json())["position"] < state["head"]:
                time.sleep(0.01)
            return written / self.plan.seconds, time.monotonic() - end

    # for nothing

    def idle(self, *, has_relay: bool) -> tuple[float, float]:
        """Return the milliseconds of processor time that an idle server takes in a minute, and its database."""
        database = self.databases[0]
        with self._process("idle" if has_relay else "still", database) as process:
            before = usage.processor_time(database.processes)
            own = msgspec.json.decode(process.go(), type=float)
            used = usage.processor_time(database.processes) - before
        return own / self.plan.idle * 60e3, used / self.plan.idle * 60e3

    # processes

    @contextmanager
    def _process(self, task: str, database: Database) -> Iterator[_Process]:
        seconds = self.plan.seconds if task == "write" else self.plan.idle
        numbers = [str(self.plan.rate), str(seconds)]
        command = [sys.executable, "-m", "bench.load.publishing", task, database.url, self.policy, *numbers]
        with subprocess.Popen(  # noqa: S603  # our own command
            command, cwd=Path(__file__).parents[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            try:
                assert process.stdout is not None  # noqa: S101  # it has pipes
                if process.stdout.readline() != b"ready\n":
                    sys.exit(f"{' '.join(command)} did not start")
                yield _Process(process)
            finally:
                process.kill()

    @contextmanager
    def _serving(self, database: Database) -> Iterator[ServerProcess]:
        asyncio.run(open_tables(database.url).migrate())
        server = ServerProcess(self.directory, database.url, policy=self.policy, log_level="warning")
        try:
            server.start()
            yield server
        finally:
            if server.is_running():
                server.stop()


class Throughput(Struct, frozen=True):
    """What happens each second: reports with news, without HTTP; events that are published, and consumed."""

    news: float
    published: float
    consumed: float
    events: int


class _Process:
    """A process that is ready, and waits."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def go(self) -> bytes:
        """Let it work; return what it found."""
        return self._process.communicate(b"go\n")[0]


# ── consuming ────────────────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def _consuming(own: Publishing) -> AsyncIterator[dict[str, float]]:
    """Consume cluster events for the length of a block; note when that of each resource arrived."""
    arrived: dict[str, float] = {}
    subscription = Subscription(f"bench-{time.monotonic_ns()}")
    await own.broker.subscribe(subscription)

    async def consume() -> None:
        async with own.broker.receive(subscription, prefetch=_PREFETCH) as deliveries:
            async for delivery in deliveries:
                arrived.setdefault(delivery.message.partition_key, time.monotonic())
                await delivery.ack()

    task = asyncio.create_task(consume())
    try:
        yield arrived
    finally:
        task.cancel()
        await asyncio.wait({task})
        await own.broker.unsubscribe(subscription.name)


async def _consume_all(own: Publishing, subscription: Subscription) -> None:
    """Receive and acknowledge everything that a subscription has, many at once."""
    state = await own.broker.state_of(subscription)
    left = state.waiting if state is not None and state.waiting else 0
    acks: set[asyncio.Task[None]] = set()
    async with own.broker.receive(subscription, prefetch=_PREFETCH) as deliveries:
        async for delivery in deliveries:
            acks.add(asyncio.create_task(delivery.ack()))
            left -= 1
            if len(acks) >= _PREFETCH // 2 or not left:
                await asyncio.gather(*acks)
                acks.clear()
            if not left:
                return


async def _pull(channel: Channel, name: str, arrived: dict[str, float]) -> None:
    path = f"{BASE}/subscriptions/{name}"
    while True:
        _, pulled = await channel.request("POST", f"{path}:pull", {"max": _PREFETCH, "waitSeconds": 10})
        now, messages = time.monotonic(), pulled["messages"]
        for each in messages:
            arrived.setdefault(each["event"]["data"]["id"], now)
        if messages:
            await channel.request("POST", f"{path}:ack", {"receipts": [each["receipt"] for each in messages]})


async def _await_all(committed: dict[str, float], arrived: dict[str, float]) -> Delays:
    """Wait until every event has arrived; return the delays."""
    async with asyncio.timeout(60):
        while committed.keys() - arrived.keys():
            await asyncio.sleep(0.01)
    return Delays([max(arrived[id_] - moment, 0.0) for id_, moment in committed.items()])


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _show_delays(measuring: Sequence[Measuring]) -> None:
    print("\n| broker | database | way | p50 ms | p99 ms |\n|---|---|---|---|---|")
    for each in measuring:
        for broker, way, found in each.delays():
            figures = f"{found.quantile(0.5):.1f} | {found.quantile(0.99):.1f}"
            print(f"| {broker} | {each.name} | {way} | {figures} |", flush=True)


def _show_throughput(measuring: Sequence[Measuring]) -> None:
    print("\n| broker | database | published/s | consumed/s | reports with news/s | ratio |\n|---|---|---|---|---|---|")
    for each in measuring:
        for broker, found in each.throughput():
            figures = [f"{found.published:,.0f}", f"{found.consumed:,.0f}", f"{found.news:,.0f}"]
            ratio = f"{found.published / found.news:.1f}"
            print(f"| {broker} | {each.name} | {' | '.join([*figures, ratio])} |", flush=True)
    for each in measuring:
        rate, lag = each.news_over_http()
        print(f"\nOver HTTP, {each.name}: {rate:,.0f} reports with news/s; published {lag:.2f} s after the last one")


def _show_idle(measuring: Sequence[Measuring]) -> None:
    print("\n| idle for a minute | server, CPU ms | database, CPU ms |\n|---|---|---|")
    for each in measuring:
        for name, has_relay in (("with the relay", True), ("without", False)):
            own, database = each.idle(has_relay=has_relay)
            print(f"| {each.name}, {name} | {own:,.0f} | {database:,.0f} |", flush=True)
