"""The store in one SQLite file: durable, shareable by several processes, nothing to install.

Point reads and the statements of a transaction take microseconds and run in the event loop: two threads that both run
Python only slow each other down. What waits for the disk or for other processes (to begin and to commit), and every
longer scan, runs in threads, so that requests do not wait for it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from hyperfleet.backends import sqlite_changes as log
from hyperfleet.backends import sqlite_past as past
from hyperfleet.backends import sqlite_policies as policies
from hyperfleet.backends import sqlite_queues as queues
from hyperfleet.backends import sqlite_reading as reading
from hyperfleet.backends.clock import SystemClock
from hyperfleet.backends.file_claim import FileClaim
from hyperfleet.backends.sqlite_connection import (
    SQL,
    connect,
    make_durable,
    migrate,
    read_versions,
    transaction,
    translate,
    translating,
)
from hyperfleet.backends.sqlite_heartbeats import record
from hyperfleet.backends.sqlite_loading import load
from hyperfleet.backends.sqlite_looks import SqliteLooks
from hyperfleet.backends.sqlite_pruning import prune
from hyperfleet.backends.sqlite_session import Session
from hyperfleet.backends.sqlite_writing import write
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

_READ_ANSWER: Final = SQL["read_answer"]
_READ_ANSWER_BELOW: Final = SQL["read_answer_below"]
_READ_ANSWER_OF_TENANTS: Final = SQL["read_answer_of_tenants"]
_READ_ANSWER_BELOW_OF_TENANTS: Final = SQL["read_answer_below_of_tenants"]


class SqliteStore:
    """Keeps everything in one file, and in the two that SQLite puts beside it while it is open."""

    def __init__(self, path: str | Path, clock: Clock | None = None) -> None:
        """Remember the path; `open` opens it."""
        self._path = Path(path)
        self._clock = clock or SystemClock()
        self._session: Session | None = None

    # opening and closing

    async def open(self) -> None:
        """Open the file, create or migrate its tables; refuse tables newer than this code."""
        if self._session is None:
            self._session = await asyncio.to_thread(Session.open, self._path, self._clock)

    async def close(self) -> None:
        """Finish what is running and close every connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def check(self) -> None:
        """Return if the file can be written to now, by writing to it."""
        await self._opened().write(_touch)

    async def migrate(self) -> list[str]:
        """Create or migrate the tables, whether the store is open or not; return the migrations applied."""
        return await asyncio.to_thread(_migrate, self._path, self._clock)

    async def schema_version(self) -> int:
        """Return the version of the tables; 0: there are none."""
        return await asyncio.to_thread(_read_version, self._path)

    def _opened(self) -> Session:
        if self._session is None:
            raise StoreUnavailable(f"{self._path}: the store is not open")
        return self._session

    # writing

    async def transact(self, needs: Needs, work: Work) -> int:
        """Lock and load, call `work`, write what it returns, commit; return the position before the first event."""
        async with self._opened().writing() as connection:
            loaded, found, position = load(connection, needs, self._clock)
            changes = work(loaded)
            if not changes.is_empty:
                write(connection, changes, found, position)
        return position

    async def record_heartbeats(self, heartbeats: Sequence[Heartbeat]) -> list[RecordedHeartbeat | None]:
        """Record those that repeat a calm stored report at a later time; None: it is not one of these."""
        async with self._opened().writing() as connection:
            return record(connection, heartbeats, self._clock.now())

    # reading one resource

    async def read_answer(self, kind: str, id_: str, scope: Scope, parent_id: str | None = None) -> StoredAnswer | None:
        """Return the stored answer of one resource."""
        session = self._session or self._opened()
        try:
            if scope.tenants is None:
                if parent_id is None:
                    row = session.point.execute(_READ_ANSWER, (id_, kind)).fetchone()
                else:
                    row = session.point.execute(_READ_ANSWER_BELOW, (id_, kind, parent_id)).fetchone()
            elif parent_id is None:
                tenants = reading.tenants_of(scope)
                row = session.point.execute(_READ_ANSWER_OF_TENANTS, (id_, kind, tenants)).fetchone()
            else:
                tenants = reading.tenants_of(scope)
                row = session.point.execute(_READ_ANSWER_BELOW_OF_TENANTS, (id_, kind, parent_id, tenants)).fetchone()
        except sqlite3.DatabaseError as error:
            raise translate(error, self._path) from error
        return None if row is None else StoredAnswer(id_, *row)

    async def read_record(self, kind: str, id_: str, scope: Scope, parent_id: str | None = None) -> Record | None:
        """Return one resource with its status and reports, from one snapshot."""
        with translating(self._path):
            return reading.read_record(self._opened().point, kind, id_, scope, parent_id)

    async def read_records(self, ids: Collection[str], scope: Scope) -> tuple[Record, ...]:
        """Return the resources of ids, in order of ids."""
        return await self._opened().scan(reading.read_some, ids, scope)

    async def read_children(self, parent_id: str, scope: Scope) -> tuple[Record, ...]:
        """Return the children of a resource."""
        return await self._opened().scan(reading.read_children, parent_id, scope)

    async def read_reports_at(self, resource_id: str, scope: Scope, generation: int) -> tuple[StoredReport, ...]:
        """Return the last report of each adapter at one generation, by adapter name."""
        return await self._opened().scan(past.read_reports_at, resource_id, scope, generation)

    async def read_transitions(self, query: HistoryQuery) -> tuple[RecordedTransition, ...]:
        """Return transitions of a resource, the newest first; at most `query.limit`."""
        return await self._opened().scan(reading.read_transitions, query)

    async def existed(self, kind: str, id_: str, scope: Scope, parent_id: str | None = None) -> bool:
        """Tell whether a resource exists or existed, as far as events are kept."""
        return await self._opened().scan(reading.existed, kind, id_, scope, parent_id)

    # reading many

    async def find(self, query: Query) -> tuple[StoredAnswer, ...]:
        """Return the resources of a query, in order; at most `query.limit`."""
        return await self._opened().scan(reading.find, query)

    async def count(self, query: Query) -> int:
        """Count the resources of a query, ignoring its page."""
        return await self._opened().scan(reading.count, query)

    async def summarize(self, query: Query, prefixes: tuple[str, ...]) -> tuple[GroupCount, ...]:
        """Count the resources of a query by the rest of a token after each prefix; the largest group first."""
        return await self._opened().scan(reading.summarize, query, prefixes)

    async def count_now(self, query: Query, prefixes: tuple[str, ...]) -> CurrentCounts:
        """Summarize and count the resources of a query at one position of the log."""
        return await self._opened().scan(log.count_now, query, prefixes)

    async def adapters(self, scope: Scope) -> tuple[AdapterRecord, ...]:
        """Return every adapter that has ever reported, by name."""
        return await self._opened().scan(reading.read_adapters, scope)

    # the past

    async def position(self) -> int:
        """Return the position of the last event."""
        with translating(self._path):
            return past.read_position(self._opened().point)

    async def read_events(self, after: int, limit: int) -> EventPage:
        """Return the events of all resources after a position; raise `HistoryPruned` if one of them was pruned."""
        return await self._opened().scan(past.read_events, after, limit)

    async def read_changes(self, query: ChangeQuery) -> ChangePage:
        """Return changes with their transitions; raise `HistoryPruned` if some of them were pruned."""
        return await self._opened().scan(log.read_changes, query)

    async def read_version(
        self, kind: str, id_: str, scope: Scope, at: datetime, parent_id: str | None = None
    ) -> LoggedEvent | None:
        """Return the event that was a resource's latest at a time; None: it did not exist yet."""
        return await self._opened().scan(past.read_version, kind, id_, scope, at, parent_id)

    async def read_versions(self, resource_id: str, scope: Scope, since: datetime) -> tuple[LoggedEvent, ...]:
        """Return a resource's events with an answer, from the latest at `since` on, as far as they are kept."""
        return await self._opened().scan(past.read_versions, resource_id, scope, since)

    async def read_reports_past(self, resource_id: str, scope: Scope, at: datetime) -> tuple[StoredReport, ...]:
        """Return the last report of each adapter received until then; raise `HistoryPruned` as above."""
        return await self._opened().scan(past.read_reports, resource_id, scope, at)

    async def read_report_log(self, resource_id: str, scope: Scope, since: datetime) -> tuple[PastReport, ...]:
        """Return accepted reports in order: the last of each adapter before `since`, then all later ones."""
        return await self._opened().scan(past.read_report_log, resource_id, scope, since)

    async def walk(self, after: str, limit: int, scope: Scope) -> tuple[Record, ...]:
        """Return the resources of all kinds whose ids come after one, in order of ids."""
        return await self._opened().scan(past.walk, after, limit, scope)

    async def position_before(self, time: datetime) -> int:
        """Return a position up to which no event is later than a time; raise `HistoryPruned` if that is unknown."""
        return await self._opened().scan(log.position_before, time)

    async def read_token_moves(self, query: TokenQuery) -> tuple[TokenMove, ...]:
        """Return events with the tokens that they changed, in order of positions."""
        return await self._opened().scan(log.read_token_moves, query)

    # named readers of the log

    async def open_reader(self, name: str) -> LogReader:
        """Return a reader; a new one starts at the head."""
        return await self._opened().write(log.open_reader, name, self._clock.now())

    async def readers(self) -> tuple[LogReader, ...]:
        """Return all readers, by name."""
        return await self._opened().scan(log.read_readers)

    async def read_next(self, name: str, limit: int) -> ReaderPage | None:
        """Return what a reader has not read yet, at most `limit` changes; None: there is no such reader."""
        return await self._opened().scan(log.read_next, name, limit)

    async def advance_reader(self, name: str, expected: int, position: int, lease: Lease | None = None) -> bool:
        """Move a reader forward from `expected`; False: it was not at `expected`, or would go back or past the head."""
        async with self._opened().writing(is_durable=False) as connection:
            return log.advance_reader(connection, name, (expected, position), self._clock.now(), lease)

    async def close_reader(self, name: str) -> bool:
        """Delete a reader; False: there was none."""
        return await self._opened().write(log.close_reader, name)

    async def drop_readers(self, max_lag: timedelta) -> tuple[LogReader, ...]:
        """Stop waiting for readers whose oldest unread change is older than `max_lag`; return those dropped now."""
        return await self._opened().write(log.drop_readers, max_lag, self._clock.now())

    # leases and messages

    async def take_lease(self, name: str, holder: str, duration: timedelta) -> Lease | None:
        """Take a lease or extend it; None: another holder has it."""
        return await queues.take_lease(self._opened(), name, holder, duration, self._clock.now())

    async def release_lease(self, lease: Lease) -> None:
        """Let another holder take a lease at once."""
        await queues.release_lease(self._opened(), lease)

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        """Return the leases whose names begin so and that have not expired, by name."""
        return await self._opened().scan(queues.read_leases, prefix, self._clock.now())

    async def store_id(self) -> str:
        """Return what identifies this database."""
        return await self._opened().scan(queues.read_store_id)

    async def read_webhooks(self) -> dict[str, bytes]:
        """Return the saved states of webhooks, by name."""
        return await self._opened().scan(queues.read_webhooks)

    async def save_webhook(self, name: str, state: bytes, lease: Lease | None = None) -> bool:
        """Save the state of a webhook; an empty one deletes it. False: the lease has got another holder since."""
        return await queues.save_webhook(self._opened(), name, state, lease)

    @property
    def looks(self) -> SqliteLooks:
        """Return when the sentinel looks at which resource."""
        return SqliteLooks(self._opened, self._clock)

    @property
    def queues(self) -> queues.SqliteQueues:
        """Return the queues of the in-process broker."""
        return queues.SqliteQueues(self._opened, self._clock)

    def on_foreign_commit(self, callback: Callable[[], None]) -> None:
        """Do nothing: SQLite does not tell of commits of other processes."""

    def on_foreign_messages(self, callback: Callable[[], None]) -> None:
        """Do nothing: SQLite does not tell of commits of other processes."""

    # time and policy

    async def due(self, limit: int) -> DueResources:
        """Return resources whose next deadline has come."""
        return await self._opened().scan(reading.read_due, self._clock.now(), limit)

    async def outdated(self, policy_version: int, limit: int) -> tuple[tuple[str, ...], int]:
        """Return ids of resources computed under an earlier policy version, and their total number."""
        return await self._opened().scan(reading.read_outdated, policy_version, limit)

    async def claim(self, task: str) -> FileClaim | None:
        """Take a task that one process at a time may do; None: another one has it."""
        return FileClaim.take(self._path.with_name(f"{self._path.name}-{task}.lock"))

    async def activate_policy(self, policy: NewPolicy, admit: AdmitPolicy = admit_always) -> PolicyVersion:
        """Put a policy in force if it is admitted, and return the policy in force."""
        return await self._opened().write(policies.activate, policy, admit, self._clock)

    async def active_policy(self) -> PolicyVersion | None:
        """Return the policy in force."""
        return await self._opened().scan(policies.read_active)

    async def policy_versions(self, before: int | None, limit: int) -> tuple[PolicyVersion, ...]:
        """Return versions older than `before`, or the newest, in descending order and without their texts."""
        return await self._opened().scan(policies.list_policies, before, limit)

    async def read_policy(self, version: int) -> PolicyVersion | None:
        """Return one version."""
        return await self._opened().scan(policies.read_policy, version)

    async def prune(self, task: Pruning, limit: int) -> int:
        """Delete up to `limit` rows of a log that are past their retention; return their number."""
        return await prune(self._opened(), task, self._clock.now() - task.keep, limit)


# ── what runs in the writing thread ─────────────────────────────────────────────────────────────────────────────


def _touch(connection: sqlite3.Connection) -> None:
    """Write something: SQLite writes no page that did not change. Nothing else uses this number."""
    with transaction(connection):
        (number,) = connection.execute("pragma user_version").fetchone()
        connection.execute(f"pragma user_version = {1 - number}")


# ── what opens the file briefly ────────────────────────────────────────────────────────────────────────────────


def _migrate(path: Path, clock: Clock) -> list[str]:
    with translating(path), closing(connect(path, cache_mib=1)) as connection:
        make_durable(connection, path)
        return migrate(connection, path, clock)


def _read_version(path: Path) -> int:
    if not path.exists():
        return 0
    with translating(path), closing(connect(path, cache_mib=1)) as connection:
        return max(read_versions(connection, path), default=0)
