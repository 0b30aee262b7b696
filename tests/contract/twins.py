"""Twins: a store that remembers nothing beside one that forgets nothing, given the same commands in the same time.

The first must try to do with sketches (`backends/sketches.py`) and the other has none. Whatever can be read of one must
be read of the other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from hyperfleet.api.wire import present
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.backends.sketches import is_sketch
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.model.kind import CLUSTER, NODE_POOL, Kind, Kinds
from hyperfleet.ports import EVERYTHING, Cause, Changes, Clock, HistoryQuery, Loaded, Needs, Query, Store, Work
from hyperfleet.services.callers import ANYBODY
from hyperfleet.services.commands import Command
from hyperfleet.services.committer import Committer
from hyperfleet.services.policies import PolicyBook, PolicyText
from hyperfleet.services.reports import RetireAdapter, Submission, TakeReports
from hyperfleet.services.resources import Create, Delete, Edit
from hyperfleet.services.results import Change, Refusal, Reported
from hyperfleet.services.upkeep import Recompute
from hyperfleet.services.verification import Verification
from tests.contract.stores import START, SettableClock
from tests.unit.services.desk import accept_all, target_of
from tests.world import make_report

SECOND: Final = timedelta(seconds=1)
POLICY: Final = """
requiredAdapters: [dns, apply]
policies: {staleThreshold: 5m, staleAction: degraded}
flapping: {transitions: 0}
"""


class Tries:
    """Whether each try of the last transaction was given a sketch."""

    def __init__(self) -> None:
        self.last: list[bool] = []
        self.sketched = 0  # transactions that could do with one

    def watch(self, work: Work) -> Work:
        """Return a piece of work whose tries are seen."""
        self.last = []

        def watched(loaded: Loaded) -> Changes:
            self.last.append(any(is_sketch(record) for record in loaded.records.values()))
            return work(loaded)

        return watched

    def count(self) -> None:
        """Count a transaction that is through."""
        self.sketched += self.last[-1:] == [True]


class ForgetfulSqlite(SqliteStore):
    """A file of which nothing is remembered, or so little that most is forgotten."""

    def __init__(self, path: Path, clock: Clock, remembered: int = 0) -> None:
        super().__init__(path, clock, remembered=remembered)
        self.tries = Tries()

    async def transact(self, needs: Needs, work: Work) -> int:
        """Transact, and tell how often it was tried."""
        base = await super().transact(needs, self.tries.watch(work))
        self.tries.count()
        return base


class ForgetfulPostgres(PostgresStore):
    """A database of which nothing is remembered, and where the time is another's."""

    def __init__(self, url: str, clock: Clock) -> None:
        super().__init__(url, remembered=0)
        self.tries = Tries()
        self._clock = clock

    async def transact(self, needs: Needs, work: Work) -> int:
        """Transact in that time, and tell how often it was tried."""
        watched = self.tries.watch(work)
        base = await super().transact(needs, lambda loaded: watched(replace(loaded, now=self._clock.now())))
        self.tries.count()
        return base


Forgetful = ForgetfulSqlite | ForgetfulPostgres


