"""The ports: a store and a clock, and the values that cross them. Backends implement them, services use them.

A store knows nothing about rules. It loads what a write needs, passes it to a pure function and writes what that
returns, all in one transaction. Reads return what is stored and compute nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol, Self

from msgspec import Struct, field

from hyperfleet.messaging import MessageQueues
from hyperfleet.model.event import EventType, Transition
from hyperfleet.model.phase import Phase
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Status
from hyperfleet.sentinel.schedule import NO_LOOKS, LookHistory

# ── visibility ───────────────────────────────────────────────────────────────────────────────────────────────────


class Scope(Struct, frozen=True):
    """The tenants whose resources a caller may see; None: all. Every read and write takes a scope."""

    tenants: frozenset[str] | None = None

    def admits(self, tenant: str) -> bool:
        """Tell whether the resources of a tenant are visible."""
        return self.tenants is None or tenant in self.tenants


EVERYTHING: Final = Scope()


# ── stored values ────────────────────────────────────────────────────────────────────────────────────────────────


class LookPlan(Struct, frozen=True, gc=False):
    """When the sentinel looks at a resource next, and what it did so far."""

    at: datetime | None = None  # None: never
    history: LookHistory = NO_LOOKS


class Record(Struct, frozen=True, gc=False):
    """A resource with everything that a write needs."""

    resource: Resource
    status: Status
    reports: Mapping[str, StoredReport] = field(default_factory=dict)  # the last accepted of each adapter
    answer: bytes = b""  # what a GET returns, rendered when it was written
    revision: int = 0  # the position of its last event, which made this version; 0: not stored yet
    policy_version: int = 0
    look: LookPlan = LookPlan()


class StoredAnswer(Struct, frozen=True, gc=False):
    """The stored answer of one resource. `key` is its sort key in a list."""

    id: str
    body: bytes
    revision: int
    key: str | int = ""


class NameKey(Struct, frozen=True):
    """Where a name must be unique: among the resources of a kind and tenant or, for children, of a parent."""

    tenant: str  # empty for children, which have the tenant of their parent
    kind: str
    parent_id: str
    name: str

    @classmethod
    def of(cls, resource: Resource) -> Self:
        """Return where the name of a resource must be unique."""
        tenant = "" if resource.parent_id else resource.tenant
        return cls(tenant, resource.kind, resource.parent_id or "", resource.name)


class IdempotencyRecord(Struct, frozen=True):
    """The answer to a request with an idempotency key, which a repetition gets again."""

    key: str  # includes the caller and the path
    digest: str  # of the request: another request with the same key is an error
    resource_id: str
    answer: bytes
    time: datetime


CauseKind = Literal["report", "deadline", "spec", "created", "deletion", "policy", "retired", "child", "requested"]


class StatusCause(Struct, frozen=True, gc=False):
    """Why a status was computed: `ref` is the id of the report, the retired adapter or the child that changed."""

    kind: CauseKind
    ref: str = ""


class RecordedTransition(Struct, frozen=True):
    """A transition in the history. The transitions of one write share a position."""

    position: int
    transition: Transition
    cause: StatusCause
    policy: str
    ordinal: int = 0  # among those that share the position
    since: datetime | None = None  # when the state before it began; None: there was none, or it was pruned


class FacetChange(Struct, frozen=True):
    """The tokens of a resource before and after one event; watches with filters depend on them."""

    kept: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class LoggedEvent(Struct, frozen=True):
    """An event of the log."""

    position: int
    type: EventType
    kind: str
    resource_id: str
    parent_id: str | None
    tenant: str
    generation: int
    time: datetime
    answer: bytes | None  # what a GET returned from then on; None: it was removed
    facets: FacetChange | None  # None: they did not change, or the event is older than this column


class EventPage(Struct, frozen=True):
    """Events in order of positions, and the head of the log when they were read."""

    entries: tuple[LoggedEvent, ...]
    head: int


class PastReport(Struct, frozen=True):
    """A report of the log, and when it was received. Its times are those from just before the adapter's next change, or
    the present ones.
    """

    received_time: datetime
    stored: StoredReport


# ── writes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _wants_none(_: Resource) -> bool:
    return False


class Needs(Struct, frozen=True):
    """What must be loaded for a transaction. Parents of `ids` are always locked and loaded too, before them."""

    ids: frozenset[str] = frozenset()
    names: frozenset[NameKey] = frozenset()
    keys: frozenset[str] = frozenset()
    wants_children: Callable[[Resource], bool] = _wants_none  # called for each loaded record
    reporting: frozenset[tuple[str, str]] = frozenset()  # (resource id, adapter): heartbeats of these must wait


class Loaded(Struct, frozen=True):
    """What a transaction loaded, locked until it ends."""

    now: datetime  # the database's clock, read after the locks were taken
    policy_version: int  # of the policy in force
    records: Mapping[str, Record]
    children: Mapping[str, tuple[Record, ...]]  # by parent, if they were needed; in order of ids
    names: Mapping[NameKey, str]  # names that are taken → id
    idempotency_records: Mapping[str, IdempotencyRecord]


class NewEvent(Struct, frozen=True, gc=False):
    """An event to be written. It gets its position at the commit: base + 1 + index in `WriteSet.events`."""

    type: EventType
    resource: Resource
    time: datetime
    answer: bytes | None  # None: the resource is removed
    transitions: tuple[Transition, ...] = ()
    cause: StatusCause = StatusCause("report")
    policy: str = ""  # version of the policy in force
    facets: FacetChange | None = None  # None: they did not change


class LoggedReport(Struct, frozen=True, gc=False):
    """An accepted report with new content, for the log, and the report that it replaces.

    Heartbeats are not logged: the last times of the replaced report are kept with the one that replaces it.
    """

    resource_id: str
    stored: StoredReport
    event: int | None  # the index of its event in `WriteSet.events`, if it made one
    replaced: StoredReport | None = None


class CalmChange(Struct, frozen=True, gc=False):
    """A report of which only `is_calm` changes.

    Clearing it must not race with a heartbeat: the times must still be those that were read.
    """

    resource_id: str
    stored: StoredReport  # with the new value


class AdapterCounts(Struct, frozen=True):
    """What to add to the counters of one adapter of one tenant."""

    tenant: str
    adapter: str
    last_seen: datetime
    skew: timedelta
    counts: Mapping[str, int]  # by outcome or cause of discard: `aggregated`, `stored`, `OutOfOrder`, …
    last_discard: str = ""  # JSON: cause, resource, time


class WriteSet(Struct, frozen=True):
    """Everything that a transaction writes; of each resource only its last state.

    `revisions` has those of `updated` that got events. The others keep their revision.
    """

    inserted: Sequence[Record] = ()
    updated: Sequence[Record] = ()
    removed: Sequence[Resource] = ()
    revisions: Mapping[str, int] = field(default_factory=dict)  # resource id → index of its last event in `events`
    edited: frozenset[str] = frozenset()  # those of `updated` whose resource changed, not only the status
    # Only the next deadline, the next look and the policy version of these are saved: nothing visible has changed.
    rescheduled: Sequence[Record] = ()
    reports: Sequence[tuple[str, StoredReport]] = ()  # (resource id, report): the new last one of its adapter
    calm: Sequence[CalmChange] = ()  # of other reports
    retired: Sequence[tuple[str, str]] = ()  # (resource id, adapter): to be deleted
    log: Sequence[LoggedReport] = ()
    events: Sequence[NewEvent] = ()
    facets_added: Sequence[tuple[str, str]] = ()  # (resource id, token)
    facets_removed: Sequence[tuple[str, str]] = ()
    adapter_counts: Sequence[AdapterCounts] = ()
    idempotency_records: Sequence[IdempotencyRecord] = ()

    @property
    def is_empty(self) -> bool:
        """Tell whether there is nothing to write."""
        rows = (
            self.inserted,
            self.updated,
            self.removed,
            self.rescheduled,
            self.reports,
            self.calm,
            self.retired,
            self.log,
            self.events,
        )
        return not (any(rows) or self.adapter_counts or self.idempotency_records)


Work = Callable[[Loaded], WriteSet]


class Heartbeat(Struct, frozen=True, gc=False):
    """A report that may repeat the stored one; the store decides whether it does."""

    kind: str
    resource_id: str
    parent_id: str | None  # None: any parent
    scope: Scope
    adapter: str
    generation: int
    digest: bytes
    observed_time: datetime | None
    wants_report: bool = False  # return the stored report too


class RecordedHeartbeat(Struct, frozen=True, gc=False):
    """A heartbeat that was recorded: it changed two times of the report, and nothing else."""

    name: str  # of the resource, like the next four
    parent_id: str | None
    tenant: str
    revision: int
    phase: Phase
    report_id: str
    skew: timedelta  # how far the adapter's clock is ahead of ours
    stored: StoredReport | None = None  # if it was requested


# ── reads ──────────────────────────────────────────────────────────────────────────────────────────────────────────

OrderField = Literal["name", "createdAt", "updatedAt", "severity"]


class TokenTerm(Struct, frozen=True):
    """Holds for a resource that has one of `tokens`; if negated, for one that has none of them."""

    tokens: tuple[str, ...]
    is_negated: bool = False
    is_prefix: bool = False  # `tokens` are prefixes


class Query(Struct, frozen=True):
    """Which resources, in which order. All terms must hold."""

    kind: str
    scope: Scope
    parent_id: str | None = None
    terms: tuple[TokenTerm, ...] = ()
    updated_since: datetime | None = None
    order: OrderField = "name"
    is_descending: bool = False
    after: tuple[str | int, str] | None = None  # the key and id of the last one on the previous page
    offset: int = 0
    limit: int = 100
    max_bytes: int = 0  # the page ends with the answer that reaches this size; 0: it may be as large as it is


class HistoryQuery(Struct, frozen=True):
    """Which transitions of a resource, newest first."""

    resource_id: str
    scope: Scope
    subjects: frozenset[str] = frozenset()  # none: all of them
    since: datetime | None = None  # from then on …
    until: datetime | None = None  # … and before then
    before: tuple[int, int] | None = None  # position and ordinal of the last one on the previous page
    limit: int = 100


class GroupCount(Struct, frozen=True):
    """The number of resources with these values; None: they have no such token."""

    values: tuple[str | None, ...]
    count: int

    @property
    def rank(self) -> tuple[int, tuple[tuple[bool, str], ...]]:
        """Return the sort key of groups: the largest first, then by values; None comes last."""
        return -self.count, tuple((value is None, value or "") for value in self.values)


class AdapterRecord(Struct, frozen=True):
    """What is stored about one adapter, over all tenants that the caller may see."""

    name: str
    last_seen: datetime
    skew: timedelta
    counts: Mapping[str, int]
    last_discard: str = ""


PolicySource = Literal["file", "api", "built-in"]


class NewPolicy(Struct, frozen=True):
    """A policy to be put in force."""

    digest: str
    text: str
    file: str  # where it was read; empty if it came through the API
    source: PolicySource = "file"
    author: str = ""  # the caller; empty: unknown, or a server at its start
    restores: int | None = None  # the version that a rollback goes back to

    def numbered(self, version: int, time: datetime) -> PolicyVersion:
        """Return the version that this becomes."""
        return PolicyVersion(version, self.digest, self.text, self.file, time, self.source, self.author, self.restores)


class PolicyVersion(Struct, frozen=True):
    """A policy that was put in force. The newest version is the one in force."""

    version: int
    digest: str
    text: str
    file: str
    time: datetime
    source: PolicySource = "file"
    author: str = ""
    restores: int | None = None

    @property
    def name(self) -> str:
        """Return its file, or a description in place of one."""
        return self.file or f"policy version {self.version}"


# Decides, while no other version can be activated, whether a new policy may replace the one in force. Gets that one,
# and the digest of the last policy that came from a file (empty: none did). An error ends the activation.
AdmitPolicy = Callable[[PolicyVersion, str], bool]


def admit_always(active: PolicyVersion, file_digest: str) -> bool:
    """Admit a policy whatever is in force."""
    return True


class DueResources(Struct, frozen=True):
    """Resources whose deadline has come, and the next deadline."""

    now: datetime
    ids: tuple[str, ...]
    next_wake: datetime | None


# ── reading the log ──────────────────────────────────────────────────────────────────────────────────────────────


class LoggedChange(Struct, frozen=True):
    """One position of the event log: which resource changed, and every transition that the change made."""

    position: int
    type: EventType
    kind: str
    resource_id: str
    parent_id: str | None
    tenant: str
    name: str  # empty: the resource was removed, and the answers with its name are pruned
    generation: int
    time: datetime
    facets: FacetChange | None
    transitions: tuple[RecordedTransition, ...] = ()  # in the order of their ordinals


class TransitionFilter(Struct, frozen=True):
    """Which transitions; an empty set matches any value."""

    subjects: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    causes: frozenset[str] = frozenset()

    def admits(self, recorded: RecordedTransition) -> bool:
        """Tell whether a transition matches."""
        moved = recorded.transition
        return (
            (not self.subjects or moved.subject in self.subjects)
            and (not self.before or moved.before in self.before)
            and (not self.after or moved.after in self.after)
            and (not self.causes or recorded.cause.kind in self.causes)
        )


class ChangeQuery(Struct, frozen=True):
    """Which changes of the log, in order of positions or newest first."""

    after: int | None = None  # only higher positions; None: from the oldest one after which none is missing
    upto: int | None = None  # only positions up to this one; None: up to the head
    since: datetime | None = None  # from then on …
    until: datetime | None = None  # … and before then
    scope: Scope = EVERYTHING
    kinds: frozenset[str] = frozenset()  # none: all of them
    moves: TransitionFilter | None = None  # only changes with such a transition; None: also those without any
    is_descending: bool = False
    limit: int = 100
    span: int | None = None  # how many positions may be searched; None: all of them


class ChangePage(Struct, frozen=True):
    """Changes of a query, and the positions that were searched: above `after`, up to `upto`."""

    changes: tuple[LoggedChange, ...]
    after: int
    upto: int
    is_last: bool  # all positions that the query allows were searched


class CurrentCounts(Struct, frozen=True):
    """A summary of the present, and its position in the log."""

    groups: tuple[GroupCount, ...]
    total: int
    position: int


class TokenQuery(Struct, frozen=True):
    """Events of a range of positions that changed tokens of a query's resources, or created or removed them."""

    after: int
    upto: int
    since: datetime  # only later than this
    query: Query  # only kind, scope and parent matter
    terms: tuple[TokenTerm, ...]  # an event that changed no token of these is left out


