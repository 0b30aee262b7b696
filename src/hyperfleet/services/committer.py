"""★ The committer: commands queue, the queued ones are committed together, then each caller gets its answer.

A commit costs one disk flush however much it writes, so commands that arrive during a commit share the next one. An
idle committer takes a single command at once. A second concurrent transaction, where the store allows one, starts only
with a batch that is worth a flush. No answer is sent before the commit.

In each batch, reports that turn out to be heartbeats are recorded first, by one small update; the rest is one ordinary
transaction.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from time import perf_counter
from typing import Any, Final, Literal, Protocol, TypeVar

from msgspec import Struct

from hyperfleet.errors import Contended, HyperFleetError, Overloaded
from hyperfleet.model.resource import Resource
from hyperfleet.ports import Heartbeat, Loaded, Needs, RecordedHeartbeat, Store, WriteSet
from hyperfleet.services.commands import Command, Placeable, Wants
from hyperfleet.services.policies import PolicyMoved, PolicyRegistry
from hyperfleet.services.results import heartbeat_result
from hyperfleet.services.tracing import CURRENT_SPAN, UNTRACED, Span, TracePoint, Tracer
from hyperfleet.services.workspace import Rules, Workspace

_LOG: Final = logging.getLogger(__name__)
_ATTEMPTS: Final = 8  # of a contended transaction; the pauses double from 2 ms and add up to half a second

R = TypeVar("R", bound=Placeable)

RetryCause = Literal["contention", "policy"]


class CommitObserver(Protocol):
    """Is notified of the result of transactions; it runs in the writer and must be quick."""

    def committed(self, loaded: Loaded, changes: WriteSet, commands: int, seconds: float) -> None:
        """Handle a transaction that was committed."""
        ...

    def recorded(self, heartbeats: Sequence[tuple[Heartbeat, RecordedHeartbeat]], tried: int, seconds: float) -> None:
        """Handle heartbeats that were recorded; `tried` reports were candidates."""
        ...

    def retried(self, cause: RetryCause) -> None:
        """Handle a transaction that must be tried again."""
        ...

    def failed(self, error: Exception, commands: int) -> None:
        """Handle a transaction that failed."""
        ...


class Capacity(Struct, frozen=True):
    """The limits of the committer."""

    queue: int = (
        2_000  # waiting commands; the next one is refused, because a caller that retries is better than one that waits
    )
    batch: int = (
        256  # commands of one transaction: a flush is cheap per command by then, and the first still answers soon
    )
    writers: int = 1  # concurrent transactions; SQLite has one writer
    second_batch: int = (
        16  # queued commands that start a second transaction beside the first: fewer are not worth a flush
    )


class _Job(Struct, eq=False):
    """A queued command, what it needs, and the future that its caller awaits."""

    command: Command[Any]
    wants: Wants
    future: asyncio.Future[Any]
    origin: TracePoint | None  # where in a trace it was submitted

    def answer(self, result: Placeable) -> None:
        if not self.future.done():  # the caller may have left
            self.future.set_result(result)

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class Committer:
    """Takes commands from many callers and writes them in few transactions."""

    def __init__(self, store: Store, policies: PolicyRegistry, capacity: Capacity = Capacity()) -> None:  # noqa: B008  # frozen
        """Write to `store` with the policy in force; nothing runs before `start`."""
        self._store = store
        self._policies = policies
        self.capacity = capacity
        self._queue: deque[_Job] = deque()
        self._arrival = asyncio.Event()
        self._under_way: set[str] = set()  # resource ids of the running transactions
        self._writers: list[asyncio.Task[None]] = []
        self._is_closing = False
        self.on_wake: Callable[[datetime], None] | None = None  # called with the earliest deadline of each transaction
        self.on_commit: Callable[[], None] | None = None  # called after each transaction with events
        self.observer: CommitObserver | None = None  # notified of each result
        self.on_traced: Callable[[int, Sequence[TracePoint | None]], None] | None = None  # its last event, its traces
        self.tracer: Tracer = UNTRACED  # has a span for each transaction

    @property
    def waiting(self) -> int:
        """Return the length of the queue."""
        return len(self._queue)

    @property
    def room(self) -> int:
        """Return how many more commands the queue takes."""
        return 0 if self._is_closing else max(self.capacity.queue - len(self._queue), 0)

    @property
    def is_full(self) -> bool:
        """Tell whether the next command would be refused."""
        return self.room == 0

    def start(self) -> None:
        """Start the writers."""
        self._writers = [asyncio.create_task(self._write()) for _ in range(self.capacity.writers)]

    async def close(self) -> None:
        """Refuse new commands, finish the queue, stop."""
        self._is_closing = True
        self._arrival.set()
        await asyncio.gather(*self._writers)

    async def submit(self, command: Command[R]) -> R:
        """Write a command and return its result, once it is durable."""
        return await self._enqueue(command)

    async def submit_all(self, commands: Sequence[Command[R]]) -> list[R | BaseException]:
        """Write several independent commands in their order; errors are returned as values."""
        if len(commands) > self.room:
            raise Overloaded("too many writes are waiting")
        futures = [self._enqueue(command) for command in commands]
        return await asyncio.gather(*futures, return_exceptions=True)

    def _enqueue(self, command: Command[R]) -> asyncio.Future[R]:
        if self._is_closing or len(self._queue) >= self.capacity.queue:  # `is_full`, inlined: this runs for every write
            raise Overloaded("the server is stopping" if self._is_closing else "too many writes are waiting")
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._queue.append(_Job(command, command.wants, future, CURRENT_SPAN.get()))
        self._arrival.set()
        return future

    async def _write(self) -> None:
        while True:
            await self._arrival.wait()
            batch = self._take_batch() if self._is_time() else []
            if batch:
                ids = {id_ for job in batch for id_ in job.wants.ids}
                self._under_way |= ids
                await self._commit(batch)
                self._under_way -= ids
                self._arrival.set()  # a command may have waited for these resources
            elif self._is_closing and not self._queue:
                return
            else:
                self._arrival.clear()

    def _is_time(self) -> bool:
        """Tell whether to start a transaction: at once if none runs, else when enough commands are queued."""
        return not self._under_way or len(self._queue) >= self.capacity.second_batch

    def _take_batch(self) -> list[_Job]:
        """Take the next batch: the whole queue, if it fits and no other writer is running."""
        if self._under_way or len(self._queue) > self.capacity.batch:
            return self._pick_batch()
        batch = list(self._queue)
        self._queue.clear()
        return batch

    def _pick_batch(self) -> list[_Job]:
        """Take a batch, skipping resources that another writer is writing: commands on a resource keep their order.

        Looks through four batches at most, so that one busy resource with a long queue does not make this slow.
        """
        batch: list[_Job] = []
        left: list[_Job] = []
        busy = set(self._under_way)
        for _ in range(min(len(self._queue), 4 * self.capacity.batch)):
            job = self._queue.popleft()
            if busy.isdisjoint(job.wants.ids):
                batch.append(job)
            else:
                left.append(job)
                busy.update(job.wants.ids)
            if len(batch) == self.capacity.batch:
                break
        self._queue.extendleft(reversed(left))
        return batch

    async def _commit(self, batch: list[_Job]) -> None:
        """Record the heartbeats of a batch, then commit the rest."""
        if candidates := _possible_heartbeats(batch):
            recorded = await self._record(candidates)
            batch = [job for job in batch if id(job) not in recorded] if recorded else batch
        if batch:
            await self._commit_changes(batch)

    async def _record(self, jobs: list[_Job]) -> set[int]:
        """Record the heartbeats among reports and answer them; what fails here takes the ordinary path."""
        heartbeats = [job.wants.heartbeat for job in jobs if job.wants.heartbeat is not None]
        started = perf_counter()
        try:
            with self._trace(jobs, "heartbeats"):
                found = await self._store.record_heartbeats(heartbeats)
        except Exception as error:  # noqa: BLE001  # an error must not end the writer, and the ordinary path meets it too
            _LOG.debug("reports take the ordinary path: %s", error)
            return set()
        seconds = perf_counter() - started
        pairs = zip(jobs, heartbeats, found, strict=True)
        recorded = [(job, sent, result) for job, sent, result in pairs if result is not None]
        for job, sent, result in recorded:
            job.answer(heartbeat_result(sent, result))
        self._notify(lambda observer: observer.recorded([each[1:] for each in recorded], len(jobs), seconds))
        return {id(job) for job, _, _ in recorded}

    async def _commit_changes(self, batch: list[_Job]) -> None:
        """Commit a batch; after an unexpected error commit one by one, so that only the faulty command fails."""
        try:
            with self._trace(batch, "commit"):
                base, transaction = await self._transact(batch)
        except Exception as error:  # noqa: BLE001  # an error in one command must not fail the others
            is_for_all = isinstance(error, HyperFleetError) and not isinstance(error, Contended)
            if len(batch) > 1 and not is_for_all:
                for job in batch:
                    await self._commit_changes([job])
                return
            self._fail(batch, error)
        else:
            for job, result in zip(batch, transaction.results, strict=True):
                job.answer(result.at(base))
            self._notify_wake(transaction.earliest_wake)
            if transaction.events:
                self._announce(base + transaction.events, batch)
            self._notify(transaction.report_to)

    def _announce(self, upto: int, batch: list[_Job]) -> None:
        """Tell of a transaction with events; the last of them has the position `upto`."""
        if self.on_traced is not None:
            self.on_traced(upto, [job.origin for job in batch])
        if self.on_commit is not None:
            self.on_commit()

    def _fail(self, batch: list[_Job], error: Exception) -> None:
        """Fail all commands of a batch; nothing was written."""
        if not isinstance(error, HyperFleetError):
            _LOG.error("a write failed unexpectedly", exc_info=error)
        for job in batch:
            job.fail(error)
        self._notify(lambda observer: observer.failed(error, len(batch)))

    def _trace(self, batch: list[_Job], name: str) -> AbstractContextManager[Span | None]:
        """Open one span for a transaction, linked to the traces of all its commands."""
        origins = [job.origin for job in batch if job.origin is not None]
        return self.tracer.span(name, {"hyperfleet.batch.size": len(batch)}, origins)

    def _notify_wake(self, wake: datetime | None) -> None:
        if wake is not None and self.on_wake is not None:
            self.on_wake(wake)

    def _notify(self, report: Callable[[CommitObserver], None]) -> None:
        """Notify the observer; its errors must not stop the writer."""
        if self.observer is not None:
            try:
                report(self.observer)
            except Exception as error:  # noqa: BLE001  # metrics must not stop writes
                _LOG.error("a transaction is missing in the metrics", exc_info=error)

    async def _transact(self, batch: list[_Job]) -> tuple[int, _Transaction]:
        """Write commands in one transaction; return the position before it, and its results."""
        for attempt in range(_ATTEMPTS):
            transaction = _Transaction(batch, self._policies.rules)
            try:
                base = await self._store.transact(transaction.needs, transaction.work)
            except PolicyMoved:
                self._notify(lambda observer: observer.retried("policy"))
                await self._policies.refresh()
            except Contended:
                self._notify(lambda observer: observer.retried("contention"))
                await asyncio.sleep(0.002 * 2**attempt)
            else:
                transaction.seconds = perf_counter() - transaction.started
                return base, transaction
        raise Contended(f"the write conflicted with other writers {_ATTEMPTS} times in a row")


class _Transaction:
    """A batch of commands as one unit of work for the store."""

    def __init__(self, batch: list[_Job], rules: Rules) -> None:
        self._commands = [job.command for job in batch]
        self._rules = rules
        self.results: list[Placeable] = []
        self.earliest_wake: datetime | None = None
        self.started = perf_counter()
        self.seconds = 0.0  # its duration
        self._outcome: tuple[Loaded, WriteSet] | None = None
        self.needs = _merge([job.wants for job in batch], rules)

    def work(self, loaded: Loaded) -> WriteSet:
        """Run the commands in order on what was loaded."""
        if loaded.policy_version != self._rules.policy_version:
            raise PolicyMoved
        workspace = Workspace(loaded, self._rules)
        self.results = [command.apply(workspace) for command in self._commands]
        changes = workspace.changes()
        written = (*changes.inserted, *changes.updated, *changes.rescheduled)
        deadlines = [deadline for record in written if (deadline := record.status.next_deadline) is not None]
        self.earliest_wake = min(deadlines, default=None)
        self._outcome = loaded, changes
        return changes

    @property
    def events(self) -> int:
        """Return how many events it added to the log: reports without news add none."""
        return 0 if self._outcome is None else len(self._outcome[1].events)

    def report_to(self, observer: CommitObserver) -> None:
        """Notify an observer of what was loaded and written."""
        if self._outcome is not None:
            observer.committed(*self._outcome, len(self._commands), self.seconds)


def _merge(wants: Sequence[Wants], rules: Rules) -> Needs:
    families = frozenset(id_ for each in wants for id_ in each.families)

    def wants_children(resource: Resource) -> bool:
        return resource.id in families or rules.wants_children(resource)

    return Needs(
        ids=frozenset(id_ for each in wants for id_ in each.ids),
        names=frozenset(name for each in wants for name in each.names),
        keys=frozenset(key for each in wants for key in each.keys),
        wants_children=wants_children,
        reporting=frozenset((each.ids[0], adapter) for each in wants for adapter in each.reporting),
    )


def _possible_heartbeats(batch: Sequence[_Job]) -> list[_Job]:
    """Return the reports to try as heartbeats: the first of each adapter and resource, unless a command precedes it.

    A report behind another command on the same resource waits for it, so that a caller's writes keep their order.
    """
    found: list[_Job] = []
    busy: set[str] = set()
    seen: set[tuple[str, str]] = set()
    for job in batch:
        heartbeat = job.wants.heartbeat
        if heartbeat is None:
            busy.update(job.wants.ids)
            continue
        key = (heartbeat.resource_id, heartbeat.adapter)
        if heartbeat.resource_id not in busy and key not in seen:
            found.append(job)
        seen.add(key)
    return found
