"""A past to write to a store, and what a plain list of it says: the yardstick for what stores tell of the past."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from random import Random

from msgspec import Struct, field
from msgspec.structs import replace

from hyperfleet.backends.rows import as_heard
from hyperfleet.model.event import EventType
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.ports import Changes, Draft, Entry, FacetChange, LoggedReport, Record, Store, Version
from tests.contract.stores import make_record, make_stored, write

ADAPTERS = ("apply", "dns")


class Logged(Struct, frozen=True):
    """A report that was logged, with the position of its event."""

    resource_id: str
    position: int | None
    stored: StoredReport


class Chronicle(Struct):
    """All that happened, in its order; it forgets nothing."""

    entries: list[Entry] = field(default_factory=list)
    reports: list[Logged] = field(default_factory=list)

    def events_of(self, id_: str) -> list[Entry]:
        """Return the events of a resource."""
        return [entry for entry in self.entries if entry.resource_id == id_]

    def reports_at(self, id_: str, generation: int) -> tuple[StoredReport, ...]:
        """Return the last report of each adapter at a generation."""
        ours = [each.stored for each in self.reports if each.resource_id == id_]
        last = {each.report.adapter: each for each in ours if each.report.observed_generation == generation}
        return tuple(last[adapter] for adapter in sorted(last))

    def version(self, id_: str, at: datetime) -> Version | None:
        """Return a resource as it was."""
        until = [entry for entry in self.events_of(id_) if entry.time <= at]
        if not until:
            return None
        full, last = [entry for entry in until if entry.type != "Reported"][-1], until[-1]
        beats = [each for each in self.reports if each.resource_id == id_ and each.position is not None]
        heard = {
            each.stored.report.adapter: each.stored.effective_time
            for each in beats
            if each.position is not None and full.position < each.position <= last.position
        }
        return Version(full, last.position, None if last is full else last.time, heard)

    def versions(self, id_: str, since: datetime) -> tuple[Entry, ...]:
        """Return the answers from the one in force at a moment on."""
        full = [entry for entry in self.events_of(id_) if entry.answer is not None]
        before = [entry for entry in full if entry.time <= since]
        return (*before[-1:], *(entry for entry in full if entry.time > since))

    def reports_past(self, id_: str, at: datetime) -> tuple[StoredReport, ...]:
        """Return the last report of each adapter that was received until then."""
        ours = [each.stored for each in self.reports if each.resource_id == id_ and each.stored.last_heard <= at]
        last = {stored.report.adapter: stored for stored in ours}
        return tuple(last[adapter] for adapter in sorted(last))

    def report_log(self, id_: str, since: datetime) -> tuple[StoredReport, ...]:
        """Return the last report of each adapter before a moment, then all from then on."""
        ours = [each.stored for each in self.reports if each.resource_id == id_]
        last = {stored.report.adapter: stored.id for stored in ours if stored.last_heard < since}
        return tuple(stored for stored in ours if stored.last_heard >= since or stored.id in last.values())


class Historian:
    """Writes to a store and to a chronicle alike."""

    def __init__(self, store: Store, start: datetime) -> None:
        self.chronicle = Chronicle()
        self.now = start
        self.write: Callable[[Changes], Awaitable[int]] = lambda changes: write(store, changes)
        self._records: dict[str, Record] = {}
        self._reports: dict[tuple[str, str], StoredReport] = {}

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
        await self._write([draft], Changes(inserted=[record], revisions={id_: 0}, events=[draft]))
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
        """Take a report: one that says what the last one said is a heartbeat."""
        record, before = self._at_this_time(self._records[id_]), self._reports.get((id_, adapter))
        number = len(self.chronicle.reports)
        stored = make_stored(
            adapter,
            record.resource.generation,
            said,
            id=f"rep-{number}",
            last_heard=self.now,
            effective_time=self.now - timedelta(seconds=number % 7),
        )
        is_same = before is not None and before.report == stored.report
        facets = None if is_same else FacetChange(("p:Pending",), (f"a:{adapter}={said}",))
        draft = self._draft("Reported" if is_same else "StatusChanged", record.resource, facets)
        log = [LoggedReport(id_, stored, 0, is_same)]
        changes = Changes(updated=[record], revisions={id_: 0}, events=[draft], log=log)
        if is_same:
            changes = replace(changes, repeated=[(id_, stored)], steady=frozenset({id_}))
        else:
            changes = replace(changes, reports=[(id_, stored)])
        await self._write([draft], changes)
        self._records[id_] = record
        told = as_heard(before, stored.id, stored.effective_time, stored.last_heard) if is_same and before else stored
        self.chronicle.reports.append(Logged(id_, self.chronicle.entries[-1].position, told))
        self._reports[id_, adapter] = told

    async def remove(self, id_: str) -> None:
        """Take a resource away."""
        resource = self._records.pop(id_).resource
        draft = self._draft("Removed", resource, FacetChange(lost=("p:Pending",)))
        await self._write([draft], Changes(removed=[resource], events=[draft]))

    async def _change(self, record: Record, type_: EventType, edited: frozenset[str] = frozenset()) -> None:
        id_, record = record.resource.id, self._at_this_time(record)
        draft = self._draft(type_, record.resource, FacetChange(kept=("p:Pending",)))
        changes = Changes(updated=[record], revisions={id_: 0}, edited=edited, events=[draft])
        await self._write([draft], changes)
        self._records[id_] = record

    def _at_this_time(self, record: Record) -> Record:
        status = record.status
        return replace(record, status=replace(status, memory=replace(status.memory, written_time=self.now)))

    def _draft(self, type_: EventType, resource: Resource, facets: FacetChange | None) -> Draft:
        answer = f"{resource.id} {len(self.chronicle.entries)}".encode()
        return Draft(type_, resource, self.now, None if type_ in ("Reported", "Removed") else answer, facets=facets)

    async def _write(self, drafts: Sequence[Draft], changes: Changes) -> None:
        base = await self.write(changes)
        self.chronicle.entries += [as_entry(base + 1 + place, draft) for place, draft in enumerate(drafts)]


def as_entry(position: int, draft: Draft) -> Entry:
    """Return what a draft becomes in the log."""
    resource = draft.resource
    identity = (resource.kind, resource.id, resource.parent_id, resource.tenant, resource.generation)
    return Entry(position, draft.type, *identity, draft.time, draft.answer, draft.facets)


async def live_through(historian: Historian, steps: int, seed: int = 5) -> None:
    """Let many things happen to a few resources, most of them heartbeats, some at the same time."""
    random = Random(seed)  # the same past each time
    for number in range(4):
        await historian.create(f"cls-{number}")
    for step in range(steps):
        historian.wait(timedelta(minutes=random.choice((0, 1, 20, 60))))
        id_ = random.choice(historian.living)
        match random.choices(("beat", "change", "edit", "remove"), (12, 2, 1, 0.3))[0]:
            case "beat":
                await historian.report(id_, random.choice(ADAPTERS), random.choice("aaaab"))
            case "change":
                await historian.change(id_)
            case "edit":
                await historian.edit(id_)
            case "remove":
                await historian.remove(id_)
                await historian.create(f"cls-{step + 10}")


async def live_long(historian: Historian, steps: int, ids: Sequence[str], seed: int = 7) -> None:
    """Let an adapter repeat itself for long, and another one now and then; seldom does either say something new."""
    random = Random(seed)
    said = dict.fromkeys(ADAPTERS, "a")
    for id_ in ids:
        await historian.create(id_)
        for adapter in ADAPTERS:
            await historian.report(id_, adapter, "a")
    for step in range(1, steps + 1):
        historian.wait(timedelta(seconds=random.choice((0, 1, 60, 600))))
        id_, adapter = random.choice(ids), "apply" if step % 50 == 0 else "dns"
        if step % 90 == 0:
            await historian.edit(id_)
        elif step % 70 == 0:
            said[adapter] = random.choice("abc")
        await historian.report(id_, adapter, said[adapter])
