"""The report log of the memory store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.model.report import StoredReport
from hyperfleet.ports import LoggedReport, PastReport

Key = tuple[str, str, int]  # resource, adapter, generation


class LoggedRow(Struct, frozen=True):
    """A logged report and its sequence number."""

    sequence: int
    logged: LoggedReport

    @property
    def received_time(self) -> datetime:
        """Return when it was received."""
        return self.logged.stored.last_heard


class ReportLog:
    """Accepted reports in order of arrival, by resource, adapter and generation."""

    def __init__(self) -> None:
        """Start empty."""
        self._rows: dict[Key, list[LoggedRow]] = {}
        self._replaced: dict[tuple[str, str], StoredReport] = {}  # by resource and id: its state when it was replaced
        self._sequence = 0

    def append(self, logged: LoggedReport) -> None:
        """Keep a report."""
        self._sequence += 1
        report = logged.stored.report
        rows = self._rows.setdefault((logged.resource_id, report.adapter, report.observed_generation), [])
        rows.append(LoggedRow(self._sequence, logged))
        if logged.replaced is not None:
            self._replaced[logged.resource_id, logged.replaced.id] = logged.replaced

    def read(self, resource_id: str, current: Mapping[str, StoredReport]) -> list[PastReport]:
        """Return all kept reports of a resource in order; `current` are the stored ones.

        Each has the times from just before the adapter's next report, or the present ones.
        """
        rows = [row for (id_, _, _), some in self._rows.items() if id_ == resource_id for row in some]
        found: list[PastReport] = []
        for row in sorted(rows, key=lambda row: row.sequence):
            stored = row.logged.stored
            now = current.get(stored.report.adapter)
            is_current = now is not None and now.id == stored.id
            last = self._replaced.get((resource_id, stored.id), now if now and is_current else stored)
            times = {"effective_time": last.effective_time, "last_heard": last.last_heard}
            found.append(PastReport(row.received_time, replace(stored, **times, digest=b"", is_calm=False)))
        return found

    def prune(self, cutoff: datetime, limit: int) -> int:
        """Delete old rows that were replaced by another old row."""
        deleted = 0
        for key, rows in list(self._rows.items()):
            old = [row for row in rows if row.received_time < cutoff]
            gone = min(max(len(old) - 1, 0), limit - deleted)
            deleted += gone
            self._rows[key] = rows[gone:]
        return deleted

    def drop(self, resource_ids: Iterable[str], limit: int) -> int:
        """Delete up to `limit` rows of resources without events."""
        gone, deleted = set(resource_ids), 0
        for key in [key for key in self._rows if key[0] in gone]:
            rows = self._rows[key]
            some = min(len(rows), limit - deleted)
            deleted += some
            self._rows[key] = rows[some:]
            if not self._rows[key]:
                del self._rows[key]
        return deleted
