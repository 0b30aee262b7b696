"""A write path for tests: the real committer on the memory store, with a clock that is set by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from hyperfleet.api.wire import present
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.model.kind import CLUSTER, NODE_POOL, Kind, Kinds
from hyperfleet.ports import EVERYTHING, Record, StatusCause
from hyperfleet.services.callers import ANONYMOUS
from hyperfleet.services.committer import Capacity, Committer
from hyperfleet.services.policies import PolicyRegistry, PolicyText
from hyperfleet.services.reports import AcceptReports, AnswerKind, Submission
from hyperfleet.services.resources import Create, Delete, Edit
from hyperfleet.services.results import Refusal, Reported, ResourceEdit, Target, Written
from hyperfleet.services.upkeep import Recompute
from tests.world import make_report

START = datetime(2025, 10, 17, 12, 0, 0, tzinfo=UTC)

POLICY = """
requiredAdapters: [validation, dns]
policies: {staleThreshold: 5m, staleAction: degraded}
clusterConditions:
  - type: AllDone
    evaluate:
      expr: all(requiredAdapters, .state == "Completed")
phases: {ready: {requiredConditions: [{type: AllDone, status: "True"}]}}
"""


class HandClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> datetime:
        """Return the time it was set to."""
        return self.time

    def pass_time(self, duration: timedelta) -> None:
        """Move on."""
        self.time += duration


class Desk:
    """Takes short orders and submits the real commands."""

    def __init__(self, policy: str, capacity: Capacity) -> None:
        self.clock = HandClock()
        self.policy = policy
        self.store = MemoryStore(self.clock)
        self.policies = PolicyRegistry(self.store, Kinds(), present, lambda: PolicyText(self.policy, "policy.yaml"))
        self.committer = Committer(self.store, self.policies, capacity)
        self._numbers = count(1)

    async def create(self, name: str, *, kind: Kind = CLUSTER, **more: Any) -> Written | Refusal:
        """Create a resource whose id tells its name."""
        fields: dict[str, Any] = {"spec": {}, "labels": {}, "caller": ANONYMOUS, "check_spec": accept_all} | more
        return await self.committer.submit(Create(kind=kind, id=f"{kind.id_prefix}-{name}", name=name, **fields))

    def reporting(
        self, id_: str, adapter: str, available: str, *, answer: AnswerKind = "record", **more: Any
    ) -> AcceptReports:
        """Make the command for one report; whoever wants the record for an answer never takes the short way."""
        submission = Submission(make_report(adapter, available, **more), f"rpt-{next(self._numbers)}")
        return AcceptReports(target_of(id_), (submission,), ANONYMOUS, answer)

    async def report(self, id_: str, adapter: str, available: str, **more: Any) -> Reported | Refusal:
        """Send one report."""
        return await self.committer.submit(self.reporting(id_, adapter, available, **more))

    async def beat(self, id_: str, adapter: str, available: str, **more: Any) -> Reported:
        """Send one report as adapters do: to be answered with its outcome."""
        result = await self.report(id_, adapter, available, answer="outcome", **more)
        assert isinstance(result, Reported)
        return result

    async def edit(self, id_: str, **spec: Any) -> Written | Refusal:
        """Give a resource another spec."""
        return await self.committer.submit(Edit(target_of(id_), ResourceEdit(spec=spec), ANONYMOUS, accept_all))

    async def delete(self, id_: str) -> Written | Refusal:
        """Ask for a resource to go."""
        return await self.committer.submit(Delete(target_of(id_), ANONYMOUS))

    async def wake(self, id_: str) -> None:
        """Let a deadline come."""
        await self.committer.submit(Recompute(id_, StatusCause("deadline")))

    async def read(self, id_: str) -> Record | None:
        """Read what is stored."""
        return await self.store.read_record(target_of(id_).kind.name, id_, EVERYTHING)

    async def must_read(self, id_: str) -> Record:
        """Read what must be stored."""
        record = await self.read(id_)
        assert record is not None
        return record


@asynccontextmanager
async def open_desk(policy: str = POLICY, capacity: Capacity | None = None) -> AsyncIterator[Desk]:
    """Open a desk on an empty store."""
    desk = Desk(policy, capacity or Capacity())
    await desk.store.open()
    await desk.policies.activate()
    desk.committer.start()
    try:
        yield desk
    finally:
        await desk.committer.close()
        await desk.store.close()


def target_of(id_: str, parent_id: str | None = None) -> Target:
    """Tell the kind of a resource by its id."""
    return Target(NODE_POOL if id_.startswith(NODE_POOL.id_prefix) else CLUSTER, id_, parent_id)


def accept_all(kind: str, spec: object) -> tuple[()]:
    """Have no schema."""
    return ()
