"""`python -m bench sentinel [--quick] [--sqlite | --postgres]`: a pass of the sentinel over a large fleet; an idle one.

The sentinel of a server, without a server beside it: what is due is read from the store, decided on, published through
the in-process broker to one subscription, and scheduled again. PostgreSQL counts the rows that statements read
(`pg_stat_user_tables`: rows of sequential scans, and rows fetched through an index); SQLite does not, so its plans are
printed.
"""

from __future__ import annotations

import asyncio
import importlib.resources
import resource
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import Final

import asyncpg
from msgspec import Struct

from bench.load.filling import fill
from hyperfleet.api.wire import href_of, present
from hyperfleet.backends.clock import SystemClock
from hyperfleet.backends.sqlite_connection import SQL
from hyperfleet.bootstrap import open_store
from hyperfleet.events.in_process import InProcessBroker
from hyperfleet.events.looking import Looking
from hyperfleet.events.making import Origin
from hyperfleet.events.server_sentinel import ServerSentinel
from hyperfleet.messaging import Subscription
from hyperfleet.model.kind import Kinds
from hyperfleet.sentinel.rules import Rule, RuleSet
from hyperfleet.services.look_planning import LookRules
from hyperfleet.services.policies import PolicyRegistry, PolicyText
from tests.servers import temporary_database, temporary_directory, temporary_postgres

_CLUSTERS: Final = 100_000
_FEW_CLUSTERS: Final = 2_000  # are made by services; the rest are copies of their rows
_DUE: Final = 100
_IDLE_TURNS: Final = 50
_KINDS: Final = ("Cluster", "NodePool")
_ROWS: Final = "select coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::bigint from pg_stat_user_tables"


class Result(Struct, frozen=True):
    """Seconds of passes, and events that were published by the first one."""

    busy: float
    published: int
    idle: float
    idle_processor: float  # seconds of one idle turn


def main(options: Sequence[str]) -> None:
    """Measure, and print what was found."""
    if strange := set(options) - {"--quick", "--sqlite", "--postgres"}:
        sys.exit(f"unknown option {', '.join(strange)}; known are --quick, --sqlite, --postgres")
    clusters = _FEW_CLUSTERS if "--quick" in options else _CLUSTERS
    print(f"{clusters:,} clusters, {_DUE} of them due\n")
    print("| store | pass | events | rows read | idle turn | processor time of it |\n|---|---|---|---|---|---|")
    with ExitStack() as stack:
        directory = stack.enter_context(temporary_directory())
        if "--postgres" not in options:
            _show("SQLite", f"sqlite:{directory / 'fleet.db'}", directory, clusters)
        if "--sqlite" not in options:
            postgres = stack.enter_context(temporary_postgres())
            url = stack.enter_context(temporary_database(postgres.url()))
            _show("PostgreSQL", url, directory, clusters)
        if "--postgres" not in options:
            _explain(directory)


def _show(name: str, url: str, directory: Path, clusters: int) -> None:
    file = directory / "policy.yaml"
    file.write_text(importlib.resources.files("hyperfleet").joinpath("policies/default.yaml").read_text("utf-8"))
    fill(url, str(file), range(_FEW_CLUSTERS))
    is_postgres, copies = not url.startswith("sqlite"), clusters // _FEW_CLUSTERS - 1
    if is_postgres:
        asyncio.run(_make_due_postgres(url, copies))
    else:
        _make_due_sqlite(directory / "fleet.db", copies)
    before = asyncio.run(_rows_read(url)) if is_postgres else 0
    result = asyncio.run(_measure(url, file.read_text(), idle=False))
    rows = f"{asyncio.run(_rows_read(url)) - before:,}" if is_postgres else "see below"
    idle = asyncio.run(_measure(url, file.read_text(), idle=True))
    print(
        f"| {name} | {result.busy:.3f} s | {result.published} | {rows} | {idle.idle * 1000:.1f} ms | "
        f"{idle.idle_processor * 1000:.1f} ms |",
        flush=True,
    )


