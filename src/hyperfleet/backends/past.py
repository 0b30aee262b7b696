"""Horizons of the logs, and how their rows become values: the logic that all stores share. No SQL here.

`pruning` decides what is deleted.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, Literal

import msgspec
from msgspec import Struct

from hyperfleet.backends.rows import decode_report
from hyperfleet.errors import HistoryPruned
from hyperfleet.model.event import EventType
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import FacetChange, PastReport

WalkedLog = Literal["events", "reports"]  # those that pruning visits row by row; the others have an index by time

_decode_facets: Final = msgspec.json.Decoder(tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]).decode


class Horizon(Struct, frozen=True):
    """How far a log has been pruned: rows may be missing up to a position, and before a time."""

    position: int = 0
    time: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    walked: int = 0  # the last row that pruning has visited: it visits each once

    def require_position(self, after: int) -> None:
        """Raise if an event after a position may be missing."""
        if after < self.position:
            raise HistoryPruned(f"events up to position {self.position} have been pruned, and {after} comes before it")

    def require_time(self, at: datetime) -> None:
        """Raise if what was current at a time may be missing."""
        if at < self.time:
            raise HistoryPruned(f"history before {msgspec.to_builtins(self.time)} has been pruned")


def was_there(horizon: Horizon, first: tuple[EventType, datetime], at: datetime) -> bool:
    """Tell by its first kept event whether a resource existed at a time; raise if that is no longer known."""
    type_, time = first
    if type_ == "Created" and at < time:
        return False
    horizon.require_time(at)
    if at < time:  # pruned by a version without horizons
        raise HistoryPruned(f"the history of the resource before {msgspec.to_builtins(time)} has been pruned")
    return True


class LogRow(Struct, frozen=True):
    """A row of the report log, with the columns in the order that statements select them.

    The times are those from just before the next change of the adapter's report, or the present ones.
    """

    received_time: datetime
    effective_time: datetime
    last_heard: datetime
    body: str | bytes

    def stored(self) -> StoredReport:
        """Return the report."""
        return decode_report(self.body, self.effective_time, self.last_heard)

    def past(self) -> PastReport:
        """Return the report and when it was received."""
        return PastReport(self.received_time, self.stored())


def encode_facets(change: FacetChange | None) -> str | None:
    """Encode the tokens of an event as text; None: they did not change."""
    if change is None:
        return None
    return msgspec.json.encode((change.kept, change.gained, change.lost)).decode()


def decode_facets(text: str | None) -> FacetChange | None:
    """Decode what `encode_facets` returned."""
    return None if text is None else FacetChange(*_decode_facets(text))
