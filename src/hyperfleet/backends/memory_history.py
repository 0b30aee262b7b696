"""The history of the memory store."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from hyperfleet.ports import HistoryQuery, RecordedTransition


def select_history(history: Iterable[RecordedTransition], query: HistoryQuery) -> tuple[RecordedTransition, ...]:
    """Return the transitions of a query from one resource's history, which comes oldest first."""
    chosen = [recorded for recorded in with_beginnings(history) if _matches(recorded, query)]
    return tuple(chosen[::-1][: query.limit])


def with_beginnings(history: Iterable[RecordedTransition]) -> Iterable[RecordedTransition]:
    """Add to each transition when the state before it began."""
    began: dict[str, datetime] = {}
    for recorded in history:
        moved = recorded.transition
        yield replace(recorded, since=None if moved.before is None else began.get(moved.subject))
        began[moved.subject] = moved.time


def _matches(recorded: RecordedTransition, query: HistoryQuery) -> bool:
    moved = recorded.transition
    return (
        (not query.subjects or moved.subject in query.subjects)
        and (query.since is None or moved.time >= query.since)
        and (query.until is None or moved.time < query.until)
        and (query.before is None or (recorded.position, recorded.ordinal) < query.before)
    )
