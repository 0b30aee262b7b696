"""The report log of the memory store."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from hyperfleet.backends.rows import as_heard
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import LoggedReport

Key = tuple[str, str, int]  # resource, adapter, generation


class ReportLog:
    """Accepted reports, in the order they came, apart for each resource, adapter and generation."""

    def __init__(self) -> None:
        """Start empty."""
        self._rows: dict[Key, list[LoggedReport]] = {}

    def append(self, logged: LoggedReport) -> None:
        """Keep a report."""
        report = logged.stored.report
        self._rows.setdefault((logged.resource_id, report.adapter, report.observed_generation), []).append(logged)

    def last_at(self, resource_id: str, generation: int) -> dict[str, StoredReport]:
        """Return the last report of each adapter at a generation, by adapter."""
        return {
            adapter: _as_said(rows)
            for (id_, adapter, at), rows in self._rows.items()
            if (id_, at) == (resource_id, generation)
        }

    def prune(self, cutoff: datetime, living: Collection[str], limit: int) -> int:
        """Delete old rows that neither a living resource nor a row after them needs; return how many."""
        deleted = 0
        for key, rows in list(self._rows.items()):
            kept = _keep(rows, cutoff, limit - deleted, is_living=key[0] in living)
            deleted += len(rows) - len(kept)
            if kept:
                self._rows[key] = kept
            else:
                del self._rows[key]
        return deleted


def _as_said(rows: list[LoggedReport]) -> StoredReport:
    """Return the last report in full: if it only repeated what another one said, in the words of that one."""
    last = rows[-1].stored
    said = next((row.stored for row in reversed(rows) if not row.is_same), last)
    return as_heard(said, last.id, last.effective_time, last.last_heard)


def _keep(rows: list[LoggedReport], cutoff: datetime, limit: int, *, is_living: bool) -> list[LoggedReport]:
    """Return what stays. From the youngest to the oldest: a row stays if one that stays repeats it."""
    kept: list[LoggedReport] = []
    for place, row in reversed(list(enumerate(rows))):
        is_last = place == len(rows) - 1
        is_repeated = bool(kept) and kept[0].is_same
        is_old = row.stored.last_heard < cutoff
        if limit and is_old and not (is_last and is_living) and (row.is_same or not is_repeated):
            limit -= 1
        else:
            kept.insert(0, row)
    return kept
