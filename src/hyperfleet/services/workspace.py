"""One transaction: what was loaded, how commands changed it, and what must be written.

Commands run on it one after the other, each as if it were alone. Every change of a resource goes through
`update_status`, so that aggregation, history, events, removal and the recomputation of the parent are never missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from hyperfleet.aggregation import (
    Child,
    Decision,
    Policy,
    aggregate,
    can_change_status,
    is_calm,
    is_removable,
    transitions_between,
)
from hyperfleet.aggregation.policy import PolicySet
from hyperfleet.expr import Budget, open_budget
from hyperfleet.model.event import PHASE_SUBJECT, EventType, Transition
from hyperfleet.model.kind import Kinds
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Status
from hyperfleet.ports import (
    AdapterCounts,
    CalmChange,
    IdempotencyRecord,
    Loaded,
    LoggedReport,
    LookPlan,
    NameKey,
    NewEvent,
    Record,
    StatusCause,
    WriteSet,
)
from hyperfleet.services.callers import Caller
from hyperfleet.services.facet_tracker import FacetTracker
from hyperfleet.services.results import Target

Render = Callable[[Record], bytes]  # record → stored answer
# The record before and after a write, and its policy → when the sentinel looks at it next.
NextLook = Callable[[Record | None, Record, Policy], LookPlan]
ReportKey = tuple[str, str]  # resource id, adapter


def keep_look(before: Record | None, after: Record, policy: Policy) -> LookPlan:
    """Leave the sentinel's next look as it is: there are no rules."""
    return after.look


class Rules(msgspec.Struct, frozen=True):
    """What a transaction computes with: the policies in force, the kinds, and how to render answers."""

    policies: PolicySet
    policy_version: int
    kinds: Kinds
    render: Render
    open_budget: Callable[[], Budget] = open_budget  # what the rules may cost, for each status
    next_look: NextLook = keep_look  # by the rules of the sentinel

    def wants_children(self, resource: Resource) -> bool:
        """Tell whether a write to a resource, or to one of its children, needs all of its children."""
        if not self.kinds.is_parent(resource.kind):
            return False
        return resource.is_deleting or self.policies.select(resource).reads_children


