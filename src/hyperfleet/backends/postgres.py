"""The store in a PostgreSQL database, which several replicas share.

A write locks its resources first and the head last, so positions are dense and in commit order over all replicas.
Writes, point reads, lists and claims have connections of their own, so that none of them blocks another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Final, Self

from msgspec.structs import replace

from hyperfleet.backends import postgres_changes as log
from hyperfleet.backends import postgres_past as past
from hyperfleet.backends import postgres_policies as policies
from hyperfleet.backends import postgres_queues as queues
from hyperfleet.backends import postgres_reading as reading
from hyperfleet.backends import postgres_schema as schema
from hyperfleet.backends.postgres_connections import Connection, Connections, Timeouts
from hyperfleet.backends.postgres_listening import Channel, listen
from hyperfleet.backends.postgres_loading import SQL
from hyperfleet.backends.postgres_looks import PostgresLooks
from hyperfleet.backends.postgres_points import answer_reader, record_reader
from hyperfleet.backends.postgres_pruning import prune
from hyperfleet.backends.postgres_transactions import record_heartbeats, transact
from hyperfleet.errors import StoreUnavailable
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import (
    AdapterRecord,
    AdmitPolicy,
    ChangePage,
    ChangeQuery,
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

_CLAIMS: Final = 8  # connections for tasks held at once; a process has three such loops
_MESSAGES: Final = 3  # connections for leases and queues, so that a slow consumer's pull never delays a write
_DAY: Final = 86_400.0  # seconds; a migration of a large database may take hours

# For statements that find rows by key. Their plans are made once, perhaps while the tables are empty, and must stay
# good: so they do not depend on statistics, and always use an index.
_BY_KEY: Final = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "max_parallel_workers_per_gather": "0",
}
# For lists: the best plan depends on how selective the filters are, so each is planned with its values.
_BY_VALUE: Final = {"plan_cache_mode": "force_custom_plan"}
_DURABLE: Final = {"synchronous_commit": "on"}  # whatever the server's default is: a commit that returns is durable
# For leases, what is taken from queues, and positions of readers. A crash of the server may lose the last of these
# commits: then a message is delivered again, or published again.
_REPEATABLE: Final = {"synchronous_commit": "off"}


class _Session:
    """The connections of an open store."""

    def __init__(self, url: str, pool_size: int, timeouts: Timeouts) -> None:
        writers = max(1, pool_size // 4)
        points = max(1, pool_size // 4)
        self.writers = Connections(url, writers, timeouts, _BY_KEY | _DURABLE)
        self.points = Connections(url, points, timeouts, _BY_KEY)
        self.scans = Connections(url, max(1, pool_size - writers - points), timeouts, _BY_VALUE)
        self.claims = Connections(url, _CLAIMS, timeouts)
        self.messages = Connections(url, _MESSAGES, timeouts, _BY_KEY | _REPEATABLE)
        self.answers = answer_reader(self.points, lanes=points)
        self.records = record_reader(self.points, lanes=points)

    async def close(self) -> None:
        for connections in (self.writers, self.points, self.scans, self.claims, self.messages):
            await connections.close()


class PostgresStore:
    """Keeps everything in one database."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 8,
        timeouts: Timeouts = Timeouts(),  # noqa: B008  # frozen
    ) -> None:
        """Remember the URL; `open` connects. A quarter of the connections write, half of them read lists."""
        self._url = url
        self._pool_size = pool_size
        self._timeouts = timeouts
        self._session: _Session | None = None
        self._listeners: dict[Channel, list[Callable[[], None]]] = {"hyperfleet": [], "hyperfleet_messages": []}
        self._listening: asyncio.Task[None] | None = None

    # opening and closing

    async def open(self) -> None:
        """Connect; refuse tables that are not those of this version."""
        if self._session is None:
            async with self._visit(self._timeouts) as connection:
                await schema.check_server(connection)
                await schema.check_schema(connection)
            self._session = _Session(self._url, self._pool_size, self._timeouts)
            if any(self._listeners.values()):
                self._listen()

    async def close(self) -> None:
        """Finish what is running and close every connection."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})
            self._listening = None
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def check(self) -> None:
        """Return if the database can be written to now."""
        async with self._opened().writers.take() as connection:
            if await connection.fetchval(SQL["is_read_only"]):
                raise StoreUnavailable("PostgreSQL: the database is read-only")

    async def migrate(self) -> list[str]:
        """Create or migrate the tables, whether the store is open or not; return the migrations applied."""
        unhurried = replace(self._timeouts, statement=_DAY, lock=_DAY, idle=_DAY)
        async with self._visit(unhurried) as connection:
            return await schema.migrate(connection)

    async def schema_version(self) -> int:
        """Return the version of the tables; 0: there are none."""
        async with self._visit(self._timeouts) as connection:
            return max(await schema.read_versions(connection), default=0)

    @asynccontextmanager
    async def _visit(self, timeouts: Timeouts) -> AsyncIterator[Connection]:
        """Connect briefly."""
        connections = Connections(self._url, 1, timeouts)
        try:
            async with connections.take() as connection:
                yield connection
        finally:
            await connections.close()

    def _opened(self) -> _Session:
        if self._session is None:
            raise StoreUnavailable("PostgreSQL: the store is not open")
        return self._session

    # writing

    async def transact(self, needs: Needs, work: Work) -> int:
        """Lock and load, call `work`, write what it returns, commit; return the position before the first event."""
        async with self._opened().writers.take() as connection:
            return await transact(connection, needs, work)

    async def record_heartbeats(self, heartbeats: Sequence[Heartbeat]) -> list[RecordedHeartbeat | None]:
        """Record those that repeat a calm stored report at a later time; None: it is not one of these."""
        async with self._opened().writers.take() as connection:
            return await record_heartbeats(connection, heartbeats)

    # reading one resource

    async def read_answer(self, kind: str, id_: str, scope: Scope, parent_id: str | None = None) -> StoredAnswer | None:
        """Return the stored answer of one resource."""
        row = await self._opened().answers.read(id_)
        if row is None or row.kind != kind or not scope.admits(row.tenant) or parent_id not in (None, row.parent_id):
            return None
        return StoredAnswer(id_, row.answer, row.revision)

    async def read_record(self, kind: str, id_: str, scope: Scope, parent_id: str | None = None) -> Record | None:
        """Return one resource with its status and reports, from one snapshot."""
        record = await self._opened().records.read(id_)
        if record is None or record.resource.kind != kind or not scope.admits(record.resource.tenant):
            return None
        return record if parent_id in (None, record.resource.parent_id) else None

    async def read_records(self, ids: Collection[str], scope: Scope) -> tuple[Record, ...]:
        """Return the resources of ids, in order of ids."""
        async with self._opened().scans.take() as connection:
            return await reading.read_records(connection, ids, scope)

    async def read_children(self, parent_id: str, scope: Scope) -> tuple[Record, ...]:
        """Return the children of a resource."""
        async with self._opened().points.take() as connection:
            return await reading.read_children(connection, parent_id, scope)

    async def read_reports_at(self, resource_id: str, scope: Scope, generation: int) -> tuple[StoredReport, ...]:
        """Return the last report of each adapter at one generation, by adapter name."""
        async with self._opened().points.take() as connection:
            return await past.read_reports_at(connection, resource_id, scope, generation)

    async def read_transitions(self, query: HistoryQuery) -> tuple[RecordedTransition, ...]:
        """Return transitions of a resource, the newest first; at most `query.limit`."""
        async with self._opened().points.take() as connection:
            return await reading.read_transitions(connection, query)

    async def existed(self, kind: str, id_: str, scope: Scope, parent_id: str | None = None) -> bool:
        """Tell whether a resource exists or existed, as far as events are kept."""
        async with self._opened().points.take() as connection:
            return await reading.existed(connection, kind, id_, scope, parent_id)

    # reading many

    async def find(self, query: Query) -> tuple[StoredAnswer, ...]:
        """Return the resources of a query, in order; at most `query.limit`."""
        async with self._opened().scans.take() as connection:
            return await reading.find(connection, query)

    async def count(self, query: Query) -> int:
        """Count the resources of a query, ignoring its page."""
        async with self._opened().scans.take() as connection:
            return await reading.count(connection, query)

    async def summarize(self, query: Query, prefixes: tuple[str, ...]) -> tuple[GroupCount, ...]:
        """Count the resources of a query by the rest of a token after each prefix; the largest group first."""
        async with self._opened().scans.take() as connection:
            return await reading.summarize(connection, query, prefixes)

    async def count_now(self, query: Query, prefixes: tuple[str, ...]) -> CurrentCounts:
        """Summarize and count the resources of a query at one position of the log."""
        async with self._opened().scans.take() as connection:
            return await log.count_now(connection, query, prefixes)

    async def adapters(self, scope: Scope) -> tuple[AdapterRecord, ...]:
        """Return every adapter that has ever reported, by name."""
        async with self._opened().scans.take() as connection:
            return await reading.read_adapters(connection, scope)

    # the past

    async def position(self) -> int:
        """Return the position of the last event."""
        async with self._opened().points.take() as connection:
            return await past.read_position(connection)

    async def read_events(self, after: int, limit: int) -> EventPage:
        """Return the events of all resources after a position; raise `HistoryPruned` if one of them was pruned."""
        async with self._opened().points.take() as connection:
            return await past.read_events(connection, after, limit)

    async def read_changes(self, query: ChangeQuery) -> ChangePage:
        """Return changes with their transitions; raise `HistoryPruned` if some of them were pruned."""
        async with self._opened().points.take() as connection:
            return await log.read_changes(connection, query)

    async def read_version(
        self, kind: str, id_: str, scope: Scope, at: datetime, parent_id: str | None = None
    ) -> LoggedEvent | None:
        """Return the event that was a resource's latest at a time; None: it did not exist yet."""
        async with self._opened().points.take() as connection:
            return await past.read_version(connection, kind, id_, scope, at, parent_id)

    async def read_versions(self, resource_id: str, scope: Scope, since: datetime) -> tuple[LoggedEvent, ...]:
        """Return a resource's events with an answer, from the latest at `since` on, as far as they are kept."""
        async with self._opened().points.take() as connection:
            return await past.read_versions(connection, resource_id, scope, since)

    async def read_reports_past(self, resource_id: str, scope: Scope, at: datetime) -> tuple[StoredReport, ...]:
        """Return the last report of each adapter received until then; raise `HistoryPruned` as above."""
        async with self._opened().points.take() as connection:
            return await past.read_reports(connection, resource_id, scope, at)

    async def read_report_log(self, resource_id: str, scope: Scope, since: datetime) -> tuple[PastReport, ...]:
        """Return accepted reports in order: the last of each adapter before `since`, then all later ones."""
        async with self._opened().scans.take() as connection:
            return await past.read_report_log(connection, resource_id, scope, since)

    async def walk(self, after: str, limit: int, scope: Scope) -> tuple[Record, ...]:
        """Return the resources of all kinds whose ids come after one, in order of ids."""
        async with self._opened().scans.take() as connection:
            return await past.walk(connection, after, limit, scope)

    async def position_before(self, time: datetime) -> int:
        """Return a position up to which no event is later than a time; raise `HistoryPruned` if that is unknown."""
        async with self._opened().scans.take() as connection:
            return await log.position_before(connection, time)

    async def read_token_moves(self, query: TokenQuery) -> tuple[TokenMove, ...]:
        """Return events with the tokens that they changed, in order of positions."""
        async with self._opened().scans.take() as connection:
            return await log.read_token_moves(connection, query)

    # named readers of the log

    async def open_reader(self, name: str) -> LogReader:
        """Return a reader; a new one starts at the head."""
        async with self._opened().writers.take() as connection:
            return await log.open_reader(connection, name)

    async def readers(self) -> tuple[LogReader, ...]:
        """Return all readers, by name."""
        async with self._opened().points.take() as connection:
            return await log.read_readers(connection)

    async def read_next(self, name: str, limit: int) -> ReaderPage | None:
        """Return what a reader has not read yet, at most `limit` changes; None: there is no such reader."""
        async with self._opened().points.take() as connection:
            return await log.read_next(connection, name, limit)

    async def advance_reader(self, name: str, expected: int, position: int, lease: Lease | None = None) -> bool:
        """Move a reader forward from `expected`; False: it was not at `expected`, or would go back or past the head."""
        async with self._opened().messages.take() as connection:
            return await log.advance_reader(connection, name, (expected, position), lease)

    async def close_reader(self, name: str) -> bool:
        """Delete a reader; False: there was none."""
        async with self._opened().writers.take() as connection:
            return await log.close_reader(connection, name)

    async def drop_readers(self, max_lag: timedelta) -> tuple[LogReader, ...]:
        """Stop waiting for readers whose oldest unread change is older than `max_lag`; return those dropped now."""
        async with self._opened().writers.take() as connection:
            return await log.drop_readers(connection, max_lag)

    # leases and messages

    async def take_lease(self, name: str, holder: str, duration: timedelta) -> Lease | None:
        """Take a lease or extend it; None: another holder has it."""
        async with self._opened().messages.take() as connection:
            return await queues.take_lease(connection, name, holder, duration)

    async def release_lease(self, lease: Lease) -> None:
        """Let another holder take a lease at once."""
        async with self._opened().messages.take() as connection:
            await queues.release_lease(connection, lease)

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        """Return the leases whose names begin so and that have not expired, by name."""
        async with self._opened().messages.take() as connection:
            return await queues.read_leases(connection, prefix)

    async def store_id(self) -> str:
        """Return what identifies this database; the same for all replicas."""
        async with self._opened().messages.take() as connection:
            return str(await connection.fetchval(SQL["read_store_id"]))

    async def read_webhooks(self) -> dict[str, bytes]:
        """Return the saved states of webhooks, by name."""
        async with self._opened().messages.take() as connection:
            return await queues.read_webhooks(connection)

    async def save_webhook(self, name: str, state: bytes, lease: Lease | None = None) -> bool:
        """Save the state of a webhook; an empty one deletes it. False: the lease has got another holder since."""
        async with self._opened().messages.take() as connection:
            return await queues.save_webhook(connection, name, state, lease)

    @property
    def queues(self) -> queues.PostgresQueues:
        """Return the queues of the in-process broker."""
        session = self._opened()
        return queues.PostgresQueues(session.messages.take, session.writers.take)

    @property
    def looks(self) -> PostgresLooks:
        """Return when the sentinel looks at which resource."""
        return PostgresLooks(self._opened().messages.take)

    def on_foreign_commit(self, callback: Callable[[], None]) -> None:
        """Call back soon after each commit of any replica, while the store is open."""
        self._add_listener("hyperfleet", callback)

    def on_foreign_messages(self, callback: Callable[[], None]) -> None:
        """Call back soon after any replica has added messages to a queue, while the store is open."""
        self._add_listener("hyperfleet_messages", callback)

    def _add_listener(self, channel: Channel, callback: Callable[[], None]) -> None:
        self._listeners[channel].append(callback)
        if self._session is not None and self._listening is None:
            self._listen()

    def _listen(self) -> None:
        self._listening = asyncio.create_task(listen(self._url, self._timeouts, self._listeners))

    # time and policy

    async def due(self, limit: int) -> DueResources:
        """Return resources whose next deadline has come."""
        async with self._opened().scans.take() as connection:
            return await reading.read_due(connection, limit)

    async def outdated(self, policy_version: int, limit: int) -> tuple[tuple[str, ...], int]:
        """Return ids of resources computed under an earlier policy version, and their total number."""
        async with self._opened().scans.take() as connection:
            return await reading.read_outdated(connection, policy_version, limit)

    async def claim(self, task: str) -> AdvisoryClaim | None:
        """Take a task that one replica at a time may do; None: another one has it."""
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(self._opened().claims.take())
            if not await connection.fetchval(SQL["try_claim"], task):
                return None
            return AdvisoryClaim(task, connection, stack.pop_all())

    async def activate_policy(self, policy: NewPolicy, admit: AdmitPolicy = admit_always) -> PolicyVersion:
        """Put a policy in force if it is admitted, and return the policy in force."""
        async with self._opened().writers.take() as connection:
            return await policies.activate(connection, policy, admit)

    async def active_policy(self) -> PolicyVersion | None:
        """Return the policy in force."""
        async with self._opened().scans.take() as connection:
            return await policies.read_active(connection)

    async def policy_versions(self, before: int | None, limit: int) -> tuple[PolicyVersion, ...]:
        """Return versions older than `before`, or the newest, in descending order and without their texts."""
        async with self._opened().scans.take() as connection:
            return await policies.list_policies(connection, before, limit)

    async def read_policy(self, version: int) -> PolicyVersion | None:
        """Return one version."""
        async with self._opened().scans.take() as connection:
            return await policies.read_policy(connection, version)

    async def prune(self, task: Pruning, limit: int) -> int:
        """Delete up to `limit` rows of a log that are past their retention; return their number."""
        async with self._opened().scans.take() as connection:
            return await prune(connection, task, limit)


class AdvisoryClaim:
    """A claimed task: a session lock, which the server releases when the session ends, however it ends."""

    def __init__(self, task: str, connection: Connection, stack: AsyncExitStack) -> None:
        """Hold the lock of `connection`; `stack` returns the connection."""
        self._task = task
        self._connection = connection
        self._stack = stack

    async def __aenter__(self) -> Self:
        """Hold the task."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Release it; if the session has ended, it is released already."""
        with suppress(StoreUnavailable):
            async with self._stack:
                await self._connection.execute(SQL["release_claim"], self._task)
