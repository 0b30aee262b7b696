"""What can still be told of the past, alike for every store; and how rows of the logs are put into words. No SQL here.

`pruning` decides what is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec
from msgspec import Struct

from hyperfleet.backends.rows import as_heard, decode_report
from hyperfleet.errors import Forgotten
from hyperfleet.model.event import EventType
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import Entries, Entry, FacetChange

WalkedLog = Literal["events", "reports"]  # those that pruning walks through; the others have an index by time

_decode_facets: Final = msgspec.json.Decoder(tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]).decode


# ── what can be told ─────────────────────────────────────────────────────────────────────────────────────────────


class Horizon(Struct, frozen=True):
    """How far a log has been forgotten: rows may be missing up to a position, and of moments before a time."""

    position: int = 0
    time: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    walked: int = 0  # the last row that pruning has looked at: it looks at each once

    def require_position(self, after: int) -> None:
        """Raise if an event after a position is missing."""
        if after < self.position:
            raise Forgotten(
                f"events up to position {self.position} are no longer all kept, and {after} comes before it"
            )

    def require_time(self, at: datetime) -> None:
        """Raise if what was in force at a moment may be missing."""
        if at < self.time:
            raise Forgotten(f"what was before {self.time.isoformat()} is no longer all kept")


def stretch_of(entries: tuple[Entry, ...], after: int, head: int) -> Entries:
    """Return events after a position, if none is missing: another version may have pruned without a word."""
    last = entries[-1].position if entries else head
    if last > after + len(entries):
        raise Forgotten(f"events after position {after} are no longer all kept")
    return Entries(entries, head)


def was_there(horizon: Horizon, first: tuple[EventType, datetime], at: datetime) -> bool:
    """Tell whether a resource was there at a moment, by the first of its events that is kept; raise if nobody knows."""
    type_, time = first
    if type_ == "Created" and at < time:
        return False
    horizon.require_time(at)
    if at < time:  # it was pruned by a version that kept no horizon
        raise Forgotten(f"what became of the resource before {time.isoformat()} is no longer kept")
    return True


# ── reports from the log ─────────────────────────────────────────────────────────────────────────────────────────


class LogRow(Struct, frozen=True):
    """A row of the report log, with the columns in the order that statements select them."""

    sequence: int
    adapter: str
    generation: int
    position: int | None
    report_id: str
    effective_time: datetime
    received_time: datetime
    body: str | bytes | None  # None: it said what the row before it said

    def tell(self, said: StoredReport) -> StoredReport:
        """Return the report in full, in the words of the row that has them."""
        return as_heard(said, self.report_id, self.effective_time, self.received_time)


def last_of_adapters(rows: Iterable[LogRow]) -> dict[str, LogRow]:
    """Return the last row of each adapter, whatever its generation, by adapter name."""
    return {row.adapter: row for row in sorted(rows, key=lambda row: (row.adapter, row.sequence))}


def heard_since(rows: Iterable[LogRow], position: int) -> dict[str, datetime]:
    """Return when each adapter was heard last, if that was after a position."""
    last = last_of_adapters(rows).items()
    return {adapter: row.effective_time for adapter, row in last if row.position and row.position > position}


def tell_last(rows: Iterable[LogRow]) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter, by name, from rows that have their words."""
    return tuple(row.tell(decode_report(row.body)) for row in last_of_adapters(rows).values() if row.body is not None)


def tell_log(before: Sequence[LogRow], since: Sequence[LogRow]) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter before a moment, then all from then on, in their order.

    `before` has the last row of each adapter and generation, with its words: a row after it may have none.
    """
    wanted = {row.sequence for row in (*last_of_adapters(before).values(), *since)}
    said: dict[tuple[str, int], StoredReport] = {}
    told: list[StoredReport] = []
    for row in sorted((*before, *since), key=lambda row: row.sequence):
        key = (row.adapter, row.generation)
        if row.body is not None:
            said[key] = decode_report(row.body)
        if row.sequence in wanted and key in said:
            told.append(row.tell(said[key]))
    return tuple(told)


# ── facets as they are kept ──────────────────────────────────────────────────────────────────────────────────────


def encode_facets(change: FacetChange | None) -> str | None:
    """Write the tokens around an event as text; None: there is nothing to be said."""
    if change is None:
        return None
    return msgspec.json.encode((change.kept, change.gained, change.lost)).decode()


def decode_facets(text: str | None) -> FacetChange | None:
    """Read what `encode_facets` wrote."""
    return None if text is None else FacetChange(*_decode_facets(text))
