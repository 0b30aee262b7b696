"""One transaction's view of the world: what was loaded, what commands made of it, and what must be written.

Commands run on it one after the other, each as if it were alone. Every change of a resource goes through `settle`,
so that aggregation, history, events, removal and the parent's re-examination cannot be forgotten.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Protocol

import msgspec
from msgspec.structs import replace

from hyperfleet.aggregation import (
    Child,
    Decision,
    Policy,
    aggregate,
    is_removable,
    means_the_same,
    refresh,
    says_the_same,
    transitions_between,
)
from hyperfleet.aggregation.policy import PolicySet
from hyperfleet.model.event import PHASE_SUBJECT, EventType, Transition
from hyperfleet.model.kind import Kinds
from hyperfleet.model.report import StoredReport
from hyperfleet.model.reports import join, leave_out
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Status
from hyperfleet.ports import Cause, Changes, Draft, Loaded, LoggedReport, NameKey, Record, Remembered, Tally
from hyperfleet.services.callers import Caller
from hyperfleet.services.facet_book import FacetBook
from hyperfleet.services.results import Target


class Render(Protocol):
    """How an answer looks."""

    def __call__(self, record: Record, *, before: Record | None = None) -> bytes:
        """Render a record; `before` is the same so far, if only adapters were heard again since."""
        ...


class Rules(msgspec.Struct, frozen=True):
    """What a transaction computes with: the policies in force, the kinds there are, and how answers look."""

    policies: PolicySet
    policy_version: int
    kinds: Kinds
    render: Render

    def wants_children(self, resource: Resource) -> bool:
        """Tell whether a write to a resource, or to one of its children, must know all of its children."""
        if not self.kinds.is_parent(resource.kind):
            return False
        return resource.is_deleting or self.policies.select(resource).reads_children


class Workspace:
    """The records of one transaction and everything that becomes of them."""

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
        self._remembered = dict(loaded.remembered)
        self._new_keys: list[Remembered] = []
        self._touched: dict[str, None] = {}  # ids in the order of their first change
        self._edited: set[str] = set()
        self._removed: dict[str, Record] = {}
        self._moved: set[str] = set()  # of which more than times moved
        self._reports: dict[tuple[str, str], StoredReport] = {}
        self._repeated: dict[tuple[str, str], StoredReport] = {}
        self._retired: dict[tuple[str, str], None] = {}
        self._log: list[LoggedReport] = []
        self._events: list[Draft] = []
        self._facets = FacetBook()
        self._tallies: dict[tuple[str, str], _Tallying] = {}

    # looking

    def find(self, target: Target, caller: Caller) -> Record | None:
        """Return a resource if it is there, below that parent, and the caller may see it."""
        record = self._records.get(target.id)
        if record is None or record.resource.kind != target.kind.name:
            return None
        if target.kind.parent is not None and target.parent_id not in (None, record.resource.parent_id):
            return None
        return record if caller.scope.admits(record.resource.tenant) else None

    def get(self, id_: str) -> Record | None:
        """Return a resource by id, whoever asks: for work that nobody asked for."""
        return self._records.get(id_)

    def children_of(self, id_: str) -> tuple[Record, ...]:
        """Return the children of a resource whose children were wanted, in the order of their ids."""
        return tuple(self._records[child] for child in sorted(self._children.get(id_, ())))

    def owner_of(self, name: NameKey) -> str | None:
        """Return who has a name."""
        return self._names.get(name)

    def remembered(self, key: str) -> Remembered | None:
        """Return what was answered to a request with this idempotency key."""
        return self._remembered.get(key)

    def time_for(self, record: Record) -> datetime:
        """Return the time of a write to a resource: never earlier than the write before it."""
        return max(self.now, record.status.memory.written_time)

    def policy_for(self, resource: Resource) -> Policy:
        """Return the policy in force for a resource."""
        return self._rules.policies.select(resource)

    def blank_status(self, resource: Resource) -> Status:
        """Return the status of a resource of which nobody has reported."""
        return aggregate(resource, {}, self.policy_for(resource), None, self.now)

    # changing

    def insert(self, resource: Resource, cause: Cause) -> Record:
        """Add a resource."""
        self._names[NameKey.of(resource)] = resource.id
        self._children[resource.id] = set()
        if resource.parent_id in self._children:
            self._children[resource.parent_id].add(resource.id)
        record = self._save(None, Record(resource, self.blank_status(resource)), cause, "Created")
        self._reexamine_parent(resource)
        return record

    def edit(self, before: Record, resource: Resource, cause: Cause, event: EventType) -> Record:
        """Give a resource another spec, other labels or a deletion time."""
        self._edited.add(resource.id)
        if resource.is_deleting:
            self._free_name(resource)
        return self.settle(before, replace(before, resource=resource), cause, event)

    def take(self, before: Record, decisions: Mapping[str, Decision], cause: Cause) -> Record:
        """Keep what was decided of reports, by adapter, and aggregate if one of them asks for it."""
        id_, reports = before.resource.id, before.reports
        policy = self.policy_for(before.resource)
        changed: dict[str, StoredReport] = {}
        steady: list[StoredReport] = []
        repeated: set[str] = set()
        needs_aggregation = False
        for adapter, decision in decisions.items():
            needs_aggregation = needs_aggregation or decision.needs_aggregation
            stored, known = decision.stored, reports.get(adapter)
            if stored is None or stored is known:
                continue
            changed[adapter] = stored
            self._retired.pop((id_, adapter), None)
            is_repeated = known is not None and says_the_same(known, stored)
            if is_repeated:
                repeated.add(adapter)
            if is_repeated or (known is not None and means_the_same(known, stored, policy)):
                steady.append(stored)
            self._keep((id_, adapter), stored, is_repeated=is_repeated)
        first_event = len(self._events)
        reports = join(reports, changed)
        if not needs_aggregation:
            after = self._records[id_] = replace(before, reports=reports)
            if changed:  # whoever remembers the record can then tell by its row that a report is another
                self._touched[id_] = None
        elif len(steady) == len(changed) and (status := self._refresh(before, steady, policy)) is not None:
            after = self._save_times(before, replace(before, reports=reports, status=status), cause)
        else:
            after = self.settle(before, replace(before, reports=reports), cause)
        self._log_news(id_, decisions, repeated, first_event)
        return after

    def retire(self, before: Record, adapter: str) -> Record:
        """Forget an adapter's report."""
        key = (before.resource.id, adapter)
        self._reports.pop(key, None)
        self._repeated.pop(key, None)
        self._retired[key] = None
        reports = leave_out(before.reports, adapter)
        return self.settle(before, replace(before, reports=reports), Cause("retired", adapter))

    def settle(self, before: Record, after: Record, cause: Cause, event: EventType | None = None) -> Record:
        """Aggregate, keep what changed, and remove the resource if nothing is left to clean up."""
        resource = after.resource
        policy = self.policy_for(resource)
        status = aggregate(
            resource, after.reports, policy, before.status, self.now, children=self._as_children(resource)
        )
        record = self._save(before, replace(after, status=status), cause, event)
        if resource.is_deleting and is_removable(
            resource, record.reports, policy, has_children=bool(self._children.get(resource.id))
        ):
            return self.remove(record, cause, "Removed", "nothing was left to clean up")
        self._reexamine_parent(resource)
        return record

    def remove(self, record: Record, cause: Cause, reason: str, message: str, *, reexamine: bool = True) -> Record:
        """Take a resource away; its parent may have waited for this."""
        resource = record.resource
        now = self.time_for(record)
        gone = Transition(PHASE_SUBJECT, record.status.phase, None, now, reason, message)
        facets = self._facets.turn(record, None)
        self._events.append(Draft("Removed", resource, now, None, (gone,), cause, self._policy_version, facets))
        record = replace(record, revision=-len(self._events))
        del self._records[resource.id]
        self._free_name(resource)
        self._removed[resource.id] = record
        if resource.parent_id in self._children:
            self._children[resource.parent_id].discard(resource.id)
        if reexamine:
            self._reexamine_parent(resource)
        return record

    def is_removed(self, id_: str) -> bool:
        """Tell whether this transaction took a resource away."""
        return id_ in self._removed

    def remember(self, answer: Remembered) -> None:
        """Keep an answer for repetitions of its request."""
        self._remembered[answer.key] = answer
        self._new_keys.append(answer)

    def tally(self, record: Record, adapter: str, what: str, skew: timedelta, *, is_discard: bool = False) -> None:
        """Count what became of a report in the adapter's record."""
        key = (record.resource.tenant, adapter)
        tallying = self._tallies.get(key)
        if tallying is None:
            tallying = self._tallies[key] = _Tallying()
        tallying.counts[what] = tallying.counts.get(what, 0) + 1
        tallying.skew = skew
        if is_discard:
            discard = {"cause": what, "resource": record.resource.id, "time": self.now}
            tallying.last_discard = msgspec.json.encode(discard).decode()

    # leaving

    def changes(self) -> Changes:
        """Return everything to be written."""
        inserted: list[Record] = []
        updated: list[Record] = []
        revisions: dict[str, int] = {}
        for id_ in self._touched:
            record = self._records.get(id_)
            if record is not None:  # it was not removed afterwards
                (updated if id_ in self._loaded else inserted).append(record)
                if record.revision < 0:
                    revisions[id_] = -record.revision - 1
        facets_added, facets_removed = self._facets.totals()
        return Changes(
            inserted=inserted,
            updated=updated,
            removed=[record.resource for id_, record in self._removed.items() if id_ in self._loaded],
            revisions=revisions,
            edited=frozenset(self._edited & self._records.keys() & self._loaded.keys()),
            steady=frozenset(self._touched.keys() - self._moved - self._edited - self._removed.keys()),
            reports=self._of_the_living(self._reports),
            repeated=self._of_the_living(self._repeated),
            retired=list(self._retired),
            log=self._log,
            events=self._events,
            facets_added=facets_added,
            facets_removed=facets_removed,
            tallies=[tallying.total(key, self.now) for key, tallying in sorted(self._tallies.items())],
            remembered=self._new_keys,
        )

    # steps

    def _keep(self, key: tuple[str, str], stored: StoredReport, *, is_repeated: bool) -> None:
        """Keep a report; what repeats words that this transaction has yet to write goes with them."""
        if is_repeated and key not in self._reports:
            self._repeated[key] = stored
        else:
            self._reports[key] = stored
            self._repeated.pop(key, None)

    def _of_the_living(self, reports: Mapping[tuple[str, str], StoredReport]) -> list[tuple[str, StoredReport]]:
        return [(id_, stored) for (id_, _), stored in reports.items() if id_ in self._records]

    def _log_news(
        self, id_: str, decisions: Mapping[str, Decision], repeated: Container[str], first_event: int
    ) -> None:
        """Keep accepted reports for good, each with the event that it made, if it made one."""
        event: int | None = None
        for place in range(first_event, len(self._events)):
            if self._events[place].resource.id == id_:
                event = place
                break
        for adapter, decision in decisions.items():
            if decision.stored is not None and decision.is_news:
                self._log.append(LoggedReport(id_, decision.stored, event, adapter in repeated))

    def _free_name(self, resource: Resource) -> None:
        """Give a name up, unless another resource has taken it since this one was deleted."""
        key = NameKey.of(resource)
        if self._names.get(key) == resource.id:
            del self._names[key]

    def _save(self, before: Record | None, after: Record, cause: Cause, event: EventType | None) -> Record:
        """Render the answer; if it or a token differs from what is stored, that is an event with its own position."""
        resource, status = after.resource, after.status
        if self._records.get(resource.id) is not before:
            raise RuntimeError(f"{resource.id} has changed since it was looked at")
        after = replace(
            after,
            wake_at=_wake_at(before.wake_at if before else None, status.next_deadline, self.now),
            policy_version=self._rules.policy_version,
            revision=before.revision if before else 0,
            answer=self._rules.render(after),
        )
        facets = self._facets.turn(before, after)
        if before is None or facets is not None or after.answer != before.answer:
            moved = transitions_between(before.status if before else None, status)
            has_news = before is None or facets is not None or _has_news(before.status, status)
            type_ = event or ("StatusChanged" if has_news else "Reported")
            answer = None
            if type_ != "Reported":
                answer, facets = after.answer, facets or self._facets.keep(after)
            written = status.memory.written_time
            self._events.append(Draft(type_, resource, written, answer, moved, cause, self._policy_version, facets))
            after = replace(after, revision=-len(self._events))
        self._moved.add(resource.id)
        self._touched[resource.id] = None
        self._records[resource.id] = after
        return after

    def _save_times(self, before: Record, after: Record, cause: Cause) -> Record:
        """Do what `_save` does for a record of which nothing but times moved: all that it would look for is known."""
        status, revision = after.status, before.revision
        answer = self._rules.render(after, before=before)
        if answer != before.answer:
            written = status.memory.written_time
            self._events.append(Draft("Reported", after.resource, written, None, (), cause, self._policy_version))
            revision = -len(self._events)
        after = replace(
            after,
            wake_at=_wake_at(before.wake_at, status.next_deadline, self.now),
            policy_version=self._rules.policy_version,
            revision=revision,
            answer=answer,
        )
        id_ = after.resource.id
        if not _is_steady(before, after):
            self._moved.add(id_)
        self._touched[id_] = None
        self._records[id_] = after
        return after

    def _refresh(self, before: Record, steady: Iterable[StoredReport], policy: Policy) -> Status | None:
        """Return the status after nothing but reports that mean the same; None: it must be computed."""
        status: Status | None = before.status
        for stored in steady:
            if status is not None:
                status = refresh(stored, policy, status, self.now)
        return status

    def _reexamine_parent(self, child: Resource) -> None:
        """Compute the parent anew if it looks at its children: for its rules, or because it waits for them to go."""
        parent = self._records.get(child.parent_id) if child.parent_id else None
        if parent is not None and self._rules.wants_children(parent.resource):
            self.settle(parent, parent, Cause("child", child.id))

    def _as_children(self, resource: Resource) -> Iterable[Child]:
        return [
            Child(child.resource.kind, child.resource.name, child.status.conditions)
            for child in self.children_of(resource.id)
        ]


