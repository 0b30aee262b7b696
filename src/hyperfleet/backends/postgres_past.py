"""The past as readers ask a PostgreSQL connection for it: each function is one read, as of one moment."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hyperfleet.backends.past import (
    Horizon,
    LogRow,
    Span,
    WalkedLog,
    decode_facets,
    heard_since,
    last_of_adapters,
    stretch_of,
    tell_last,
    tell_log,
    was_there,
)
from hyperfleet.backends.postgres_connections import SNAPSHOT, Connection, transaction
from hyperfleet.backends.postgres_loading import SQL, as_storable
from hyperfleet.backends.postgres_reading import record_with_reports, remembers, tenants_of
from hyperfleet.errors import HistoryPruned
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import Entries, Entry, Record, Scope, Version

_FOREVER: Final = datetime.max.replace(tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


async def read_position(connection: Connection) -> int:
    """Return the position of the last event."""
    return int(await connection.fetchval(SQL["read_position"]))


async def read_horizon(connection: Connection, log: WalkedLog) -> Horizon:
    """Return how far a log has been forgotten."""
    return Horizon(*await connection.fetchrow(SQL["read_horizon"], log))


async def read_events(connection: Connection, after: int, limit: int) -> Entries:
    """Return events after a position."""
    rows = await connection.fetch(SQL["read_events"], after, limit)
    Horizon(rows[0]["forgotten"]).require_position(after)
    return stretch_of(_entries(row[2:] for row in rows if row["position"] is not None), after, rows[0]["head"])


async def read_version(
    connection: Connection, kind: str, id_: str, scope: Scope, at: datetime, parent_id: str | None
) -> Version | None:
    """Return a resource as it was at a moment."""
    async with transaction(connection, SNAPSHOT):
        if not await remembers(connection, kind, id_, scope, parent_id):
            return None
        span = await _read_span(connection, id_, at)
        if not was_there(await read_horizon(connection, "events"), (span.first_type, span.first_time), at):
            return None
        beats = await _read_beats(connection, span, at)
        position, time = span.end(beats)
        entries = _entries(await connection.fetch(SQL["read_full_event"], as_storable(id_), position))
        if not entries:
            raise HistoryPruned("the last full answer before then is no longer kept")
        (entry,) = entries
        if entry.position == position:
            return Version(entry, position)
        (await read_horizon(connection, "reports")).require_time(at)
        last = last_of_adapters(await _last_reports(connection, id_, scope, at, position), beats)
        return Version(entry, position, time, heard_since(last.values(), entry))


async def read_versions(connection: Connection, resource_id: str, scope: Scope, since: datetime) -> tuple[Entry, ...]:
    """Return a resource's events with an answer from the one in force at a moment on."""
    parameters = (as_storable(resource_id), since, tenants_of(scope))
    return _entries(await connection.fetch(SQL["read_full_events"], *parameters))


async def read_reports(
    connection: Connection, resource_id: str, scope: Scope, at: datetime
) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter that was received until a moment, by adapter name."""
    async with transaction(connection, SNAPSHOT):
        (await read_horizon(connection, "reports")).require_time(at)
        return tell_last(last_of_adapters(*await _reports_until(connection, resource_id, scope, at)))


async def read_report_log(
    connection: Connection, resource_id: str, scope: Scope, since: datetime
) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter before a moment, then all from then on, in their order."""
    async with transaction(connection, SNAPSHOT):
        before, beats = await _reports_until(connection, resource_id, scope, since - _MICROSECOND)
        parameters = (as_storable(resource_id), since, tenants_of(scope))
        after = _log_rows(await connection.fetch(SQL["read_reports_since"], *parameters))
        if before or after:
            end = (await _read_span(connection, resource_id, _FOREVER)).start
            after += _log_rows(await connection.fetch(SQL["read_beats_since"], end, since))
        return tell_log(before, beats, after)


async def walk(connection: Connection, after: str, limit: int, scope: Scope) -> tuple[Record, ...]:
    """Return the resources whose ids come after one, in the order of ids."""
    rows = await connection.fetch(SQL["walk_resources"], as_storable(after), tenants_of(scope), limit)
    return tuple(record_with_reports(row) for row in rows)


async def _reports_until(
    connection: Connection, resource_id: str, scope: Scope, until: datetime
) -> tuple[list[LogRow], list[LogRow]]:
    """Return the last row of each adapter and generation until a time, and the heartbeats that may follow them."""
    rows = await _last_reports(connection, resource_id, scope, until)
    return rows, await _read_beats(connection, await _read_span(connection, resource_id, until), until) if rows else []


async def _last_reports(
    connection: Connection, resource_id: str, scope: Scope, until: datetime, position: int | None = None
) -> list[LogRow]:
    """Return the last row of each adapter and generation until a time and an event's position."""
    parameters = (as_storable(resource_id), until, position, tenants_of(scope))
    return _log_rows(await connection.fetch(SQL["read_last_reports"], *parameters))


async def _read_span(connection: Connection, resource_id: str, until: datetime) -> Span:
    return Span(*await connection.fetchrow(SQL["read_span"], as_storable(resource_id), until))


async def _read_beats(connection: Connection, span: Span, until: datetime) -> list[LogRow]:
    return _log_rows(await connection.fetch(SQL["read_beats"], span.start, until))


def _log_rows(rows: Iterable[Any]) -> list[LogRow]:
    return [LogRow(*row) for row in rows]


def _entries(rows: Iterable[Any]) -> tuple[Entry, ...]:
    return tuple(
        Entry(at, type_, kind, id_, parent_id, tenant, generation, time, answer, decode_facets(facets))
        for at, type_, kind, id_, parent_id, tenant, generation, time, answer, facets in rows
    )
