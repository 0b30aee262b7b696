"""Reads from a PostgreSQL connection: each function is one read, from one snapshot.

A statement sees one snapshot. Where a read takes two statements, what happens in between cannot make the result wrong,
and the function explains why.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from hyperfleet.backends.listing import (
    Dialect,
    Latest,
    build_count,
    build_find,
    build_summary,
    groups_of,
    limit_bytes,
    page_of,
)
from hyperfleet.backends.postgres_connections import Connection
from hyperfleet.backends.postgres_loading import SQL, as_storable, record_of
from hyperfleet.backends.rows import BEYOND_ALL, AdapterRow, TransitionRow, merge_adapters
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
)

DIALECT: Final = Dialect("$", lambda instant: instant)

# The last event of every resource is kept, so a scan from the newest event down finds all of them, in the order of
# `updatedAt`. If few resources match, the planner starts elsewhere.
_FROM_THE_NEWEST: Final = Latest(0)


async def read_records(connection: Connection, ids: Collection[str], scope: Scope) -> tuple[Record, ...]:
    """Return the resources of ids, in order of ids."""
    rows = await connection.fetch(SQL["read_records"], _bound(*ids), tenants_of(scope))
    return tuple(record_of(row) for row in rows)


async def read_children(connection: Connection, parent_id: str, scope: Scope) -> tuple[Record, ...]:
    """Return the children of a resource, in order of ids."""
    rows = await connection.fetch(SQL["read_children"], *_bound(parent_id, tenants_of(scope)))
    return tuple(record_of(row) for row in rows)


async def find(connection: Connection, query: Query) -> tuple[StoredAnswer, ...]:
    """Return the page of a query."""
    is_newest_first = query.order == "updatedAt" and query.is_descending
    statement = build_find(query, DIALECT, _FROM_THE_NEWEST if is_newest_first else None)
    sql = limit_bytes(statement.sql, query) if query.max_bytes else statement.sql
    return page_of(await connection.fetch(sql, *_bound(*statement.parameters)), query.max_bytes)


async def count(connection: Connection, query: Query) -> int:
    """Count the resources of a query."""
    statement = build_count(query, DIALECT)
    return int(await connection.fetchval(statement.sql, *_bound(*statement.parameters)))


async def summarize(connection: Connection, query: Query, prefixes: tuple[str, ...]) -> tuple[GroupCount, ...]:
    """Count the resources of a query by the rest of a token after each prefix."""
    statement = build_summary(query, prefixes, DIALECT)
    return groups_of(tuple(row) for row in await connection.fetch(statement.sql, *_bound(*statement.parameters)))


async def read_adapters(connection: Connection, scope: Scope) -> tuple[AdapterRecord, ...]:
    """Return the stored data of each adapter."""
    rows = await connection.fetch(SQL["read_adapters"], tenants_of(scope))
    return merge_adapters(
        AdapterRow(name, last_seen, skew, tuple(counts), last_discard)
        for name, last_seen, skew, *counts, last_discard in rows
    )


async def read_transitions(connection: Connection, query: HistoryQuery) -> tuple[RecordedTransition, ...]:
    """Return transitions of a resource, the newest first."""
    subjects = list(query.subjects) if query.subjects else None
    span, before = (query.since, query.until), query.before or BEYOND_ALL
    parameters = (query.resource_id, subjects, *span, *before, query.limit, tenants_of(query.scope))
    rows = await connection.fetch(SQL["read_transitions"], *_bound(*parameters))
    return tuple(TransitionRow(*row).recorded() for row in rows)


async def existed(connection: Connection, kind: str, id_: str, scope: Scope, parent_id: str | None) -> bool:
    """Tell whether a resource exists or existed."""
    return bool(await connection.fetchval(SQL["existed"], *_bound(id_, kind, tenants_of(scope), parent_id)))


async def read_due(connection: Connection, limit: int) -> DueResources:
    """Return the resources that are due, and when the next one is."""
    rows = await connection.fetch(SQL["read_due"], limit + 1)
    now = rows[0]["now"]
    wakes = [(id_, wake_at) for _, id_, wake_at in rows if id_ is not None]
    ids = tuple(id_ for id_, wake_at in wakes[:limit] if wake_at <= now)
    following = wakes[len(ids) :]
    return DueResources(now, ids, following[0][1] if following else None)


async def read_outdated(connection: Connection, policy_version: int, limit: int) -> tuple[tuple[str, ...], int]:
    """Return ids computed under an earlier policy, and their total number, which is only informative."""
    ids = tuple(row["id"] for row in await connection.fetch(SQL["read_outdated"], policy_version, limit))
    if len(ids) < limit:
        return ids, len(ids)
    return ids, await connection.fetchval(SQL["count_outdated"], policy_version)


def _bound(*parameters: object) -> list[object]:
    """Return parameters that PostgreSQL accepts: ids come from paths, which may contain anything."""
    return [as_storable(value) if isinstance(value, str) else value for value in parameters]


def tenants_of(scope: Scope) -> list[str] | None:
    """Return the tenants of a scope as statements take them; None: all of them."""
    return None if scope.tenants is None else list(scope.tenants)
