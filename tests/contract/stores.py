"""Records and changes to write to stores, and ways to write and read them. The stores are in `conftest.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from msgspec.structs import replace

from hyperfleet.aggregation import digest_of
from hyperfleet.errors import Contended
from hyperfleet.model.condition import Condition
from hyperfleet.model.event import EventType, Transition
from hyperfleet.model.phase import Phase
from hyperfleet.model.report import Report, StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import AdapterSummary, Memory, Status
from hyperfleet.ports import EVERYTHING, Loaded, Needs, NewEvent, Pruning, Record, StatusCause, Store, Work, WriteSet

START = datetime(2025, 10, 17, 12, 0, 0, 123456, tzinfo=UTC)


class SettableClock:
    """A clock that stands until it is set."""

    def __init__(self, instant: datetime = START) -> None:
        self.instant = instant

    def now(self) -> datetime:
        """Return the time it was set to."""
        return self.instant

    def advance(self, duration: timedelta) -> None:
        """Let time pass."""
        self.instant += duration


class DurableStore(Store, Protocol):
    """A store with a schema."""

    async def migrate(self) -> list[str]:
        """Bring the schema up to date."""
        ...

    async def schema_version(self) -> int:
        """Return the version of the schema."""
        ...


# ── things to store ──────────────────────────────────────────────────────────────────────────────────────────────


def make_resource(id_: str = "cls-1", **more: Any) -> Resource:
    """Make a cluster; its name is its id unless told otherwise."""
    fields: dict[str, Any] = {
        "id": id_,
        "kind": "Cluster",
        "name": id_,
        "generation": 1,
        "generation_time": START,
        "created_time": START,
        "spec": {"region": "eu", "nodes": {"count": 3, "ratio": 0.5, "tags": ["a", None, True]}},
        "labels": {"team": "blue"},
        "tenant": "acme",
    }
    return Resource(**(fields | more))


def make_pool(id_: str, parent_id: str, **more: Any) -> Resource:
    """Make a node pool of a cluster."""
    return make_resource(id_, kind="NodePool", parent_id=parent_id, **more)


def make_status(phase: Phase = "Pending", instant: datetime = START) -> Status:
    """Make a status in which every field says something."""
    return Status(
        phase=phase,
        phase_description="words",
        phase_since=instant,
        conditions=(Condition("Ready", "False", "Waiting", "for «dns»", 1, instant),),
        adapters=(AdapterSummary("dns", "True", 1, "Completed", instant, stale=True),),
        last_updated=instant,
        policy="digest",
        raw={},
        next_deadline=instant + timedelta(minutes=5),
        memory=Memory(instant, instant, {"dns": instant}),
    )


def make_record(
    resource: Resource | str = "cls-1", phase: Phase = "Pending", *, wake_at: datetime | None = None, **more: Any
) -> Record:
    """Make a record whose answer tells its id and phase."""
    if isinstance(resource, str):
        resource = make_resource(resource)
    answer = f'{{"id": "{resource.id}", "phase": "{phase}"}}'.encode()
    return Record(resource, replace(make_status(phase), next_deadline=wake_at), **({"answer": answer} | more))


def make_stored(adapter: str = "dns", generation: int = 1, said: str = "", **more: Any) -> StoredReport:
    """Make an accepted report; `said` makes its content differ."""
    conditions = (Condition("Available", "True", "Done", said, generation, START),)
    report = Report(adapter, generation, conditions, START, {"said": said, "n": [1, 2.5]}, {"by": "ü"})
    fields: dict[str, Any] = {"effective_time": START, "last_heard": START, "digest": digest_of(report), "id": "rep-1"}
    return StoredReport(report, **(fields | more))


def as_past(stored: StoredReport) -> StoredReport:
    """Return a report as the log tells it: without what only heartbeats need."""
    return replace(stored, digest=b"", is_calm=False)


def make_draft(
    resource: Resource, *transitions: Transition, type_: EventType = "StatusChanged", **more: Any
) -> NewEvent:
    """Make an event of a resource."""
    fields: dict[str, Any] = {
        "time": START,
        "answer": b"{}",
        "cause": StatusCause("report", "rep-1"),
        "policy": "digest",
    }
    return NewEvent(type_, resource, transitions=transitions, **(fields | more))


def moved(subject: str, before: str | None, after: str | None, instant: datetime = START) -> Transition:
    """Make a transition."""
    return Transition(subject, before, after, instant, "Because", "of this")


def created(*records: Record, tokens: Mapping[str, Iterable[str]] | None = None, time: datetime = START) -> WriteSet:
    """Make the changes that add records, with an event for each."""
    return WriteSet(
        inserted=records,
        revisions={record.resource.id: place for place, record in enumerate(records)},
        events=[make_draft(record.resource, type_="Created", time=time) for record in records],
        facets_added=[(id_, token) for id_, some in (tokens or {}).items() for token in some],
    )


def changed(*records: Record, time: datetime = START, **more: Any) -> WriteSet:
    """Make the changes that give records another status, with an event for each."""
    return WriteSet(
        updated=records,
        revisions={record.resource.id: place for place, record in enumerate(records)},
        events=[make_draft(record.resource, time=time) for record in records],
        **more,
    )


# ── doing ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def write(store: Store, changes: WriteSet, *ids: str) -> int:
    """Write changes to resources, loading those that are not new."""
    old = {record.resource.id for record in changes.updated} | {resource.id for resource in changes.removed}
    old |= {record.resource.id for record in changes.rescheduled} | {change.resource_id for change in changes.calm}
    old |= {id_ for id_, _ in changes.reports} | {id_ for id_, _ in changes.retired} | set(ids)
    return await store.transact(Needs(ids=frozenset(old)), lambda _: changes)


async def insist(store: Store, needs: Needs, work: Work) -> int:
    """Transact until nobody is in the way."""
    while True:
        try:
            return await store.transact(needs, work)
        except Contended:
            await asyncio.sleep(0.001)


async def look(store: Store, needs: Needs) -> Loaded:
    """Return what a transaction finds."""
    seen: list[Loaded] = []

    def work(loaded: Loaded) -> WriteSet:
        seen[:] = [loaded]
        return WriteSet()

    await store.transact(needs, work)
    return seen[0]


async def must_read(store: Store, id_: str, kind: str = "Cluster") -> Record:
    """Return a record that must be there."""
    record = await store.read_record(kind, id_, EVERYTHING)
    assert record is not None, f"{id_} is not there"
    return record


async def prune_all(store: Store, log: Any, keep: timedelta, limit: int = 2) -> int:
    """Prune a log a little at a time until nothing is left to prune; return how much went."""
    total = 0
    while deleted := await store.prune(Pruning(log, keep), limit):
        assert deleted <= limit
        total += deleted
    return total


def ids_of(answers: Sequence[Any]) -> list[str]:
    """Return the ids of answers."""
    return [answer.id for answer in answers]
