"""Reads of the past from a PostgreSQL connection: each function is one read, from one snapshot."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from hyperfleet.backends.past import Horizon, LogRow, WalkedLog, decode_facets, was_there
from hyperfleet.backends.postgres_connections import SNAPSHOT, Connection, transaction
from hyperfleet.backends.postgres_loading import SQL, as_storable, record_of
from hyperfleet.backends.postgres_reading import existed, tenants_of
from hyperfleet.errors import HistoryPruned
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import EventPage, LoggedEvent, PastReport, Record, Scope


async def read_position(connection: Connection) -> int:
    """Return the position of the last event."""
    return int(await connection.fetchval(SQL["read_position"]))


async def read_horizon(connection: Connection, log: WalkedLog) -> Horizon:
    """Return how far a log has been pruned."""
    return Horizon(*await connection.fetchrow(SQL["read_horizon"], log))


async def read_events(connection: Connection, after: int, limit: int) -> EventPage:
    """Return events after a position."""
    rows = await connection.fetch(SQL["read_events"], after, limit)
    Horizon(rows[0]["forgotten"]).require_position(after)
    return EventPage(_entries(row[2:] for row in rows if row["position"] is not None), rows[0]["head"])


async def read_version(
    connection: Connection, kind: str, id_: str, scope: Scope, at: datetime, parent_id: str | None
) -> LoggedEvent | None:
    """Return the event that was a resource's latest at a time."""
    async with transaction(connection, SNAPSHOT):
        if not await existed(connection, kind, id_, scope, parent_id):
            return None
        type_, time = await connection.fetchrow(SQL["read_first_event"], as_storable(id_))
        if not was_there(await read_horizon(connection, "events"), (type_, time), at):
            return None
        entries = _entries(await connection.fetch(SQL["read_event_at"], as_storable(id_), at))
        if not entries:
            raise HistoryPruned("the last change before then is no longer kept")
        return entries[0]


async def read_versions(
    connection: Connection, resource_id: str, scope: Scope, since: datetime
) -> tuple[LoggedEvent, ...]:
    """Return a resource's events with an answer, from the latest at a time on."""
    parameters = (as_storable(resource_id), since, tenants_of(scope))
    return _entries(await connection.fetch(SQL["read_events_since"], *parameters))


async def read_reports_at(
    connection: Connection, resource_id: str, scope: Scope, generation: int
) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter at a generation, by adapter name."""
    rows = await connection.fetch(SQL["read_reports_at"], as_storable(resource_id), generation, tenants_of(scope))
    return tuple(LogRow(*row).stored() for row in rows)


async def read_reports(
    connection: Connection, resource_id: str, scope: Scope, at: datetime
) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter received until a time, by adapter name."""
    async with transaction(connection, SNAPSHOT):
        (await read_horizon(connection, "reports")).require_time(at)
        rows = await connection.fetch(SQL["read_reports_until"], as_storable(resource_id), at, tenants_of(scope))
        return tuple(LogRow(*row).stored() for row in rows)


async def read_report_log(
    connection: Connection, resource_id: str, scope: Scope, since: datetime
) -> tuple[PastReport, ...]:
    """Return the last report of each adapter before a time, then all later ones, in order."""
    rows = await connection.fetch(SQL["read_report_log"], as_storable(resource_id), since, tenants_of(scope))
    return tuple(LogRow(*row).past() for row in rows)


async def walk(connection: Connection, after: str, limit: int, scope: Scope) -> tuple[Record, ...]:
    """Return the resources whose ids come after one, in order of ids."""
    rows = await connection.fetch(SQL["walk_resources"], as_storable(after), tenants_of(scope), limit)
    return tuple(record_of(row) for row in rows)


def _entries(rows: Iterable[Any]) -> tuple[LoggedEvent, ...]:
    return tuple(
        LoggedEvent(at, type_, kind, id_, parent_id, tenant, generation, time, answer, decode_facets(facets))
        for at, type_, kind, id_, parent_id, tenant, generation, time, answer, facets in rows
    )