async def _measure(url: str, policy: str, *, idle: bool) -> Result:
    """Make passes in a process that has just started: the first one finds what is due."""
    store = open_store(url)
    await store.open()
    kinds, rules = Kinds(), LookRules(RuleSet([Rule("resync", "ready", timedelta())]))
    policies = PolicyRegistry(store, kinds, present, lambda: PolicyText(policy, "policy.yaml"), rules.plan)
    await policies.adopt()
    broker = InProcessBroker(store, SystemClock())
    await store.queues.subscribe(Subscription("dns"))
    await store.looks.save_rules_digest(rules.digest)  # so that it does not look at everything
    looking = Looking(store, policies, broker, _origin_of(kinds), rules)
    published: list[int] = []
    looking.on_published = lambda _, count: published.append(count)
    sentinel = ServerSentinel(looking, _KINDS, "bench", is_enabled=True)
    began = time.perf_counter()
    if not idle:
        await sentinel.turn()
    busy = time.perf_counter() - began
    used, began = _processor_time(), time.perf_counter()
    turns = _IDLE_TURNS if idle else 0
    for _ in range(turns):
        await sentinel.turn()
    spent, processor = time.perf_counter() - began, _processor_time() - used
    await store.close()
    return Result(busy, sum(published), spent / max(turns, 1), processor / max(turns, 1))


# Copies differ in id and name. They are never due, so nothing else of them is read.
_COPY: Final = """
insert into resources (id, kind, parent_id, tenant, name, created_time, is_deleting, severity, revision, wake_at,
                       policy_version, answer, look_at{number})
select id || '-' || {copy}, kind, parent_id, tenant, name || '-' || {copy}, created_time, is_deleting, severity,
       revision, wake_at, policy_version, answer, look_at{next}
from resources where id not like '%-%-%';
insert into records (number, resource, status)
select r.number, c.resource, c.status from resources r
join resources o on o.id || '-' || {copy} = r.id join records c on c.number = o.number;
"""


def _make_due_sqlite(file: Path, copies: int) -> None:
    now = time.time_ns() // 1000
    with closing(sqlite3.connect(file)) as connection, connection:
        for copy in range(copies):
            following = f", number + {(copy + 1) * 1_000_000}"
            connection.executescript(_COPY.format(copy=copy, number=", number", next=following))
        connection.execute("update resources set look_at = ?", (now + 10**10,))
        connection.execute(
            "update resources set look_at = ? where id in (select id from resources where id not like '%-%-%' limit ?)",
            (now, _DUE),
        )


async def _make_due_postgres(url: str, copies: int) -> None:
    connection = await asyncpg.connect(url)
    for copy in range(copies):
        await connection.execute(_COPY.format(copy=copy, number="", next=""))
    await connection.execute("update resources set look_at = now() + interval '3 hours'")
    await connection.execute(
        "update resources set look_at = now() where id in "
        "(select id from resources where id not like '%-%-%' limit $1)",
        _DUE,
    )
    await connection.execute("vacuum analyze")
    await connection.close()


async def _rows_read(url: str) -> int:
    """Return the rows that were read since the database was made; sessions count what they read when they end."""
    await asyncio.sleep(timedelta(seconds=2).total_seconds())
    connection = await asyncpg.connect(url)
    rows = int(await connection.fetchval(_ROWS))
    await connection.close()
    return rows


def _explain(directory: Path) -> None:
    print("\nPlans of SQLite:\n")
    with closing(sqlite3.connect(directory / "fleet.db")) as connection:
        for name in ("read_due_looks", "read_next_look", "read_looks", "advance_look"):
            count = max(SQL[name].count("?") and int(each) for each in "123456" if f"?{each}" in SQL[name])
            for row in connection.execute(f"explain query plan {SQL[name]}", [None] * count):
                print(f"    {name}: {row[-1]}")


def _origin_of(kinds: Kinds) -> Callable[[str], Origin]:
    def href(kind: str, id_: str, parent_id: str | None) -> str:
        known = kinds.get(kind)
        return "" if known is None else href_of(known, id_, parent_id, kinds)

    return lambda store_id: Origin(store_id, href, lambda _: None)


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
