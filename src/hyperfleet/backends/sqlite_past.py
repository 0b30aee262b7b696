"""Reads of the past from an SQLite connection: each function is one read, from one snapshot."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from hyperfleet.backends.past import Horizon, LogRow, WalkedLog, decode_facets, was_there
from hyperfleet.backends.rows import from_micros, to_micros
from hyperfleet.backends.sqlite_connection import SQL, transaction
from hyperfleet.backends.sqlite_loading import read_records
from hyperfleet.backends.sqlite_reading import existed, tenants_of
from hyperfleet.errors import HistoryPruned
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import EventPage, LoggedEvent, PastReport, Record, Scope


def read_position(connection: sqlite3.Connection) -> int:
    """Return the position of the last event."""
    (position,) = connection.execute(SQL["read_position"]).fetchone()
    return int(position)


def read_horizon(connection: sqlite3.Connection, log: WalkedLog) -> Horizon:
    """Return how far a log has been pruned."""
    position, time, walked = connection.execute(SQL["read_horizon"], (log,)).fetchone()
    return Horizon(position, from_micros(time), walked)


def read_events(connection: sqlite3.Connection, after: int, limit: int) -> EventPage:
    """Return events after a position."""
    with transaction(connection, "deferred"):
        read_horizon(connection, "events").require_position(after)
        rows = connection.execute(SQL["read_events"], (after, limit))
        return EventPage(_entries(rows), read_position(connection))


def read_version(
    connection: sqlite3.Connection, kind: str, id_: str, scope: Scope, at: datetime, parent_id: str | None
) -> LoggedEvent | None:
    """Return the event that was a resource's latest at a time."""
    with transaction(connection, "deferred"):
        if not existed(connection, kind, id_, scope, parent_id):
            return None
        type_, time = connection.execute(SQL["read_first_event"], (id_,)).fetchone()
        if not was_there(read_horizon(connection, "events"), (type_, from_micros(time)), at):
            return None
        entries = _entries(connection.execute(SQL["read_event_at"], (id_, to_micros(at))))
        if not entries:
            raise HistoryPruned("the last change before then is no longer kept")
        return entries[0]


def read_versions(
    connection: sqlite3.Connection, resource_id: str, scope: Scope, since: datetime
) -> tuple[LoggedEvent, ...]:
    """Return a resource's events with an answer, from the latest at a time on."""
    parameters = (resource_id, to_micros(since), tenants_of(scope))
    return _entries(connection.execute(SQL["read_events_since"], parameters))


def read_reports_at(
    connection: sqlite3.Connection, resource_id: str, scope: Scope, generation: int
) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter at a generation, by adapter name."""
    rows = connection.execute(SQL["read_reports_at"], (resource_id, generation, tenants_of(scope)))
    return tuple(row.stored() for row in _log_rows(rows))


def read_reports(
    connection: sqlite3.Connection, resource_id: str, scope: Scope, at: datetime
) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter received until a time, by adapter name."""
    with transaction(connection, "deferred"):
        read_horizon(connection, "reports").require_time(at)
        rows = connection.execute(SQL["read_reports_until"], (resource_id, to_micros(at), tenants_of(scope)))
        return tuple(row.stored() for row in _log_rows(rows))


def read_report_log(
    connection: sqlite3.Connection, resource_id: str, scope: Scope, since: datetime
) -> tuple[PastReport, ...]:
    """Return the last report of each adapter before a time, then all later ones, in order."""
    rows = connection.execute(SQL["read_report_log"], (resource_id, to_micros(since), tenants_of(scope)))
    return tuple(row.past() for row in _log_rows(rows))


def walk(connection: sqlite3.Connection, after: str, limit: int, scope: Scope) -> tuple[Record, ...]:
    """Return the resources whose ids come after one, in order of ids."""
    with transaction(connection, "deferred"):
        rows = connection.execute(SQL["walk_resources"], (after, tenants_of(scope), limit))
        return read_records(connection, [id_ for (id_,) in rows])


def _log_rows(rows: Iterable[Any]) -> list[LogRow]:
    return [
        LogRow(from_micros(received), from_micros(effective), from_micros(heard), body)
        for received, effective, heard, body in rows
    ]


def _entries(rows: Iterable[Any]) -> tuple[LoggedEvent, ...]:
    return tuple(
        LoggedEvent(
            at, type_, kind, id_, parent_id, tenant, generation, from_micros(time), answer, decode_facets(facets)
        )
        for at, type_, kind, id_, parent_id, tenant, generation, time, answer, facets in rows
    )
