"""Carrying out plans on the real application, without sockets: at any speed, twice, and against others' will."""

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
from hyperfleet.simulator.actions import Create, Say, Step
from hyperfleet.simulator.driving import Driver
from hyperfleet.simulator.faults import read_faults
from hyperfleet.simulator.lane import Desk
from hyperfleet.simulator.pacing import Hours, Pace, Steady, Utmost
from hyperfleet.simulator.planning import Options, plan
from hyperfleet.simulator.roster import Roster
from hyperfleet.simulator.tally import Tally

NAMES = ("validation", "dns", "infrastructure", "hypershift")
ROUGH = read_faults("dns=fail:0.2,*=lost:0.05+twice:0.05+late:0.1,infrastructure=flap", NAMES).faults
OPTIONS = Options(seed=5, clusters=4, faults=ROUGH, churn=10.0, duration=3600.0)


class World:
    """A server, and a clock for it and for us that goes on only when somebody sleeps."""

    def __init__(self) -> None:
        self._now = datetime(2025, 10, 17, 12, tzinfo=UTC)
        self.hours = Hours(self.now, self.sleep)
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

    async def drive(self, steps: Iterable[Step], pace: Pace, lanes: int = 4, roster: Roster | None = None) -> Tally:
        tally = Tally()
        desk = Desk(self.fleet, pace, roster or Roster(), tally, self.monotonic)
        await Driver(desk, lanes).run(steps)
        return tally

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
            pace = Steady(it.hours, speed) if speed else Utmost(it.hours, OPTIONS.duration, 1.0)
            tally = await it.drive(plan(OPTIONS), pace, lanes)
            assert not tally.errors
            return await it.state(), dict(tally.actions), (it.now() - begin).total_seconds()

    (slow, slow_actions, hour), (fast, fast_actions, nothing) = asyncio.run(live(1.0, 1)), asyncio.run(live(0.0, 8))
    assert slow == fast
    assert slow_actions == fast_actions
    assert 3500 < hour <= 3600
    assert nothing == 0


def test_a_fleet_that_is_there_is_taken_over() -> None:
    async def live_twice() -> None:
        async with world() as it:
            options = Options(seed=5, clusters=3, churn=0.0, duration=1800.0)
            await it.drive(plan(options), Steady(it.hours, 1.0))
            before = await it.state()
            again = await it.drive(plan(options), Steady(it.hours, 1.0))
            assert again.resynchronised > 0
            assert not again.errors
            assert len((await it.state())["clusters"]) == len(before["clusters"]) == 3

    asyncio.run(live_twice())


def test_what_somebody_else_took_away_is_made_again() -> None:
    async def live() -> None:
        async with world() as it:
            roster = Roster()
            steps = list(plan(Options(seed=5, clusters=1, churn=0.0, duration=1800.0)))
            half = len(steps) // 2
            await it.drive(steps[:half], Steady(it.hours, 1.0), roster=roster)
            (victim,) = [each async for each in it.fleet.clusters.list()]
            await it.fleet.clusters.delete(victim)
            await it.fleet.clusters.force_delete(victim, "a test")
            tally = await it.drive(steps[half:], Steady(it.hours, 1.0, steps[half].at), roster=roster)
            (successor,) = [each async for each in it.fleet.clusters.list()]
            assert (successor.name, successor.spec) == (victim.name, victim.spec)
            assert successor.id != victim.id
            assert tally.resynchronised > 0
            assert not tally.errors

    asyncio.run(live())


def test_a_pool_of_a_cluster_that_was_forgotten_brings_the_cluster_back() -> None:
    async def live() -> None:
        roster = Roster()
        wanted = [step for step in plan(Options(seed=5, clusters=1, duration=600.0)) if isinstance(step.action, Create)]
        cluster, pool = wanted[:2]
        assert (bool(cluster.action.place.pool), bool(pool.action.place.pool)) == (False, True)
        async with world() as before:
            await before.drive([cluster], Steady(before.hours, 1.0), roster=roster)
        async with world() as after:
            tally = await after.drive([pool], Steady(after.hours, 1.0), roster=roster)
            state = await after.state()
        assert (tally.errors, tally.resynchronised) == ({}, 1)
        assert [len(state["clusters"]), len(state["pools"])] == [1, 1]

    asyncio.run(live())


def test_a_generation_that_we_miscounted_is_read_again() -> None:
    async def live() -> None:
        async with world() as it:
            create, *says = _first_report()
            roster = Roster()
            await it.drive([create], Steady(it.hours, 1.0), roster=roster)
            known = roster.find(create.action.place)
            assert known is not None
            roster.note(create.action.place, replace(known, ahead=3))
            tally = await it.drive(says, Steady(it.hours, 1.0), roster=roster)
            assert tally.resynchronised == 1
            assert tally.outcomes == {"aggregated": 1}

    asyncio.run(live())


def _first_report() -> tuple[Step, Step]:
    """Return the creation of a cluster and the first report on it."""
    steps = list(plan(Options(clusters=1, duration=600.0)))
    create = next(step for step in steps if isinstance(step.action, Create))
    say = next(step for step in steps if isinstance(step.action, Say) and step.action.place == create.action.place)
    return create, say


def test_what_the_server_refuses_is_counted_and_life_goes_on() -> None:
    async def live() -> None:
        async with world() as it:
            create, say = _first_report()
            bad = Step(0.0, Create(create.action.place, {}, {"not a label": "!"}))
            tally = await it.drive([bad, create, say], Steady(it.hours, 1.0))
            assert tally.errors == {"InvalidBody": 1}
            assert tally.outcomes == {"aggregated": 1}

    asyncio.run(live())


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (401, "Unauthenticated", Unauthenticated),
        (403, "Forbidden", Forbidden),
        (503, "StoreUnavailable", Unavailable),
    ],
)
def test_where_there_is_no_hope_it_ends(status: int, code: str, error: type[ApiError]) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, json={"code": code, "title": "no", "status": status})

    async def live() -> None:
        transport = httpx.MockTransport(refuse)
        async with AsyncFleet("http://127.0.0.1", token="", transport=transport, retries=0) as fleet:
            hours = Hours(lambda: datetime(2025, 10, 17, tzinfo=UTC), asyncio.sleep)
            desk = Desk(fleet, Utmost(hours, 3600.0, 1.0), Roster(), Tally(), lambda: 0.0)
            await Driver(desk, 4).run(plan(OPTIONS))

    with pytest.raises(error):
        asyncio.run(live())
