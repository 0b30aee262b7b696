"""Two ways for one history: a store that records heartbeats beside one where every report takes the ordinary way.

Whatever can be read of one must be read of the other, but for when a status was computed and is looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import count
from typing import Any, Final

from msgspec.structs import replace

from hyperfleet.api.wire import present
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.model.kind import CLUSTER, NODE_POOL, Kinds
from hyperfleet.model.report import Report
from hyperfleet.ports import EVERYTHING, Heartbeat, HistoryQuery, Record, RecordedHeartbeat, StatusCause, Store
from hyperfleet.services.callers import ANONYMOUS
from hyperfleet.services.commands import Command
from hyperfleet.services.committer import Committer
from hyperfleet.services.policies import PolicyRegistry, PolicyText
from hyperfleet.services.reports import AcceptReports, AnswerKind, Submission
from hyperfleet.services.resources import Create
from hyperfleet.services.results import Refusal, Reported, Written
from hyperfleet.services.upkeep import Recompute
from hyperfleet.services.verification import Verification
from tests.contract.clocks import TestTime
from tests.contract.stores import START
from tests.unit.services.desk import accept_all, target_of

SECOND: Final = timedelta(seconds=1)


class OrdinaryStore(MemoryStore):
    """A store that recognises no heartbeat."""

    async def record_heartbeats(self, heartbeats: Sequence[Heartbeat]) -> list[RecordedHeartbeat | None]:
        """Leave all of them to transactions."""
        return [None] * len(heartbeats)


class Writer:
    """A store and all that writes to it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.policy = ""
        self.policies = PolicyRegistry(store, Kinds(), present, lambda: PolicyText(self.policy, "policy.yaml"))
        self.committer = Committer(store, self.policies)

    async def use(self, policy: str) -> None:
        """Put a policy in force; whatever is there is computed again later."""
        self.policy = policy
        await self.policies.activate()

    async def wake(self, ids: Sequence[str]) -> None:
        """Let the timer compute what is due."""
        due = [id_ for id_ in (await self.store.due(1_000)).ids if id_ in ids]
        for result in await self.committer.submit_all([Recompute(id_, StatusCause("deadline")) for id_ in due]):
            assert not isinstance(result, BaseException), result

    async def recompute(self, ids: Sequence[str]) -> None:
        """Compute again what has another policy."""
        outdated, _ = await self.store.outdated(self.policies.rules.policy_version, 1_000)
        commands = [Recompute(id_, StatusCause("policy")) for id_ in sorted(outdated) if id_ in ids]
        await self.committer.submit_all(commands)

    async def verify(self) -> None:
        """See that what is stored is what would be computed from it."""
        findings = [str(each) async for each in Verification(self.store, self.policies.rules).run()]
        assert findings == []


