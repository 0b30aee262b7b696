"""The change log of the memory store, and its named readers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from hyperfleet.backends.changes import LogState, by_position, page_of_changes, page_of_reader, start_of
from hyperfleet.backends.memory_contents import MemoryContents
from hyperfleet.backends.memory_history import with_beginnings
from hyperfleet.backends.past import Horizon
from hyperfleet.ports import (
    ChangePage,
    ChangeQuery,
    LoggedChange,
    LogReader,
    NewEvent,
    ReaderPage,
    RecordedTransition,
    TokenMove,
    TokenQuery,
)

# ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────


def read_changes(contents: MemoryContents, query: ChangeQuery) -> ChangePage:
    """Return changes with their transitions."""
    state = read_log_state(contents)
    state.require(query)
    return _search(contents, query, state)


def read_log_state(contents: MemoryContents) -> LogState:
    """Return the head of the log, and how far it has been pruned."""
    horizons = (contents.horizons["events"], contents.moves_horizon)
    position, time = max(each.position for each in horizons), max(each.time for each in horizons)
    return LogState(contents.position, Horizon(position, time))


def _search(contents: MemoryContents, query: ChangeQuery, state: LogState) -> ChangePage:
    # Times are compared one by one, so they need no range of positions.
    searched = low, high, _ = state.range_of(query, 0 if query.since else None, None)
    found = sorted(_changes(contents, query, low, high), key=lambda each: each.position, reverse=query.is_descending)
    return page_of_changes(query, searched, found[: query.limit])


def _changes(contents: MemoryContents, query: ChangeQuery, low: int, high: int) -> Iterator[LoggedChange]:
    moves = by_position(_history(contents))
    for position, event in contents.events.items():
        change = _change_of(position, event, tuple(moves.get(position, ())))
        if low < position <= high and _matches(change, query):
            yield change


def _history(contents: MemoryContents) -> Iterator[RecordedTransition]:
    ids = dict.fromkeys(id_ for id_, _ in contents.history)
    for id_ in ids:
        yield from with_beginnings(each for owner, each in contents.history if owner == id_)


def _matches(change: LoggedChange, query: ChangeQuery) -> bool:
    moves = query.moves
    return (
        (query.since is None or change.time >= query.since)
        and (query.until is None or change.time < query.until)
        and (not query.kinds or change.kind in query.kinds)
        and query.scope.admits(change.tenant)
        and (moves is None or any(map(moves.admits, change.transitions)))
    )


def _change_of(position: int, event: NewEvent, moves: tuple[RecordedTransition, ...]) -> LoggedChange:
    resource = event.resource
    identity = (resource.kind, resource.id, resource.parent_id, resource.tenant, resource.name, resource.generation)
    return LoggedChange(position, event.type, *identity, event.time, event.facets, moves)


# ── counting the past ────────────────────────────────────────────────────────────────────────────────────────────


def position_before(contents: MemoryContents, time: datetime) -> int:
    """Return a position up to which no event is later than a time."""
    contents.horizons["events"].require_time(time)
    later = [position for position, event in contents.events.items() if event.time > time]
    return min(later, default=contents.position + 1) - 1


def read_token_moves(contents: MemoryContents, query: TokenQuery) -> tuple[TokenMove, ...]:
    """Return events with the tokens that they changed; here, all events of the query's resources."""
    wanted = query.query
    return tuple(
        TokenMove(position, event.time, event.type, event.facets)
        for position, event in sorted(contents.events.items())
        if query.after < position <= query.upto
        and event.time > query.since
        and event.resource.kind == wanted.kind
        and wanted.scope.admits(event.resource.tenant)
        and wanted.parent_id in (None, event.resource.parent_id)
    )


# ── named readers ────────────────────────────────────────────────────────────────────────────────────────────────


def open_reader(contents: MemoryContents, name: str, now: datetime) -> LogReader:
    """Return a reader; a new one starts at the head."""
    known = contents.readers.get(name) or LogReader(name, contents.position, now, now)
    contents.readers[name] = replace(known, dropped_time=None)
    return _with_lag(contents, contents.readers[name])


def read_readers(contents: MemoryContents) -> tuple[LogReader, ...]:
    """Return all readers, by name."""
    return tuple(_with_lag(contents, reader) for _, reader in sorted(contents.readers.items()))


def read_next(contents: MemoryContents, name: str, limit: int) -> ReaderPage | None:
    """Return what a reader has not read yet."""
    reader = contents.readers.get(name)
    if reader is None:
        return None
    state = read_log_state(contents)
    start, gap = start_of(reader, state)
    return page_of_reader(reader, state, gap, _search(contents, ChangeQuery(after=start, limit=limit), state))


def advance_reader(contents: MemoryContents, name: str, expected: int, position: int, now: datetime) -> bool:
    """Move a reader forward from a position."""
    reader = contents.readers.get(name)
    if reader is None or reader.position != expected or not expected < position <= contents.position:
        return False
    contents.readers[name] = replace(reader, position=position, moved_time=now, dropped_time=None)
    return True


def drop_readers(contents: MemoryContents, max_lag: timedelta, now: datetime) -> tuple[LogReader, ...]:
    """Stop waiting for readers that lag too far behind."""
    readers = [each for each in read_readers(contents) if each.dropped_time is None and each.unread_since is not None]
    behind = [each for each in readers if each.unread_since is not None and each.unread_since < now - max_lag]
    for reader in behind:
        contents.readers[reader.name] = replace(contents.readers[reader.name], dropped_time=now)
    return tuple(replace(reader, dropped_time=now) for reader in behind)


def _with_lag(contents: MemoryContents, reader: LogReader) -> LogReader:
    unread = (event.time for position, event in contents.events.items() if position > reader.position)
    return replace(reader, unread_since=next(unread, None))
