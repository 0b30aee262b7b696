"""The yardstick for SQLite: the same plain transaction as pgbench's, in one process and without HTTP."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Final

import msgspec

from bench.load.fleet import ADAPTERS, cluster_id, report_of
from bench.load.wrk import Figures

_BODY: Final = msgspec.json.encode(report_of("dns")).decode()
_TABLES: Final = """
pragma journal_mode = wal;
pragma synchronous = full;
create table if not exists clusters (id text primary key, status text not null) without rowid;
create table if not exists reports (
    cluster_id text, adapter text, body text not null, primary key (cluster_id, adapter)
) without rowid;
"""
_SAVE: Final = (
    "insert into reports values (?, ?, ?) on conflict (cluster_id, adapter) do update set body = excluded.body"
)


def run(file: Path, clusters: int, seconds: float) -> Figures:
    """Run transactions one after the other for so long."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.executescript(_TABLES)
        _fill(connection, clusters)
        times = []
        end = perf_counter() + seconds
        while (start := perf_counter()) < end:
            _transact(connection, cluster_id(random.randrange(clusters)), random.choice(ADAPTERS))
            times.append(perf_counter() - start)
    times.sort()
    p50, p99 = (times[len(times) * percent // 100] * 1e6 for percent in (50, 99))
    return Figures(len(times), round(seconds * 1e6), p50, p99)


def _fill(connection: sqlite3.Connection, clusters: int) -> None:
    with _transaction(connection):
        ids = [cluster_id(number) for number in range(clusters)]
        connection.executemany("insert or ignore into clusters values (?, ?)", ((id_, _BODY) for id_ in ids))
        rows = ((id_, adapter, _BODY) for id_ in ids for adapter in ADAPTERS)
        connection.executemany("insert or ignore into reports values (?, ?, ?)", rows)


def _transact(connection: sqlite3.Connection, id_: str, adapter: str) -> None:
    body = f"{random.randrange(10**8):08}{_BODY}"
    with _transaction(connection):
        connection.execute("select status from clusters where id = ?", (id_,)).fetchone()
        connection.execute(_SAVE, (id_, adapter, body))
        connection.execute("select adapter, body from reports where cluster_id = ?", (id_,)).fetchall()
        connection.execute("update clusters set status = ? where id = ?", (body, id_))


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("begin immediate")
    yield
    connection.execute("commit")