class Writer:
    """A store and all that writes to it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.policy = ""
        self.policies = PolicyBook(store, Kinds(), present, lambda: PolicyText(self.policy, "policy.yaml"))
        self.committer = Committer(store, self.policies)

    async def use(self, policy: str) -> None:
        """Put a policy in force."""
        self.policy = policy
        await self.policies.activate()


class Twins:
    """Takes short orders, gives the same commands to both, and sees that they answer alike."""

    def __init__(self, forgetful: Forgetful, clock: SettableClock) -> None:
        self.clock = clock
        self.tries = forgetful.tries
        self.forgetful = Writer(forgetful)
        self.other = Writer(MemoryStore(clock))
        self.ids: dict[str, Kind] = {}
        self._moments = [START - SECOND]
        self._numbers = count(1)

    # orders

    async def use(self, policy: str) -> None:
        """Put a policy in force."""
        await self.forgetful.use(policy)
        await self.other.use(policy)

    async def create(self, name: str, parent: str | None = None, **more: Any) -> str:
        """Create a cluster, or a node pool of one, and return its id."""
        kind = NODE_POOL if parent else CLUSTER
        id_ = f"{kind.id_prefix}-{name}"
        self.ids[id_] = kind
        fields: dict[str, Any] = {"spec": {}, "labels": {}, "caller": ANYBODY, "check_spec": accept_all} | more
        await self.submit(Create(kind=kind, id=id_, name=name, parent_id=parent, **fields))
        return id_

    def reporting(
        self, id_: str, adapter: str = "dns", available: str = "True", *, is_brief: bool = True, **more: Any
    ) -> TakeReports:
        """Make the command for one report."""
        submission = Submission(make_report(adapter, available, **more), f"rpt-{next(self._numbers)}")
        return TakeReports(target_of(id_), (submission,), ANYBODY, is_brief=is_brief)

    async def report(self, id_: str, adapter: str = "dns", available: str = "True", **more: Any) -> Reported | Refusal:
        """Send one report, a second after whatever was before."""
        [result] = await self.submit(self.reporting(id_, adapter, available, **more))
        assert isinstance(result, Reported | Refusal)
        return result

    async def edit(self, id_: str, **spec: Any) -> None:
        """Give a resource another spec."""
        await self.submit(Edit(target_of(id_), Change(spec=spec), ANYBODY, accept_all))

    async def delete(self, id_: str) -> None:
        """Ask for a resource to go."""
        await self.submit(Delete(target_of(id_), ANYBODY))

    async def retire(self, id_: str, adapter: str) -> None:
        """Forget an adapter."""
        await self.submit(RetireAdapter(target_of(id_), adapter, ANYBODY))

    async def wake(self) -> None:
        """Compute anew whatever is due."""
        due = (await self.other.store.due(100)).ids
        await self.submit(*[Recompute(id_, Cause("deadline")) for id_ in due])

    async def submit(self, *commands: Command[Any], later: timedelta = SECOND) -> list[Any]:
        """Have commands written in one transaction, a second later; return what the store of sketches answered."""
        self.clock.advance(later)
        self._moments.append(self.clock.now())
        results = await self.forgetful.committer.submit_all(commands)
        assert [_told(each) for each in results] == [
            _told(each) for each in await self.other.committer.submit_all(commands)
        ]
        return results

    # looking

    async def compare(self, moments: int = 3) -> None:
        """See that everything that can be read is the same, and what must be; of the past, at the last few moments."""
        assert await self._read(self.forgetful.store, moments) == await self._read(self.other.store, moments)

    async def verify(self) -> None:
        """See that what is stored is what would be computed."""
        rules = self.forgetful.policies.rules
        assert [str(each) async for each in Verification(self.forgetful.store, rules).run()] == []

    async def _read(self, store: Store, moments: int) -> dict[str, Any]:
        """Read everything there is."""
        seen: dict[str, Any] = {
            "events": await store.read_events(0, 100_000),
            "adapters": await store.adapters(EVERYTHING),
            "walk": await store.walk("", 100, EVERYTHING),
        }
        for kind in (CLUSTER, NODE_POOL):
            query = Query(kind.name, EVERYTHING, order="severity")
            seen[kind.name] = await store.find(query), await store.summarize(query, ("p:", "a:dns="))
        for id_, kind in self.ids.items():
            seen[id_] = await self._read_one(store, kind, id_, self._moments[-moments:])
        return seen

    async def _read_one(self, store: Store, kind: Kind, id_: str, moments: Sequence[datetime]) -> dict[str, Any]:
        return {
            "record": await store.read_record(kind.name, id_, EVERYTHING),
            "answer": await store.read_answer(kind.name, id_, EVERYTHING),
            "children": await store.read_children(id_, EVERYTHING),
            "reports": [await store.read_reports_at(id_, EVERYTHING, generation) for generation in (1, 2, 3)],
            "report log": [await store.read_report_log(id_, EVERYTHING, since) for since in (START, *moments)],
            "reports past": [await store.read_reports_past(id_, EVERYTHING, at) for at in moments],
            "past": [await store.read_version(kind.name, id_, EVERYTHING, at) for at in moments],
            "versions": await store.read_versions(id_, EVERYTHING, START),
            "transitions": await store.read_transitions(HistoryQuery(id_, EVERYTHING, limit=100_000)),
        }


@asynccontextmanager
async def open_twins(forgetful: Forgetful, clock: SettableClock, policy: str = POLICY) -> AsyncIterator[Twins]:
    """Open twins, both empty."""
    await forgetful.migrate()
    twins = Twins(forgetful, clock)
    async with AsyncExitStack() as stack:
        for writer in (twins.forgetful, twins.other):
            await writer.store.open()
            stack.push_async_callback(writer.store.close)
            await writer.use(policy)
            writer.committer.start()
            stack.push_async_callback(writer.committer.close)
        yield twins


def _told(result: Any) -> Any:
    """Return what a sender is told: of a brief report, no more of the record than its answer."""
    if isinstance(result, Reported):
        record = result.record
        return result.verdicts, result.is_first, result.is_gone, record.status.phase, record.answer, record.revision
    if isinstance(result, BaseException):
        raise result
    return result
