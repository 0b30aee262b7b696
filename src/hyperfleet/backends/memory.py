"""The store in memory: everything in dictionaries, for tests and dry runs. It behaves like the durable ones.

Nothing here waits in the middle of a transaction, so in one event loop transactions cannot overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Self

from msgspec.structs import replace

from hyperfleet.backends import memory_changes as changes
from hyperfleet.backends import memory_listing as listing
from hyperfleet.backends import memory_past as past
from hyperfleet.backends.clock import SystemClock
from hyperfleet.backends.memory_contents import MemoryContents, children_of, load, record_heartbeat, write
from hyperfleet.backends.memory_history import select_history
from hyperfleet.backends.memory_looks import MemoryLooks
from hyperfleet.backends.memory_queues import MemoryLeases, MemoryQueues
from hyperfleet.backends.rows import merge_adapters
from hyperfleet.errors import StoreUnavailable
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import (
    AdapterRecord,
    AdmitPolicy,
    ChangePage,
    ChangeQuery,
    Clock,
    CurrentCounts,
    DueResources,
    EventPage,
    GroupCount,
    Heartbeat,
    HistoryQuery,
    Lease,
    LoggedEvent,
    LogReader,
    Needs,
    NewPolicy,
    PastReport,
    PolicyVersion,
    Pruning,
    Query,
    ReaderPage,
    Record,
    RecordedHeartbeat,
    RecordedTransition,
    Scope,
    StoredAnswer,
    TokenMove,
    TokenQuery,
    Work,
    admit_always,
)


class MemoryStore:
    """Keeps everything until the process ends; closing it loses nothing."""

    def __init__(self, clock: Clock | None = None) -> None:
        """Start empty."""
        self._clock = clock or SystemClock()
        self._contents = MemoryContents()
        self._claims: set[str] = set()
        self._leases = MemoryLeases(self._clock)
        self._queues = MemoryQueues(self._clock)
        self._webhooks: dict[str, bytes] = {}
        self._is_open = False

    # opening and closing

    async def open(self) -> None:
        """Accept calls."""
        self._is_open = True

    async def close(self) -> None:
        """Refuse further calls."""
        self._is_open = False

    async def check(self) -> None:
        """Return if the store is open."""
        self._opened()

    def _opened(self) -> MemoryContents:
        if not self._is_open:
            raise StoreUnavailable("the store is not open")
        return self._contents

    # writing

    async def transact(self, needs: Needs, work: Work) -> int:
        """Load, call `work`, write what it returns; return the position before the first event."""
        contents = self._opened()
        base = contents.position
        written = work(load(contents, needs, self._clock))
        if not written.is_empty:
            write(contents, written)
        return base

    async def record_heartbeats(self, heartbeats: Sequence[Heartbeat]) -> list[RecordedHeartbeat | None]:
        """Record those that repeat a calm stored report at a later time; None: it is not one of these."""
        contents, now = self._opened(), self._clock.now()
        return [record_heartbeat(contents, heartbeat, now) for heartbeat in heartbeats]

    # reading one resource

    async def read_answer(self, kind: str, id_: str, scope: Scope, parent_id: str | None = None) -> StoredAnswer | None:
        """Return the stored answer of one resource."""
        record = await self.read_record(kind, id_, scope, parent_id)
        return None if record is None else StoredAnswer(id_, record.answer, record.revision)

    async def read_record(self, kind: str, id_: str, scope: Scope, parent_id: str | None = None) -> Record | None:
        """Return one resource with its status and reports."""
        record = self._opened().records.get(id_)
        if record is None or record.resource.kind != kind or not scope.admits(record.resource.tenant):
            return None
        return record if parent_id in (None, record.resource.parent_id) else None

    async def read_records(self, ids: Collection[str], scope: Scope) -> tuple[Record, ...]:
        """Return the resources of ids, in order of ids."""
        records = [self._opened().records.get(id_) for id_ in sorted(set(ids))]
        return tuple(record for record in records if record is not None and scope.admits(record.resource.tenant))

    async def read_children(self, parent_id: str, scope: Scope) -> tuple[Record, ...]:
        """Return the children of a resource."""
        children = children_of(self._opened(), parent_id)
        return tuple(child for child in children if scope.admits(child.resource.tenant))

    async def read_reports_at(self, resource_id: str, scope: Scope, generation: int) -> tuple[StoredReport, ...]:
        """Return the last report of each adapter at one generation, by adapter name."""
        return past.read_reports_at(self._opened(), resource_id, scope, generation)

    async def read_transitions(self, query: HistoryQuery) -> tuple[RecordedTransition, ...]:
        """Return transitions of a resource, the newest first; at most `query.limit`."""
        contents = self._opened()
        if not past.is_visible(contents, query.resource_id, query.scope):
            return ()
        return select_history((each for id_, each in contents.history if id_ == query.resource_id), query)

    async def existed(self, kind: str, id_: str, scope: Scope, parent_id: str | None = None) -> bool:
        """Tell whether a resource exists or existed, as far as events are kept."""
        return past.is_known(past.events_of(self._opened(), id_), kind, scope, parent_id)

    # reading many

    async def find(self, query: Query) -> tuple[StoredAnswer, ...]:
        """Return the resources of a query, in order; at most `query.limit`."""
        return listing.page(self._matching(query), query)

    async def count(self, query: Query) -> int:
        """Count the resources of a query, ignoring its page."""
        return len(list(self._matching(query)))

    async def summarize(self, query: Query, prefixes: tuple[str, ...]) -> tuple[GroupCount, ...]:
        """Count the resources of a query by the rest of a token after each prefix; the largest group first."""
        tokens = self._opened().tokens
        return listing.summary((tokens[record.resource.id] for record in self._matching(query)), prefixes)

    def _matching(self, query: Query) -> Iterable[Record]:
        contents = self._opened()
        for id_, record in contents.records.items():
            event = contents.events.get(record.revision)
            if listing.matches(record, contents.tokens[id_], event.time if event else None, query):
                yield record

    async def count_now(self, query: Query, prefixes: tuple[str, ...]) -> CurrentCounts:
        """Summarize and count the resources of a query at one position of the log."""
        groups = await self.summarize(query, prefixes)
        return CurrentCounts(groups, await self.count(query), self._opened().position)

    async def adapters(self, scope: Scope) -> tuple[AdapterRecord, ...]:
        """Return every adapter that has ever reported, by name."""
        rows = self._opened().adapters.items()
        return merge_adapters(row for (tenant, _), row in rows if scope.admits(tenant))

    # the past

    async def position(self) -> int:
        """Return the position of the last event."""
        return self._opened().position

    async def read_events(self, after: int, limit: int) -> EventPage:
        """Return the events of all resources after a position; raise `HistoryPruned` if one of them was pruned."""
        return past.read_events(self._opened(), after, limit)

    async def read_changes(self, query: ChangeQuery) -> ChangePage:
        """Return changes with their transitions; raise `HistoryPruned` if some of them were pruned."""
        return changes.read_changes(self._opened(), query)

    async def read_version(
        self, kind: str, id_: str, scope: Scope, at: datetime, parent_id: str | None = None
    ) -> LoggedEvent | None:
        """Return the event that was a resource's latest at a time; None: it did not exist yet."""
        contents = self._opened()
        is_known = past.is_known(past.events_of(contents, id_), kind, scope, parent_id)
        return past.read_version(contents, id_, at) if is_known else None

    async def read_versions(self, resource_id: str, scope: Scope, since: datetime) -> tuple[LoggedEvent, ...]:
        """Return a resource's events with an answer, from the latest at `since` on, as far as they are kept."""
        return past.read_versions(self._opened(), resource_id, scope, since)

    async def read_reports_past(self, resource_id: str, scope: Scope, at: datetime) -> tuple[StoredReport, ...]:
        """Return the last report of each adapter received until then; raise `HistoryPruned` as above."""
        return past.read_reports(self._opened(), resource_id, scope, at)

    async def read_report_log(self, resource_id: str, scope: Scope, since: datetime) -> tuple[PastReport, ...]:
        """Return accepted reports in order: the last of each adapter before `since`, then all later ones."""
        return past.read_report_log(self._opened(), resource_id, scope, since)

    async def walk(self, after: str, limit: int, scope: Scope) -> tuple[Record, ...]:
        """Return the resources of all kinds whose ids come after one, in order of ids."""
        records = self._opened().records.items()
        ids = sorted(id_ for id_, record in records if id_ > after and scope.admits(record.resource.tenant))
        return await self.read_records(ids[:limit], scope)

    async def position_before(self, time: datetime) -> int:
        """Return a position up to which no event is later than a time; raise `HistoryPruned` if that is unknown."""
        return changes.position_before(self._opened(), time)

    async def read_token_moves(self, query: TokenQuery) -> tuple[TokenMove, ...]:
        """Return events with the tokens that they changed, in order of positions."""
        return changes.read_token_moves(self._opened(), query)

    # named readers of the log

    async def open_reader(self, name: str) -> LogReader:
        """Return a reader; a new one starts at the head."""
        return changes.open_reader(self._opened(), name, self._clock.now())

    async def readers(self) -> tuple[LogReader, ...]:
        """Return all readers, by name."""
        return changes.read_readers(self._opened())

    async def read_next(self, name: str, limit: int) -> ReaderPage | None:
        """Return what a reader has not read yet, at most `limit` changes; None: there is no such reader."""
        return changes.read_next(self._opened(), name, limit)

    async def advance_reader(self, name: str, expected: int, position: int, lease: Lease | None = None) -> bool:
        """Move a reader forward from `expected`; False: it was not at `expected`, or would go back or past the head."""
        if lease is not None and not self._leases.is_current(lease):
            return False
        return changes.advance_reader(self._opened(), name, expected, position, self._clock.now())

    async def close_reader(self, name: str) -> bool:
        """Delete a reader; False: there was none."""
        return self._opened().readers.pop(name, None) is not None

    async def drop_readers(self, max_lag: timedelta) -> tuple[LogReader, ...]:
        """Stop waiting for readers whose oldest unread change is older than `max_lag`; return those dropped now."""
        return changes.drop_readers(self._opened(), max_lag, self._clock.now())

    # leases and messages

    async def take_lease(self, name: str, holder: str, duration: timedelta) -> Lease | None:
        """Take a lease or extend it; None: another holder has it."""
        return self._leases.take(name, holder, duration)

    async def release_lease(self, lease: Lease) -> None:
        """Let another holder take a lease at once."""
        self._leases.release(lease)

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        """Return the leases whose names begin so and that have not expired, by name."""
        return self._leases.find(prefix)

    async def store_id(self) -> str:
        """Return what identifies this store."""
        return "memory"

    async def read_webhooks(self) -> dict[str, bytes]:
        """Return the saved states of webhooks, by name."""
        return dict(self._webhooks)

    async def save_webhook(self, name: str, state: bytes, lease: Lease | None = None) -> bool:
        """Save the state of a webhook; an empty one deletes it. False: the lease has got another holder since."""
        if lease is not None and not self._leases.is_current(lease):
            return False
        if state:
            self._webhooks[name] = state
        else:
            self._webhooks.pop(name, None)
        return True

    @property
    def looks(self) -> MemoryLooks:
        """Return when the sentinel looks at which resource."""
        return MemoryLooks(self._opened(), self._clock)

    @property
    def queues(self) -> MemoryQueues:
        """Return the queues of the in-process broker."""
        return self._queues

    def on_foreign_commit(self, callback: Callable[[], None]) -> None:
        """Do nothing: there are no other replicas."""

    def on_foreign_messages(self, callback: Callable[[], None]) -> None:
        """Do nothing: there are no other replicas."""

    # time and policy

    async def due(self, limit: int) -> DueResources:
        """Return resources whose next deadline has come."""
        now, records = self._clock.now(), self._opened().records
        deadlines = ((record.status.next_deadline, id_) for id_, record in records.items())
        wakes = sorted((deadline, id_) for deadline, id_ in deadlines if deadline is not None)
        ids = tuple(id_ for wake_at, id_ in wakes[:limit] if wake_at <= now)
        following = wakes[len(ids) :]
        return DueResources(now, ids, following[0][0] if following else None)

    async def outdated(self, policy_version: int, limit: int) -> tuple[tuple[str, ...], int]:
        """Return ids of resources computed under an earlier policy version, and their total number."""
        records = self._opened().records.items()
        ids = sorted((record.policy_version, id_) for id_, record in records if record.policy_version < policy_version)
        return tuple(id_ for _, id_ in ids[:limit]), len(ids)

    async def claim(self, task: str) -> MemoryClaim | None:
        """Take a task; None: another caller has it."""
        return None if task in self._claims else MemoryClaim(self._claims, task)

    async def activate_policy(self, policy: NewPolicy, admit: AdmitPolicy = admit_always) -> PolicyVersion:
        """Put a policy in force if it is admitted, and return the policy in force."""
        contents = self._opened()
        active = contents.policies[-1] if contents.policies else None
        if active is not None and not admit(active, contents.file_digest):
            return active
        if policy.source == "file":
            contents.file_digest = policy.digest
        if active is None or active.digest != policy.digest:
            active = policy.numbered(len(contents.policies) + 1, self._clock.now())
            contents.policies.append(active)
        return active

    async def active_policy(self) -> PolicyVersion | None:
        """Return the policy in force."""
        policies = self._opened().policies
        return policies[-1] if policies else None

    async def policy_versions(self, before: int | None, limit: int) -> tuple[PolicyVersion, ...]:
        """Return versions older than `before`, or the newest, in descending order and without their texts."""
        older = self._opened().policies[: None if before is None else max(before - 1, 0)]
        return tuple([replace(version, text="") for version in older[: -limit - 1 : -1]])

    async def read_policy(self, version: int) -> PolicyVersion | None:
        """Return one version."""
        policies = self._opened().policies
        return policies[version - 1] if 1 <= version <= len(policies) else None

    async def prune(self, task: Pruning, limit: int) -> int:
        """Delete up to `limit` rows of a log that are past their retention; return their number."""
        if task.log == "keys":
            self._leases.forget("sentinel/", self._clock.now() - task.keep)
        return past.prune(self._opened(), task, self._clock.now() - task.keep, limit)


class MemoryClaim:
    """A claimed task."""

    def __init__(self, claims: set[str], task: str) -> None:
        """Add `task` to the set of claims."""
        self._claims = claims
        self._task = task
        claims.add(task)

    async def __aenter__(self) -> Self:
        """Hold the task."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Release it."""
        self._claims.discard(self._task)
