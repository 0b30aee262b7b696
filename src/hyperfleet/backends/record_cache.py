"""Records that a writer has just written, kept decoded: the next report of the same resource is seldom far.

Only what is committed is kept, and everything is forgotten as soon as another connection has written to the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from hyperfleet.model.report import StoredReport
from hyperfleet.ports import Changes, Record

_MOST: Final = 2_000  # records, of some 10 kB each


class Found(Struct):
    """The records a transaction has read, and the row number of each."""

    records: dict[str, Record] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)


class Kept(Struct, frozen=True):
    """A record and the number of its row."""

    number: int
    record: Record


class RecordCache:
    """The records last written, at most so many; the one written longest ago goes first."""

    def __init__(self) -> None:
        """Start empty."""
        self._kept: dict[str, Kept] = {}
        self._data_version: int | None = None

    def find(self, ids: Iterable[str]) -> dict[str, Kept]:
        """Return those of `ids` that are kept."""
        return {id_: kept for id_ in ids if (kept := self._kept.get(id_)) is not None}

    def validate(self, data_version: int) -> None:
        """Forget everything if the file was written to by others: then SQLite's data version has moved."""
        if data_version != self._data_version:
            self._kept.clear()
            self._data_version = data_version

    def keep(self, changes: Changes, base: int, found: Found) -> None:
        """Keep what a transaction wrote over what it had found, after the commit; its events came after `base`."""
        reports = _reports_after(changes, found.records)
        for resource in changes.removed:
            self._kept.pop(resource.id, None)
        for id_ in reports:
            self._kept.pop(id_, None)  # a report can be saved without its record
        for record in (*changes.inserted, *changes.updated):
            id_ = record.resource.id
            before = found.records.get(id_)
            place = changes.revisions.get(id_)
            kept = replace(
                record,
                resource=record.resource if before is None or id_ in changes.edited else before.resource,
                reports=reports.get(id_, before.reports if before is not None else {}),
                revision=base + 1 + place if place is not None else before.revision if before is not None else 0,
            )
            self._kept.pop(id_, None)
            self._kept[id_] = Kept(found.numbers[id_], kept)
        while len(self._kept) > _MOST:
            del self._kept[next(iter(self._kept))]


def _reports_after(changes: Changes, records: Mapping[str, Record]) -> dict[str, dict[str, StoredReport]]:
    """Return all reports of each resource of which a report was saved or retired."""
    after: dict[str, dict[str, StoredReport]] = {}
    for id_, adapter in changes.retired:
        _reports_of(id_, after, records).pop(adapter, None)
    for id_, stored in changes.reports:
        _reports_of(id_, after, records)[stored.report.adapter] = stored
    return after


def _reports_of(
    id_: str, after: dict[str, dict[str, StoredReport]], records: Mapping[str, Record]
) -> dict[str, StoredReport]:
    if id_ not in after:
        after[id_] = dict(records[id_].reports) if id_ in records else {}
    return after[id_]
