"""What can still be read of the past, alike for every store; and how rows of the logs become values. No SQL here.

`pruning` decides what is forgotten.
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

WalkedLog = Literal["events", "reports"]  # those that pruning walks through; the others have an index by time

_decode_facets: Final = msgspec.json.Decoder(tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]).decode


class Horizon(Struct, frozen=True):
    """How far a log has been forgotten: rows may be missing up to a position, and of moments before a time."""

    position: int = 0
    time: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    walked: int = 0  # the last row that pruning has looked at: it looks at each once

    def require_position(self, after: int) -> None:
        """Raise if an event after a position may be missing."""
        if after < self.position:
            raise HistoryPruned(
                f"events up to position {self.position} are no longer all kept, and {after} comes before it"
            )

    def require_time(self, at: datetime) -> None:
        """Raise if what was in force at a moment may be missing."""
        if at < self.time:
            raise HistoryPruned(f"what was before {self.time.isoformat()} is no longer all kept")


def was_there(horizon: Horizon, first: tuple[EventType, datetime], at: datetime) -> bool:
    """Tell whether a resource was there at a moment, by the first of its events that is kept; raise if that is lost."""
    type_, time = first
    if type_ == "Created" and at < time:
        return False
    horizon.require_time(at)
    if at < time:  # it was pruned by a version that kept no horizon
        raise HistoryPruned(f"what happened to the resource before {time.isoformat()} is no longer kept")
    return True


class LogRow(Struct, frozen=True):
    """A row of the report log, with the columns in the order that statements select them.

    The times are those before the next change of the adapter's report, or now.
    """

    received_time: datetime
    effective_time: datetime
    last_heard: datetime
    body: str | bytes

    def stored(self) -> StoredReport:
        """Return the report."""
        return decode_report(self.body, self.effective_time, self.last_heard)

    def past(self) -> PastReport:
        """Return the report and when it came."""
        return PastReport(self.received_time, self.stored())


def encode_facets(change: FacetChange | None) -> str | None:
    """Write the tokens around an event as text; None: they did not change."""
    if change is None:
        return None
    return msgspec.json.encode((change.kept, change.gained, change.lost)).decode()


def decode_facets(text: str | None) -> FacetChange | None:
    """Read what `encode_facets` wrote."""
    return None if text is None else FacetChange(*_decode_facets(text))
