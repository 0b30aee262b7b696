"""Writes the changes of one transaction to PostgreSQL: as columns, so that one statement takes any number of rows.

A part with one row takes plain values instead of arrays: encoding and expanding arrays would be most of the cost of a
single report. This module does not decide what is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

from hyperfleet.backends.past import encode_facets
from hyperfleet.backends.postgres_connections import Connection
from hyperfleet.backends.postgres_loading import SQL
from hyperfleet.backends.rows import counts_in_order, encode, encode_looks, in_micros, severity_of
from hyperfleet.errors import Contended
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import WriteSet

Row = tuple[object, ...]


async def write(connection: Connection, policy_version: int, changes: WriteSet) -> int:
    """Write changes that were computed under a policy; return the position before the first event.

    Raises `Contended` if another policy is in force by now, or a heartbeat has updated a report that it would clear.
    """
    rows = Rows(changes)
    head: Row = (len(changes.events), policy_version)
    parts = [("raise_head" if changes.events else "check_head", [head])]
    parts += [(name, some) for name, rows_of in _PARTS if (some := list(rows_of(rows)))]
    statement = _compose(tuple([(name, len(some) == 1) for name, some in parts]))
    row = await connection.fetchrow(statement, *chain.from_iterable([_parameters(some) for _, some in parts]))
    if row is None:
        raise Contended("another policy came into force")
    if changes.calm and row["calmed"] < len(changes.calm):
        raise Contended("a heartbeat came in meanwhile")
    rows.first = row["base"] + 1
    for name, rows_of in _RARE:
        if some := list(rows_of(rows)):
            await connection.execute(SQL[name], *zip(*some, strict=True))
    return int(row["base"])


def _parameters(rows: Sequence[Row]) -> Iterable[object]:
    return rows[0] if len(rows) == 1 else zip(*rows, strict=True)


@lru_cache(maxsize=256)
def _compose(parts: tuple[tuple[str, bool], ...]) -> str:
    """Build the statement from the parts that have rows; their parameters follow each other.

    A part with a single row takes its values as parameters, any other its columns.
    """
    used = 0
    texts: list[str] = []
    for name, has_one_row in parts:
        text = _COLUMNS.sub(_take_values, SQL[name]) if has_one_row else SQL[name]
        texts.append(_renumber(text, used))
        used += max(int(number) for number in _PARAMETER.findall(text))
    has_calm = any(name == "set_calm" for name, _ in parts)
    return f"with {', '.join(texts)} {SQL['read_base_and_calm' if has_calm else 'read_base']}"


def _take_values(columns: re.Match[str]) -> str:
    """Replace columns by a row of values: `(select $1::text)` for `unnest($1::text[])`."""
    return f"(select {columns[1].replace('[]', '')})"


def _renumber(text: str, by: int) -> str:
    return _PARAMETER.sub(lambda found: f"${int(found[1]) + by}", text)


class Rows:
    """The rows of one transaction, by the part that writes them; an event has an ordinal until `first` is known."""

    def __init__(self, changes: WriteSet) -> None:
        self._changes = changes
        self._encoded: dict[int, str] = {}  # by object id: a report is saved and logged as the same text
        self.first = 0

    # for most reports

    def statuses(self) -> Iterator[Row]:
        places = self._changes.revisions
        for record in self._changes.updated:
            id_, status = record.resource.id, record.status
            yield (
                id_,
                encode(status).decode(),
                record.answer,
                severity_of(status),
                status.next_deadline,
                record.policy_version,
                places.get(id_),
                record.look.at,
                encode_looks(record.look.history),
            )

    def rescheduled(self) -> Iterator[Row]:
        for record in self._changes.rescheduled:
            look = record.look.at, encode_looks(record.look.history)
            yield record.resource.id, record.status.next_deadline, record.policy_version, *look

    def reports(self) -> Iterator[Row]:
        for id_, stored in self._changes.reports:
            report = stored.report
            yield (
                id_,
                report.adapter,
                report.observed_generation,
                stored.digest,
                stored.id,
                stored.effective_time,
                stored.last_heard,
                stored.is_calm,
            )

    def bodies(self) -> Iterator[Row]:
        for id_, stored in self._changes.reports:
            yield id_, stored.report.adapter, self._encode(stored)

    def calm(self) -> Iterator[Row]:
        for change in self._changes.calm:
            stored = change.stored
            times = (stored.effective_time, stored.last_heard)
            yield change.resource_id, stored.report.adapter, stored.is_calm, *times

    def log(self) -> Iterator[Row]:
        for logged in self._changes.log:
            stored, replaced = logged.stored, logged.replaced
            yield (
                logged.resource_id,
                stored.report.adapter,
                stored.report.observed_generation,
                logged.event,
                stored.last_heard,
                stored.effective_time,
                stored.id,
                self._encode(stored),
                None if replaced is None else replaced.effective_time,
                None if replaced is None else replaced.last_heard,
            )

    def events(self) -> Iterator[Row]:
        for place, event in enumerate(self._changes.events):
            resource = event.resource
            yield (
                place,
                event.type,
                resource.id,
                resource.kind,
                resource.parent_id,
                resource.tenant,
                resource.generation,
                event.time,
                event.answer,
                encode_facets(event.facets),
            )

    def transitions(self) -> Iterator[Row]:
        for place, event in enumerate(self._changes.events):
            for ordinal, moved in enumerate(event.transitions):
                yield (
                    place,
                    ordinal,
                    event.resource.id,
                    moved.subject,
                    moved.before,
                    moved.after,
                    moved.time,
                    moved.reason,
                    moved.message,
                    event.cause.kind,
                    event.cause.ref,
                    event.policy,
                )

    def accepted(self) -> Iterator[Row]:
        for counts in self._changes.adapter_counts:
            if counts.counts.keys() == _ACCEPTED:
                values = counts.counts.values()
                yield counts.tenant, counts.adapter, counts.last_seen, in_micros(counts.skew), *values

    def adapter_counts(self) -> Iterator[Row]:
        for counts in self._changes.adapter_counts:
            if counts.counts.keys() != _ACCEPTED:
                skew, values = in_micros(counts.skew), counts_in_order(counts.counts)
                yield counts.tenant, counts.adapter, counts.last_seen, skew, *values, counts.last_discard

    def facets_removed(self) -> Iterable[Row]:
        return self._changes.facets_removed

    def facets_gained(self) -> Iterator[Row]:
        new = {record.resource.id for record in self._changes.inserted}
        return ((id_, token) for id_, token in self._changes.facets_added if id_ not in new)

    # rare

    def retired(self) -> Iterable[Row]:
        return self._changes.retired

    def removed(self) -> Iterator[Row]:
        return ((resource.id,) for resource in self._changes.removed)

    def edited(self) -> Iterator[Row]:
        for record in self._changes.updated:
            resource = record.resource
            if resource.id in self._changes.edited:
                yield resource.id, resource.tenant, resource.name, resource.is_deleting, encode(resource).decode()

    def inserted(self) -> Iterator[Row]:
        for record in self._changes.inserted:
            resource, status = record.resource, record.status
            place = self._changes.revisions.get(resource.id)
            yield (
                resource.id,
                resource.kind,
                resource.parent_id,
                resource.tenant,
                resource.name,
                resource.created_time,
                resource.is_deleting,
                severity_of(status),
                0 if place is None else self.first + place,
                status.next_deadline,
                record.policy_version,
                record.answer,
                encode(resource).decode(),
                encode(status).decode(),
                record.look.at,
                encode_looks(record.look.history),
            )

    def first_facets(self) -> Iterator[Row]:
        new = {record.resource.id for record in self._changes.inserted}
        return ((id_, token) for id_, token in self._changes.facets_added if id_ in new)

    def idempotency_records(self) -> Iterator[Row]:
        for answer in self._changes.idempotency_records:
            yield answer.key, answer.digest, answer.resource_id, answer.answer, answer.time

    def _encode(self, stored: StoredReport) -> str:
        encoded = self._encoded.get(id(stored))
        if encoded is None:
            encoded = self._encoded[id(stored)] = encode(stored).decode()
        return encoded


RowsOf = Callable[[Rows], Iterable[Row]]

_ACCEPTED: Final = {"aggregated"}
_PARAMETER: Final = re.compile(r"\$(\d+)")
_COLUMNS: Final = re.compile(r"unnest\(([^()]*)\)")

# The parts of the one statement.
_PARTS: Final[tuple[tuple[str, RowsOf], ...]] = (
    ("save_statuses", Rows.statuses),
    ("reschedule", Rows.rescheduled),
    ("save_reports", Rows.reports),
    ("save_bodies", Rows.bodies),
    ("set_calm", Rows.calm),
    ("log_reports", Rows.log),
    ("insert_events", Rows.events),
    ("record_transitions", Rows.transitions),
    ("remove_facets", Rows.facets_removed),
    ("add_facets", Rows.facets_gained),
    ("add_accepted_counts", Rows.accepted),
    ("add_counts", Rows.adapter_counts),
)

# Statements after it, in this order, so that facets find their resource and a name is free before it is taken.
_RARE: Final[tuple[tuple[str, RowsOf], ...]] = (
    ("remove_reports", Rows.retired),
    ("remove_resources", Rows.removed),
    ("edit_resources", Rows.edited),
    ("insert_resources", Rows.inserted),
    ("insert_facets", Rows.first_facets),
    ("insert_idempotency_records", Rows.idempotency_records),
)