class TokenMove(Struct, frozen=True):
    """One such event."""

    position: int
    time: datetime
    type: EventType
    facets: FacetChange | None  # None: the event is older than this column


class LogReader(Struct, frozen=True):
    """A named reader of the log. Pruning keeps what it has not read, unless it was dropped."""

    name: str
    position: int  # everything up to here has been read
    opened_time: datetime
    moved_time: datetime  # when the position last moved
    dropped_time: datetime | None = None  # since then pruning no longer waits for it
    unread_since: datetime | None = None  # time of the oldest change that it has not read; None: it has read all


class Lease(Struct, frozen=True):
    """The right to do something alone, until it expires. The epoch rises with every new holder."""

    name: str
    holder: str
    epoch: int


class LogGap(Struct, frozen=True):
    """Changes that a reader has missed: those above `after` and up to `upto` were pruned, at least in part."""

    after: int
    upto: int


class ReaderPage(Struct, frozen=True):
    """What a named reader reads next. Advance it from `after` to `upto` when all of it, `gap` included, is handled."""

    after: int
    upto: int
    changes: tuple[LoggedChange, ...]
    head: int
    gap: LogGap | None = None  # comes before `changes`; reported again until the reader has advanced past it


# ── what the sentinel looks at ───────────────────────────────────────────────────────────────────────────────────


