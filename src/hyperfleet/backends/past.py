"""What can still be told of the past, alike for every store; and how rows of the logs are put into words. No SQL here.

`pruning` decides what is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.backends.pulse import decode_pulse
from hyperfleet.backends.rows import as_heard, decode_report
from hyperfleet.errors import HistoryPruned
from hyperfleet.model.event import EventType
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import Entries, Entry, FacetChange

# Those that pruning walks through; the others have an index by time. Heartbeats are among the events.
WalkedLog = Literal["events", "reports", "beats"]

# For the position of a row of the report log: it is a copy of a heartbeat among the events, the last one of its adapter
# before that said something new. What a generation ended with is so found by the index.
AMONG_EVENTS: Final = 0

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
            raise HistoryPruned(
                f"events up to position {self.position} are no longer all kept, and {after} comes before it"
            )

    def require_time(self, at: datetime) -> None:
        """Raise if what was in force at a moment may be missing."""
        if at < self.time:
            raise HistoryPruned(f"what was before {self.time.isoformat()} is no longer all kept")


def stretch_of(entries: tuple[Entry, ...], after: int, head: int) -> Entries:
    """Return events after a position, if none is missing: another version may have pruned without a word."""
    last = entries[-1].position if entries else head
    if last > after + len(entries):
        raise HistoryPruned(f"events after position {after} are no longer all kept")
    return Entries(entries, head)


class Span(Struct, frozen=True):
    """What an index tells of a resource: its first event, its last one until a moment, and a way to its heartbeats."""

    first_type: EventType
    first_time: datetime
    position: int
    time: datetime
    start: int | None  # the heartbeat to walk back from; None: there is none

    def end(self, beats: Iterable[LogRow]) -> tuple[int, datetime]:
        """Return position and time of the last event until the moment, be it one of the heartbeats or not."""
        return max([(self.position, self.time), *((beat.position or 0, beat.received_time) for beat in beats)])


def was_there(horizon: Horizon, first: tuple[EventType, datetime], at: datetime) -> bool:
    """Tell whether a resource was there at a moment, by the first of its events that is kept; raise if nobody knows."""
    type_, time = first
    if type_ == "Created" and at < time:
        return False
    horizon.require_time(at)
    if at < time:  # it was pruned by a version that kept no horizon
        raise HistoryPruned(f"what became of the resource before {time.isoformat()} is no longer kept")
    return True


# ── reports from the log ─────────────────────────────────────────────────────────────────────────────────────────


class LogRow(Struct, frozen=True):
    """A row of the report log, with the columns in the order that statements select them; or a heartbeat."""

    sequence: int  # 0: it is a heartbeat, which stands in the log of events
    adapter: str
    generation: int
    position: int | None  # of its event, if it made one; or `AMONG_EVENTS`
    report_id: str
    effective_time: datetime
    received_time: datetime
    body: str | bytes | None  # None: it said what the row before it said
    pulse: bytes | None = None  # of the resource with it, if it is a milestone

    @property
    def is_heartbeat(self) -> bool:
        """Tell whether it stands among the events, or is a copy of what does."""
        return not self.sequence or self.position == AMONG_EVENTS

    def tell(self, said: StoredReport) -> StoredReport:
        """Return the report in full, in the words of the row that has them."""
        return as_heard(said, self.report_id, self.effective_time, self.received_time)


def last_of_adapters(rows: Iterable[LogRow], beats: Iterable[LogRow] = ()) -> dict[str, LogRow]:
    """Return the last row of each adapter, whatever its generation, by adapter name; who was heard last comes last.

    `rows` have their words, `beats` get them; of these only the first can be a milestone.
    """
    last: dict[str, LogRow] = {}
    for row in _merge(rows, _all_beats(beats)):
        before = last.pop(row.adapter, row)
        words = row if row.sequence else before
        last[row.adapter] = replace(row, generation=words.generation, body=words.body)
    return last


def _all_beats(beats: Iterable[LogRow]) -> Iterator[LogRow]:
    """Yield the last heartbeats of all adapters as a milestone tells them, and those after it.

    Where the former are is not known, but that they came before it.
    """
    for beat in beats:
        for known in decode_pulse(beat.pulse).beats:
            if (received := known.received_time) is not None:
                yield LogRow(0, known.adapter, 0, beat.position, known.id, known.effective_time, received, None)
        yield beat


def _merge(rows: Iterable[LogRow], beats: Iterable[LogRow]) -> list[LogRow]:
    """Return rows of the report log and heartbeats in the order in which they were received.

    Nothing of its resource came before a heartbeat at the same time, or it would be in the log of reports alone.
    """
    return sorted((*beats, *rows), key=lambda row: (row.received_time, 0 if row.is_heartbeat else row.sequence))


def heard_since(last: Iterable[LogRow], entry: Entry) -> dict[str, datetime]:
    """Return when each adapter was heard, of those whose last row came after an event."""
    return {row.adapter: row.effective_time for row in last if _is_after(row, entry)}


def _is_after(row: LogRow, entry: Entry) -> bool:
    if row.is_heartbeat:  # where a copy was made of is not known
        return row.received_time > entry.time
    return row.position is not None and row.position > entry.position


def tell_last(last: Mapping[str, LogRow]) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter, by name, from rows that have their words."""
    return tuple(row.tell(decode_report(row.body)) for _, row in sorted(last.items()) if row.body is not None)


def tell_log(before: Sequence[LogRow], beats: Sequence[LogRow], since: Sequence[LogRow]) -> tuple[StoredReport, ...]:
    """Return the last report of each adapter before a moment, then all from then on, in their order.

    `before` has the last row of each adapter and generation, with its words: a row after it may have none. `beats` are
    the heartbeats before the moment. One of which there is a copy is told once.
    """
    said = {(row.adapter, row.generation): decode_report(row.body) for row in before if row.body is not None}
    told: dict[tuple[str, str, datetime], StoredReport] = {}
    since_then = _merge([row for row in since if row.sequence], [row for row in since if not row.sequence])
    for row in (*last_of_adapters(before, beats).values(), *since_then):
        if row.body is not None:
            said[row.adapter, row.generation] = decode_report(row.body)
        if words := said.get((row.adapter, row.generation)):
            told.setdefault((row.adapter, row.report_id, row.effective_time), row.tell(words))
    return tuple(told.values())


# ── facets as they are kept ──────────────────────────────────────────────────────────────────────────────────────


def encode_facets(change: FacetChange | None) -> str | None:
    """Write the tokens around an event as text; None: there is nothing to be said."""
    if change is None:
        return None
    return msgspec.json.encode((change.kept, change.gained, change.lost)).decode()


def decode_facets(text: str | None) -> FacetChange | None:
    """Read what `encode_facets` wrote."""
    return None if text is None else FacetChange(*_decode_facets(text))
