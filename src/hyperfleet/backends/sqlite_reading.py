"""Reads from an SQLite connection: each function is one read, from one snapshot.

Lists choose where a scan starts by counting, because SQLite has no statistics of our tokens: a scan in order of names
finds common resources at once, but rare ones only after very many others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from hyperfleet.backends.listing import (
    Dialect,
    Latest,
    Since,
    Start,
    build_count,
    build_find,
    build_probe,
    build_summary,
    groups_of,
    page_of,
)
from hyperfleet.backends.rows import (
    BEYOND_ALL,
    AdapterRow,
    TransitionRow,
    from_micros,
    merge_adapters,
    to_micros,
)
from hyperfleet.backends.sqlite_connection import SQL, transaction
from hyperfleet.backends.sqlite_loading import as_list, make_record, make_report, read_records
from hyperfleet.ports import (
    AdapterRecord,
    DueResources,
    GroupCount,
    HistoryQuery,
    Query,
    Record,
    RecordedTransition,
    Scope,
    StoredAnswer,
    TokenTerm,
)

DIALECT: Final = Dialect("?", to_micros, collects_ranges=True, unindexed="+")

_READ_RECORD: Final = SQL["read_record"]
_RECENT: Final = 20_000  # events: scanning them is faster than sorting all resources of a large fleet
_FEW: Final = 1_000  # resources: fetching and sorting them is faster than a scan of all in order of names
_DISORDER: Final = timedelta(hours=1)  # events are in order of time, unless a clock was set back


def tenants_of(scope: Scope) -> str | None:
    """Return the tenants of a scope as statements take them; None: all of them."""
    return None if scope.tenants is None else as_list(scope.tenants)


def read_record(
    connection: sqlite3.Connection, kind: str, id_: str, scope: Scope, parent_id: str | None
) -> Record | None:
    """Return one resource with its status and reports."""
    rows = connection.execute(_READ_RECORD, (id_, kind, parent_id, tenants_of(scope))).fetchall()
    if not rows:
        return None
    reports = {row[8]: make_report(*row[9:]) for row in rows if row[8] is not None}
    return make_record(rows[0][:8], reports)


def read_some(connection: sqlite3.Connection, ids: Collection[str], scope: Scope) -> tuple[Record, ...]:
    """Return the resources of ids, in order of ids."""
    with transaction(connection, "deferred"):
        records = read_records(connection, ids)
    return tuple(record for record in records if scope.admits(record.resource.tenant))


def read_children(connection: sqlite3.Connection, parent_id: str, scope: Scope) -> tuple[Record, ...]:
    """Return the children of a resource, in order of ids."""
    with transaction(connection, "deferred"):
        rows = connection.execute(SQL["find_children"], (parent_id, tenants_of(scope))).fetchall()
        return read_records(connection, [id_ for (id_,) in rows])


def find(connection: sqlite3.Connection, query: Query) -> tuple[StoredAnswer, ...]:
    """Return the page of a query."""
    with transaction(connection, "deferred"):
        start = _choose_start(connection, query)
        if start is None and query.order == "updatedAt" and query.is_descending:
            page = _find_from(connection, query, _choose_floor(connection, query))
            is_cut = query.max_bytes and sum(len(answer.body) for answer in page) >= query.max_bytes
            if is_cut or len(page) == query.limit:
                return page
        return _find_from(connection, query, start)


def _find_from(connection: sqlite3.Connection, query: Query, start: Start) -> tuple[StoredAnswer, ...]:
    statement = build_find(query, DIALECT, start)
    return page_of(connection.execute(statement.sql, statement.parameters), query.max_bytes)


def _choose_floor(connection: sqlite3.Connection, query: Query) -> Latest:
    """Return the event at which a scan for a page gives up, and all resources are sorted instead."""
    (position, _) = connection.execute(SQL["read_head"]).fetchone()
    top = position if query.after is None else int(query.after[0])
    return Latest(top - _RECENT)


def count(connection: sqlite3.Connection, query: Query) -> int:
    """Count the resources of a query."""
    with transaction(connection, "deferred"):
        return _count(connection, query, _choose_start(connection, query))


def _count(connection: sqlite3.Connection, query: Query, start: Start) -> int:
    statement = build_count(query, DIALECT, start)
    (number,) = connection.execute(statement.sql, statement.parameters).fetchone()
    return int(number)


def summarize(connection: sqlite3.Connection, query: Query, prefixes: tuple[str, ...]) -> tuple[GroupCount, ...]:
    """Count the resources of a query by the rest of a token after each prefix."""
    with transaction(connection, "deferred"):
        return _summarize(connection, query, prefixes, _choose_start(connection, query))


def summarize_and_count(
    connection: sqlite3.Connection, query: Query, prefixes: tuple[str, ...]
) -> tuple[tuple[GroupCount, ...], int]:
    """Summarize a query, and count its resources; in the transaction of the caller."""
    start = _choose_start(connection, query)
    return _summarize(connection, query, prefixes, start), _count(connection, query, start)


def _summarize(
    connection: sqlite3.Connection, query: Query, prefixes: tuple[str, ...], start: Start
) -> tuple[GroupCount, ...]:
    statement = build_summary(query, prefixes, DIALECT, start)
    return groups_of(connection.execute(statement.sql, statement.parameters))


def _choose_start(connection: sqlite3.Connection, query: Query) -> Start:
    """Return the most selective start of a query, if it is selective enough."""
    if query.parent_id is not None:
        return None  # children are few, and have an index
    starts: list[TokenTerm | Since] = [term for term in query.terms if not term.is_negated]
    if query.updated_since is not None:
        starts += _choose_beginning(connection, query.updated_since)
    rarest: Start = None
    least = _FEW + 1
    for start in starts:
        statement = build_probe(start, DIALECT, least)
        (number,) = connection.execute(statement.sql, statement.parameters).fetchone()
        if number < least:
            rarest, least = start, number
    return rarest


def _choose_beginning(connection: sqlite3.Connection, since: datetime) -> list[Since]:
    """Return where the events since a time start, if they are few: they are the last ones, or nearly."""
    (position, _) = connection.execute(SQL["read_head"]).fetchone()
    row = connection.execute(SQL["read_time_at"], (position - _FEW,)).fetchone()
    is_few = row is None or from_micros(row[0]) < since - _DISORDER
    return [Since(position - _FEW, since)] if is_few else []


def read_adapters(connection: sqlite3.Connection, scope: Scope) -> tuple[AdapterRecord, ...]:
    """Return the stored data of each adapter."""
    rows = connection.execute(SQL["read_adapters"], (tenants_of(scope),))
    return merge_adapters(
        AdapterRow(name, from_micros(last_seen), skew, tuple(counts), last_discard)
        for name, last_seen, skew, last_discard, *counts in rows
    )


def read_transitions(connection: sqlite3.Connection, query: HistoryQuery) -> tuple[RecordedTransition, ...]:
    """Return transitions of a resource, the newest first."""
    subjects = as_list(query.subjects) if query.subjects else None
    span = [None if instant is None else to_micros(instant) for instant in (query.since, query.until)]
    before = query.before or BEYOND_ALL
    parameters = (query.resource_id, subjects, *span, *before, query.limit, tenants_of(query.scope))
    rows = connection.execute(SQL["read_transitions"], parameters)
    return tuple(
        TransitionRow(at, subject, before, after, from_micros(time), _instant(since), *rest).recorded()
        for at, subject, before, after, time, since, *rest in rows
    )


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def existed(connection: sqlite3.Connection, kind: str, id_: str, scope: Scope, parent_id: str | None) -> bool:
    """Tell whether a resource exists or existed."""
    row = connection.execute(SQL["existed"], (id_, kind, parent_id, tenants_of(scope))).fetchone()
    return row is not None


def read_due(connection: sqlite3.Connection, now: datetime, limit: int) -> DueResources:
    """Return the resources that are due, and when the next one is."""
    rows = connection.execute(SQL["read_wakes"], (limit + 1,)).fetchall()
    instant = to_micros(now)
    ids = [id_ for id_, wake_at in rows[:limit] if wake_at <= instant]
    following = rows[len(ids) :]
    return DueResources(now, tuple(ids), from_micros(following[0][1]) if following else None)


def read_outdated(connection: sqlite3.Connection, policy_version: int, limit: int) -> tuple[tuple[str, ...], int]:
    """Return ids computed under an earlier policy, and their total number."""
    with transaction(connection, "deferred"):
        ids = tuple(id_ for (id_,) in connection.execute(SQL["read_outdated"], (policy_version, limit)))
        if len(ids) < limit:
            return ids, len(ids)
        (number,) = connection.execute(SQL["count_outdated"], (policy_version,)).fetchone()
        return ids, number
