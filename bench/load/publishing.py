"""A server without sockets whose relay publishes through a broker of our choice, and what is written to it.

As `python -m bench.load.publishing write|idle|still DATABASE POLICY RATE SECONDS` it is a process of its own, for what
needs a second server or one that nothing else disturbs. It says `ready`, waits for a line, and writes what it found as
JSON.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
import uvloop

from bench.load.fleet import ADAPTERS, report_of, spec_of
from hyperfleet.aggregation import read_report
from hyperfleet.backends.clock import SystemClock
from hyperfleet.bootstrap import System, open_tables
from hyperfleet.events.in_process import InProcessBroker
from hyperfleet.events.making import Origin
from hyperfleet.events.relay import Relay
from hyperfleet.messaging import Broker
from hyperfleet.model.kind import CLUSTER
from hyperfleet.services.callers import ANONYMOUS
from hyperfleet.services.commands import Command
from hyperfleet.services.ids import new_id
from hyperfleet.services.reports import AcceptReports, Submission
from hyperfleet.services.resources import Create
from hyperfleet.services.results import Target
from hyperfleet.settings import Settings

MakeBroker = Callable[[System], Broker]

_CLUSTERS: Final = 200  # that change; each round of reports is a few transactions


class Publishing:
    """A system, a broker, and a relay between them."""

    def __init__(self, system: System, broker: Broker) -> None:
        """Nothing is published before `start`."""
        self.system = system
        self.broker = broker
        self.relay = Relay(system.store, broker, SystemClock(), new_id("relay"), _origin)
        self.published = 0
        self.relay.on_published = self._count

    async def start(self) -> None:
        """Publish."""
        self.system.committer.on_commit = self.relay.loop.nudge
        self.system.store.on_foreign_commit(self.relay.loop.nudge)
        await self.relay.start()

    async def catch_up(self) -> None:
        """Wait until everything is published."""
        head = await self.system.store.position()
        while await self._position() < head:
            await asyncio.sleep(0.01)

    async def _position(self) -> int:
        (reader,) = [each for each in await self.system.store.readers() if each.name == "relay"]
        return reader.position

    def _count(self, topic: str, count: int) -> None:
        self.published += count


def _origin(store_id: str) -> Origin:
    return Origin(store_id, lambda kind, id_, _: f"/api/hyperfleet/v1/clusters/{id_}", lambda _: None)


def in_process(system: System) -> Broker:
    """Make the in-process broker of a system."""
    return InProcessBroker(system.store, SystemClock())


@asynccontextmanager
async def publishing(database: str, policy: str, make_broker: MakeBroker = in_process) -> AsyncIterator[Publishing]:
    """Run a system for the length of a block; its own relay is replaced by one that is not started yet."""
    await open_tables(database).migrate()
    system = System(Settings(database=database, policy=policy))
    await system.start()
    await system.events.relay.stop()
    broker = make_broker(system)
    await broker.open()
    made = Publishing(system, broker)
    try:
        yield made
    finally:
        await made.relay.stop()
        await broker.close()
        await system.stop()


# ── what is written ──────────────────────────────────────────────────────────────────────────────────────────────


async def create_evenly(system: System, rate: float, seconds: float) -> dict[str, float]:
    """Create clusters one by one at an even pace; return when each was committed, by id."""
    start, committed = time.monotonic(), {}
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(start + number / rate - time.monotonic(), 0))
        id_ = new_id("cls")
        await system.committer.submit(_creation(system, id_))
        committed[id_] = time.monotonic()
    return committed


async def report_news(system: System, number: int) -> float:
    """Send reports that all change a cluster, many at once; return how many there were each second."""
    ids = [new_id("cls") for _ in range(_CLUSTERS)]
    await _submit(system, [_creation(system, id_) for id_ in ids])
    start = time.monotonic()
    for turn in range(number // _CLUSTERS):
        await _submit(system, list(_reports(ids, turn)))
    return number / (time.monotonic() - start)


def _reports(ids: list[str], turn: int) -> Iterator[Command[Any]]:
    """Yield a report about each cluster: one adapter after the other, available in one round and not in the next."""
    body = report_of(ADAPTERS[turn % 4], is_available=turn // 4 % 2 == 1, counter=f"{turn:08}")
    report = read_report(body).report
    if report is None:
        raise ValueError("the report cannot be read")
    for id_ in ids:
        yield AcceptReports(Target(CLUSTER, id_), (Submission(report, new_id("rpt")),), ANONYMOUS)


def _creation(system: System, id_: str) -> Create:
    return Create(CLUSTER, id_, id_, spec_of(0), {}, ANONYMOUS, system.context.check_spec)


async def _submit(system: System, commands: list[Any]) -> None:
    for result in await system.committer.submit_all(commands):
        if isinstance(result, BaseException):
            raise result


# ── a process of its own ─────────────────────────────────────────────────────────────────────────────────────────


async def _write(database: str, policy: str, rate: float, seconds: float) -> dict[str, float]:
    """Create clusters as a second server would."""
    async with publishing(database, policy) as own:
        await own.start()
        await _await_go()
        committed = await create_evenly(own.system, rate, seconds)
        await own.catch_up()
        return committed


async def _idle(database: str, policy: str, seconds: float, *, has_relay: bool) -> float:
    """Do nothing; return the seconds of processor time that this takes."""
    async with publishing(database, policy) as own:
        if has_relay:
            await own.start()
        await _await_go()
        await asyncio.sleep(1)  # the start is over
        used = time.process_time()
        await asyncio.sleep(seconds)
        return time.process_time() - used


async def _await_go() -> None:
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


def _main() -> None:
    task, database, policy, rate, seconds = sys.argv[1:]
    if task == "write":
        found: object = uvloop.run(_write(database, policy, float(rate), float(seconds)))
    else:
        found = uvloop.run(_idle(database, policy, float(seconds), has_relay=task == "idle"))
    sys.stdout.buffer.write(msgspec.json.encode(found))


if __name__ == "__main__":
    _main()
