"""★ Carrying out steps of a plan one after the other, on a server that may know more, less or something else.

A lane does its steps in their order, so whoever must not be overtaken shares a lane. Reports that follow each other go
as one request. What the server contradicts is settled here: a name that is taken is adopted, what was lost is created
again, a generation that we miscounted is read again. What cannot be settled is counted, and life goes on; only if there
is no hope for anything else either, because nobody answers or nobody knows us, the client's error is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.client import (
    Ambiguous,
    ApiError,
    AsyncFleet,
    Cluster,
    Conflict,
    Forbidden,
    NodePool,
    NotFound,
    RateLimited,
    Resource,
    Unauthenticated,
    Unavailable,
)
from hyperfleet.client.reporting import BatchReport, Verdict, Words
from hyperfleet.client.resources import AsyncResources
from hyperfleet.model.condition import Condition
from hyperfleet.model.report import APPLIED, AVAILABLE, HEALTH
from hyperfleet.simulator.actions import Change, Create, Delete, ForceDelete, Place, Say, Step
from hyperfleet.simulator.pacing import Pace
from hyperfleet.simulator.roster import Known, Roster
from hyperfleet.simulator.tally import Tally

_MOST: Final = 200  # reports of one request: more would make the first of them wait
_GONE: Final = "gone"
_REFUSED: Final = "refused"
# Whoever gets these gets them again: the client has tried for as long as it has patience.
_HOPELESS: Final = (Unauthenticated, Unavailable, RateLimited)


class Desk(Struct, frozen=True):
    """What the lanes of a driver share."""

    fleet: AsyncFleet
    pace: Pace
    roster: Roster
    tally: Tally
    monotonic: Callable[[], float]


class _Fate(Struct, frozen=True):
    """What became of one report: its outcome, and why; `code` if it was refused."""

    outcome: str
    reason: str | None = None
    code: str = ""


class Lane:
    """Does steps in their order."""

    def __init__(self, desk: Desk) -> None:
        """Work at a desk."""
        self._fleet = desk.fleet
        self._pace = desk.pace
        self._roster = desk.roster
        self._tally = desk.tally
        self._monotonic = desk.monotonic

    async def do(self, steps: Sequence[Step]) -> None:
        """Do steps, reports that follow each other together."""
        says: list[Say] = []
        for step in steps:
            if not isinstance(step.action, Say) or len(says) == _MOST:
                await self._say(says)
                says = []
            if isinstance(step.action, Say):
                says.append(step.action)
            else:
                await self._act(step.action)
        await self._say(says)

    async def _act(self, action: Create | Change | Delete | ForceDelete) -> None:
        """Do what a person does; a refusal is counted."""
        try:
            match action:
                case Create():
                    await self._create(action)
                case Change():
                    await self._change(action)
                case Delete():
                    await self._delete(action)
                case ForceDelete():
                    await self._force(action)
        except (*_HOPELESS, Forbidden):
            raise
        except ApiError as error:
            self._tally.errors[error.code] += 1

    # ── what people do ───────────────────────────────────────────────────────────────────────────────────────────

    async def _create(self, action: Create) -> None:
        await self._install(action.place, Known("", action.spec, action.labels))
        self._tally.actions["created"] += 1

    async def _change(self, action: Change) -> None:
        known = self._roster.find(action.place) or Known("", action.spec, action.labels)
        wanted = replace(known, spec=action.spec, labels=action.labels, generation=action.generation)
        if not known.address or not await self._replace(action.place, wanted):
            await self._install(action.place, wanted)
        self._tally.actions["changed"] += 1

    async def _replace(self, place: Place, wanted: Known) -> bool:
        """Change a resource; tell whether it was there to be changed: somebody else may have deleted it."""
        try:
            with self._timed():
                changed = await self._resources(place).replace(wanted.address, wanted.spec, labels=wanted.labels)
        except (NotFound, Conflict) as error:
            if error.code not in ("NotFound", "BeingDeleted"):
                raise
            self._tally.resynchronised += 1
            return False
        self._learn(place, wanted, changed)
        return True

    async def _delete(self, action: Delete) -> None:
        known = self._roster.find(action.place)
        if known is None:
            return
        try:
            with self._timed():
                left = await self._resources(action.place).delete(known.address)
        except NotFound:
            left = None
        self._tally.actions["deleted"] += 1
        if left is None:
            self._roster.forget(action.place)
            return
        self._roster.mark_leaving(action.place)
        self._learn(action.place, replace(known, generation=action.generation, is_leaving=True), left)

    async def _force(self, action: ForceDelete) -> None:
        known = self._roster.find(action.place)
        self._roster.forget(action.place)
        if known is not None:
            try:
                with self._timed():
                    await self._resources(action.place).force_delete(known.address, action.reason)
            except NotFound:
                return
            self._tally.actions["force-deleted"] += 1

    async def _install(self, place: Place, wanted: Known) -> None:
        """See to it that a resource is there as wanted; bring the cluster of a node pool back if it is not there."""
        try:
            await self._obtain(place, wanted)
        except NotFound:
            cluster = Place(place.cluster)
            above = self._roster.find(cluster) if place.pool else None
            if above is None:
                raise
            self._tally.resynchronised += 1
            await self._resynchronise(cluster, above)
            await self._obtain(place, wanted)

    async def _obtain(self, place: Place, wanted: Known) -> None:
        """Create a resource, or make somebody else's work so."""
        parent = await self._find_parent(place)
        if place.pool and parent is None:
            return  # its cluster was refused, so there is nothing that it could belong to
        resources = self._resources(place)
        name = place.pool or place.cluster
        try:
            with self._timed():
                resource: Resource = await resources.create(name, wanted.spec, labels=wanted.labels, parent=parent)
        except Conflict as error:
            if error.code != "NameTaken":
                raise
            self._tally.resynchronised += 1
            there = await self._find(place, parent)
            if there is None:
                raise
            resource = await resources.replace(there.href, wanted.spec, labels=wanted.labels)
        self._learn(place, wanted, resource)

    async def _find_parent(self, place: Place) -> str | None:
        """Return the address of the cluster of a node pool; None: there is none."""
        if not place.pool:
            return None
        cluster = Place(place.cluster)
        known = self._roster.find(cluster)
        if known is not None:
            return known.address
        there = await self._find(cluster, None)
        return there.href if there else None

    async def _find(self, place: Place, parent: str | None) -> Resource | None:
        """Look for a resource by its name; one that is on its way out is none."""
        resources = self._resources(place)
        try:
            found = [await resources.find(place.pool or place.cluster, parent=parent)]
        except NotFound:
            return None
        except Ambiguous as error:
            found = [await resources.get(id_, parent=parent) for id_ in error.candidates]
        return next((each for each in found if not each.is_deleting), None)

    def _resources(self, place: Place) -> AsyncResources[Cluster] | AsyncResources[NodePool]:
        return self._fleet.node_pools if place.pool else self._fleet.clusters

    def _learn(self, place: Place, wanted: Known, resource: Resource) -> None:
        ahead = resource.generation - wanted.generation
        self._roster.note(place, replace(wanted, address=resource.href, ahead=ahead))

    # ── what adapters do ─────────────────────────────────────────────────────────────────────────────────────────

    async def _say(self, says: Sequence[Say]) -> None:
        """Send reports; those that the server cannot place are sent once more after looking for what they are about."""
        placed = [(say, known) for say in says if (known := self._roster.find(say.place)) is not None]
        if missing := len(says) - len(placed):
            self._tally.outcomes[_GONE] += missing
        if not placed:
            return
        for (say, known), fate in zip(placed, await self._post(placed), strict=True):
            self._count(await self._settle(say, known, fate))

    async def _settle(self, say: Say, known: Known, fate: _Fate) -> _Fate:
        """Find out why a report was refused, and if that can be mended, send it again."""
        if fate.code == "NotFound" and known.is_leaving:
            self._roster.forget(say.place)
            return _Fate(_GONE)
        if fate.code not in ("NotFound", "GenerationAhead"):
            return fate
        self._tally.resynchronised += 1
        try:
            await self._resynchronise(say.place, known)
        except _HOPELESS:
            raise
        except ApiError as error:
            return _Fate(_REFUSED, code=error.code)
        again = self._roster.find(say.place)
        return (await self._post([(say, again)]))[0] if again else _Fate(_GONE)

    async def _resynchronise(self, place: Place, known: Known) -> None:
        """Learn anew what the server knows of a resource, its cluster first; create it again if that is nothing."""
        cluster = Place(place.cluster)
        above = self._roster.find(cluster) if place.pool else None
        if above is not None:
            await self._resynchronise(cluster, above)
        there = await self._find(place, await self._find_parent(place))
        if there is None:
            await self._install(place, known)
        else:
            self._learn(place, known, there)

    async def _post(self, placed: Sequence[tuple[Say, Known]]) -> list[_Fate]:
        """Send reports in one request; one alone goes as an adapter sends it."""
        with self._timed(len(placed)):
            if len(placed) > 1:
                reports = [BatchReport(known.address, say.adapter, self._words(say, known)) for say, known in placed]
                results = (await self._fleet.report_batch(reports)).results
                return [
                    _Fate(_REFUSED, code=each.problem.code) if each.problem else _Fate(each.outcome, each.reason)
                    for each in results
                ]
            say, known = placed[0]
            try:
                outcome = await self._fleet.report(known.address, say.adapter, **self._words(say, known))
            except _HOPELESS:
                raise
            except ApiError as error:
                return [_Fate(_REFUSED, code=error.code)]
            return [_Fate(outcome.outcome, outcome.reason)]

    def _words(self, say: Say, known: Known) -> Words:
        said = {each.type: _verdict(each) for each in say.conditions}
        return Words(
            available=said.pop(AVAILABLE),
            applied=said.pop(APPLIED),
            health=said.pop(HEALTH),
            conditions=said,
            data=say.data,
            generation=known.generation_there(say.generation),
            observed_time=self._pace.tell(say.observed) + timedelta(seconds=say.skew),
        )

    def _count(self, fate: _Fate) -> None:
        self._tally.outcomes[fate.outcome] += 1
        if fate.reason:
            self._tally.discards[fate.reason] += 1
        if fate.code:
            self._tally.errors[fate.code] += 1

    @contextmanager
    def _timed(self, reports: int = 0) -> Iterator[None]:
        """Note how long an answer takes; one that does not come is none."""
        begin = self._monotonic()
        yield
        now = self._monotonic()
        self._tally.note_answer(now - begin, reports, now)


def _verdict(condition: Condition) -> Verdict:
    return Verdict(condition.status, condition.reason, condition.message)
