"""Simulates another policy: computes the statuses that the fleet would have, and writes nothing.

Called by the API. Each resource goes through the same command that recomputation submits, on a workspace whose changes
are not written, so the prediction matches what applying the policy does. The work runs in the event loop in short
slices, so that requests go on and the caller can stop it by closing the generator.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.aggregation import Child, PolicySet
from hyperfleet.model.condition import Condition
from hyperfleet.model.event import PHASE_SUBJECT
from hyperfleet.model.kind import Kinds
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Status
from hyperfleet.ports import EVERYTHING, Loaded, Query, Record, StatusCause, Store
from hyperfleet.services.justifications import Justification
from hyperfleet.services.replay import Replay
from hyperfleet.services.simulation_cost import SimulationCost
from hyperfleet.services.time_slices import TimeSlices
from hyperfleet.services.upkeep import Recompute
from hyperfleet.services.workspace import Rules, Workspace

_PAGE: Final = 20  # resources read at once: decoding a page blocks the loop for a few milliseconds
_PROGRESS_INTERVAL: Final = 1.0  # seconds between progress reports while one long past is replayed
_POLICY: Final = StatusCause("policy")


class PredictedMove(Struct, frozen=True):
    """A predicted change of the phase or a condition. `before` equals `after`: only reason or message would change."""

    subject: str
    before: str | None  # None: it does not exist
    after: str | None
    reason: str = ""
    message: str = ""
    why: str = ""


class PredictedChange(Struct, frozen=True):
    """A resource whose phase or conditions would change."""

    resource: Resource
    moves: tuple[PredictedMove, ...]

    @property
    def is_rewording(self) -> bool:
        """Tell whether nothing but reasons and messages would change."""
        return all(move.before == move.after for move in self.moves)


class SimulatedProgress(Struct, frozen=True):
    """The progress of a simulation."""

    examined: int
    total: int
    changed: int


class ResourceFamily(Struct, frozen=True):
    """A resource and all descendants that its status is computed from, by parent."""

    record: Record
    below: Mapping[str, tuple[Record, ...]]

    @property
    def members(self) -> list[Record]:
        """Return all of them, in the order of recomputation."""
        members = [self.record, *(child for children in self.below.values() for child in children)]
        return sorted(members, key=lambda each: (each.policy_version, each.resource.id))


class SimulationFindings:
    """The results so far; changes of a phase or status are shown before those of wording."""

    def __init__(self, limit: int) -> None:
        """Keep up to `limit` changes to show; all are counted."""
        self.examined = 0
        self.changed = 0
        self.reworded = 0
        self.summary: Counter[tuple[str, str | None, str | None]] = Counter()
        self._limit = limit
        self._moved: list[PredictedChange] = []
        self._reworded: list[PredictedChange] = []

    @property
    def changes(self) -> list[PredictedChange]:
        """Return the changes to show."""
        return [*self._moved, *self._reworded][: self._limit]

    @property
    def has_room(self) -> bool:
        """Tell whether the next change would be shown."""
        return len(self._moved) < self._limit

    @property
    def is_truncated(self) -> bool:
        """Tell whether there are more changes than are shown."""
        return self.changed + self.reworded > self._limit

    def add(self, change: PredictedChange) -> None:
        """Count the result of one resource, and keep it if there is room."""
        self.examined += 1
        if not change.moves:
            return
        self.summary.update((move.subject, move.before, move.after) for move in change.moves)
        self.reworded += change.is_rewording
        self.changed += not change.is_rewording
        kept = self._reworded if change.is_rewording else self._moved
        if len(kept) < self._limit:
            kept.append(change)


class PolicySimulation:
    """Tries a policy on the resources of some queries, one query for each kind."""

    def __init__(self, store: Store, rules: Rules, queries: Sequence[Query], now: datetime) -> None:
        """Compute with `rules`, as of `now`."""
        self._store = store
        self._rules = rules
        self._queries = queries
        self._now = now
        self._slices = TimeSlices()
        self.findings = SimulationFindings(queries[0].limit)

    async def run(self, replay: Replay | None = None) -> AsyncGenerator[SimulatedProgress, None]:
        """Examine one resource after the other and yield the progress; `replay` examines the same resources."""
        total = sum([await self._store.count(query) for query in self._queries])
        async for page in _browse(self._store, self._queries):
            for record in page:
                family = await gather_family(self._store, record, self._rules)
                self.findings.add(await self._predict(family))
                progress = SimulatedProgress(
                    self.findings.examined, max(total, self.findings.examined), self.findings.changed
                )
                if replay is not None:
                    async with aclosing(_with_progress(replay.add(record))) as ticks:
                        async for _ in ticks:
                            yield progress
                yield progress

    async def _predict(self, family: ResourceFamily) -> PredictedChange:
        """Predict the status of a resource after it and its descendants were recomputed with the rules."""
        before, id_ = family.record, family.record.resource.id
        loaded = Loaded(self._now, self._rules.policy_version, {id_: before}, family.below, {}, {})
        workspace = Workspace(loaded, self._rules)
        for member in family.members:
            Recompute(member.resource.id, _POLICY).apply(workspace)
            await self._slices.yield_if_due()
        after = workspace.get(id_)
        if after is None:
            gone = PredictedMove(
                PHASE_SUBJECT, before.status.phase, None, "Removed", "nothing would be left to clean up"
            )
            return PredictedChange(before.resource, (gone,))
        moves = tuple(compare_statuses(before.status, after.status))
        if moves and self.findings.has_room:
            moves = tuple(self._justify(moves, before, after, workspace.children_of(id_)))
            await self._slices.yield_if_due()
        return PredictedChange(before.resource, moves)

    def _justify(
        self, moves: Iterable[PredictedMove], before: Record, after: Record, children: Iterable[Record]
    ) -> Iterator[PredictedMove]:
        below = [Child(each.resource.kind, each.resource.name, each.status.conditions) for each in children]
        policy = self._rules.policies.select(after.resource)
        justification = Justification(after, policy, before.status, self._now, below, self._rules.open_budget())
        return (replace(move, why=justification.describe(move.subject)) for move in moves)


async def _with_progress(work: Coroutine[Any, Any, None]) -> AsyncGenerator[None, None]:
    """Run long work; yields now and then, so that the caller can report progress or stop it."""
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait({task}, timeout=_PROGRESS_INTERVAL))[0]:
            yield
        task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def candidate_rules(policies: PolicySet, kinds: Kinds) -> Rules:
    """Return rules to compute with; they render no answers, because nobody reads them, and count what they cost."""
    return Rules(policies, 0, kinds, _render_nothing, SimulationCost().open)


def _render_nothing(record: Record, *, before: Record | None = None) -> bytes:
    return b""


async def gather_family(store: Store, record: Record, rules: Rules) -> ResourceFamily:
    """Read everything that the status of a resource would be computed from, in all tenants."""
    below: dict[str, tuple[Record, ...]] = {}
    waiting = [record]
    while waiting:
        resource = waiting.pop().resource
        if rules.wants_children(resource):
            below[resource.id] = children = await store.read_children(resource.id, EVERYTHING)
            waiting += children
    return ResourceFamily(record, below)


def compare_statuses(before: Status, after: Status) -> Iterator[PredictedMove]:
    """Yield the visible differences of two statuses: the phase; status, reason or message of a condition."""
    if before.phase != after.phase:
        yield PredictedMove(PHASE_SUBJECT, before.phase, after.phase)
    earlier = {condition.type: condition for condition in before.conditions}
    for new in after.conditions:
        old = earlier.pop(new.type, None)
        if old is None or _words(old) != _words(new):
            yield PredictedMove(new.type, old.status if old else None, new.status, new.reason, new.message)
    for gone in earlier.values():
        yield PredictedMove(gone.type, gone.status, None)


def _words(condition: Condition) -> tuple[str, str, str]:
    return condition.status, condition.reason, condition.message


async def _browse(store: Store, queries: Sequence[Query]) -> AsyncIterator[tuple[Record, ...]]:
    """Yield the resources of queries in pages; without filters, by the cheapest scan of the store."""
    if any(query.terms or query.updated_since for query in queries):
        for query in queries:
            async for page in _find_pages(store, query):
                yield page
        return
    after, scope = "", queries[0].scope
    while page := await store.walk(after, _PAGE, scope):
        yield page
        after = page[-1].resource.id


async def _find_pages(store: Store, query: Query) -> AsyncIterator[tuple[Record, ...]]:
    wanted = replace(query, order="name", is_descending=False, limit=_PAGE)
    while found := await store.find(wanted):
        yield await store.read_records([answer.id for answer in found], query.scope)
        wanted = replace(wanted, after=(found[-1].key, found[-1].id))
