"""The past as readers ask an SQLite connection for it: each function is one read, as of one moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime
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
from hyperfleet.backends.rows import from_micros, to_micros
from hyperfleet.backends.sqlite_connection import SQL, transaction
from hyperfleet.backends.sqlite_loading import read_records
from hyperfleet.backends.sqlite_reading import remembers, tenants_of
from hyperfleet.errors import HistoryPruned
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import Entries, Entry, Record, Scope, Version

_FOREVER: Final = 2**63 - 1


def read_position(connection: sqlite3.Connection) -> int:
    """Return the position of the last event."""
    (position,) = connection.execute(SQL["read_position"]).fetchone()
    return int(position)


def read_horizon(connection: sqlite3.Connection, log: WalkedLog) -> Horizon:
    """Return how far a log has been forgotten."""
    position, time, walked = connection.execute(SQL["read_horizon"], (log,)).fetchone()
    return Horizon(position, from_micros(time), walked)


def read_events(connection: sqlite3.Connection, after: int, limit: int) -> Entries:
    """Return events after a position."""
    with transaction(connection, "deferred"):
        read_horizon(connection, "events").require_position(after)
        rows = connection.execute(SQL["read_events"], (after, limit))
        return stretch_of(_entries(rows), after, read_position(connection))


def read_version(
    connection: sqlite3.Connection, kind: str, id_: str, scope: Scope, at: datetime, parent_id: str | None
) -> Version | None:
    """Return a resource as it was at a moment."""
    with transaction(connection, "deferred"):
        if not remembers(connection, kind, id_, scope, parent_id):
            return None
        span = _read_span(connection, id_, to_micros(at))
        if not was_there(read_horizon(connection, "events"), (span.first_type, span.first_time), at):
            return None
        beats = _read_beats(connection, span, to_micros(at))
        position, time = span.end(beats)
        entries = _entries(connection.execute(SQL["read_full_event"], (id_, position)))
        if not entries:
            raise HistoryPruned("the last full answer before then is no longer kept")
        (entry,) = entries
        if entry.position == position:
            return Version(entry, position)
        read_horizon(connection, "reports").require_time(at)
        last = last_of_adapters(_last_reports(connection, id_, scope, to_micros(at), position), beats)
        return Version(entry, position, time, heard_since(last.values(), entry))


def read_versions(connection: sqlite3.Connection, resource_id: str, scope: Scope, since: datetime) -> tuple[Entry, ...]:
    """Return a resource's events with an answer from the one in force at a moment on."""
    parameters = (resource_id, to_micros(since), tenants_of(scope))
    return _entries(connection.execute(SQL["read_full_events"], parameters))


def read_reports(
    connection: sqlite3.Connection, resource_id: str, scope: Scope, at: datetime
) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter that was received until a moment, by adapter name."""
    with transaction(connection, "deferred"):
        read_horizon(connection, "reports").require_time(at)
        return tell_last(last_of_adapters(*_reports_until(connection, resource_id, scope, to_micros(at))))


def read_report_log(
    connection: sqlite3.Connection, resource_id: str, scope: Scope, since: datetime
) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter before a moment, then all from then on, in their order."""
    with transaction(connection, "deferred"):
        start = to_micros(since)
        before, beats = _reports_until(connection, resource_id, scope, start - 1)
        after = _log_rows(connection.execute(SQL["read_reports_since"], (resource_id, start, tenants_of(scope))))
        if before or after:
            end = _read_span(connection, resource_id, _FOREVER).start
            after += _log_rows(connection.execute(SQL["read_beats_since"], (end, start)))
        return tell_log(before, beats, after)


def walk(connection: sqlite3.Connection, after: str, limit: int, scope: Scope) -> tuple[Record, ...]:
    """Return the resources whose ids come after one, in the order of ids."""
    with transaction(connection, "deferred"):
        rows = connection.execute(SQL["walk_resources"], (after, tenants_of(scope), limit))
        return read_records(connection, [id_ for (id_,) in rows])


def _reports_until(
    connection: sqlite3.Connection, resource_id: str, scope: Scope, until: int
) -> tuple[list[LogRow], list[LogRow]]:
    """Return the last row of each adapter and generation until a time, and the heartbeats that may follow them."""
    rows = _last_reports(connection, resource_id, scope, until)
    return rows, _read_beats(connection, _read_span(connection, resource_id, until), until) if rows else []


def _last_reports(
    connection: sqlite3.Connection, resource_id: str, scope: Scope, until: int, position: int | None = None
) -> list[LogRow]:
    """Return the last row of each adapter and generation until a time and an event's position."""
    return _log_rows(connection.execute(SQL["read_last_reports"], (resource_id, until, position, tenants_of(scope))))


def _read_span(connection: sqlite3.Connection, resource_id: str, until: int) -> Span:
    first_type, first_time, position, time, start = connection.execute(
        SQL["read_span"], (resource_id, until)
    ).fetchone()
    return Span(first_type, from_micros(first_time), position, from_micros(time), start)


def _read_beats(connection: sqlite3.Connection, span: Span, until: int) -> list[LogRow]:
    return _log_rows(connection.execute(SQL["read_beats"], (span.start, until)))


def _log_rows(rows: Iterable[Any]) -> list[LogRow]:
    return [
        LogRow(sequence, adapter, generation, at, report_id, from_micros(effective), from_micros(received), *words)
        for sequence, adapter, generation, at, report_id, effective, received, *words in rows
    ]


def _entries(rows: Iterable[Any]) -> tuple[Entry, ...]:
    return tuple(
        Entry(at, type_, kind, id_, parent_id, tenant, generation, from_micros(time), answer, decode_facets(facets))
        for at, type_, kind, id_, parent_id, tenant, generation, time, answer, facets in rows
    )
