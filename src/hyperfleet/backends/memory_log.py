"""The report log of the memory store."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from hyperfleet.backends.rows import as_heard
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import LoggedReport

Key = tuple[str, str, int]  # resource, adapter, generation


class Row(Struct, frozen=True):
    """A logged report, its place in the log, and the position of the event that it made."""

    sequence: int
    position: int | None
    stored: StoredReport
    is_same: bool


class ReportLog:
    """Accepted reports, in the order they came, apart for each resource, adapter and generation."""

    def __init__(self) -> None:
        """Start empty."""
        self._rows: dict[Key, list[Row]] = {}
        self._sequence = 0

    def append(self, logged: LoggedReport, position: int | None) -> None:
        """Keep a report and the position of its event, if it made one."""
        self._sequence += 1
        report = logged.stored.report
        rows = self._rows.setdefault((logged.resource_id, report.adapter, report.observed_generation), [])
        rows.append(Row(self._sequence, position, logged.stored, logged.is_same))

    def last_at(self, resource_id: str, generation: int) -> dict[str, StoredReport]:
        """Return the last report of each adapter at a generation, by adapter."""
        return {
            adapter: _as_said(rows)
            for (id_, adapter, at), rows in self._rows.items()
            if (id_, at) == (resource_id, generation)
        }

    def read(self, resource_id: str) -> list[tuple[Row, StoredReport]]:
        """Return all that is kept of a resource in its order, each row with what it said in full."""
        ours = [rows for (id_, _, _), rows in self._rows.items() if id_ == resource_id]
        read = [(row, _as_said(rows[: place + 1])) for rows in ours for place, row in enumerate(rows)]
        return sorted(read, key=lambda pair: pair[0].sequence)

    def prune(self, cutoff: datetime, limit: int) -> int:
        """Delete old rows in whose place another old row has come, unless its words are still needed."""
        deleted = 0
        for key, rows in list(self._rows.items()):
            kept = _keep(rows, cutoff, limit - deleted)
            deleted += len(rows) - len(kept)
            self._rows[key] = kept
        return deleted

    def drop(self, resource_ids: Iterable[str], limit: int) -> int:
        """Delete up to `limit` rows of resources that nothing else is known of."""
        gone, deleted = set(resource_ids), 0
        for key in [key for key in self._rows if key[0] in gone]:
            rows = self._rows[key]
            some = min(len(rows), limit - deleted)
            deleted += some
            self._rows[key] = rows[some:]
            if not self._rows[key]:
                del self._rows[key]
        return deleted


def _as_said(rows: list[Row]) -> StoredReport:
    """Return the last report in full: if it only repeated what another one said, in the words of that one."""
    last = rows[-1].stored
    said = next((row.stored for row in reversed(rows) if not row.is_same), last)
    return as_heard(said, last.id, last.effective_time, last.last_heard)


def _keep(rows: list[Row], cutoff: datetime, limit: int) -> list[Row]:
    """Return what stays: from the last old row on, and the row whose words that one repeats."""
    old = [place for place, row in enumerate(rows) if row.stored.last_heard < cutoff]
    if not old:
        return rows
    said = next((place for place in reversed(old) if not rows[place].is_same), old[0])
    gone = [place for place in old[:-1] if place != said][:limit]
    return [row for place, row in enumerate(rows) if place not in gone]
