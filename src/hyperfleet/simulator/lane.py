"""★ Executing the steps of a plan in order, on a server whose state may differ from what the plan expects.

A lane executes its steps in order, so steps that must stay in order share a lane. Consecutive reports go out in one
request. Differences are reconciled here: a resource whose name is taken is adopted, a lost one is created again, a
wrong generation is read again. What cannot be reconciled is counted, and the lane goes on; the client's error is raised
only if nothing else can succeed either, because the server does not answer or does not accept our credentials.
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
from hyperfleet.client.reporting import BatchReport, ConditionResult, ReportFields
from hyperfleet.client.resources import AsyncResources
from hyperfleet.model.condition import Condition
from hyperfleet.model.report import APPLIED, AVAILABLE, HEALTH
from hyperfleet.simulator.actions import (
    CreateAction,
    DeleteAction,
    ForceDeleteAction,
    PlanStep,
    ReportAction,
    ResourceRef,
    UpdateAction,
)
from hyperfleet.simulator.pacing import SimulationPace
from hyperfleet.simulator.roster import Roster, TrackedResource
from hyperfleet.simulator.stats import SimulationStats

_MAX_BATCH: Final = 200  # reports of one request: more would make the first of them wait
_GONE: Final = "gone"
_REFUSED: Final = "refused"
# These would repeat: the client has already retried until its deadline.
_FATAL: Final = (Unauthenticated, Unavailable, RateLimited)


class DriverContext(Struct, frozen=True):
    """What the lanes of a driver share."""

    fleet: AsyncFleet
    pace: SimulationPace
    roster: Roster
    stats: SimulationStats
    monotonic: Callable[[], float]


class _ReportResult(Struct, frozen=True):
    """The result of one report: its outcome and reason; `code` if it was refused."""

    outcome: str
    reason: str | None = None
    code: str = ""


class Lane:
    """Executes steps in order."""

    def __init__(self, context: DriverContext) -> None:
        """Share the context with the other lanes."""
        self._fleet = context.fleet
        self._pace = context.pace
        self._roster = context.roster
        self._stats = context.stats
        self._monotonic = context.monotonic

    async def do(self, steps: Sequence[PlanStep]) -> None:
        """Execute steps; send consecutive reports together."""
        reports: list[ReportAction] = []
        for step in steps:
            if not isinstance(step.action, ReportAction) or len(reports) == _MAX_BATCH:
                await self._send_reports(reports)
                reports = []
            if isinstance(step.action, ReportAction):
                reports.append(step.action)
            else:
                await self._act(step.action)
        await self._send_reports(reports)

    async def _act(self, action: CreateAction | UpdateAction | DeleteAction | ForceDeleteAction) -> None:
        """Do what a person does; count a refusal."""
        try:
            match action:
                case CreateAction():
                    await self._create(action)
                case UpdateAction():
                    await self._change(action)
                case DeleteAction():
                    await self._delete(action)
                case ForceDeleteAction():
                    await self._force(action)
        except (*_FATAL, Forbidden):
            raise
        except ApiError as error:
            self._stats.errors[error.code] += 1

    # ── what people do ───────────────────────────────────────────────────────────────────────────────────────────

    async def _create(self, action: CreateAction) -> None:
        await self._ensure(action.ref, TrackedResource("", action.spec, action.labels))
        self._stats.actions["created"] += 1

    async def _change(self, action: UpdateAction) -> None:
        tracked = self._roster.find(action.ref) or TrackedResource("", action.spec, action.labels)
        wanted = replace(tracked, spec=action.spec, labels=action.labels, generation=action.generation)
        if not tracked.address or not await self._replace(action.ref, wanted):
            await self._ensure(action.ref, wanted)
        self._stats.actions["changed"] += 1

    async def _replace(self, ref: ResourceRef, wanted: TrackedResource) -> bool:
        """Update a resource; return False if it is gone, because another client deleted it."""
        try:
            with self._timed():
                changed = await self._resources(ref).replace(wanted.address, wanted.spec, labels=wanted.labels)
        except (NotFound, Conflict) as error:
            if error.code not in ("NotFound", "BeingDeleted"):
                raise
            self._stats.resynchronised += 1
            return False
        self._track(ref, wanted, changed)
        return True

    async def _delete(self, action: DeleteAction) -> None:
        tracked = self._roster.find(action.ref)
        if tracked is None:
            return
        try:
            with self._timed():
                left = await self._resources(action.ref).delete(tracked.address)
        except NotFound:
            left = None
        self._stats.actions["deleted"] += 1
        if left is None:
            self._roster.forget(action.ref)
            return
        self._roster.mark_deleting(action.ref)
        self._track(action.ref, replace(tracked, generation=action.generation, is_deleting=True), left)

    async def _force(self, action: ForceDeleteAction) -> None:
        tracked = self._roster.find(action.ref)
        self._roster.forget(action.ref)
        if tracked is not None:
            try:
                with self._timed():
                    await self._resources(action.ref).force_delete(tracked.address, action.reason)
            except NotFound:
                return
            self._stats.actions["force-deleted"] += 1

    async def _ensure(self, ref: ResourceRef, wanted: TrackedResource) -> None:
        """Make sure that a resource exists as wanted; create the cluster of a node pool again if it is gone."""
        try:
            await self._create_or_adopt(ref, wanted)
        except NotFound:
            cluster = ResourceRef(ref.cluster)
            parent = self._roster.find(cluster) if ref.pool else None
            if parent is None:
                raise
            self._stats.resynchronised += 1
            await self._resynchronise(cluster, parent)
            await self._create_or_adopt(ref, wanted)

    async def _create_or_adopt(self, ref: ResourceRef, wanted: TrackedResource) -> None:
        """Create a resource, or adopt the one that has its name."""
        parent = await self._find_parent(ref)
        if ref.pool and parent is None:
            return  # its cluster was refused, so there is nothing that it could belong to
        resources = self._resources(ref)
        name = ref.pool or ref.cluster
        try:
            with self._timed():
                resource: Resource = await resources.create(name, wanted.spec, labels=wanted.labels, parent=parent)
        except Conflict as error:
            if error.code != "NameTaken":
                raise
            self._stats.resynchronised += 1
            found = await self._find(ref, parent)
            if found is None:
                raise
            resource = await resources.replace(found.href, wanted.spec, labels=wanted.labels)
        self._track(ref, wanted, resource)

    async def _find_parent(self, ref: ResourceRef) -> str | None:
        """Return the address of a node pool's cluster, or None."""
        if not ref.pool:
            return None
        cluster = ResourceRef(ref.cluster)
        tracked = self._roster.find(cluster)
        if tracked is not None:
            return tracked.address
        found = await self._find(cluster, None)
        return found.href if found else None

    async def _find(self, ref: ResourceRef, parent: str | None) -> Resource | None:
        """Find a resource by name, ignoring those being deleted."""
        resources = self._resources(ref)
        try:
            found = [await resources.find(ref.pool or ref.cluster, parent=parent)]
        except NotFound:
            return None
        except Ambiguous as error:
            found = [await resources.get(id_, parent=parent) for id_ in error.candidates]
        return next((each for each in found if not each.is_deleting), None)

    def _resources(self, ref: ResourceRef) -> AsyncResources[Cluster] | AsyncResources[NodePool]:
        return self._fleet.node_pools if ref.pool else self._fleet.clusters

    def _track(self, ref: ResourceRef, wanted: TrackedResource, resource: Resource) -> None:
        generation_offset = resource.generation - wanted.generation
        self._roster.put(ref, replace(wanted, address=resource.href, generation_offset=generation_offset))

    # ── what adapters do ─────────────────────────────────────────────────────────────────────────────────────────

    async def _send_reports(self, reports: Sequence[ReportAction]) -> None:
        """Send reports; those about an unknown resource or generation are sent again after a resync."""
        known = [(report, tracked) for report in reports if (tracked := self._roster.find(report.ref)) is not None]
        if missing := len(reports) - len(known):
            self._stats.outcomes[_GONE] += missing
        if not known:
            return
        for (report, tracked), result in zip(known, await self._post(known), strict=True):
            self._count(await self._recover(report, tracked, result))

    async def _recover(self, report: ReportAction, tracked: TrackedResource, result: _ReportResult) -> _ReportResult:
        """If the cause of a refusal can be fixed, fix it and send the report again."""
        if result.code == "NotFound" and tracked.is_deleting:
            self._roster.forget(report.ref)
            return _ReportResult(_GONE)
        if result.code not in ("NotFound", "GenerationAhead"):
            return result
        self._stats.resynchronised += 1
        try:
            await self._resynchronise(report.ref, tracked)
        except _FATAL:
            raise
        except ApiError as error:
            return _ReportResult(_REFUSED, code=error.code)
        again = self._roster.find(report.ref)
        return (await self._post([(report, again)]))[0] if again else _ReportResult(_GONE)

    async def _resynchronise(self, ref: ResourceRef, tracked: TrackedResource) -> None:
        """Read a resource from the server again, its cluster first; create it again if it is gone."""
        cluster = ResourceRef(ref.cluster)
        parent = self._roster.find(cluster) if ref.pool else None
        if parent is not None:
            await self._resynchronise(cluster, parent)
        found = await self._find(ref, await self._find_parent(ref))
        if found is None:
            await self._ensure(ref, tracked)
        else:
            self._track(ref, tracked, found)

    async def _post(self, known: Sequence[tuple[ReportAction, TrackedResource]]) -> list[_ReportResult]:
        """Send reports as one batch; a single one as adapters send it."""
        with self._timed(len(known)):
            if len(known) > 1:
                reports = [
                    BatchReport(tracked.address, report.adapter, self._fields(report, tracked))
                    for report, tracked in known
                ]
                results = (await self._fleet.report_batch(reports)).results
                return [
                    _ReportResult(_REFUSED, code=each.problem.code)
                    if each.problem
                    else _ReportResult(each.outcome, each.reason)
                    for each in results
                ]
            report, tracked = known[0]
            try:
                outcome = await self._fleet.report(tracked.address, report.adapter, **self._fields(report, tracked))
            except _FATAL:
                raise
            except ApiError as error:
                return [_ReportResult(_REFUSED, code=error.code)]
            return [_ReportResult(outcome.outcome, outcome.reason)]

    def _fields(self, report: ReportAction, tracked: TrackedResource) -> ReportFields:
        conditions = {each.type: _condition_result(each) for each in report.conditions}
        return ReportFields(
            available=conditions.pop(AVAILABLE),
            applied=conditions.pop(APPLIED),
            health=conditions.pop(HEALTH),
            conditions=conditions,
            data=report.data,
            generation=tracked.server_generation(report.generation),
            observed_time=self._pace.to_real_time(report.observed) + timedelta(seconds=report.skew),
        )

    def _count(self, result: _ReportResult) -> None:
        self._stats.outcomes[result.outcome] += 1
        if result.reason:
            self._stats.discards[result.reason] += 1
        if result.code:
            self._stats.errors[result.code] += 1

    @contextmanager
    def _timed(self, reports: int = 0) -> Iterator[None]:
        """Record how long a response takes; a failed request is not recorded."""
        begin = self._monotonic()
        yield
        now = self._monotonic()
        self._stats.record_response(now - begin, reports, now)


def _condition_result(condition: Condition) -> ConditionResult:
    return ConditionResult(condition.status, condition.reason, condition.message)
