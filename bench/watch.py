"""`python -m bench watch [--quick]`: what it costs to keep one watcher informed, and five hundred.

A server, writers whose every report changes a cluster, and an audience in a process of its own share the machine.
First so many changes a second are written and everybody listens; then as many as can be, alone and with everybody.
"""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import asyncpg
import msgspec
from msgspec import Struct

from bench.load import usage
from bench.load.audience import Heard
from bench.load.filling import fill
from bench.load.fleet import ADAPTERS, cluster_id, report_of
from bench.load.subject import POSTGRES, Database, Subject, running
from bench.server import databases, write_policy
from tests.e2e.lanes import BASE, Channel
from tests.servers import temporary_directory

CLUSTERS: Final = 200
_CHANNELS: Final = 16
_WATCHERS: Final = (1, 500)


class Plan(Struct, frozen=True):
    """How much is measured: changes a second, at which the audience listens, and for how many seconds."""

    rate: int
    seconds: float


_FULL: Final = Plan(100, 15)
_QUICK: Final = Plan(50, 4)


def main(options: Sequence[str]) -> None:
    """Measure, and print the tables."""
    if strange := set(options) - {"--quick"}:
        sys.exit(f"unknown option {', '.join(strange)}; known is --quick")
    plan = _QUICK if "--quick" in options else _FULL
    with temporary_directory() as directory, databases(directory) as found:
        policy = write_policy(directory)
        for database in found:
            fill(database.url, str(policy), range(CLUSTERS))
            with running(directory, database, CLUSTERS, {"policy": str(policy), "log_level": "warning"}) as subject:
                _measure(subject, plan)


def _measure(subject: Subject, plan: Plan) -> None:
    writers = Writers(subject.server.port)
    print(f"\n### {subject.database.name}, {plan.rate} changes a second\n")
    print("| watchers | delivered/s | p50 ms | p99 ms | server CPU µs each | server CPU % | reads of the log/s |")
    print("|---|---|---|---|---|---|---|")
    for number in (0, *_WATCHERS):
        print(_listen(subject, plan, writers, number))
    alone, watched = (_hurry(subject, plan, writers, number) for number in (0, _WATCHERS[-1]))
    print(f"\nAs many as can be: {alone:,.0f}/s alone, {watched:,.0f}/s with {_WATCHERS[-1]} watchers")


def _listen(subject: Subject, plan: Plan, writers: Writers, number: int) -> str:
    """Write at an even pace while an audience listens; return what it heard as a row."""
    with _audience(subject.server.port, number, plan.seconds) as audience:
        scans, used = _count_scans(subject.database), usage.processor_time(subject.server.processes)
        audience.begin()
        asyncio.run(writers.write(plan.seconds, plan.rate))
        used = usage.processor_time(subject.server.processes) - used
        scans = _count_scans(subject.database) - scans
        heard = audience.end()
    each = f"{used / heard.events * 1e6:.0f}" if heard.events else ""
    reads = f"{scans / plan.seconds:.1f}" if number and subject.database.name == POSTGRES else ""
    figures = [number, f"{heard.events / plan.seconds:,.0f}", f"{heard.delay(0.5):.0f}", f"{heard.delay(0.99):.0f}"]
    return f"| {' | '.join(map(str, [*figures, each, f'{used / plan.seconds:.0%}', reads]))} |"


def _hurry(subject: Subject, plan: Plan, writers: Writers, number: int) -> float:
    """Return how many changes a second are written when nobody waits."""
    with _audience(subject.server.port, number, plan.seconds) as audience:
        audience.begin()
        written = asyncio.run(writers.write(plan.seconds, rate=0))
        audience.end()
    return written / plan.seconds


class Writers:
    """Adapters that change their minds with every report."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._numbers = itertools.count()

    async def write(self, seconds: float, rate: int) -> int:
        """Write for so long, so many a second or, with rate 0, as many as can be; return how many it were."""
        end = time.monotonic() + seconds
        return sum(await asyncio.gather(*(self._write(end, rate / _CHANNELS) for _ in range(_CHANNELS))))

    async def _write(self, end: float, rate: float) -> int:
        channel, written, start = Channel(lambda: self._port), 0, time.monotonic()
        while time.monotonic() < end:
            number = next(self._numbers)
            cluster, turn = number % CLUSTERS, number // CLUSTERS
            body = report_of(ADAPTERS[turn % 4], is_available=turn // 4 % 2 == 1, counter=f"{number:08}")
            status, _ = await channel.request("POST", f"{BASE}/clusters/{cluster_id(cluster)}/statuses", body)
            written += status == 200
            if rate:
                await asyncio.sleep(start + written / rate - time.monotonic())
        channel.close()
        return written


class _Audience:
    """The process of an audience; none, if nobody is to listen."""

    def __init__(self, process: subprocess.Popen[bytes] | None) -> None:
        self._process = process

    def begin(self) -> None:
        """Let it listen."""
        if self._process is not None:
            self._process.stdin.write(b"go\n")  # type: ignore[union-attr]  # it has pipes
            self._process.stdin.flush()  # type: ignore[union-attr]

    def end(self) -> Heard:
        """Return what it heard."""
        if self._process is None:
            return Heard()
        return msgspec.json.decode(self._process.communicate()[0], type=Heard)


@contextmanager
def _audience(port: int, number: int, seconds: float) -> Iterator[_Audience]:
    """Gather an audience for the length of a block."""
    if not number:
        yield _Audience(None)
        return
    command = [sys.executable, "-m", "bench.load.audience", str(port), str(number), str(seconds)]
    with subprocess.Popen(  # noqa: S603  # our own command
        command, cwd=Path(__file__).parents[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None  # noqa: S101  # it has pipes
            if process.stdout.readline() != b"ready\n":
                sys.exit("the audience did not come")
            yield _Audience(process)
        finally:
            process.kill()


def _count_scans(database: Database) -> int:
    """Return how often a PostgreSQL database was asked for events, by its own account; SQLite keeps none."""
    return asyncio.run(_ask(database.url)) if database.name == POSTGRES else 0


async def _ask(url: str) -> int:
    await asyncio.sleep(1.1)  # processes tell their counts once a second
    connection = await asyncpg.connect(url)
    try:
        count = "select seq_scan + coalesce(idx_scan, 0) from pg_stat_user_tables where relname = 'events'"
        return int(await connection.fetchval(count))
    finally:
        await connection.close()
