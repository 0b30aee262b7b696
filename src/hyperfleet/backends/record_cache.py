"""Records that a writer has just written, kept decoded: the next report of the same resource is seldom far.

Only what is committed is kept. Whether it is still so is for the stores to find out: SQLite's forgets everything as
soon as another connection has written to the file, PostgreSQL's compares the versions of rows when it writes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from hyperfleet.model.report import StoredReport
from hyperfleet.ports import Changes, Record

_MOST: Final = 16 * 1024 * 1024  # bytes as stored: some 2,000 clusters; decoded, they take about three times that


class Found(Struct):
    """The records a transaction has read, and of each what its row is known by and the sizes of its reports.

    The mark of a row is its number in SQLite and its version in PostgreSQL.
    """

    records: dict[str, Record] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, dict[str, int]] = field(default_factory=dict)  # bytes of each report as stored, by adapter


class Kept(Struct, frozen=True):
    """A record, the mark of its row, the sizes of its reports, and how much of the cache it takes in all."""

    mark: int
    record: Record
    report_sizes: dict[str, int]
    size: int


class RecordCache:
    """The records last written, up to a total size; the one written longest ago goes first."""

    def __init__(self) -> None:
        """Start empty."""
        self._kept: OrderedDict[str, Kept] = OrderedDict()  # a plain dict finds its oldest slowly after many deletions
        self._size = 0
        self._data_version: int | None = None

    def find(self, ids: Iterable[str]) -> dict[str, Kept]:
        """Return those of `ids` that are kept."""
        return {id_: kept for id_ in ids if (kept := self._kept.get(id_)) is not None}

    def validate(self, data_version: int) -> None:
        """Forget everything if the file was written to by others: then SQLite's data version has moved."""
        if data_version != self._data_version:
            self._kept.clear()
            self._size = 0
            self._data_version = data_version

    def keep(self, changes: Changes, base: int, found: Found) -> None:
        """Keep what a transaction wrote over what it had found, after the commit; its events came after `base`."""
        reports = _reports_after(changes, found.records)
        for id_ in (*(resource.id for resource in changes.removed), *reports):
            self._drop(id_)  # a report can be saved without its record
        for record in (*changes.inserted, *changes.updated):
            id_ = record.resource.id
            kept = _as_stored(record, changes, base, found.records.get(id_), reports)
            self._drop(id_)
            sizes = found.sizes.get(id_, {})
            self._add(id_, Kept(found.marks[id_], kept, sizes, len(kept.answer) + sum(sizes.values())))
        while self._size > _MOST:
            self._drop(next(iter(self._kept)))

    def _add(self, id_: str, kept: Kept) -> None:
        self._kept[id_] = kept
        self._size += kept.size

    def _drop(self, id_: str) -> None:
        kept = self._kept.pop(id_, None)
        self._size -= kept.size if kept is not None else 0


def _as_stored(
    record: Record,
    changes: Changes,
    base: int,
    before: Record | None,
    reports: Mapping[str, dict[str, StoredReport]],
) -> Record:
    """Return a record as a reader would find it: what was not written is as it was before."""
    id_ = record.resource.id
    place = changes.revisions.get(id_)
    return replace(
        record,
        resource=record.resource if before is None or id_ in changes.edited else before.resource,
        reports=reports.get(id_, before.reports if before is not None else {}),
        revision=base + 1 + place if place is not None else before.revision if before is not None else 0,
    )


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
