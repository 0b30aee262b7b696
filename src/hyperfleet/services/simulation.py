"""What if another policy were in force? Computes the statuses that the fleet would have, and writes nothing.

Called by the API. Each resource goes through the very command that recomputation submits, on a workspace whose
changes nobody writes: what is predicted is what will be. The work is done in the event loop, in short slices, so that
requests go on and whoever asked can stop it by not asking for more.
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
from hyperfleet.ports import EVERYTHING, Cause, Loaded, Query, Record, Store
from hyperfleet.services.grounds import Grounds
from hyperfleet.services.pacing import Pace
from hyperfleet.services.replay import Replay
from hyperfleet.services.upkeep import Recompute
from hyperfleet.services.workspace import Rules, Workspace

_PAGE: Final = 20  # resources read at once: to decode them is a slice, too
_MOMENT: Final = 1.0  # seconds without a word while one long life is lived again
_POLICY: Final = Cause("policy")


class Move(Struct, frozen=True):
    """What would become of the phase or of a condition. `before` equals `after`: only its words would change."""

    subject: str
    before: str | None  # None: it is not there
    after: str | None
    reason: str = ""
    message: str = ""
    why: str = ""


class Change(Struct, frozen=True):
    """A resource whose phase or conditions would change."""

    resource: Resource
    moves: tuple[Move, ...]

    @property
    def is_rewording(self) -> bool:
        """Tell whether nothing but reasons and messages would change."""
        return all(move.before == move.after for move in self.moves)


class Progress(Struct, frozen=True):
    """How far a simulation is."""

    examined: int
    total: int
    changed: int


class Family(Struct, frozen=True):
    """A resource and all those below it that its status is computed from, by parent."""

    record: Record
    below: Mapping[str, tuple[Record, ...]]

    @property
    def members(self) -> list[Record]:
        """Return all of them, in the order in which recomputation takes them."""
        members = [self.record, *(child for children in self.below.values() for child in children)]
        return sorted(members, key=lambda each: (each.policy_version, each.resource.id))


class Findings:
    """What was found so far; of the changes that are told, those that move something come first."""

    def __init__(self, limit: int) -> None:
        """Keep up to `limit` changes to be told; all are counted."""
        self.examined = 0
        self.changed = 0
        self.reworded = 0
        self.summary: Counter[tuple[str, str | None, str | None]] = Counter()
        self._limit = limit
        self._moved: list[Change] = []
        self._reworded: list[Change] = []

    @property
    def changes(self) -> list[Change]:
        """Return the changes to be told."""
        return [*self._moved, *self._reworded][: self._limit]

    @property
    def has_room(self) -> bool:
        """Tell whether a change that is found next would be told."""
        return len(self._moved) < self._limit

    @property
    def is_truncated(self) -> bool:
        """Tell whether there are more changes than are told."""
        return self.changed + self.reworded > self._limit

    def add(self, change: Change) -> None:
        """Count what became of one resource, and keep it if there is room."""
        self.examined += 1
        if not change.moves:
            return
        self.summary.update((move.subject, move.before, move.after) for move in change.moves)
        self.reworded += change.is_rewording
        self.changed += not change.is_rewording
        kept = self._reworded if change.is_rewording else self._moved
        if len(kept) < self._limit:
            kept.append(change)


class Simulation:
    """Tries a policy on the resources of some queries, one query for each kind."""

    def __init__(self, store: Store, rules: Rules, queries: Sequence[Query], now: datetime) -> None:
        """Compute with `rules`, as of `now`."""
        self._store = store
        self._rules = rules
        self._queries = queries
        self._now = now
        self._pace = Pace()
        self.findings = Findings(queries[0].limit)

    async def run(self, replay: Replay | None = None) -> AsyncGenerator[Progress, None]:
        """Examine one resource after the other, and say how far it is; `replay` looks at the same resources."""
        total = sum([await self._store.count(query) for query in self._queries])
        async for page in _browse(self._store, self._queries):
            for record in page:
                family = await gather_family(self._store, record, self._rules)
                self.findings.add(await self._predict(family))
                progress = Progress(self.findings.examined, max(total, self.findings.examined), self.findings.changed)
                if replay is not None:
                    async with aclosing(_meanwhile(replay.add(record))) as moments:
                        async for _ in moments:
                            yield progress
                yield progress

    async def _predict(self, family: Family) -> Change:
        """Say what would become of a resource once it and those below it were computed with the rules."""
        before, id_ = family.record, family.record.resource.id
        loaded = Loaded(self._now, self._rules.policy_version, {id_: before}, family.below, {}, {})
        workspace = Workspace(loaded, self._rules)
        for member in family.members:
            Recompute(member.resource.id, _POLICY).apply(workspace)
            await self._pace.keep()
        after = workspace.get(id_)
        if after is None:
            gone = Move(PHASE_SUBJECT, before.status.phase, None, "Removed", "nothing would be left to clean up")
            return Change(before.resource, (gone,))
        moves = tuple(compare(before.status, after.status))
        if moves and self.findings.has_room:
            moves = tuple(self._tell_why(moves, before, after, workspace.children_of(id_)))
        return Change(before.resource, moves)

    def _tell_why(
        self, moves: Iterable[Move], before: Record, after: Record, children: Iterable[Record]
    ) -> Iterator[Move]:
        below = [Child(each.resource.kind, each.resource.name, each.status.conditions) for each in children]
        policy = self._rules.policies.select(after.resource)
        grounds = Grounds(after, policy, before.status, self._now, below)
        return (replace(move, why=grounds.of(move.subject)) for move in moves)


async def _meanwhile(work: Coroutine[Any, Any, None]) -> AsyncGenerator[None, None]:
    """Do something that may take long, and let whoever asked say something now and then, or stop it."""
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait({task}, timeout=_MOMENT))[0]:
            yield
        task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def candidate_rules(policies: PolicySet, kinds: Kinds) -> Rules:
    """Return rules to compute with; how answers look is of no interest, so they cost nothing."""
    return Rules(policies, 0, kinds, _render_nothing)


def _render_nothing(record: Record, *, before: Record | None = None) -> bytes:
    return b""


async def gather_family(store: Store, record: Record, rules: Rules) -> Family:
    """Read what the status of a resource would be computed from, whoever may see it."""
    below: dict[str, tuple[Record, ...]] = {}
    waiting = [record]
    while waiting:
        resource = waiting.pop().resource
        if rules.wants_children(resource):
            below[resource.id] = children = await store.read_children(resource.id, EVERYTHING)
            waiting += children
    return Family(record, below)


def compare(before: Status, after: Status) -> Iterator[Move]:
    """List where two statuses differ for a reader: the phase; status, reason or message of a condition."""
    if before.phase != after.phase:
        yield Move(PHASE_SUBJECT, before.phase, after.phase)
    earlier = {condition.type: condition for condition in before.conditions}
    for new in after.conditions:
        old = earlier.pop(new.type, None)
        if old is None or _words(old) != _words(new):
            yield Move(new.type, old.status if old else None, new.status, new.reason, new.message)
    for gone in earlier.values():
        yield Move(gone.type, gone.status, None)


def _words(condition: Condition) -> tuple[str, str, str]:
    return condition.status, condition.reason, condition.message


async def _browse(store: Store, queries: Sequence[Query]) -> AsyncIterator[tuple[Record, ...]]:
    """Yield the resources of queries in pages; without filters, the shortest way through the store."""
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
