"""A past to write to a store, and what a plain list of it says: the yardstick for what stores tell of the past."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from random import Random

from msgspec import Struct, field
from msgspec.structs import replace

from hyperfleet.model.event import EventType
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.ports import FacetChange, LoggedEvent, LoggedReport, NewEvent, PastReport, Record, Store, WriteSet
from tests.contract.stores import as_past, make_record, make_stored, write

ADAPTERS = ("apply", "dns")


class Logged(Struct):
    """A report that was logged, with the times that its last heartbeat gave it."""

    resource_id: str
    received_time: datetime
    stored: StoredReport
    effective_time: datetime

    def forget_heartbeats(self) -> None:
        """Take the times back that it was logged with: only the report that replaces it would know better."""
        self.stored = replace(self.stored, effective_time=self.effective_time, last_heard=self.received_time)

    def told(self) -> StoredReport:
        """Return the report as the log tells it."""
        return as_past(self.stored)


class Chronicle(Struct):
    """All that happened, in its order; it forgets nothing."""

    entries: list[LoggedEvent] = field(default_factory=list)
    reports: list[Logged] = field(default_factory=list)

    def events_of(self, id_: str) -> list[LoggedEvent]:
        """Return the events of a resource."""
        return [entry for entry in self.entries if entry.resource_id == id_]

    def reports_at(self, id_: str, generation: int) -> tuple[StoredReport, ...]:
        """Return the last report of each adapter at a generation."""
        ours = [each.told() for each in self.reports if each.resource_id == id_]
        last = {each.report.adapter: each for each in ours if each.report.observed_generation == generation}
        return tuple(last[adapter] for adapter in sorted(last))

    def version(self, id_: str, at: datetime) -> LoggedEvent | None:
        """Return a resource as it was."""
        until = [entry for entry in self.events_of(id_) if entry.time <= at]
        return until[-1] if until else None

    def versions(self, id_: str, since: datetime) -> tuple[LoggedEvent, ...]:
        """Return the answers from the one in force at a moment on."""
        full = [entry for entry in self.events_of(id_) if entry.answer is not None]
        before = [entry for entry in full if entry.time <= since]
        return (*before[-1:], *(entry for entry in full if entry.time > since))

    def reports_past(self, id_: str, at: datetime) -> tuple[StoredReport, ...]:
        """Return the last report of each adapter that was received until then."""
        ours = [each for each in self.reports if each.resource_id == id_ and each.received_time <= at]
        last = {each.stored.report.adapter: each.told() for each in ours}
        return tuple(last[adapter] for adapter in sorted(last))

    def report_log(self, id_: str, since: datetime) -> tuple[PastReport, ...]:
        """Return the last report of each adapter before a moment, then all from then on."""
        ours = [each for each in self.reports if each.resource_id == id_]
        last = {each.stored.report.adapter: each.stored.id for each in ours if each.received_time < since}
        kept = [each for each in ours if each.received_time >= since or each.stored.id in last.values()]
        return tuple(PastReport(each.received_time, each.told()) for each in kept)


class Historian:
    """Writes to a store and to a chronicle alike."""

    def __init__(self, store: Store, start: datetime) -> None:
        self.chronicle = Chronicle()
        self.now = start
        self.write: Callable[[WriteSet], Awaitable[int]] = lambda changes: write(store, changes)
        self._number = 0
        self._records: dict[str, Record] = {}
        self._last: dict[tuple[str, str], Logged] = {}

    @property
    def living(self) -> Sequence[str]:
        """Return the ids of those that are there."""
        return sorted(self._records)

    def wait(self, duration: timedelta) -> None:
        """Let time pass."""
        self.now += duration

    async def create(self, id_: str) -> None:
        """Add a resource."""
        record = self._at_this_time(make_record(id_))
        draft = self._draft("Created", record.resource, FacetChange(gained=("p:Pending",)))
        await self._write([draft], WriteSet(inserted=[record], revisions={id_: 0}, events=[draft]))
        self._records[id_] = record

    async def edit(self, id_: str) -> None:
        """Give a resource another spec."""
        old = self._records[id_]
        resource = replace(old.resource, generation=old.resource.generation + 1)
        await self._change(replace(old, resource=resource), "SpecChanged", frozenset({id_}))

    async def change(self, id_: str) -> None:
        """Give a resource another status."""
        await self._change(self._records[id_], "StatusChanged")

    async def report(self, id_: str, adapter: str, said: str) -> None:
        """Take a report: one that says what the last one said is a heartbeat, and moves two times."""
        record, last = self._at_this_time(self._records[id_]), self._last.get((id_, adapter))
        self._number += 1
        times = {"last_heard": self.now, "effective_time": self.now - timedelta(seconds=self._number % 7)}
        stored = make_stored(adapter, record.resource.generation, said, id=f"rep-{self._number}", **times)
        if last is not None and last.stored.report == stored.report:
            last.stored = replace(last.stored, **times)
            await self.write(WriteSet(reports=[(id_, last.stored)]))
            return
        draft = self._draft("StatusChanged", record.resource, FacetChange(("p:Pending",), (f"a:{adapter}={said}",)))
        log = [LoggedReport(id_, stored, 0, last.stored if last else None)]
        changes = WriteSet(updated=[record], revisions={id_: 0}, events=[draft], reports=[(id_, stored)], log=log)
        await self._write([draft], changes)
        self._records[id_] = record
        self._last[id_, adapter] = logged = Logged(id_, self.now, stored, stored.effective_time)
        self.chronicle.reports.append(logged)

    async def retire(self, id_: str, adapter: str) -> None:
        """Forget the report of an adapter."""
        if (id_, adapter) in self._last:
            self._last.pop((id_, adapter)).forget_heartbeats()
        await self.write(WriteSet(retired=[(id_, adapter)]))

    async def remove(self, id_: str) -> None:
        """Take a resource away."""
        resource = self._records.pop(id_).resource
        for adapter in ADAPTERS:
            if (id_, adapter) in self._last:
                self._last.pop((id_, adapter)).forget_heartbeats()
        draft = self._draft("Removed", resource, FacetChange(lost=("p:Pending",)))
        await self._write([draft], WriteSet(removed=[resource], events=[draft]))

    async def _change(self, record: Record, type_: EventType, edited: frozenset[str] = frozenset()) -> None:
        id_, record = record.resource.id, self._at_this_time(record)
        draft = self._draft(type_, record.resource, FacetChange(kept=("p:Pending",)))
        changes = WriteSet(updated=[record], revisions={id_: 0}, edited=edited, events=[draft])
        await self._write([draft], changes)
        self._records[id_] = record

    def _at_this_time(self, record: Record) -> Record:
        status = record.status
        return replace(record, status=replace(status, memory=replace(status.memory, written_time=self.now)))

    def _draft(self, type_: EventType, resource: Resource, facets: FacetChange | None) -> NewEvent:
        answer = f"{resource.id} {len(self.chronicle.entries)}".encode()
        return NewEvent(type_, resource, self.now, None if type_ == "Removed" else answer, facets=facets)

    async def _write(self, drafts: Sequence[NewEvent], changes: WriteSet) -> None:
        base = await self.write(changes)
        self.chronicle.entries += [as_entry(base + 1 + place, draft) for place, draft in enumerate(drafts)]


def as_entry(position: int, draft: NewEvent) -> LoggedEvent:
    """Return what a draft becomes in the log."""
    resource = draft.resource
    identity = (resource.kind, resource.id, resource.parent_id, resource.tenant, resource.generation)
    return LoggedEvent(position, draft.type, *identity, draft.time, draft.answer, draft.facets)


async def live_through(historian: Historian, steps: int, seed: int = 5) -> None:
    """Let many things happen to a few resources, most of them heartbeats, some at the same time."""
    random = Random(seed)  # the same past each time
    for number in range(4):
        await historian.create(f"cls-{number}")
    for step in range(steps):
        historian.wait(timedelta(minutes=random.choice((0, 1, 20, 60))))
        id_ = random.choice(historian.living)
        match random.choices(("report", "change", "edit", "retire", "remove"), (12, 2, 1, 0.5, 0.3))[0]:
            case "report":
                await historian.report(id_, random.choice(ADAPTERS), random.choice("aaaab"))
            case "change":
                await historian.change(id_)
            case "edit":
                await historian.edit(id_)
            case "retire":
                await historian.retire(id_, random.choice(ADAPTERS))
            case "remove":
                await historian.remove(id_)
                await historian.create(f"cls-{step + 10}")