class Ways:
    """Takes short orders and gives the same commands to both."""

    def __init__(self, time: TestTime, short: Store, ordinary: Store) -> None:
        self.time = time
        self.short, self.ordinary = Writer(short), Writer(ordinary)
        self.writers = (self.short, self.ordinary)
        self.numbers = count(1)
        self.ids: list[str] = []  # of the history that is under way
        self.recorded = 0  # reports that took the short way

    async def start(self) -> None:
        """Set both going."""
        for writer in self.writers:
            writer.committer.start()

    async def close(self) -> None:
        """Finish what is under way."""
        for writer in self.writers:
            await writer.committer.close()

    async def begin(self, policy: str) -> None:
        """Begin another history, on resources of its own: two clusters and a node pool."""
        await self.use(policy)
        for command in self._creating():
            await self.submit(command)

    async def begin_alone(self, policy: str) -> None:
        """Begin one that only the first store is to know."""
        await self.short.use(policy)
        for command in self._creating():
            assert isinstance(await self.short.committer.submit(command), Written)

    def _creating(self) -> list[Create]:
        number = next(self.numbers)
        cluster, other, pool = self.ids = [f"cls-a{number}", f"cls-b{number}", f"np-{number}"]
        parents = ((cluster, None), (other, None), (pool, cluster))
        return [
            Create(NODE_POOL if parent else CLUSTER, id_, id_, {}, {}, ANONYMOUS, accept_all, parent_id=parent)
            for id_, parent in parents
        ]

    async def use(self, policy: str) -> None:
        """Put a policy in force for both."""
        for writer in self.writers:
            await writer.use(policy)

    async def recompute(self) -> None:
        """Let both compute again what has another policy."""
        for writer in self.writers:
            await writer.recompute(self.ids)

    async def wake(self) -> None:
        """Let both timers compute what is due."""
        for writer in self.writers:
            await writer.wake(self.ids)

    async def pass_time(self, duration: timedelta) -> None:
        """Let time pass; each timer wakes at each of its deadlines on the way."""
        end = self.time.now + duration
        while True:
            records = [record for writer in self.writers for record in await self.read_all(writer)]
            deadlines = [deadline for record in records if (deadline := record.status.next_deadline) is not None]
            coming = min((each for each in deadlines if each <= end), default=None)
            if coming is None:
                break
            await self.time.set(max(coming, self.time.now))
            await self.wake()
        await self.time.set(end)

    def reporting(self, id_: str, *reports: Report, answer: AnswerKind = "outcome") -> AcceptReports:
        """Make the command for the reports of one body."""
        submissions = tuple([Submission(report, f"rpt-{next(self.numbers)}") for report in reports])
        return AcceptReports(target_of(id_), submissions, ANONYMOUS, answer)

    async def submit(self, *commands: Command[Any]) -> list[Any]:
        """Have commands written at once; return what the first store answered."""
        results = await self.short.committer.submit_all(commands)
        others = await self.ordinary.committer.submit_all(commands)
        assert [_told(each) for each in results] == [_told(each) for each in others]
        self.recorded += sum(isinstance(each, Reported) and each.heartbeat is not None for each in results)
        return results

    # looking

    async def read_all(self, writer: Writer) -> list[Record]:
        """Read the resources of this history that are there."""
        kinds = {id_: target_of(id_).kind.name for id_ in self.ids}
        found = [await writer.store.read_record(kind, id_, EVERYTHING) for id_, kind in kinds.items()]
        return [record for record in found if record is not None]

    async def compare(self) -> None:
        """See that both tell the same of this history."""
        assert await self._tell(self.short) == await self._tell(self.ordinary)
        for mine, other in zip(await self.read_all(self.short), await self.read_all(self.ordinary), strict=True):
            early, late = mine.status.next_deadline, other.status.next_deadline
            assert late is None or (early is not None and early <= late), "a deadline may be early, never late"

    async def _tell(self, writer: Writer) -> dict[str, Any]:
        store = writer.store
        records = await self.read_all(writer)
        counts = {
            each.name: (each.counts, each.last_seen, each.last_discard) for each in await store.adapters(EVERYTHING)
        }
        told: dict[str, Any] = {"position": await store.position(), "adapters": counts}
        for record in records:
            told[record.resource.id] = _timeless(record)
        for id_ in self.ids:
            told[f"{id_} events"] = await store.read_versions(id_, EVERYTHING, START - 9 * SECOND)
            told[f"{id_} log"] = await store.read_report_log(id_, EVERYTHING, START - 9 * SECOND)
            told[f"{id_} history"] = await store.read_transitions(HistoryQuery(id_, EVERYTHING, limit=10_000))
        return told


def _timeless(record: Record) -> Record:
    """Return a record without when its status was computed and is looked at again."""
    memory = replace(record.status.memory, written_time=START)
    return replace(record, status=replace(record.status, memory=memory, next_deadline=None, restless=()))


def _told(result: Any) -> Any:
    """Return what a sender is told, whichever way was taken."""
    if isinstance(result, Reported):
        return result.phase, result.results, result.is_first, result.is_gone
    if isinstance(result, Written):
        return _timeless(result.record), result.is_gone
    assert isinstance(result, Refusal), result
    return result
