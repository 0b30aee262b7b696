"""Verifies stored data: every stored status must be the function of what is stored beside it.

Called by `hyperfleet db verify`, and by the tests that crash servers. Reads only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.aggregation import Child, aggregate
from hyperfleet.model.event import PHASE_SUBJECT
from hyperfleet.model.kind import Kind
from hyperfleet.model.status import Status
from hyperfleet.ports import EVERYTHING, HistoryQuery, Query, Record, RecordedTransition, Store
from hyperfleet.services.workspace import Rules

_PAGE: Final = 500  # ids listed at once; the records are read one by one
_ATTEMPTS: Final = 5  # to read a resource that servers write to meanwhile
_HISTORY: Final = 10_000  # transitions checked of each resource, the newest


class Inconsistency(Struct, frozen=True):
    """Stored data of a resource that contradict each other."""

    resource_id: str
    code: str
    message: str

    def __str__(self) -> str:
        """Return it in one line."""
        return f"{self.resource_id}: {self.code}: {self.message}"


class Verification:
    """One pass over everything that is stored."""

    def __init__(self, store: Store, rules: Rules, on_checked: Callable[[int], None] = lambda checked: None) -> None:
        """Compare what is in `store` with what `rules` compute; `on_checked` gets the number of resources so far."""
        self._store = store
        self._rules = rules
        self._on_checked = on_checked
        self.checked = 0

    async def run(self) -> AsyncIterator[Inconsistency]:
        """Yield every inconsistency."""
        for kind in self._rules.kinds:
            async for record in self._records(kind):
                self.checked += 1
                for finding in await self._check(kind, record):
                    yield finding
                self._on_checked(self.checked)

    async def _records(self, kind: Kind) -> AsyncIterator[Record]:
        query = Query(kind.name, EVERYTHING, limit=_PAGE)
        while page := await self._store.find(query):
            for answer in page:
                record = await self._store.read_record(kind.name, answer.id, EVERYTHING)
                if record is not None:
                    yield record
            query = replace(query, after=(page[-1].key, page[-1].id))

    async def _check(self, kind: Kind, record: Record) -> list[Inconsistency]:
        """Check one resource; again if it changed meanwhile, because servers may write between our reads."""
        for _ in range(_ATTEMPTS):
            findings = [*await self._check_status(record), *await self._check_history(record)]
            now = await self._store.read_record(kind.name, record.resource.id, EVERYTHING) if findings else record
            if now is None:
                break
            if (now.revision, now.status) == (record.revision, record.status):  # heartbeats may go on
                return findings
            record = now
        return []  # removed, or changed at every attempt: no inconsistency that lasts

    async def _check_status(self, record: Record) -> list[Inconsistency]:
        """Compute the status again as of its time: nothing visible may differ."""
        id_ = record.resource.id
        if record.answer != self._rules.render(record):
            return [Inconsistency(id_, "AnswerDiffers", "the stored answer does not match the stored status")]
        if record.policy_version != self._rules.policy_version:
            return []  # not yet recomputed under the policy in force
        children = await self._store.read_children(id_, EVERYTHING)
        again = aggregate(
            record.resource,
            record.reports,
            self._rules.policies.select(record.resource),
            record.status,
            record.status.memory.written_time,
            children=[Child(child.resource.kind, child.resource.name, child.status.conditions) for child in children],
        )
        if _visible(again) == _visible(record.status):
            return []
        return [Inconsistency(id_, "StatusDiffers", f"stored as {record.status.phase}, computed again {again.phase}")]

    async def _check_history(self, record: Record) -> list[Inconsistency]:
        """Check the transitions of each subject: each must start where the previous one ended."""
        recorded = await self._store.read_transitions(HistoryQuery(record.resource.id, EVERYTHING, limit=_HISTORY))
        known = [entry for entry in recorded if entry.position <= record.revision]  # it may have changed meanwhile
        findings = []
        last: dict[str, str | None] = {}
        for entry in reversed(known):
            subject, before = entry.transition.subject, entry.transition.before
            if subject in last and last[subject] != before:
                findings.append(_gap(record, entry, last[subject]))
            last[subject] = entry.transition.after
        now = {PHASE_SUBJECT: record.status.phase} | {each.type: each.status for each in record.status.conditions}
        findings += [
            Inconsistency(
                record.resource.id, "HistoryDiffers", f"{subject} is {value}, its history ends at {last[subject]}"
            )
            for subject, value in now.items()
            if subject in last and last[subject] != value
        ]
        return findings


def _gap(record: Record, entry: RecordedTransition, ended: str | None) -> Inconsistency:
    transition = entry.transition
    message = f"at {entry.position} {transition.subject} goes on from {transition.before}, but it had ended at {ended}"
    return Inconsistency(record.resource.id, "HistoryBroken", message)


def _visible(status: Status) -> tuple[object, ...]:
    return status.phase, status.phase_since, status.conditions, status.adapters, status.raw, status.last_updated
