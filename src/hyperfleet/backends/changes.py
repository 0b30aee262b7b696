"""Changes of the log and named readers: the logic that all stores share. No SQL here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import Struct

from hyperfleet.backends.past import Horizon, decode_facets
from hyperfleet.ports import (
    ChangePage,
    ChangeQuery,
    LogGap,
    LoggedChange,
    LogReader,
    ReaderPage,
    RecordedTransition,
    TokenTerm,
)

# Concurrent transactions may get their times in one order and their positions in another. None lasts a minute.
DISORDER: Final = timedelta(minutes=1)


_END_OF_TIME: Final = datetime(9999, 1, 1, tzinfo=UTC)

Range = tuple[int, int, bool]


class LogState(Struct, frozen=True):
    """The head of the log, and how far it has been pruned."""

    head: int
    horizon: Horizon

    def require(self, query: ChangeQuery) -> None:
        """Raise `HistoryPruned` if some changes of a query were pruned."""
        if query.after is not None:
            self.horizon.require_position(query.after)
        if query.since is not None:
            self.horizon.require_time(query.since)

    def range_of(self, query: ChangeQuery, start: int | None, end: int | None) -> Range:
        """Return the position before the first one to be searched, the last one, and whether these are all.

        `start` and `end` are the positions of the query's times as `moments_of` gives them; None: it has no such time.
        """
        bounds = [each for each in (query.after, start) if each is not None]
        low = max(bounds, default=self.horizon.position)
        high = max(low, min(each for each in (query.upto, end, self.head) if each is not None))
        if query.span is None or high - low <= query.span:
            return low, high, True
        return (high - query.span, high, False) if query.is_descending else (low, low + query.span, False)


def moments_of(query: ChangeQuery) -> tuple[datetime | None, datetime | None]:
    """Return the times between which the positions of a query lie."""
    since, until = query.since, query.until
    is_bounded = until is not None and until < _END_OF_TIME
    return (since - DISORDER if since else None), (until + DISORDER if until and is_bounded else None)


def page_of_changes(query: ChangeQuery, searched: Range, changes: Sequence[LoggedChange]) -> ChangePage:
    """Return the page of a query that searched a range of positions; a full one ends at its last change."""
    low, high, is_last = searched
    if len(changes) >= query.limit:
        last, is_last = changes[-1].position, False
        low, high = (last - 1, high) if query.is_descending else (low, last)
    return ChangePage(tuple(changes), low, high, is_last)


def start_of(reader: LogReader, state: LogState) -> tuple[int, LogGap | None]:
    """Return the position after which a reader continues, and what it has lost."""
    if reader.position < state.horizon.position:
        return state.horizon.position, LogGap(reader.position, state.horizon.position)
    return reader.position, None


def page_of_reader(reader: LogReader, state: LogState, gap: LogGap | None, page: ChangePage) -> ReaderPage:
    """Return what a reader reads next."""
    return ReaderPage(reader.position, page.upto, page.changes, state.head, gap)


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Named(Struct):
    name: str = ""


_decode_name: Final = msgspec.json.Decoder(_Named).decode

Moves = Mapping[int, Sequence[RecordedTransition]]  # by position


def changes_of(rows: Iterable[Sequence[Any]], moves: Moves, *, is_descending: bool) -> list[LoggedChange]:
    """Make changes of the rows of `read_changes`, in order of positions or reversed."""
    changes = [_change_of(row, moves) for row in rows]
    return sorted(changes, key=lambda change: change.position, reverse=is_descending)


def _change_of(row: Sequence[Any], moves: Moves) -> LoggedChange:
    position, type_, kind, id_, parent_id, tenant, name, generation, time, facets, answer = row
    identity = (kind, id_, parent_id, tenant, name_in(answer) if name is None else name, generation)
    return LoggedChange(position, type_, *identity, time, decode_facets(facets), tuple(moves.get(position, ())))


def name_in(answer: bytes | None) -> str:
    """Return the name of a removed resource, from one of its answers."""
    try:
        return _decode_name(answer).name if answer is not None else ""
    except msgspec.MsgspecError:
        return ""


def by_position(recorded: Iterable[RecordedTransition]) -> dict[int, list[RecordedTransition]]:
    """Group transitions by position."""
    moves: dict[int, list[RecordedTransition]] = {}
    for each in recorded:
        moves.setdefault(each.position, []).append(each)
    return moves


def fragments_of(terms: Iterable[TokenTerm]) -> list[str]:
    """Return what the encoded tokens of an event contain if a token of a term is among them: see `encode_facets`."""
    quoted = [(msgspec.json.encode(token).decode(), term.is_prefix) for term in terms for token in term.tokens]
    return [text[:-1] if is_prefix else text for text, is_prefix in quoted]
