"""How plan time maps to real time, on a clock that only sleeping moves."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.simulator.pacing import MaximumPace, RealClock, ScaledPace, Throttle

NOON = datetime(2025, 10, 17, 12, 0, 0, tzinfo=UTC)


class World:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = NOON
        self.clock = RealClock(lambda: self.now, self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @property
    def seconds(self) -> float:
        return (self.now - NOON).total_seconds()


def reach_all(pace: ScaledPace | MaximumPace, times: list[float]) -> None:
    async def wait_until() -> None:
        for time in times:
            await pace.wait_until(time)

    asyncio.run(wait_until())


@given(st.lists(st.floats(0, 10_000), max_size=20).map(sorted), st.sampled_from([0.5, 1.0, 60.0]))
def test_a_scaled_pace_is_never_early_and_never_late(times: list[float], speed: float) -> None:
    world = World()
    reach_all(ScaledPace(world.clock, speed), times)
    assert abs(world.seconds - (times[-1] / speed if times else 0.0)) < 0.001


def test_a_scaled_pace_may_begin_in_the_middle() -> None:
    world = World()
    pace = ScaledPace(world.clock, 10.0, since=3600.0)
    assert pace.to_real_time(3600.0) == NOON
    assert pace.to_real_time(3660.0) == NOON + timedelta(seconds=6)
    assert pace.to_real_time(3540.0) == NOON - timedelta(seconds=6)


def test_time_stands_still_while_the_server_is_away() -> None:
    world = World()
    pace = ScaledPace(world.clock, 1.0)
    reach_all(pace, [10.0])
    world.now += timedelta(minutes=5)  # the server was away
    reach_all(pace, [11.0])
    assert pace.to_real_time(11.0) == world.now, "it goes on from here"
    reach_all(pace, [12.0])
    assert world.seconds == 10 + 300 + 1


def test_being_a_little_late_is_made_up_for() -> None:
    world = World()
    pace = ScaledPace(world.clock, 1.0)
    world.now += timedelta(seconds=2)
    reach_all(pace, [1.0, 3.0])
    assert world.seconds == 3.0


def test_the_maximum_pace_never_waits_and_stays_in_the_past() -> None:
    world = World()
    pace = MaximumPace(world.clock, duration=3600.0, margin=90.0)
    reach_all(pace, [float(second) for second in range(3601)])
    assert world.seconds == 0
    assert pace.to_real_time(3600.0) + timedelta(seconds=90) <= world.now


def test_a_throttle_limits_the_rate() -> None:
    world = World()
    throttle = Throttle(world.clock, 50.0)

    async def take(count: int) -> None:
        for _ in range(count):
            await throttle.take()

    asyncio.run(take(101))
    assert abs(world.seconds - 2.0) < 0.001
    world.now += timedelta(minutes=1)
    asyncio.run(take(51))
    assert abs(world.seconds - 63.0) < 0.001, "a pause is not made up for"