class ScheduledLook(Struct, frozen=True):
    """A resource without its reports, and when the sentinel looks at it."""

    resource: Resource
    status: Status
    answer: bytes
    look: LookPlan


class LookPage(Struct, frozen=True):
    """Resources in the order in which they are due, and the time of the store."""

    now: datetime
    looks: tuple[ScheduledLook, ...]


class LookMove(Struct, frozen=True):
    """The next look at a resource; nothing moves unless `before` is still what is stored."""

    id: str
    before: LookPlan
    after: LookPlan


class LookCounts(Struct, frozen=True):
    """How many resources are due, since when the first of them is, and when the next one will be."""

    now: datetime
    due: int
    oldest: datetime | None
    next: datetime | None


class Looks(Protocol):
    """When the sentinel looks at which resource. Ordinary writes set it (`Record.look`), heartbeats do not move it."""

    async def due(self, kind: str, scope: Scope, limit: int, after: tuple[datetime, str] | None = None) -> LookPage:
        """Return resources that are due, the longest first; `after` is the time and id of the last one before."""
        ...

    async def read(self, kind: str, ids: Collection[str], scope: Scope) -> LookPage:
        """Return resources by id, in order of ids, whether they are due or not."""
        ...

    async def count(self, kind: str, scope: Scope, limit: int) -> LookCounts:
        """Count the resources that are due, at most `limit`."""
        ...

    async def advance(self, moves: Sequence[LookMove]) -> frozenset[str]:
        """Set the next look at resources; return the ids of those that were still as they had been read."""
        ...

    async def spread(self, after: str, limit: int, over: timedelta, *, forgets: bool = False) -> str | None:
        """Let resources be due within a time, at random, those after an id; return the last id; None: that was all.

        If it `forgets` the looks so far, every state counts as not looked at yet.
        """
        ...

    async def rules_digest(self) -> str:
        """Return the digest of the rules with which all looks were scheduled; empty: they must be spread first."""
        ...

    async def save_rules_digest(self, digest: str) -> None:
        """Save the digest of the rules."""
        ...


