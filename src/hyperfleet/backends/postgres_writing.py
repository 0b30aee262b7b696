"""Writing the changes of one transaction to PostgreSQL: as columns, so that one statement takes any number of rows.

Called with everything that was loaded locked. What is written, and why, is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from hyperfleet.backends.postgres_connections import Connection
from hyperfleet.backends.postgres_loading import SQL
from hyperfleet.backends.rows import counts_in_order, encode, in_micros, severity_of
from hyperfleet.errors import Contended
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import Changes

Row = tuple[object, ...]


async def write(connection: Connection, policy_version: int, changes: Changes) -> int:
    """Write changes that were computed under a policy; return the position before their first event."""
    rows = _Rows(changes)
    columns = [column for rows_of, width in _HOT for column in _columns(rows_of(rows), width)]
    base: int | None = await connection.fetchval(SQL["write"], len(changes.events), policy_version, *columns)
    if base is None:
        raise Contended("another policy came into force")
    rows.first = base + 1
    for statement, rows_of in _RARE:
        if some := list(rows_of(rows)):
            await connection.execute(statement, *zip(*some, strict=True))
    return base


class _Rows:
    """The rows of one transaction, by the part that writes them; an event is known by its place until `first` is."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._encoded: dict[int, str] = {}  # by object: a report is saved and logged in the same words
        self.first = 0

    # with every report

    def statuses(self) -> Iterator[Row]:
        places = self._changes.revisions
        for record in self._changes.updated:
            id_, status = record.resource.id, record.status
            yield (
                id_,
                encode(status).decode(),
                record.answer,
                severity_of(status),
                record.wake_at,
                record.policy_version,
                places.get(id_),
            )

    def reports(self) -> Iterator[Row]:
        for id_, stored in self._changes.reports:
            yield id_, stored.report.adapter, stored.report.observed_generation, self._encode(stored)

    def log(self) -> Iterator[Row]:
        for logged in self._changes.log:
            stored = logged.stored
            yield (
                logged.resource_id,
                stored.report.adapter,
                stored.report.observed_generation,
                logged.event,
                stored.last_heard,
                stored.effective_time,
                stored.id,
                None if logged.is_same else self._encode(stored),
            )

    def events(self) -> Iterator[Row]:
        for draft in self._changes.events:
            resource = draft.resource
            yield (
                draft.type,
                resource.id,
                resource.kind,
                resource.parent_id,
                resource.tenant,
                resource.generation,
                draft.time,
                draft.answer,
            )

    def transitions(self) -> Iterator[Row]:
        for place, draft in enumerate(self._changes.events):
            for ordinal, moved in enumerate(draft.transitions):
                yield (
                    place,
                    ordinal,
                    draft.resource.id,
                    moved.subject,
                    moved.before,
                    moved.after,
                    moved.time,
                    moved.reason,
                    moved.message,
                    draft.cause.kind,
                    draft.cause.ref,
                    draft.policy,
                )

    def tallies(self) -> Iterator[Row]:
        for tally in self._changes.tallies:
            skew = in_micros(tally.skew)
            counts = counts_in_order(tally.counts)
            yield tally.tenant, tally.adapter, tally.last_seen, skew, *counts, tally.last_discard

    # now and then

    def facets_removed(self) -> Iterable[Row]:
        return self._changes.facets_removed

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
                record.wake_at,
                record.policy_version,
                encode(resource).decode(),
                encode(status).decode(),
                record.answer,
            )

    def facets_added(self) -> Iterable[Row]:
        return self._changes.facets_added

    def remembered(self) -> Iterator[Row]:
        for answer in self._changes.remembered:
            yield answer.key, answer.digest, answer.resource_id, answer.answer, answer.time

    def _encode(self, stored: StoredReport) -> str:
        encoded = self._encoded.get(id(stored))
        if encoded is None:
            encoded = self._encoded[id(stored)] = encode(stored).decode()
        return encoded


RowsOf = Callable[[_Rows], Iterable[Row]]


def _columns(rows: Iterable[Row], width: int) -> Sequence[Sequence[object]]:
    """Turn rows into columns, of which there are as many without any row."""
    return list(zip(*rows, strict=True)) or [()] * width


# The parts of the statement `write` in the order of its parameters, and how many each takes.
_HOT: Final[tuple[tuple[RowsOf, int], ...]] = (
    (_Rows.statuses, 7),
    (_Rows.reports, 4),
    (_Rows.log, 8),
    (_Rows.events, 8),
    (_Rows.transitions, 12),
    (_Rows.tallies, 12),
)

# In this order, so that facets find their resource and a name is free again before somebody else takes it.
_RARE: Final[tuple[tuple[str, RowsOf], ...]] = (
    (SQL["remove_facets"], _Rows.facets_removed),
    (SQL["remove_reports"], _Rows.retired),
    (SQL["remove_resources"], _Rows.removed),
    (SQL["edit_resources"], _Rows.edited),
    (SQL["insert_resources"], _Rows.inserted),
    (SQL["insert_facets"], _Rows.facets_added),
    (SQL["insert_remembered"], _Rows.remembered),
)
