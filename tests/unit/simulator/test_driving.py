"""Executing plans on the real application, without sockets: at any speed, twice, and with interference."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from hyperfleet.bootstrap import System
from hyperfleet.client import ApiError, AsyncFleet, Forbidden, Resource, Unauthenticated, Unavailable
from hyperfleet.settings import Settings
from hyperfleet.simulator.actions import CreateAction, PlanStep, ReportAction
from hyperfleet.simulator.driving import Driver
from hyperfleet.simulator.faults import parse_faults
from hyperfleet.simulator.lane import DriverContext
from hyperfleet.simulator.pacing import MaximumPace, RealClock, ScaledPace, SimulationPace
from hyperfleet.simulator.planning import PlanOptions, plan
from hyperfleet.simulator.roster import Roster
from hyperfleet.simulator.stats import SimulationStats

NAMES = ("validation", "dns", "infrastructure", "hypershift")
ROUGH = parse_faults("dns=fail:0.2,*=lost:0.05+twice:0.05+late:0.1,infrastructure=flap", NAMES).faults
OPTIONS = PlanOptions(seed=5, clusters=4, faults=ROUGH, churn=10.0, duration=3600.0)


class World:
    """A server, and a clock for server and driver that only sleeping moves."""

    def __init__(self) -> None:
        self._now = datetime(2025, 10, 17, 12, tzinfo=UTC)
        self.clock = RealClock(self.now, self.sleep)
        self.system = System(Settings(database="memory:"), clock=self)
        transport = httpx.ASGITransport(app=self.system.app)
        self.fleet = AsyncFleet("http://127.0.0.1", token="", transport=transport, retries=0)

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._now.timestamp()

    async def sleep(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        await asyncio.sleep(0)

    async def drive(
        self, steps: Iterable[PlanStep], pace: SimulationPace, lanes: int = 4, roster: Roster | None = None
    ) -> SimulationStats:
        stats = SimulationStats()
        context = DriverContext(self.fleet, pace, roster or Roster(), stats, self.monotonic)
        await Driver(context, lanes).run(steps)
        return stats

    async def state(self) -> dict[str, Any]:
        clusters = [_timeless(each) async for each in self.fleet.clusters.list()]
        pools = [_timeless(each) async for each in self.fleet.node_pools.list()]
        return {"clusters": sorted(clusters), "pools": sorted(pools)}


def _timeless(resource: Resource) -> tuple[Any, ...]:
    status = resource.status
    conditions = [(each.type, each.status, each.reason, each.message) for each in status.conditions]
    adapters = [(each.name, each.state, each.observed_generation) for each in status.adapters]
    return resource.name, str(resource.spec), resource.generation, status.phase, conditions, adapters


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    it = World()
    await it.system.store.open()
    await it.system.policies.activate()
    it.system.committer.start()
    try:
        async with it.fleet:
            yield it
    finally:
        await it.system.committer.close()
        await it.system.store.close()


def test_the_speed_changes_nothing_but_the_time_it_takes() -> None:
    async def live(speed: float, lanes: int) -> tuple[dict[str, Any], dict[str, int], float]:
        async with world() as it:
            begin = it.now()
            pace = ScaledPace(it.clock, speed) if speed else MaximumPace(it.clock, OPTIONS.duration, 1.0)
            stats = await it.drive(plan(OPTIONS), pace, lanes)
            assert not stats.errors
            return await it.state(), dict(stats.actions), (it.now() - begin).total_seconds()

    (slow, slow_actions, hour), (fast, fast_actions, nothing) = asyncio.run(live(1.0, 1)), asyncio.run(live(0.0, 8))
    assert slow == fast
    assert slow_actions == fast_actions
    assert 3500 < hour <= 3600
    assert nothing == 0


def test_an_existing_fleet_is_adopted() -> None:
    async def live_twice() -> None:
        async with world() as it:
            options = PlanOptions(seed=5, clusters=3, churn=0.0, duration=1800.0)
            await it.drive(plan(options), ScaledPace(it.clock, 1.0))
            before = await it.state()
            again = await it.drive(plan(options), ScaledPace(it.clock, 1.0))
            assert again.resynchronised > 0
            assert not again.errors
            assert len((await it.state())["clusters"]) == len(before["clusters"]) == 3

    asyncio.run(live_twice())


def test_a_cluster_that_another_client_deleted_is_created_again() -> None:
    async def live() -> None:
        async with world() as it:
            roster = Roster()
            steps = list(plan(PlanOptions(seed=5, clusters=1, churn=0.0, duration=1800.0)))
            half = len(steps) // 2
            await it.drive(steps[:half], ScaledPace(it.clock, 1.0), roster=roster)
            (victim,) = [each async for each in it.fleet.clusters.list()]
            await it.fleet.clusters.delete(victim)
            await it.fleet.clusters.force_delete(victim, "a test")
            stats = await it.drive(steps[half:], ScaledPace(it.clock, 1.0, steps[half].at), roster=roster)
            (successor,) = [each async for each in it.fleet.clusters.list()]
            assert (successor.name, successor.spec) == (victim.name, victim.spec)
            assert successor.id != victim.id
            assert stats.resynchronised > 0
            assert not stats.errors

    asyncio.run(live())


def test_a_pool_of_a_lost_cluster_creates_the_cluster_again() -> None:
    async def live() -> None:
        roster = Roster()
        wanted = [
            step
            for step in plan(PlanOptions(seed=5, clusters=1, duration=600.0))
            if isinstance(step.action, CreateAction)
        ]
        cluster, pool = wanted[:2]
        assert (bool(cluster.action.ref.pool), bool(pool.action.ref.pool)) == (False, True)
        async with world() as before:
            await before.drive([cluster], ScaledPace(before.clock, 1.0), roster=roster)
        async with world() as after:
            stats = await after.drive([pool], ScaledPace(after.clock, 1.0), roster=roster)
            state = await after.state()
        assert (stats.errors, stats.resynchronised) == ({}, 1)
        assert [len(state["clusters"]), len(state["pools"])] == [1, 1]

    asyncio.run(live())


def test_a_wrong_generation_is_read_again() -> None:
    async def live() -> None:
        async with world() as it:
            create, *reports = _first_report()
            roster = Roster()
            await it.drive([create], ScaledPace(it.clock, 1.0), roster=roster)
            tracked = roster.find(create.action.ref)
            assert tracked is not None
            roster.put(create.action.ref, replace(tracked, generation_offset=3))
            stats = await it.drive(reports, ScaledPace(it.clock, 1.0), roster=roster)
            assert stats.resynchronised == 1
            assert stats.outcomes == {"aggregated": 1}

    asyncio.run(live())


def _first_report() -> tuple[PlanStep, PlanStep]:
    """Return the creation of a cluster and the first report on it."""
    steps = list(plan(PlanOptions(clusters=1, duration=600.0)))
    create = next(step for step in steps if isinstance(step.action, CreateAction))
    report = next(
        step for step in steps if isinstance(step.action, ReportAction) and step.action.ref == create.action.ref
    )
    return create, report


def test_refusals_are_counted_and_the_run_goes_on() -> None:
    async def live() -> None:
        async with world() as it:
            create, report = _first_report()
            bad = PlanStep(0.0, CreateAction(create.action.ref, {}, {"not a label": "!"}))
            stats = await it.drive([bad, create, report], ScaledPace(it.clock, 1.0))
            assert stats.errors == {"InvalidBody": 1}
            assert stats.outcomes == {"aggregated": 1}

    asyncio.run(live())


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (401, "Unauthenticated", Unauthenticated),
        (403, "Forbidden", Forbidden),
        (503, "StoreUnavailable", Unavailable),
    ],
)
def test_a_fatal_error_ends_the_run(status: int, code: str, error: type[ApiError]) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, json={"code": code, "title": "no", "status": status})

    async def live() -> None:
        transport = httpx.MockTransport(refuse)
        async with AsyncFleet("http://127.0.0.1", token="", transport=transport, retries=0) as fleet:
            clock = RealClock(lambda: datetime(2025, 10, 17, tzinfo=UTC), asyncio.sleep)
            context = DriverContext(fleet, MaximumPace(clock, 3600.0, 1.0), Roster(), SimulationStats(), lambda: 0.0)
            await Driver(context, 4).run(plan(OPTIONS))

    with pytest.raises(error):
        asyncio.run(live())
