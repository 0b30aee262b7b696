"""Writing the changes of one transaction to PostgreSQL: as columns, so that one statement takes any number of rows.

A part that has one row takes its values as they are: then neither the driver nor the server needs to make anything of
arrays, which is most of what a single report would cost.

Whether what they were made from is locked or only remembered, `postgres_transactions` knows. What is written, and why,
is not decided here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Final

from msgspec import Struct

from hyperfleet.backends.past import encode_facets
from hyperfleet.backends.postgres_connections import Connection
from hyperfleet.backends.postgres_loading import SQL
from hyperfleet.backends.record_cache import Found
from hyperfleet.backends.rows import counts_in_order, encode, in_micros, severity_of
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import Changes

Row = tuple[object, ...]


class Outcome(Struct, frozen=True):
    """What came of writing: the position before the first event, the version of every row written, and the time."""

    base: int
    version: int
    now: datetime
    report_sizes: Mapping[str, Mapping[str, int]]  # bytes of each report written, by resource and adapter


async def write(
    connection: Connection, policy_version: int, changes: Changes, found: Found, *, is_locked: bool
) -> Outcome | None:
    """Write changes that were computed under a policy; None: another one is in force, and nothing was written.

    If the rows that they were computed from are not locked yet, and one has another version by now, nothing is written
    either.
    """
    found.foresee(changes)
    rows = Rows(changes, found)
    head: Row = (len(changes.events), policy_version)
    known: list[Row] = [] if is_locked else list(found.marks.items())
    parts = [("raise_head", [head])]
    if known:
        parts = [("find_unchanged", known), ("raise_head_if_unchanged", [(*head, len(known))])]
    parts += [(name, some) for name, rows_of in _PARTS if (some := list(rows_of(rows)))]
    statement = _compose(tuple([(name, len(some) == 1) for name, some in parts]))
    row = await connection.fetchrow(statement, *chain.from_iterable([_parameters(some) for _, some in parts]))
    if row is None:
        return None
    rows.first = row["base"] + 1
    for name, rows_of in _RARE:
        if some := list(rows_of(rows)):
            await connection.execute(SQL[name], *zip(*some, strict=True))
    return Outcome(row["base"], row["version"], row["now"], rows.report_sizes)


def is_single(changes: Changes) -> bool:
    """Tell whether changes are written by one statement, which is a transaction by itself."""
    return not (changes.retired or changes.removed or changes.edited or changes.inserted or changes.remembered)


def _parameters(rows: Sequence[Row]) -> Iterable[object]:
    return rows[0] if len(rows) == 1 else zip(*rows, strict=True)


@lru_cache(maxsize=256)
def _compose(parts: tuple[tuple[str, bool], ...]) -> str:
    """Put the statement together of the parts that there are rows for; their parameters follow each other.

    Of a part that has a single row, the parameters are its values; else its columns.
    """
    used = 0
    texts: list[str] = []
    for name, has_one_row in parts:
        text = _COLUMNS.sub(_take_values, SQL[name]) if has_one_row else SQL[name]
        texts.append(_renumber(text, used))
        used += max(int(number) for number in _PARAMETER.findall(text))
    return f"with {', '.join(texts)} {SQL['tell_outcome']}"


def _take_values(columns: re.Match[str]) -> str:
    """Write a row of values in the place of columns: `(select $1::text)` for `unnest($1::text[])`."""
    return f"(select {columns[1].replace('[]', '')})"


def _renumber(text: str, by: int) -> str:
    return _PARAMETER.sub(lambda found: f"${int(found[1]) + by}", text)


class Rows:
    """The rows of one transaction, by the part that writes them; an event is known by its place until `first` is."""

    def __init__(self, changes: Changes, found: Found) -> None:
        self._changes = changes
        self._found = found
        self._encoded: dict[int, str] = {}  # by object: a report is saved and logged in the same words
        self.report_sizes: dict[str, dict[str, int]] = {}
        self.first = 0

    # with most reports

    def beats(self) -> Iterator[Row]:
        found = self._found
        for record in self._changes.updated:
            resource = record.resource
            logged = found.beats.get(resource.id)
            if logged is not None:
                stored, trail = logged.stored, found.trail_of(resource.id)
                yield (
                    resource.id,
                    record.answer,
                    found.pulse_of(record),
                    logged.event,
                    resource.generation,
                    stored.report.adapter,
                    stored.report.observed_generation,
                    stored.last_heard,
                    stored.effective_time,
                    stored.id,
                    trail.last,
                    trail.next_passed,
                )

    def statuses(self) -> Iterator[Row]:
        places = self._changes.revisions
        for record in self._changes.updated:
            id_, status = record.resource.id, record.status
            if id_ in self._changes.steady:
                continue
            yield (
                id_,
                encode(status).decode(),
                record.answer,
                self._found.pulse_of(record),
                severity_of(status),
                record.wake_at,
                record.policy_version,
                places.get(id_),
            )

    def times(self) -> Iterator[Row]:
        places, steady = self._changes.revisions, self._changes.steady
        for record in self._changes.updated:
            id_ = record.resource.id
            if id_ in steady and id_ not in self._found.beats:
                yield id_, record.answer, self._found.pulse_of(record), places.get(id_)

    def reports(self) -> Iterator[Row]:
        for id_, stored in self._changes.reports:
            adapter, encoded = stored.report.adapter, self._encode(stored)
            self.report_sizes.setdefault(id_, {})[adapter] = len(encoded)
            yield id_, adapter, stored.report.observed_generation, encoded

    def log(self) -> Iterator[Row]:
        for logged, is_copy in self._found.to_be_logged(self._changes):
            stored = logged.stored
            yield (
                logged.resource_id,
                stored.report.adapter,
                stored.report.observed_generation,
                _NOT_HERE if is_copy else logged.event,
                stored.last_heard,
                stored.effective_time,
                stored.id,
                None if logged.is_same else self._encode(stored),
            )

    def events(self) -> Iterator[Row]:
        for place, draft in enumerate(self._changes.events):
            resource = draft.resource
            if resource.id in self._found.beats:
                continue
            yield (
                place,
                draft.type,
                resource.id,
                resource.kind,
                resource.parent_id,
                resource.tenant,
                resource.generation,
                draft.time,
                draft.answer,
                encode_facets(draft.facets),
                self._found.trail_of(resource.id).last,
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

    def accepted(self) -> Iterator[Row]:
        for tally in self._changes.tallies:
            if tally.counts.keys() == _ACCEPTED:
                counts = tally.counts.values()
                yield tally.tenant, tally.adapter, tally.last_seen, in_micros(tally.skew), *counts

    def tallies(self) -> Iterator[Row]:
        for tally in self._changes.tallies:
            if tally.counts.keys() != _ACCEPTED:
                skew, counts = in_micros(tally.skew), counts_in_order(tally.counts)
                yield tally.tenant, tally.adapter, tally.last_seen, skew, *counts, tally.last_discard

    def facets_removed(self) -> Iterable[Row]:
        return self._changes.facets_removed

    def facets_gained(self) -> Iterator[Row]:
        new = {record.resource.id for record in self._changes.inserted}
        return ((id_, token) for id_, token in self._changes.facets_added if id_ not in new)

    # now and then

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
                record.answer,
                encode(resource).decode(),
                encode(status).decode(),
            )

    def first_facets(self) -> Iterator[Row]:
        new = {record.resource.id for record in self._changes.inserted}
        return ((id_, token) for id_, token in self._changes.facets_added if id_ in new)

    def remembered(self) -> Iterator[Row]:
        for answer in self._changes.remembered:
            yield answer.key, answer.digest, answer.resource_id, answer.answer, answer.time

    def _encode(self, stored: StoredReport) -> str:
        encoded = self._encoded.get(id(stored))
        if encoded is None:
            encoded = self._encoded[id(stored)] = encode(stored).decode()
        return encoded


RowsOf = Callable[[Rows], Iterable[Row]]

_NOT_HERE: Final = -1  # the place of an event that is not one of these changes': then the position is `AMONG_EVENTS`
_ACCEPTED: Final = {"aggregated"}
_PARAMETER: Final = re.compile(r"\$(\d+)")
_COLUMNS: Final = re.compile(r"unnest\(([^()]*)\)")

# The parts of the one statement.
_PARTS: Final[tuple[tuple[str, RowsOf], ...]] = (
    ("beat", Rows.beats),
    ("save_times", Rows.times),
    ("save_statuses", Rows.statuses),
    ("save_reports", Rows.reports),
    ("log_reports", Rows.log),
    ("tell_events", Rows.events),
    ("record_transitions", Rows.transitions),
    ("remove_facets", Rows.facets_removed),
    ("add_facets", Rows.facets_gained),
    ("tally_accepted", Rows.accepted),
    ("tally", Rows.tallies),
)

# Statements after it, in this order, so that facets find their resource and a name is free before somebody takes it.
_RARE: Final[tuple[tuple[str, RowsOf], ...]] = (
    ("remove_reports", Rows.retired),
    ("remove_resources", Rows.removed),
    ("edit_resources", Rows.edited),
    ("insert_resources", Rows.inserted),
    ("insert_facets", Rows.first_facets),
    ("insert_remembered", Rows.remembered),
)
