"""The change log in PostgreSQL, and its named readers."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from hyperfleet.backends import postgres_reading as reading
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
from hyperfleet.backends.postgres_connections import SNAPSHOT, Connection, transaction
from hyperfleet.backends.postgres_loading import SQL, as_storable
from hyperfleet.backends.postgres_past import read_horizon
from hyperfleet.backends.postgres_reading import tenants_of
from hyperfleet.backends.rows import TransitionRow
from hyperfleet.ports import (
    ChangePage,
    ChangeQuery,
    CurrentCounts,
    Lease,
    LogReader,
    Query,
    ReaderPage,
    TokenMove,
    TokenQuery,
    TransitionFilter,
)

# ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def read_changes(connection: Connection, query: ChangeQuery) -> ChangePage:
    """Return changes with their transitions."""
    async with transaction(connection, SNAPSHOT):
        state = await read_log_state(connection)
        state.require(query)
        return await _search(connection, query, state)


async def read_log_state(connection: Connection) -> LogState:
    """Return the head of the log, and how far it has been pruned."""
    head, position, time = await connection.fetchrow(SQL["read_log_state"])
    return LogState(head, Horizon(position, time))


async def find_position(connection: Connection, time: datetime | None) -> int | None:
    """Return the position of the last event before a time; None: there is no time."""
    return None if time is None else int(await connection.fetchval(SQL["find_position"], time))


async def _search(connection: Connection, query: ChangeQuery, state: LogState) -> ChangePage:
    start, end = [await find_position(connection, moment) for moment in moments_of(query)]
    searched = low, high, _ = state.range_of(query, start, end)
    statement = SQL["find_changes_back" if query.is_descending else "find_changes"]
    moves = query.moves or TransitionFilter()
    filters = (
        query.since,
        query.until,
        _some(query.kinds),
        tenants_of(query.scope),
        query.moves is not None,
        *map(_some, (moves.subjects, moves.before, moves.after, moves.causes)),
    )
    found = await connection.fetch(statement, low, high, *filters, query.limit)
    positions = [row["position"] for row in found]
    rows = await connection.fetch(SQL["read_changes"], positions) if positions else []
    moved = await connection.fetch(SQL["read_transitions_of"], positions) if positions else []
    recorded = by_position(TransitionRow(*row).recorded() for row in moved)
    changes = changes_of((tuple(row) for row in rows), recorded, is_descending=query.is_descending)
    return page_of_changes(query, searched, changes)


def _some(values: Collection[str]) -> list[str] | None:
    return [as_storable(value) for value in values] if values else None


# ── counting the past ────────────────────────────────────────────────────────────────────────────────────────────


async def count_now(connection: Connection, query: Query, prefixes: tuple[str, ...]) -> CurrentCounts:
    """Summarize and count the resources of a query at one position."""
    async with transaction(connection, SNAPSHOT):
        groups = await reading.summarize(connection, query, prefixes)
        total = await reading.count(connection, query)
        return CurrentCounts(groups, total, (await read_log_state(connection)).head)


async def position_before(connection: Connection, time: datetime) -> int:
    """Return a position up to which no event is later than a time."""
    async with transaction(connection, SNAPSHOT):
        (await read_horizon(connection, "events")).require_time(time)
        return await find_position(connection, time - DISORDER) or 0


async def read_token_moves(connection: Connection, query: TokenQuery) -> tuple[TokenMove, ...]:
    """Return events with the tokens that they changed."""
    wanted = query.query
    parent_id = None if wanted.parent_id is None else as_storable(wanted.parent_id)
    rows = await connection.fetch(
        SQL["read_token_moves"],
        *(query.after, query.upto, query.since),
        *(wanted.kind, parent_id, tenants_of(wanted.scope)),
        [as_storable(each) for each in fragments_of(query.terms)],
    )
    return tuple(TokenMove(at, time, type_, decode_facets(facets)) for at, time, type_, facets in rows)


# ── named readers ────────────────────────────────────────────────────────────────────────────────────────────────


async def open_reader(connection: Connection, name: str) -> LogReader:
    """Return a reader; a new one starts at the head."""
    async with transaction(connection):
        await connection.execute(SQL["open_reader"], name)
        (reader,) = await read_readers(connection, name)
        return reader


async def read_readers(connection: Connection, name: str | None = None) -> tuple[LogReader, ...]:
    """Return readers by name: all of them, or one."""
    return tuple(LogReader(*row) for row in await connection.fetch(SQL["read_readers"], name))


async def read_next(connection: Connection, name: str, limit: int) -> ReaderPage | None:
    """Return what a reader has not read yet."""
    async with transaction(connection, SNAPSHOT):
        for reader in await read_readers(connection, name):
            state = await read_log_state(connection)
            start, gap = start_of(reader, state)
            page = await _search(connection, ChangeQuery(after=start, limit=limit), state)
            return page_of_reader(reader, state, gap, page)
    return None


async def advance_reader(connection: Connection, name: str, span: tuple[int, int], lease: Lease | None) -> bool:
    """Move a reader forward from the first position of a span to the second."""
    holding = (None, None, None) if lease is None else (lease.name, lease.epoch, lease.holder)
    done = await connection.execute(SQL["advance_reader"], name, *span, *holding)
    return bool(done == "UPDATE 1")


async def close_reader(connection: Connection, name: str) -> bool:
    """Delete a reader."""
    done = await connection.execute(SQL["close_reader"], name)
    return bool(done == "DELETE 1")


async def drop_readers(connection: Connection, max_lag: timedelta) -> tuple[LogReader, ...]:
    """Stop waiting for readers that lag too far behind."""
    async with transaction(connection):
        behind = {row["name"] for row in await connection.fetch(SQL["drop_readers"], max_lag)}
        return tuple(reader for reader in await read_readers(connection) if reader.name in behind)
