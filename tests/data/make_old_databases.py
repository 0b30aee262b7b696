"""Make databases with data as the last version with heartbeats among the events wrote them: see README.md.

Runs in a checkout of that version only, so neither this version's types nor its tests check it.
"""
# mypy: ignore-errors

from __future__ import annotations

import asyncio
import gzip
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import msgspec
from msgspec.structs import replace

sys.path.insert(0, os.getcwd())

from hyperfleet.api.wire import present
from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.model.kind import CLUSTER, NODE_POOL, Kinds
from hyperfleet.ports import EVERYTHING, HistoryQuery, StatusCause
from hyperfleet.services.callers import Caller
from hyperfleet.services.committer import Committer
from hyperfleet.services.policies import PolicyRegistry, PolicyText
from hyperfleet.services.reports import AcceptReports, RetireAdapter, Submission
from hyperfleet.services.resources import Create, Delete, Edit
from hyperfleet.services.results import Refusal, ResourceEdit, Target
from hyperfleet.services.upkeep import Recompute
from tests.servers import find_postgres, temporary_database, temporary_postgres
from tests.world import make_report

START = datetime(2025, 10, 17, 12, tzinfo=UTC)
POLICY = """
requiredAdapters: [validation, dns]
policies: {staleThreshold: 5m, staleAction: degraded}
"""


class Clock:
    """Stands still until it is moved."""

    def __init__(self):
        self.time = START

    def now(self):
        return self.time


class ClockedPostgres(PostgresStore):
    """A database where the time is another's."""

    def __init__(self, url, clock):
        super().__init__(url)
        self._clock = clock

    async def transact(self, needs, work):
        return await super().transact(needs, lambda loaded: work(replace(loaded, now=self._clock.now())))


