"""The change log in SQLite, and its named readers."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any

from hyperfleet.backends import sqlite_reading as reading
from hyperfleet.backends.changes import (
    DISORDER,
    LogState,
    by_position,
    changes_of,
    fragments_of,
    moments_of,
    page_of_changes,
    page_of_reader,
    start_of,
)
from hyperfleet.backends.past import Horizon, decode_facets
from hyperfleet.backends.rows import TransitionRow, encode, from_micros, to_micros
from hyperfleet.backends.sqlite_connection import SQL, transaction
from hyperfleet.backends.sqlite_loading import as_list
from hyperfleet.backends.sqlite_past import read_horizon
from hyperfleet.backends.sqlite_reading import tenants_of
from hyperfleet.ports import (
    ChangePage,
    ChangeQuery,
    CurrentCounts,
    Lease,
    LogReader,
    Query,
    ReaderPage,
    RecordedTransition,
    TokenMove,
    TokenQuery,
    TransitionFilter,
)

# ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────


def read_changes(connection: sqlite3.Connection, query: ChangeQuery) -> ChangePage:
    """Return changes with their transitions."""
    with transaction(connection, "deferred"):
        state = read_log_state(connection)
        state.require(query)
        return _search(connection, query, state)


def read_log_state(connection: sqlite3.Connection) -> LogState:
    """Return the head of the log, and how far it has been pruned."""
    head, position, time = connection.execute(SQL["read_log_state"]).fetchone()
    return LogState(head, Horizon(position, from_micros(time)))


def find_position(connection: sqlite3.Connection, time: datetime | None) -> int | None:
    """Return the position of the last event before a time; None: there is no time."""
    if time is None:
        return None
    (position,) = connection.execute(SQL["find_position"], (to_micros(time),)).fetchone()
    return int(position)


def _search(connection: sqlite3.Connection, query: ChangeQuery, state: LogState) -> ChangePage:
    start, end = (find_position(connection, moment) for moment in moments_of(query))
    searched = low, high, _ = state.range_of(query, start, end)
    statement = SQL["find_changes_back" if query.is_descending else "find_changes"]
    moves = query.moves or TransitionFilter()
    filters = (
        *map(_micros, (query.since, query.until)),
        _some(query.kinds),
        tenants_of(query.scope),
        query.moves is not None,
        *map(_some, (moves.subjects, moves.before, moves.after, moves.causes)),
    )
    found = connection.execute(statement, (low, high, *filters, query.limit)).fetchall()
    positions = encode([position for (position,) in found]).decode()
    rows = connection.execute(SQL["read_changes"], (positions,)).fetchall()
    recorded = _recorded(connection.execute(SQL["read_transitions_of"], (positions,)))
    timed = ((*row[:8], from_micros(row[8]), *row[9:]) for row in rows)
    changes = changes_of(timed, by_position(recorded), is_descending=query.is_descending)
    return page_of_changes(query, searched, changes)


def _recorded(rows: Iterable[Any]) -> Iterable[RecordedTransition]:
    for position, subject, before, after, time, since, *rest in rows:
        began = None if since is None else from_micros(since)
        yield TransitionRow(position, subject, before, after, from_micros(time), began, *rest).recorded()


def _some(values: Collection[str]) -> str | None:
    return as_list(values) if values else None


def _micros(instant: datetime | None) -> int | None:
    return None if instant is None else to_micros(instant)


# ── counting the past ────────────────────────────────────────────────────────────────────────────────────────────


def count_now(connection: sqlite3.Connection, query: Query, prefixes: tuple[str, ...]) -> CurrentCounts:
    """Summarize and count the resources of a query at one position."""
    with transaction(connection, "deferred"):
        groups, total = reading.summarize_and_count(connection, query, prefixes)
        return CurrentCounts(groups, total, read_log_state(connection).head)


def position_before(connection: sqlite3.Connection, time: datetime) -> int:
    """Return a position up to which no event is later than a time."""
    with transaction(connection, "deferred"):
        read_horizon(connection, "events").require_time(time)
        return find_position(connection, time - DISORDER) or 0


def read_token_moves(connection: sqlite3.Connection, query: TokenQuery) -> tuple[TokenMove, ...]:
    """Return events with the tokens that they changed."""
    wanted = query.query
    parameters = (
        *(query.after, query.upto, to_micros(query.since)),
        *(wanted.kind, wanted.parent_id, tenants_of(wanted.scope)),
        as_list(fragments_of(query.terms)),
    )
    rows = connection.execute(SQL["read_token_moves"], parameters)
    return tuple(TokenMove(at, from_micros(time), type_, decode_facets(facets)) for at, time, type_, facets in rows)


# ── named readers ────────────────────────────────────────────────────────────────────────────────────────────────


def open_reader(connection: sqlite3.Connection, name: str, now: datetime) -> LogReader:
    """Return a reader; a new one starts at the head."""
    with transaction(connection):
        connection.execute(SQL["open_reader"], (name, to_micros(now)))
        (reader,) = read_readers(connection, name)
        return reader


def read_readers(connection: sqlite3.Connection, name: str | None = None) -> tuple[LogReader, ...]:
    """Return readers by name: all of them, or one."""
    rows = connection.execute(SQL["read_readers"], (name,))
    return tuple(
        LogReader(each, position, from_micros(opened), from_micros(moved), *map(_instant, times))
        for each, position, opened, moved, *times in rows
    )


def read_next(connection: sqlite3.Connection, name: str, limit: int) -> ReaderPage | None:
    """Return what a reader has not read yet."""
    with transaction(connection, "deferred"):
        for reader in read_readers(connection, name):
            state = read_log_state(connection)
            start, gap = start_of(reader, state)
            page = _search(connection, ChangeQuery(after=start, limit=limit), state)
            return page_of_reader(reader, state, gap, page)
    return None


def advance_reader(
    connection: sqlite3.Connection, name: str, span: tuple[int, int], now: datetime, lease: Lease | None
) -> bool:
    """Move a reader forward from the first position of a span to the second."""
    holding = (None, None, None) if lease is None else (lease.name, lease.epoch, lease.holder)
    return connection.execute(SQL["advance_reader"], (name, *span, to_micros(now), *holding)).rowcount > 0


def close_reader(connection: sqlite3.Connection, name: str) -> bool:
    """Delete a reader."""
    with transaction(connection):
        return connection.execute(SQL["close_reader"], (name,)).rowcount > 0


def drop_readers(connection: sqlite3.Connection, max_lag: timedelta, now: datetime) -> tuple[LogReader, ...]:
    """Stop waiting for readers that lag too far behind."""
    with transaction(connection):
        behind = [
            reader.name
            for reader in read_readers(connection)
            if reader.dropped_time is None and reader.unread_since is not None and reader.unread_since < now - max_lag
        ]
        connection.executemany(SQL["drop_reader"], [(name, to_micros(now)) for name in behind])
        return tuple(reader for reader in read_readers(connection) if reader.name in behind)


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