class _Tallying:
    """The counters of one adapter while a transaction runs."""

    __slots__ = ("counts", "last_discard", "skew")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.skew = timedelta()
        self.last_discard = ""

    def total(self, key: tuple[str, str], now: datetime) -> Tally:
        """Return what to add to the adapter's record."""
        return Tally(*key, now, self.skew, self.counts, self.last_discard)


def _wake_at(before: datetime | None, deadline: datetime | None, now: datetime) -> datetime | None:
    """Keep an earlier alarm: a heartbeat that moves a deadline back need not move the indexed column with it."""
    if before is not None and deadline is not None and now < before <= deadline:
        return before
    return deadline


def _is_steady(before: Record, after: Record) -> bool:
    """Tell whether nothing but times moved, of a record of which nothing but times and what counts in them can move."""
    return before.wake_at == after.wake_at and before.policy_version == after.policy_version


def _has_news(before: Status, after: Status) -> bool:
    """Tell whether more than times moved."""
    if before.phase != after.phase or before.conditions != after.conditions or before.raw != after.raw:
        return True
    if before.flapping != after.flapping:
        return True
    if before.phase_description != after.phase_description or len(before.adapters) != len(after.adapters):
        return True
    return any(
        (old.name, old.available, old.observed_generation, old.state, old.stale)
        != (new.name, new.available, new.observed_generation, new.state, new.stale)
        for old, new in zip(before.adapters, after.adapters, strict=True)
    )