# ── the ports ────────────────────────────────────────────────────────────────────────────────────────────────────


class Clock(Protocol):
    """The clock of stores without one of their own."""

    def now(self) -> datetime:
        """Return the time, with zone UTC."""
        ...


class Store(Protocol):
    """Durable storage of resources, reports and their history.

    Raises `StoreUnavailable` when it cannot be reached; `Contended` when a call conflicted with another writer and may
    succeed if repeated. Nothing is written unless `transact` returns.

    Every read of a resource takes a `Scope`: a resource outside it does not exist for the caller. Only `read_events`,
    which all watches share, and upkeep have none.
    """

    async def open(self) -> None:
        """Connect; refuse a schema that is newer than this code (`SchemaMismatch`)."""
        ...

    async def close(self) -> None:
        """Finish what is running and close every connection."""
        ...

    async def check(self) -> None:
        """Return if the store can be written to now."""
        ...

    async def record_heartbeats(self, heartbeats: Sequence[Heartbeat]) -> list[RecordedHeartbeat | None]:
        """Record those that repeat a calm stored report at a later time; None: it is not one of these.

        One small update, durable when this returns; no two heartbeats are of the same adapter and resource. What is not
        recorded has changed nothing, and needs `transact`.
        """
        ...

    async def transact(self, needs: Needs, work: Work) -> int:
        """Lock and load, call `work`, write what it returns, commit; return the position before the first event.

        `work` may run in another thread and must not await. An error that it raises rolls back. It may be called again,
        with more or newer records; the last call counts.
        """
        ...

    # reads

    async def read_answer(self, kind: str, id_: str, scope: Scope, parent_id: str | None = None) -> StoredAnswer | None:
        """Return the stored answer of one resource; the most frequent read."""
        ...

    async def read_record(self, kind: str, id_: str, scope: Scope, parent_id: str | None = None) -> Record | None:
        """Return one resource with its status and reports, from one snapshot."""
        ...

    async def read_records(self, ids: Collection[str], scope: Scope) -> tuple[Record, ...]:
        """Return the resources of ids, in order of ids; those that do not exist or are not visible are left out."""
        ...

    async def read_children(self, parent_id: str, scope: Scope) -> tuple[Record, ...]:
        """Return the children of a resource."""
        ...

    async def read_reports_at(self, resource_id: str, scope: Scope, generation: int) -> tuple[StoredReport, ...]:
        """Return the last report of each adapter at one generation, by adapter name."""
        ...

    async def find(self, query: Query) -> tuple[StoredAnswer, ...]:
        """Return the resources of a query, in order; at most `query.limit`."""
        ...

    async def count(self, query: Query) -> int:
        """Count the resources of a query, ignoring its page."""
        ...

    async def summarize(self, query: Query, prefixes: tuple[str, ...]) -> tuple[GroupCount, ...]:
        """Count the resources of a query by the rest of a token after each prefix; the largest group first."""
        ...

    async def count_now(self, query: Query, prefixes: tuple[str, ...]) -> CurrentCounts:
        """Summarize and count the resources of a query at one position of the log."""
        ...

    async def adapters(self, scope: Scope) -> tuple[AdapterRecord, ...]:
        """Return every adapter that has ever reported, by name."""
        ...

    async def read_transitions(self, query: HistoryQuery) -> tuple[RecordedTransition, ...]:
        """Return transitions of a resource, the newest first; at most `query.limit`."""
        ...

    async def existed(self, kind: str, id_: str, scope: Scope, parent_id: str | None = None) -> bool:
        """Tell whether a resource exists, or existed and one of its events is still kept."""
        ...

    # the past

    async def position(self) -> int:
        """Return the position of the last event; 0: there was none yet. Called several times a second."""
        ...

    async def read_events(self, after: int, limit: int) -> EventPage:
        """Return the events of all resources after a position; raise `HistoryPruned` if one of them was pruned."""
        ...

    async def read_changes(self, query: ChangeQuery) -> ChangePage:
        """Return changes with their transitions; raise `HistoryPruned` if some of them were pruned."""
        ...

    async def read_version(
        self, kind: str, id_: str, scope: Scope, at: datetime, parent_id: str | None = None
    ) -> LoggedEvent | None:
        """Return the event that was a resource's latest at a time; None: it did not exist yet.

        Raises `HistoryPruned` if that is no longer known.
        """
        ...

    async def read_versions(self, resource_id: str, scope: Scope, since: datetime) -> tuple[LoggedEvent, ...]:
        """Return a resource's events with an answer, from the latest at `since` on, as far as they are kept."""
        ...

    async def read_reports_past(self, resource_id: str, scope: Scope, at: datetime) -> tuple[StoredReport, ...]:
        """Return the last report of each adapter received until then; raise `HistoryPruned` as above."""
        ...

    async def read_report_log(self, resource_id: str, scope: Scope, since: datetime) -> tuple[PastReport, ...]:
        """Return accepted reports in order: the last of each adapter before `since`, then all later ones."""
        ...

    async def walk(self, after: str, limit: int, scope: Scope) -> tuple[Record, ...]:
        """Return the resources of all kinds whose ids come after one, in order of ids."""
        ...

    async def position_before(self, time: datetime) -> int:
        """Return a position up to which no event is later than a time; raise `HistoryPruned` if that is unknown."""
        ...

    async def read_token_moves(self, query: TokenQuery) -> tuple[TokenMove, ...]:
        """Return events with the tokens that they changed, in order of positions."""
        ...

    # named readers of the log

    async def open_reader(self, name: str) -> LogReader:
        """Return a reader; a new one starts at the head. Pruning waits for it from now on."""
        ...

    async def readers(self) -> tuple[LogReader, ...]:
        """Return all readers, by name."""
        ...

    async def read_next(self, name: str, limit: int) -> ReaderPage | None:
        """Return what a reader has not read yet, at most `limit` changes; None: there is no such reader."""
        ...

    async def advance_reader(self, name: str, expected: int, position: int, lease: Lease | None = None) -> bool:
        """Move a reader forward from `expected`; False: it was not at `expected`, or would go back or past the head.

        With a lease, also False if the lease has got another holder since.
        """
        ...

    async def close_reader(self, name: str) -> bool:
        """Delete a reader; False: there was none."""
        ...

    async def drop_readers(self, max_lag: timedelta) -> tuple[LogReader, ...]:
        """Stop waiting for readers whose oldest unread change is older than `max_lag`; return those dropped now."""
        ...

    # leases and messages

    async def take_lease(self, name: str, holder: str, duration: timedelta) -> Lease | None:
        """Take a lease or extend it; None: another holder has it."""
        ...

    async def release_lease(self, lease: Lease) -> None:
        """Let another holder take a lease at once."""
        ...

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        """Return the leases whose names begin so and that have not expired, by name. None lasts two minutes."""
        ...

    async def store_id(self) -> str:
        """Return what identifies this database; the same for all replicas."""
        ...

    async def read_webhooks(self) -> Mapping[str, bytes]:
        """Return the saved states of webhooks, by name."""
        ...

    async def save_webhook(self, name: str, state: bytes, lease: Lease | None = None) -> bool:
        """Save the state of a webhook; an empty one deletes it. False: the lease has got another holder since."""
        ...

    @property
    def looks(self) -> Looks:
        """Return when the sentinel looks at which resource."""
        ...

    @property
    def queues(self) -> MessageQueues:
        """Return the queues of the in-process broker."""
        ...

    def on_foreign_commit(self, callback: Callable[[], None]) -> None:
        """Call back soon after a commit of another replica, where the store can tell; it may be called without one."""
        ...

    def on_foreign_messages(self, callback: Callable[[], None]) -> None:
        """Call back soon after another replica has added messages to a queue; as `on_foreign_commit`."""
        ...

    # time and policy

    async def due(self, limit: int) -> DueResources:
        """Return resources whose next deadline has come."""
        ...

    async def outdated(self, policy_version: int, limit: int) -> tuple[tuple[str, ...], int]:
        """Return ids of resources computed under an earlier policy version, and their total number."""
        ...

    async def claim(self, task: str) -> Claim | None:
        """Take a task that one replica at a time may do; None: another one has it."""
        ...

    async def activate_policy(self, policy: NewPolicy, admit: AdmitPolicy = admit_always) -> PolicyVersion:
        """Put a policy in force if it is admitted, and return what is in force then.

        One with the digest of the policy in force makes no new version; if it is from a file, the store remembers that
        a file had it.
        """
        ...

    async def active_policy(self) -> PolicyVersion | None:
        """Return the policy in force."""
        ...

    async def policy_versions(self, before: int | None, limit: int) -> tuple[PolicyVersion, ...]:
        """Return versions older than `before`, or the newest, in descending order and without their texts."""
        ...

    async def read_policy(self, version: int) -> PolicyVersion | None:
        """Return one version."""
        ...

    async def prune(self, task: Pruning, limit: int) -> int:
        """Delete up to `limit` rows of a log that are past their retention; return their number."""
        ...


class Claim(Protocol):
    """A claimed task; released by `async with`, and by the store when the process dies."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...


class Pruning(Struct, frozen=True):
    """Which log, and how long its rows are kept. Rows that the present state needs are never pruned."""

    log: Literal["events", "reports", "transitions", "keys"]
    keep: timedelta