class History:
    """Everything that can happen to a resource, through the real commands."""

    def __init__(self, store, clock):
        self.store, self.clock = store, clock
        self.policies = PolicyRegistry(store, Kinds(), present, lambda: PolicyText(POLICY, "policy.yaml"))
        self.committer = Committer(store, self.policies)
        self.numbers = count(1)
        self.ids = {}
        self.moments = []

    async def do(self, command, seconds=1.0):
        self.clock.time += timedelta(seconds=seconds)
        result = await self.committer.submit(command)
        assert not isinstance(result, Refusal), result
        self.moments.append(self.clock.time)
        return result

    async def create(self, id_, tenant, parent=None):
        kind = NODE_POOL if parent else CLUSTER
        self.ids[id_] = Target(kind, id_, parent)
        caller = Caller(tenant=tenant)
        spec = {"region": "eu", "size": 3}
        await self.do(Create(kind, id_, id_, spec, {"env": "test"}, caller, lambda *_: (), parent_id=parent))

    async def report(self, id_, adapter, available="True", seconds=1.0, late=0.25, **more):
        observed = self.clock.time + timedelta(seconds=seconds - late)
        body = {"observedTime": observed.isoformat().replace("+00:00", "Z"), **more}
        report = make_report(adapter, available, **body)
        submission = Submission(report, f"rpt-{next(self.numbers)}")
        await self.do(AcceptReports(self.ids[id_], (submission,), Caller(), is_brief=True), seconds)

    async def edit(self, id_, **spec):
        await self.do(Edit(self.ids[id_], ResourceEdit(spec=spec), Caller(), lambda *_: ()))

    async def wake(self):
        for id_ in (await self.store.due(100)).ids:
            await self.committer.submit(Recompute(id_, StatusCause("deadline")))

    async def live(self):
        for id_, tenant in (("cls-a", "acme"), ("cls-b", "beta"), ("cls-gone", "acme"), ("cls-going", "beta")):
            await self.create(id_, tenant)
        await self.create("np-a", "acme", "cls-a")
        await self.create("np-gone", "acme", "cls-gone")
        for id_ in self.ids:
            await self.report(id_, "validation")
            await self.report(id_, "dns", data={"zone": "a"})
        await self.report("cls-a", "probe", "Unknown")
        await self.report("cls-a", "probe", "Unknown")
        for _ in range(40):  # more than 32: milestones
            await self.report("cls-a", "dns", data={"zone": "a"})
            await self.report("cls-a", "validation")
            await self.report("cls-b", "dns", data={"zone": "a"}, late=3)
        await self.report("cls-a", "dns", "False/Broken/no zone", data={"zone": "a"})
        for _ in range(5):
            await self.report("cls-a", "dns", "False/Broken/no zone", data={"zone": "a"}, seconds=20)
        await self.report("cls-a", "dns", data={"zone": "b"})
        await self.report("cls-a", "dns", data={"zone": "c"}, late=500)  # too late: discarded
        await self.report("cls-a", "dns", "Unknown")  # discarded
        await self.edit("cls-a", region="eu", size=4)
        for _ in range(35):
            await self.report("cls-a", "dns", generation=2, data={"zone": "b"}, seconds=2)
            await self.report("cls-a", "validation", generation=1)  # outdated heartbeats
        await self.report("cls-a", "extra", generation=2)
        await self.report("cls-a", "extra", generation=2)
        await self.report("np-a", "dns", "False/Waiting", data={})
        await self.do(RetireAdapter(self.ids["cls-a"], "extra", Caller()))
        self.clock.time += timedelta(minutes=6)
        await self.wake()  # much is stale now
        await self.report("cls-b", "dns", data={"zone": "a"})  # recovers by a heartbeat
        await self.report("cls-b", "dns", data={"zone": "a"})
        for id_ in ("cls-gone", "cls-going"):
            await self.do(Delete(self.ids[id_], Caller()))
        for adapter in ("dns", "validation"):  # nobody must clean up after its node pool, so that has gone
            await self.report("cls-gone", adapter, generation=2, extra={"Finalized": "True"})
        await self.report("cls-going", "dns", generation=2, extra={"Finalized": "True"})
        for _ in range(3):
            await self.report("cls-going", "dns", generation=2, extra={"Finalized": "True"}, seconds=7)
            await self.report("cls-a", "dns", generation=2, data={"zone": "b"}, seconds=2)
            await self.report("np-a", "dns", "False/Waiting", data={}, seconds=2)

    async def tell(self):
        """Return what this version reads: each report as (received or asked for at, report)."""
        store = self.store
        moments = sorted({START - timedelta(seconds=1), *self.moments[::5], *self.moments[-3:]})
        entries = (await store.read_events(0, 100_000)).entries
        told = {"policy": POLICY, "moments": moments, "head": await store.position(), "resources": {}}
        told["events"] = [entry for entry in entries if entry.type != "Reported"]
        told["adapters"] = await store.adapters(EVERYTHING)
        for id_, target in self.ids.items():
            versions = [await store.read_version(target.kind.name, id_, EVERYTHING, at) for at in moments]
            told["resources"][id_] = {
                "kind": target.kind.name,
                "record": await store.read_record(target.kind.name, id_, EVERYTHING),
                "versions": [version and version.entry for version in versions],
                "past": [await store.read_reports_past(id_, EVERYTHING, at) for at in moments],
                "generations": [await store.read_reports_at(id_, EVERYTHING, generation) for generation in (1, 2)],
                "log": await store.read_report_log(id_, EVERYTHING, START),
                "transitions": await store.read_transitions(HistoryQuery(id_, EVERYTHING, limit=10_000)),
            }
        return msgspec.json.encode(told, enc_hook=dict)


async def fill(store, clock):
    await store.migrate()
    await store.open()
    history = History(store, clock)
    await history.policies.activate()
    history.committer.start()
    await history.live()
    await history.committer.close()
    told = await history.tell()
    await store.close()
    return told


def make_sqlite(directory):
    with tempfile.TemporaryDirectory() as place:
        path, clock = Path(place) / "fleet.db", Clock()
        told = asyncio.run(fill(SqliteStore(path, clock), clock))
        with closing(sqlite3.connect(path)) as connection:
            script = "\n".join(connection.iterdump())
    save(directory / "schema-sqlite-4.sql.gz", script.encode())
    save(directory / "as-it-was.json.gz", told)
    return told


def make_postgres(directory, expected):
    with temporary_postgres(durable=False) as server, temporary_database(server.url()) as url:
        clock = Clock()
        told = asyncio.run(fill(ClockedPostgres(url, clock), clock))
        command = [find_postgres() / "pg_dump", "--inserts", "--no-owner", "--no-privileges", url]
        script = subprocess.run(command, check=True, capture_output=True).stdout  # noqa: S603  # of our own making
    assert told == expected, "both engines tell the same"
    noise = (b"--", b"\\", b"SET ", b"SELECT pg_catalog.set_config")
    lines = [line for line in script.splitlines() if line and not line.startswith(noise)]
    save(directory / "schema-postgres-5.sql.gz", b"\n".join(lines))


def save(path, content):
    path.write_bytes(gzip.compress(content, mtime=0))


if __name__ == "__main__":
    make_postgres(Path(sys.argv[1]), make_sqlite(Path(sys.argv[1])))
