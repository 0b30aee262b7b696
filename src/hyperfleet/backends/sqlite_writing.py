"""Writes the changes of one transaction to an SQLite connection: one statement for each kind of row, many rows each.

Called with the write lock held, so nothing that was loaded can have changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

from hyperfleet.backends.past import encode_facets
from hyperfleet.backends.rows import counts_in_order, encode, encode_looks, in_micros, severity_of, to_micros
from hyperfleet.backends.sqlite_connection import SQL
from hyperfleet.backends.sqlite_loading import LoadedRows
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import Record, WriteSet

Row = tuple[object, ...]


def write(connection: sqlite3.Connection, changes: WriteSet, found: LoadedRows, base: int) -> None:
    """Write changes whose first event comes after position `base`."""
    if changes.inserted:
        (last,) = connection.execute(SQL["read_last_number"]).fetchone()
        ids = (record.resource.id for record in changes.inserted)
        found.numbers.update((id_, last + 1 + place) for place, id_ in enumerate(ids))
    writing = _Writing(changes, found, base)
    for statement, rows_of in _STEPS:
        if rows := list(rows_of(writing)):
            connection.executemany(statement, rows)


class _Writing:
    """The rows of one transaction, by the statement that writes them."""

    def __init__(self, changes: WriteSet, found: LoadedRows, base: int) -> None:
        self._changes = changes
        self._found = found
        self._first = base + 1
        self._encoded: dict[int, str] = {}  # by object id: a report is saved and logged as the same text

    def head(self) -> Iterator[Row]:
        if self._changes.events:
            yield (self._first - 1 + len(self._changes.events),)

    def removed(self) -> Iterator[Row]:
        return ((resource.id,) for resource in self._changes.removed)

    def edited(self) -> Iterator[Row]:
        for record in self._edited():
            resource = record.resource
            yield resource.tenant, resource.name, resource.is_deleting, self._found.numbers[resource.id]

    def specs(self) -> Iterator[Row]:
        for record in self._edited():
            yield encode(record.resource).decode(), self._found.numbers[record.resource.id]

    def inserted(self) -> Iterator[Row]:
        for record in self._changes.inserted:
            resource = record.resource
            yield (
                self._found.numbers[resource.id],
                resource.id,
                resource.kind,
                resource.parent_id,
                resource.tenant,
                resource.name,
                to_micros(resource.created_time),
                resource.is_deleting,
                severity_of(record.status),
                self._revision(resource.id) or 0,
                _micros(record.status.next_deadline),
                record.policy_version,
                record.answer,
                _micros(record.look.at),
                encode_looks(record.look.history),
            )

    def first_records(self) -> Iterator[Row]:
        for record in self._changes.inserted:
            resource = record.resource
            yield self._found.numbers[resource.id], encode(record.status).decode(), encode(resource).decode()

    def answers(self) -> Iterator[Row]:
        for record in self._changes.updated:
            id_ = record.resource.id
            yield self._revision(id_), record.answer, self._found.numbers[id_]

    def statuses(self) -> Iterator[Row]:
        for record in self._changes.updated:
            yield encode(record.status).decode(), self._found.numbers[record.resource.id]

    def places(self) -> Iterator[Row]:
        """Yield the indexed columns of a status, if they changed."""
        for record in (*self._changes.updated, *self._changes.rescheduled):
            id_ = record.resource.id
            if _place(record) != _place(self._found.records[id_]):
                yield *_place(record), self._found.numbers[id_]

    def looks(self) -> Iterator[Row]:
        """Yield the next looks of the sentinel, if they changed."""
        for record in (*self._changes.updated, *self._changes.rescheduled):
            id_ = record.resource.id
            if record.look != self._found.records[id_].look:
                yield _micros(record.look.at), encode_looks(record.look.history), self._found.numbers[id_]

    def reports(self) -> Iterator[Row]:
        for id_, stored in self._changes.reports:
            report = stored.report
            yield (
                id_,
                report.adapter,
                report.observed_generation,
                stored.digest,
                stored.id,
                to_micros(stored.effective_time),
                to_micros(stored.last_heard),
                stored.is_calm,
            )

    def bodies(self) -> Iterator[Row]:
        for id_, stored in self._changes.reports:
            yield id_, stored.report.adapter, self._encode(stored)

    def calm(self) -> Iterator[Row]:
        for change in self._changes.calm:
            yield change.stored.is_calm, change.resource_id, change.stored.report.adapter

    def retired(self) -> Iterator[Row]:
        return iter(self._changes.retired)

    def log(self) -> Iterator[Row]:
        for logged in self._changes.log:
            stored, replaced = logged.stored, logged.replaced
            yield (
                logged.resource_id,
                stored.report.adapter,
                stored.report.observed_generation,
                None if logged.event is None else self._first + logged.event,
                to_micros(stored.last_heard),
                to_micros(stored.effective_time),
                stored.id,
                self._encode(stored),
                None if replaced is None else to_micros(replaced.effective_time),
                None if replaced is None else to_micros(replaced.last_heard),
            )

    def events(self) -> Iterator[Row]:
        for position, event in enumerate(self._changes.events, self._first):
            resource = event.resource
            yield (
                position,
                event.type,
                resource.id,
                resource.kind,
                resource.parent_id,
                resource.tenant,
                resource.generation,
                to_micros(event.time),
                event.answer,
                encode_facets(event.facets),
            )

    def transitions(self) -> Iterator[Row]:
        for position, event in enumerate(self._changes.events, self._first):
            for ordinal, moved in enumerate(event.transitions):
                yield (
                    position,
                    ordinal,
                    event.resource.id,
                    moved.subject,
                    moved.before,
                    moved.after,
                    to_micros(moved.time),
                    moved.reason,
                    moved.message,
                    event.cause.kind,
                    event.cause.ref,
                    event.policy,
                )

    def facets_added(self) -> Iterator[Row]:
        return ((token, self._found.numbers[id_]) for id_, token in self._changes.facets_added)

    def facets_removed(self) -> Iterator[Row]:
        return ((token, self._found.numbers[id_]) for id_, token in self._changes.facets_removed)

    def adapter_counts(self) -> Iterator[Row]:
        for counts in self._changes.adapter_counts:
            skew = in_micros(counts.skew)
            yield (
                counts.tenant,
                counts.adapter,
                to_micros(counts.last_seen),
                skew,
                counts.last_discard,
                *counts_in_order(counts.counts),
            )

    def idempotency_records(self) -> Iterator[Row]:
        for answer in self._changes.idempotency_records:
            yield answer.key, answer.digest, answer.resource_id, answer.answer, to_micros(answer.time)

    def _edited(self) -> Iterator[Record]:
        return (record for record in self._changes.updated if record.resource.id in self._changes.edited)

    def _revision(self, id_: str) -> int | None:
        place = self._changes.revisions.get(id_)
        return None if place is None else self._first + place

    def _encode(self, stored: StoredReport) -> str:
        encoded = self._encoded.get(id(stored))
        if encoded is None:
            encoded = self._encoded[id(stored)] = encode(stored).decode()
        return encoded


def _place(record: Record) -> tuple[int, int | None, int]:
    return severity_of(record.status), _micros(record.status.next_deadline), record.policy_version


def _micros(instant: datetime | None) -> int | None:
    return None if instant is None else to_micros(instant)


# In this order, so that a name is free again before another resource takes it.
_STEPS: Final[tuple[tuple[str, Callable[[_Writing], Iterator[Row]]], ...]] = (
    (SQL["delete_record"], _Writing.removed),
    (SQL["delete_resource"], _Writing.removed),
    (SQL["delete_reports"], _Writing.removed),
    (SQL["delete_bodies"], _Writing.removed),
    (SQL["update_resource"], _Writing.edited),
    (SQL["update_spec"], _Writing.specs),
    (SQL["insert_resource"], _Writing.inserted),
    (SQL["insert_record"], _Writing.first_records),
    (SQL["update_answer"], _Writing.answers),
    (SQL["update_status"], _Writing.statuses),
    (SQL["update_place"], _Writing.places),
    (SQL["update_look"], _Writing.looks),
    (SQL["retire_report"], _Writing.retired),
    (SQL["retire_body"], _Writing.retired),
    (SQL["save_report"], _Writing.reports),
    (SQL["save_body"], _Writing.bodies),
    (SQL["set_calm"], _Writing.calm),
    (SQL["log_report"], _Writing.log),
    (SQL["insert_event"], _Writing.events),
    (SQL["insert_transition"], _Writing.transitions),
    (SQL["remove_facet"], _Writing.facets_removed),
    (SQL["add_facet"], _Writing.facets_added),
    (SQL["add_counts"], _Writing.adapter_counts),
    (SQL["insert_idempotency_record"], _Writing.idempotency_records),
    (SQL["raise_head"], _Writing.head),
)
