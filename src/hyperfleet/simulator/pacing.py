"""How the time of a plan maps to real time.

A plan counts seconds from its beginning. A pace waits until a step is due, and converts plan time to the time that an
adapter's clock would show. The clock and the sleep function are passed in: nothing here reads a clock by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final, Protocol

from msgspec import Struct

_MAX_LAG: Final = 3.0  # seconds behind schedule before the schedule is moved instead of catching up
_YIELD_EVERY: Final = 256  # steps after which a pace that never waits yields to the event loop


class RealClock(Struct, frozen=True):
    """The present time, and how to sleep."""

    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]]


class SimulationPace(Protocol):
    """How fast a plan is carried out."""

    async def wait_until(self, at: float) -> None:
        """Return when a time of the plan is reached."""
        ...

    def to_real_time(self, at: float) -> datetime:
        """Convert a time of the plan to real time."""
        ...


class ScaledPace:
    """Runs `speed` seconds of the plan per real second. While the server is away, the plan's time stands still."""

    def __init__(self, clock: RealClock, speed: float, since: float = 0.0) -> None:
        """Begin now, at the time `since` of the plan."""
        self._clock = clock
        self._speed = speed
        self._since = since
        self._begin = clock.now()

    async def wait_until(self, at: float) -> None:
        """Sleep until a time of the plan."""
        early = (self.to_real_time(at) - self._clock.now()).total_seconds()
        if early > 0:
            await self._clock.sleep(early)
        elif early < -_MAX_LAG:  # the server was away: resuming is better than a flood of overdue steps
            self._begin -= timedelta(seconds=early)

    def to_real_time(self, at: float) -> datetime:
        """Convert a time of the plan."""
        return self._begin + timedelta(seconds=(at - self._since) / self._speed)


class MaximumPace:
    """As fast as possible. The plan ends about now, so that none of its times is in the future."""

    def __init__(self, clock: RealClock, duration: float, margin: float) -> None:
        """Let a plan of this duration end now; `margin` is how far an adapter's clock may be ahead."""
        self._clock = clock
        self._begin = clock.now() - timedelta(seconds=duration + margin)
        self._steps = 0

    async def wait_until(self, at: float) -> None:
        """Do not wait, but yield to the event loop now and then."""
        self._steps += 1
        if self._steps % _YIELD_EVERY == 0:
            await self._clock.sleep(0)

    def to_real_time(self, at: float) -> datetime:
        """Convert a time of the plan."""
        return self._begin + timedelta(seconds=at)


class Throttle:
    """Limits a rate."""

    def __init__(self, clock: RealClock, rate: float) -> None:
        """Allow `rate` per second, from now on."""
        self._clock = clock
        self._gap = timedelta(seconds=1.0 / rate)
        self._next = clock.now()

    async def take(self) -> None:
        """Return when the next one is allowed; unused time is not made up for."""
        now = self._clock.now()
        if self._next > now:
            await self._clock.sleep((self._next - now).total_seconds())
        self._next = max(self._next, now) + self._gap