class Workspace:
    """The records of one transaction and all changes to them."""

    def __init__(self, loaded: Loaded, rules: Rules) -> None:
        """Start from what was loaded."""
        self.now = loaded.now
        self._rules = rules
        self._policy_version = str(rules.policy_version)
        self._loaded = dict(loaded.records)
        self._children: dict[str, set[str]] = {}
        for parent, children in loaded.children.items():
            self._children[parent] = {child.resource.id for child in children}
            self._loaded |= {child.resource.id: child for child in children if child.resource.id not in self._loaded}
        self._records: dict[str, Record] = dict(self._loaded)
        self._names = dict(loaded.names)
        self._idempotency_records = dict(loaded.idempotency_records)
        self._new_idempotency_records: list[IdempotencyRecord] = []
        self._touched: dict[str, None] = {}  # ids in the order of their first change
        self._edited: set[str] = set()
        self._saved: set[str] = set()  # ids of which more than the next deadline changed
        self._removed: dict[str, Record] = {}
        self._reports: dict[ReportKey, StoredReport] = {}
        self._calm: dict[ReportKey, StoredReport] = {}
        self._retired: dict[ReportKey, None] = {}
        self._log: list[LoggedReport] = []
        self._events: list[NewEvent] = []
        self._facets = FacetTracker()
        self._counters: dict[tuple[str, str], _Counters] = {}

    # reading

    def find(self, target: Target, caller: Caller) -> Record | None:
        """Return a resource if it exists below that parent and the caller may see it."""
        record = self._records.get(target.id)
        if record is None or record.resource.kind != target.kind.name:
            return None
        if target.kind.parent is not None and target.parent_id not in (None, record.resource.parent_id):
            return None
        return record if caller.scope.admits(record.resource.tenant) else None

    def get(self, id_: str) -> Record | None:
        """Return a resource by id, whoever the caller is: for upkeep."""
        return self._records.get(id_)

    def children_of(self, id_: str) -> tuple[Record, ...]:
        """Return the children of a resource, if they were loaded, in order of ids."""
        return tuple(self._records[child] for child in sorted(self._children.get(id_, ())))

    def owner_of(self, name: NameKey) -> str | None:
        """Return the id of the resource that has a name."""
        return self._names.get(name)

    def idempotency_record(self, key: str) -> IdempotencyRecord | None:
        """Return the record of an earlier request with this idempotency key."""
        return self._idempotency_records.get(key)

    def time_for(self, record: Record) -> datetime:
        """Return the time of a write to a resource: never earlier than its last write or report."""
        heard = [stored.last_heard for stored in record.reports.values()]
        return max([self.now, record.status.memory.written_time, *heard])

    def policy_for(self, resource: Resource) -> Policy:
        """Return the policy in force for a resource."""
        return self._rules.policies.select(resource)

    def blank_status(self, resource: Resource) -> Status:
        """Return the status of a resource on which no adapter has reported."""
        return aggregate(resource, {}, self.policy_for(resource), None, self.now, budget=self._rules.open_budget())

    # changing

    def insert(self, resource: Resource, cause: StatusCause) -> Record:
        """Add a resource."""
        self._names[NameKey.of(resource)] = resource.id
        self._children[resource.id] = set()
        if resource.parent_id in self._children:
            self._children[resource.parent_id].add(resource.id)
        record = self._save(None, Record(resource, self.blank_status(resource)), cause, "Created")
        self._update_parent(resource)
        return record

    def edit(self, before: Record, resource: Resource, cause: StatusCause, event: EventType) -> Record:
        """Give a resource another spec, other labels or a deletion time."""
        self._edited.add(resource.id)
        if resource.is_deleting:
            self._free_name(resource)
        return self.update_status(before, replace(before, resource=resource), cause, event)

    def accept_reports(self, before: Record, decisions: Mapping[str, Decision], cause: StatusCause) -> Record:
        """Store reports as decided, by adapter, and aggregate if one of them can change the status."""
        id_ = before.resource.id
        changed = {
            adapter: decision.stored
            for adapter, decision in decisions.items()
            if decision.stored is not None and decision.stored is not before.reports.get(adapter)
        }
        for adapter, stored in changed.items():
            self._retired.pop((id_, adapter), None)
            self._reports[id_, adapter] = stored
        after = replace(before, reports={**before.reports, **changed})
        first_event = len(self._events)
        if any(self._can_change_status(before, decision) for decision in decisions.values()):
            after = self.update_status(before, after, cause)
        else:
            self._records[id_] = after
        self._log_reports(before, decisions, first_event)
        return after

    def retire(self, before: Record, adapter: str) -> Record:
        """Delete an adapter's report."""
        key = (before.resource.id, adapter)
        self._reports.pop(key, None)
        self._calm.pop(key, None)
        self._retired[key] = None
        reports = {name: stored for name, stored in before.reports.items() if name != adapter}
        return self.update_status(before, replace(before, reports=reports), StatusCause("retired", adapter))

    def update_status(
        self, before: Record, after: Record, cause: StatusCause, event: EventType | None = None
    ) -> Record:
        """Aggregate, save what changed, and remove the resource if nothing is left to clean up."""
        resource = after.resource
        policy = self.policy_for(resource)
        now = self.time_for(before)
        children, budget = self._as_children(resource), self._rules.open_budget()
        status = aggregate(resource, after.reports, policy, before.status, now, children=children, budget=budget)
        reports = self._update_calm(after, status)
        record = self._save(before, replace(after, status=status, reports=reports), cause, event)
        if resource.is_deleting and is_removable(
            resource, record.reports, policy, has_children=bool(self._children.get(resource.id))
        ):
            return self.remove(record, cause, "Removed", "nothing was left to clean up")
        self._update_parent(resource)
        return record

    def remove(
        self, record: Record, cause: StatusCause, reason: str, message: str, *, updates_parent: bool = True
    ) -> Record:
        """Remove a resource; its parent may have waited for this."""
        resource = record.resource
        now = self.time_for(record)
        gone = Transition(PHASE_SUBJECT, record.status.phase, None, now, reason, message)
        facets = self._facets.change(record, None)
        self._events.append(NewEvent("Removed", resource, now, None, (gone,), cause, self._policy_version, facets))
        record = replace(record, revision=-len(self._events))
        del self._records[resource.id]
        self._free_name(resource)
        self._removed[resource.id] = record
        if resource.parent_id in self._children:
            self._children[resource.parent_id].discard(resource.id)
        if updates_parent:
            self._update_parent(resource)
        return record

    def request_reconcile(self, record: Record) -> Record:
        """Add an event that asks adapters to look again; nothing else of the resource changes."""
        resource, now = record.resource, self.time_for(record)
        cause, facets = StatusCause("requested"), self._facets.unchanged(record)
        event = NewEvent("ReconcileRequested", resource, now, record.answer, (), cause, self._policy_version, facets)
        self._events.append(event)
        record = replace(record, revision=-len(self._events))
        self._touch(record, is_saved=True)
        return record

    def is_removed(self, id_: str) -> bool:
        """Tell whether this transaction removed a resource."""
        return id_ in self._removed

    def add_idempotency_record(self, record: IdempotencyRecord) -> None:
        """Keep the answer to a request for its repetitions."""
        self._idempotency_records[record.key] = record
        self._new_idempotency_records.append(record)

    def count_report(
        self, record: Record, adapter: str, outcome: str, skew: timedelta, *, is_discard: bool = False
    ) -> None:
        """Count the outcome of a report for its adapter."""
        key = (record.resource.tenant, adapter)
        counters = self._counters.get(key)
        if counters is None:
            counters = self._counters[key] = _Counters()
        counters.counts[outcome] = counters.counts.get(outcome, 0) + 1
        counters.skew = skew
        if is_discard:
            discard = {"cause": outcome, "resource": record.resource.id, "time": self.now}
            counters.last_discard = msgspec.json.encode(discard).decode()

    # writing

    def changes(self) -> WriteSet:
        """Return everything to be written."""
        inserted: list[Record] = []
        updated: list[Record] = []
        rescheduled: list[Record] = []
        revisions: dict[str, int] = {}
        for id_ in self._touched:
            record = self._records.get(id_)
            if record is None:  # it was removed afterwards
                continue
            kept = updated if id_ in self._saved else rescheduled
            (kept if id_ in self._loaded else inserted).append(record)
            if record.revision < 0:
                revisions[id_] = -record.revision - 1
        facets_added, facets_removed = self._facets.totals()
        return WriteSet(
            inserted=inserted,
            updated=updated,
            removed=[record.resource for id_, record in self._removed.items() if id_ in self._loaded],
            revisions=revisions,
            edited=frozenset(self._edited & self._records.keys() & self._loaded.keys()),
            rescheduled=rescheduled,
            reports=[(id_, stored) for (id_, _), stored in self._reports.items() if id_ in self._records],
            calm=[
                CalmChange(id_, stored)
                for (id_, adapter), stored in self._calm.items()
                if id_ in self._records and (id_, adapter) not in self._reports
            ],
            retired=list(self._retired),
            log=self._log,
            events=self._events,
            facets_added=facets_added,
            facets_removed=facets_removed,
            adapter_counts=[each.total(key, self.now) for key, each in sorted(self._counters.items())],
            idempotency_records=self._new_idempotency_records,
        )

    # steps

    def _can_change_status(self, record: Record, decision: Decision) -> bool:
        stored = decision.stored
        if stored is None or not decision.needs_aggregation:
            return False
        policy = self.policy_for(record.resource)
        return can_change_status(record.reports.get(stored.report.adapter), stored, policy)

    def _update_calm(self, record: Record, status: Status) -> Mapping[str, StoredReport]:
        """Return the reports with `is_calm` according to the new status, and note which of them changed."""
        changed: dict[str, StoredReport] = {}
        for adapter, stored in record.reports.items():
            calm = is_calm(stored, status)
            if calm is not stored.is_calm:
                changed[adapter] = replace(stored, is_calm=calm)
        for adapter, stored in changed.items():
            key = (record.resource.id, adapter)
            (self._reports if key in self._reports else self._calm)[key] = stored
        return {**record.reports, **changed} if changed else record.reports

    def _log_reports(self, before: Record, decisions: Mapping[str, Decision], first_event: int) -> None:
        """Log accepted reports with new content, each with the event that it made, if any."""
        id_ = before.resource.id
        places = range(first_event, len(self._events))
        event = next((place for place in places if self._events[place].resource.id == id_), None)
        for adapter, decision in decisions.items():
            if decision.stored is not None and decision.is_news:
                self._log.append(LoggedReport(id_, decision.stored, event, before.reports.get(adapter)))

    def _free_name(self, resource: Resource) -> None:
        """Release a name, unless another resource has taken it since this one was deleted."""
        key = NameKey.of(resource)
        if self._names.get(key) == resource.id:
            del self._names[key]

    def _save(self, before: Record | None, after: Record, cause: StatusCause, event: EventType | None) -> Record:
        """Render the answer; if it or a token differs from what is stored, add an event with its own position."""
        resource, status = after.resource, after.status
        if self._records.get(resource.id) is not before:
            raise RuntimeError(f"{resource.id} has changed since it was read")
        after = replace(
            after,
            policy_version=self._rules.policy_version,
            answer=self._rules.render(after),
            look=self._rules.next_look(before, after, self.policy_for(resource)),
        )
        facets = self._facets.change(before, after)
        if before is None or facets is not None or after.answer != before.answer:
            moved = transitions_between(before.status if before else None, status)
            type_, facets = event or "StatusChanged", facets or self._facets.unchanged(after)
            written = status.memory.written_time
            self._events.append(
                NewEvent(type_, resource, written, after.answer, moved, cause, self._policy_version, facets)
            )
            after = replace(after, revision=-len(self._events))
        if before is None or after.revision != before.revision or not _is_same_status(before.status, status):
            self._touch(after, is_saved=True)
        else:
            after = replace(after, status=replace(before.status, next_deadline=status.next_deadline))
            self._touch(after, is_saved=False)
        return after

    def _touch(self, record: Record, *, is_saved: bool) -> None:
        """Keep a new version of a record; if not `is_saved`, only when it is due and its policy version."""
        id_ = record.resource.id
        before = self._records.get(id_)
        self._records[id_] = record
        if is_saved:
            self._saved.add(id_)
        elif (
            before is not None
            and before.policy_version == record.policy_version
            and before.status.next_deadline == record.status.next_deadline
            and before.look == record.look
        ):
            return
        self._touched[id_] = None

    def _update_parent(self, child: Resource) -> None:
        """Recompute the parent if it depends on its children: by its rules, or because it waits for their removal."""
        parent = self._records.get(child.parent_id) if child.parent_id else None
        if parent is not None and self._rules.wants_children(parent.resource):
            self.update_status(parent, parent, StatusCause("child", child.id))

    def _as_children(self, resource: Resource) -> Iterable[Child]:
        return [
            Child(child.resource.kind, child.resource.name, child.status.conditions)
            for child in self.children_of(resource.id)
        ]


class _Counters:
    """The counters of one adapter while a transaction runs."""

    __slots__ = ("counts", "last_discard", "skew")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.skew = timedelta()
        self.last_discard = ""

    def total(self, key: tuple[str, str], now: datetime) -> AdapterCounts:
        """Return what to add to the stored counters of the adapter."""
        return AdapterCounts(*key, now, self.skew, self.counts, self.last_discard)


def _is_same_status(before: Status, after: Status) -> bool:
    """Tell whether two statuses differ only in when they were computed and are due again."""
    memory = replace(after.memory, written_time=before.memory.written_time)
    return before == replace(after, memory=memory, next_deadline=before.next_deadline, restless=before.restless)
