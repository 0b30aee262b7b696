"""The yardstick: the least that a status write is in plain SQL, one transaction for each report, run by pgbench.

It locks the cluster's row, upserts the report, reads the cluster's reports, updates the cluster's row and commits. It
validates nothing, aggregates nothing and keeps no history. Same PostgreSQL, same number of clusters and connections.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Final

import asyncpg
import msgspec
from msgspec import Struct

from bench.load.fleet import ADAPTERS, report_of
from bench.load.wrk import Figures, LoadError
from tests.servers import find_postgres

# The fill factor lets updates stay on their page, as the server's own tables do.
_TABLES: Final = """
drop table if exists clusters, reports;
create table clusters (id text primary key, status text not null) with (fillfactor = 70);
create table reports (
    cluster_id text, adapter text, body text not null, primary key (cluster_id, adapter)
) with (fillfactor = 70);
insert into clusters select 'cls-' || lpad(n::text, 20, '0'), $body${body}$body$ from generate_series(0, {last}) n;
insert into reports select id, adapter, $body${body}$body$ from clusters, unnest(array{adapters}) as adapter;
vacuum analyze clusters, reports;
"""
_SCRIPT: Final = """
\\set cluster random(0, {last})
\\set adapter random(1, {adapters})
\\set counter random(1, 99999999)
begin;
select status from clusters where id = 'cls-' || lpad(:cluster::text, 20, '0') for update;
insert into reports values (
    'cls-' || lpad(:cluster::text, 20, '0'), (array{names})[:adapter], :counter::text || :body
) on conflict (cluster_id, adapter) do update set body = excluded.body;
select adapter, body from reports where cluster_id = 'cls-' || lpad(:cluster::text, 20, '0');
update clusters set status = :counter::text || :body
where id = 'cls-' || lpad(:cluster::text, 20, '0');
commit;
"""
_BODY: Final = msgspec.json.encode(report_of("dns")).decode()


_LEAST: Final = 3  # seconds; connecting is part of them


class Amount(Struct, frozen=True):
    """How much to run."""

    clusters: int
    connections: int
    seconds: int


def prepare(url: str, clusters: int) -> None:
    """Make the tables and fill them."""
    statements = _TABLES.format(body=_BODY, last=clusters - 1, adapters=list(ADAPTERS)).strip().split(";\n")
    execute(url, [statement.strip(";\n") for statement in statements])


def execute(url: str, statements: list[str]) -> None:
    """Run statements one by one."""
    asyncio.run(_execute(url, statements))


def run(url: str, amount: Amount, directory: Path) -> Figures:
    """Run the transactions; every one of them is timed in a log, because pgbench itself tells no percentiles."""
    script = directory / "pgbench.sql"
    last, names = amount.clusters - 1, list(ADAPTERS)
    script.write_text(_SCRIPT.format(last=last, adapters=len(ADAPTERS), names=names))
    for old in directory.glob("pgbench_log.*"):
        old.unlink()
    options = ["--no-vacuum", "--protocol=prepared", f"--file={script}", "--log", "--jobs=1"]
    options += [f"--client={amount.connections}", f"--time={max(amount.seconds, _LEAST)}", f"--define=body={_BODY}"]
    done = subprocess.run(  # noqa: S603  # the binary that find_postgres found
        [str(find_postgres() / "pgbench"), *options, url],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    rate = re.search(r"^tps = ([0-9.]+)", done.stdout, re.MULTILINE)
    if done.returncode or rate is None:
        raise LoadError(f"pgbench failed: {(done.stderr or done.stdout)[-500:]}")
    times = sorted(int(line.split()[2]) for log in directory.glob("pgbench_log.*") for line in log.open())
    p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
    return Figures(len(times), round(len(times) / float(rate[1]) * 1e6), p50, p99)


async def _execute(url: str, statements: list[str]) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()
