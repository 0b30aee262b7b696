"""How the time of a plan goes by in the world, on a clock that only sleeping moves."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.simulator.pacing import Hours, Steady, Throttle, Utmost

NOON = datetime(2025, 10, 17, 12, 0, 0, tzinfo=UTC)


class World:
    """A clock that goes on only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = NOON
        self.hours = Hours(lambda: self.now, self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @property
    def seconds(self) -> float:
        return (self.now - NOON).total_seconds()


def reach_all(pace: Steady | Utmost, times: list[float]) -> None:
    async def reach() -> None:
        for time in times:
            await pace.reach(time)

    asyncio.run(reach())


@given(st.lists(st.floats(0, 10_000), max_size=20).map(sorted), st.sampled_from([0.5, 1.0, 60.0]))
def test_a_steady_pace_is_never_early_and_never_late(times: list[float], speed: float) -> None:
    world = World()
    reach_all(Steady(world.hours, speed), times)
    assert abs(world.seconds - (times[-1] / speed if times else 0.0)) < 0.001


def test_a_steady_pace_may_begin_in_the_middle() -> None:
    world = World()
    pace = Steady(world.hours, 10.0, since=3600.0)
    assert pace.tell(3600.0) == NOON
    assert pace.tell(3660.0) == NOON + timedelta(seconds=6)
    assert pace.tell(3540.0) == NOON - timedelta(seconds=6)


def test_while_nobody_listens_time_stands_still() -> None:
    world = World()
    pace = Steady(world.hours, 1.0)
    reach_all(pace, [10.0])
    world.now += timedelta(minutes=5)  # the server was away
    reach_all(pace, [11.0])
    assert pace.tell(11.0) == world.now, "it goes on from here"
    reach_all(pace, [12.0])
    assert world.seconds == 10 + 300 + 1


def test_being_a_little_late_is_made_up_for() -> None:
    world = World()
    pace = Steady(world.hours, 1.0)
    world.now += timedelta(seconds=2)
    reach_all(pace, [1.0, 3.0])
    assert world.seconds == 3.0


def test_the_utmost_pace_waits_for_nothing_and_nothing_lies_in_the_future() -> None:
    world = World()
    pace = Utmost(world.hours, duration=3600.0, margin=90.0)
    reach_all(pace, [float(second) for second in range(3601)])
    assert world.seconds == 0
    assert pace.tell(3600.0) + timedelta(seconds=90) <= world.now


def test_a_throttle_lets_so_many_pass() -> None:
    world = World()
    throttle = Throttle(world.hours, 50.0)

    async def take(count: int) -> None:
        for _ in range(count):
            await throttle.take()

    asyncio.run(take(101))
    assert abs(world.seconds - 2.0) < 0.001
    world.now += timedelta(minutes=1)
    asyncio.run(take(51))
    assert abs(world.seconds - 63.0) < 0.001, "a pause is not made up for"
