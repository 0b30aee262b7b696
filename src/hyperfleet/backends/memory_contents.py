"""The data of the memory store, and how a transaction loads and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct, field
from msgspec.structs import replace

from hyperfleet.backends.memory_log import ReportLog
from hyperfleet.backends.past import Horizon, WalkedLog
from hyperfleet.backends.rows import AdapterRow, counts_in_order, in_micros
from hyperfleet.errors import Contended
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import (
    AdapterCounts,
    Clock,
    Heartbeat,
    IdempotencyRecord,
    Loaded,
    LogReader,
    NameKey,
    Needs,
    NewEvent,
    PolicyVersion,
    Record,
    RecordedHeartbeat,
    RecordedTransition,
    WriteSet,
)


class MemoryContents(Struct):
    """Everything that a database would contain."""

    position: int = 0
    records: dict[str, Record] = field(default_factory=dict)
    tokens: dict[str, set[str]] = field(default_factory=dict)
    log: ReportLog = field(default_factory=ReportLog)
    events: dict[int, NewEvent] = field(default_factory=dict)
    history: list[tuple[str, RecordedTransition]] = field(default_factory=list)
    horizons: dict[WalkedLog, Horizon] = field(default_factory=lambda: {"events": Horizon(), "reports": Horizon()})
    moves_horizon: Horizon = Horizon()  # of `history`
    readers: dict[str, LogReader] = field(default_factory=dict)
    adapters: dict[tuple[str, str], AdapterRow] = field(default_factory=dict)
    idempotency_records: dict[str, IdempotencyRecord] = field(default_factory=dict)
    policies: list[PolicyVersion] = field(default_factory=list)
    file_digest: str = ""  # of the last policy that came from a file
    look_rules: str = ""  # the digest of the sentinel's rules

    @property
    def lowest_reader(self) -> int:
        """Return the position above which pruning must keep everything."""
        positions = [each.position for each in self.readers.values() if each.dropped_time is None]
        return min(positions, default=self.position)


# ── loading ──────────────────────────────────────────────────────────────────────────────────────────────────────


def load(contents: MemoryContents, needs: Needs, clock: Clock) -> Loaded:
    """Load what a transaction needs."""
    records = {id_: contents.records[id_] for id_ in needs.ids if id_ in contents.records}
    parents = {record.resource.parent_id for record in records.values()}
    records |= {id_: contents.records[id_] for id_ in parents if id_ in contents.records}
    return Loaded(
        now=clock.now(),
        policy_version=contents.policies[-1].version if contents.policies else 0,
        records=records,
        children={
            id_: tuple(children_of(contents, id_))
            for id_, record in records.items()
            if needs.wants_children(record.resource)
        },
        names=_load_names(contents, needs.names),
        idempotency_records={
            key: contents.idempotency_records[key] for key in needs.keys if key in contents.idempotency_records
        },
    )


def _load_names(contents: MemoryContents, names: frozenset[NameKey]) -> Mapping[NameKey, str]:
    return {name: id_ for name, id_ in _names(contents.records).items() if name in names} if names else {}


def children_of(contents: MemoryContents, parent_id: str) -> list[Record]:
    """Return the children of a resource, in order of ids."""
    children = (record for record in contents.records.values() if record.resource.parent_id == parent_id)
    return sorted(children, key=lambda record: record.resource.id)


def _names(records: Mapping[str, Record]) -> dict[NameKey, str]:
    """Return the names in use, with the ids of their resources."""
    return {NameKey.of(record.resource): id_ for id_, record in records.items() if not record.resource.is_deleting}


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────


def write(contents: MemoryContents, changes: WriteSet) -> None:
    """Write all changes or, if a name, id or key is taken, none."""
    _refuse_duplicates(contents, changes)
    _Writing(contents, changes).run()


def _refuse_duplicates(contents: MemoryContents, changes: WriteSet) -> None:
    """Raise if a name, id or key is taken: another writer was first."""
    if any(answer.key in contents.idempotency_records for answer in changes.idempotency_records):
        raise Contended("an idempotency key is taken")
    if not (changes.inserted or changes.edited):
        return
    gone = {resource.id for resource in changes.removed}
    after = {id_: record for id_, record in contents.records.items() if id_ not in gone}
    after |= {record.resource.id: record for record in changes.updated}
    new = {record.resource.id: record for record in changes.inserted}
    named = sum(not record.resource.is_deleting for record in (*after.values(), *new.values()))
    if new.keys() & after.keys() or len(_names(after | new)) < named:
        raise Contended("a name or an id is taken")


class _Writing:
    """Writes the changes of one transaction."""

    def __init__(self, contents: MemoryContents, changes: WriteSet) -> None:
        self._contents = contents
        self._changes = changes
        self._first = contents.position + 1

    def run(self) -> None:
        self._write_resources()
        self._write_reports()
        self._write_events()
        self._write_facets()
        for counts in self._changes.adapter_counts:
            add_counts(self._contents, counts)
        self._contents.idempotency_records |= {each.key: each for each in self._changes.idempotency_records}

    def _write_resources(self) -> None:
        records = self._contents.records
        for resource in self._changes.removed:
            del records[resource.id]
        for record in (*self._changes.inserted, *self._changes.updated):
            id_ = record.resource.id
            before = records.get(id_)
            place = self._changes.revisions.get(id_)
            kept = before.revision if before else 0
            revision = kept if place is None else self._first + place
            is_edited = before is None or id_ in self._changes.edited
            resource = record.resource if is_edited or before is None else before.resource
            reports = before.reports if before else {}
            records[id_] = replace(record, resource=resource, revision=revision, reports=reports)
        for record in self._changes.rescheduled:
            id_ = record.resource.id
            status = replace(records[id_].status, next_deadline=record.status.next_deadline)
            records[id_] = replace(records[id_], status=status, policy_version=record.policy_version, look=record.look)

    def _write_reports(self) -> None:
        records = self._contents.records
        for id_, adapter in self._changes.retired:
            if id_ in records:
                kept = {name: report for name, report in records[id_].reports.items() if name != adapter}
                records[id_] = replace(records[id_], reports=kept)
        for id_, stored in self._changes.reports:
            _put_report(records, id_, stored)
        for change in self._changes.calm:
            id_, adapter = change.resource_id, change.stored.report.adapter
            _put_report(records, id_, replace(records[id_].reports[adapter], is_calm=change.stored.is_calm))
        for logged in self._changes.log:
            self._contents.log.append(logged)

    def _write_events(self) -> None:
        for position, event in enumerate(self._changes.events, self._first):
            self._contents.events[position] = event
            self._contents.history += [
                (event.resource.id, RecordedTransition(position, transition, event.cause, event.policy, ordinal))
                for ordinal, transition in enumerate(event.transitions)
            ]
        self._contents.position += len(self._changes.events)

    def _write_facets(self) -> None:
        tokens = self._contents.tokens
        for resource in self._changes.removed:
            del tokens[resource.id]
        for record in self._changes.inserted:
            tokens[record.resource.id] = set()
        for id_, token in self._changes.facets_removed:
            tokens.get(id_, set()).discard(token)
        for id_, token in self._changes.facets_added:
            tokens[id_].add(token)


# ── heartbeats ───────────────────────────────────────────────────────────────────────────────────────────────────


def record_heartbeat(contents: MemoryContents, sent: Heartbeat, now: datetime) -> RecordedHeartbeat | None:
    """Record a report that repeats a calm stored report at a later time."""
    record = contents.records.get(sent.resource_id)
    stored = record.reports.get(sent.adapter) if record else None
    effective = min(sent.observed_time, now) if sent.observed_time else now
    if record is None or stored is None or not (_may_reach(sent, record) and _repeats(sent, stored, effective)):
        return None
    stored = replace(stored, effective_time=effective, last_heard=max(stored.last_heard, now))
    _put_report(contents.records, sent.resource_id, stored)
    resource, skew = record.resource, sent.observed_time - now if sent.observed_time else timedelta()
    add_counts(contents, AdapterCounts(resource.tenant, sent.adapter, now, skew, {"aggregated": 1}))
    return RecordedHeartbeat(
        resource.name,
        resource.parent_id,
        resource.tenant,
        record.revision,
        record.status.phase,
        stored.id,
        skew,
        stored if sent.wants_report else None,
    )


def _may_reach(sent: Heartbeat, record: Record) -> bool:
    resource = record.resource
    return (
        resource.kind == sent.kind
        and sent.parent_id in (None, resource.parent_id)
        and sent.scope.admits(resource.tenant)
    )


def _repeats(sent: Heartbeat, stored: StoredReport, effective: datetime) -> bool:
    return (
        stored.is_calm
        and stored.digest == sent.digest
        and stored.report.observed_generation == sent.generation
        and stored.effective_time < effective
    )


def _put_report(records: dict[str, Record], id_: str, stored: StoredReport) -> None:
    reports = {**records[id_].reports, stored.report.adapter: stored}
    records[id_] = replace(records[id_], reports=dict(sorted(reports.items())))


def add_counts(contents: MemoryContents, counts: AdapterCounts) -> None:
    """Add counts to those of an adapter."""
    key = (counts.tenant, counts.adapter)
    skew = in_micros(counts.skew)
    new = AdapterRow(counts.adapter, counts.last_seen, skew, tuple(counts_in_order(counts.counts)), counts.last_discard)
    before = contents.adapters.get(key)
    contents.adapters[key] = new if before is None else _merge(before, new)


def _merge(before: AdapterRow, new: AdapterRow) -> AdapterRow:
    latest = new if new.last_seen >= before.last_seen else before
    counts = tuple(old + more for old, more in zip(before.counts, new.counts, strict=True))
    return replace(latest, counts=counts, last_discard=new.last_discard or before.last_discard)
