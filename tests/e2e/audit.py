"""Whether what a database holds can be true: read behind the server's back, with plain SQL, while nobody writes.

`Verification` sees what the store's port shows; here is what it does not show. Nothing has been pruned, no adapter
retired and no resource removed in the databases that are audited, so their logs must be complete.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

import asyncpg

from hyperfleet.api.wire import present
from hyperfleet.bootstrap import open_store, read_policy
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import EVERYTHING, Query, Record, Store
from hyperfleet.services.facets import facets_of
from hyperfleet.services.policies import PolicyRegistry
from hyperfleet.services.verification import Verification
from tests.e2e.lanes import Lane, words_of
from tests.e2e.server import PATIENCE

_SQLITE: Final = "sqlite:"

# Each of these finds nothing in a database that is in order.
_IMPOSSIBLE: Final = {
    "positions have gaps, or the head is not the last one": (
        "select head.position, count(events.position), min(events.position), max(events.position)"
        " from head left join events on true group by head.position"
        " having count(events.position) <> head.position or coalesce(max(events.position), 0) <> head.position"
    ),
    "the revision of a resource is not its newest event": (
        "select id, revision, newest from resources join"
        " (select resource_id, max(position) as newest from events group by resource_id) as last on id = resource_id"
        " where revision <> newest"
    ),
    "a resource has no event": "select id from resources where id not in (select resource_id from events)",
    "the newest event shows another answer than the resource": (
        "select id, revision from resources join events on events.position = resources.revision"
        " where events.answer <> resources.answer"
    ),
    "a transition belongs to no event": (
        "select position, subject from transitions where position not in (select position from events)"
    ),
    "a logged report belongs to no event": (
        "select report_id from report_log where position not in (select position from events)"
    ),
    "a report is logged twice": "select report_id from report_log group by report_id having count(*) > 1",
    "a stored report is not the last that was logged": (
        "select r.resource_id, r.adapter, r.report_id, l.report_id from reports r left join report_log l"
        " on l.sequence = (select max(sequence) from report_log"
        " where resource_id = r.resource_id and adapter = r.adapter)"
        " where l.report_id is null or l.report_id <> r.report_id or l.received_time > r.last_heard"
        " or l.effective_time > r.effective_time"
    ),
    "a report has no body, or a body no report": (
        "select resource_id, adapter from reports where not exists (select 1 from report_bodies b"
        " where b.resource_id = reports.resource_id and b.adapter = reports.adapter)"
        " union all select resource_id, adapter from report_bodies where not exists (select 1 from reports r"
        " where r.resource_id = report_bodies.resource_id and r.adapter = report_bodies.adapter)"
    ),
    "a report was observed after it was heard": (
        "select resource_id, adapter from reports where effective_time > last_heard"
    ),
    "a report does not know when the one before it was last heard": (
        "select report_id from (select report_id, received_time, replaced_effective, replaced_heard,"
        " lag(received_time) over adapter as heard, lag(effective_time) over adapter as effective from report_log"
        " window adapter as (partition by resource_id, adapter order by sequence)) as log"
        " where (heard is null) <> (replaced_heard is null) or replaced_heard < heard or replaced_effective < effective"
        " or replaced_heard > received_time"
    ),
    "more reports of an adapter are logged than counted": (
        "select adapter, aggregated + stored, logged from adapters"
        " join (select adapter, count(*) as logged from report_log group by adapter) as log using (adapter)"
        " where aggregated + stored < logged"
    ),
    "the first transition of something does not start from nothing": (
        "select resource_id, subject, before from transitions as first where before is not null and not exists"
        " (select 1 from transitions where resource_id = first.resource_id and subject = first.subject"
        " and position < first.position)"
    ),
}


class Audit:
    """A database that nobody writes to, open for inspection."""

    def __init__(self, database: str, store: Store) -> None:
        """Read the tables of `database` directly, and the rest through `store`."""
        self._database = database
        self._store = store

    async def find_faults(self, lanes: Iterable[Lane]) -> list[str]:
        """Return everything that cannot be true, in itself or because of what lanes were told."""
        records = {record.resource.id: record for record in await self._read_records()}
        return [
            *await self._find_impossible(),
            *await self._find_wrong_facets(records),
            *await self._verify(),
            *await self._find_broken_promises(records, lanes),
        ]

    async def _select(self, statement: str) -> Sequence[tuple[Any, ...]]:
        return await query(self._database, statement)

    async def _read_records(self) -> list[Record]:
        answers = await self._store.find(Query("Cluster", EVERYTHING, limit=100_000))
        records = [await self._store.read_record("Cluster", answer.id, EVERYTHING) for answer in answers]
        return [record for record in records if record is not None]

    async def _find_impossible(self) -> list[str]:
        found = [(what, await self._select(statement)) for what, statement in _IMPOSSIBLE.items()]
        return [f"{what}: {rows[:3]}" for what, rows in found if rows]

    async def _find_wrong_facets(self, records: dict[str, Record]) -> list[str]:
        """Compare the tokens that lists are filtered by with those that follow from each record."""
        stored: dict[str, set[str]] = {id_: set() for id_ in records}
        for id_, token in await self._select("select id, token from facets join resources using (number)"):
            stored[id_].add(token)
        wrong = {id_: facets_of(record) ^ stored[id_] for id_, record in records.items()}
        return [f"{id_} has the wrong tokens: {sorted(tokens)}" for id_, tokens in wrong.items() if tokens]

    async def _verify(self) -> list[str]:
        book = PolicyRegistry(self._store, Kinds(), present, lambda: read_policy(None))
        await book.refresh()
        return [str(finding) async for finding in Verification(self._store, book.rules).run()]

    async def _find_broken_promises(self, records: dict[str, Record], lanes: Iterable[Lane]) -> list[str]:
        """Look for what was acknowledged and is not there."""
        logged = {report_id for (report_id,) in await self._select("select report_id from report_log")}
        faults = []
        for lane in lanes:
            lost = [each.number for each in lane.acknowledged if each.report_id not in logged]
            stored = records[lane.cluster].reports.get(lane.adapter)
            number = int(stored.report.data["n"]) if stored else 0
            if lost or not words_of(lane.last) <= number <= lane.sent:
                faults.append(
                    f"{lane.cluster}, {lane.adapter}: report {number} is stored, {lane.last} was the last acknowledged,"
                    f" {lane.sent} the last sent; acknowledged and not in the log: {lost}"
                )
            if stored and lane.acknowledged and stored.effective_time < lane.acknowledged[-1].observed_time:
                faults.append(f"{lane.cluster}, {lane.adapter}: report {lane.last} was acknowledged, and is not heard")
        return faults


async def query(database: str, statement: str, *parameters: object) -> Sequence[tuple[Any, ...]]:
    """Execute a statement that both engines understand, with parameters `$1`, `$2` and on; return its rows."""
    if database.startswith(_SQLITE):
        named = {str(number): value for number, value in enumerate(parameters, 1)}
        with closing(sqlite3.connect(database.removeprefix(_SQLITE), isolation_level=None)) as connection:
            return connection.execute(statement, named).fetchall()
    connection = await asyncpg.connect(database)
    try:
        return [tuple(row) for row in await connection.fetch(statement, *parameters)]
    finally:
        await connection.close()


@asynccontextmanager
async def auditing(database: str) -> AsyncIterator[Audit]:
    """Open a database that nobody writes to."""
    store = open_store(database)
    await store.open()
    try:
        yield Audit(database, store)
    finally:
        await store.close()


def copy_of(database: Path, directory: Path) -> str:
    """Copy an SQLite database with its log as they lie there, so that looking at it heals nothing; return its URL."""
    copy = directory / "copy.db"
    for ending in ("", "-wal"):
        target = copy.with_name(copy.name + ending)
        target.unlink(missing_ok=True)
        source = database.with_name(database.name + ending)
        if source.exists():
            target.write_bytes(source.read_bytes())
    copy.with_name(copy.name + "-shm").unlink(missing_ok=True)
    return f"{_SQLITE}{copy}"


async def await_silence(database: str) -> None:
    """Wait until PostgreSQL has done with the clients of a server that was killed: a commit may be under way."""
    connection = await asyncpg.connect(database)
    others = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    try:
        async with asyncio.timeout(PATIENCE):
            while await connection.fetchval(f"{others} and backend_type = 'client backend'"):
                await asyncio.sleep(0.01)
    finally:
        await connection.close()
