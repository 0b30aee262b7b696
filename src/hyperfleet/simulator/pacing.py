"""How the time of a plan goes by in the time of the world.

A plan counts seconds from its beginning. A pace waits until it is time for a step, and tells what an adapter's clock
would show. The world's clock, and how to sleep, are given: nothing here reads a clock on its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final, Protocol

from msgspec import Struct

_FORGIVEN: Final = 3.0  # seconds that a plan may be late before its time is taken to have stood still
_BREATH: Final = 256  # steps after which others may do something, when there is no reason to wait


class Hours(Struct, frozen=True):
    """The world's clock: what time it is, and how to let some of it pass."""

    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]]


class Pace(Protocol):
    """How fast a plan is carried out."""

    async def reach(self, at: float) -> None:
        """Return when it is time for what happens at a time of the plan."""
        ...

    def tell(self, at: float) -> datetime:
        """Return what time of the world a time of the plan is."""
        ...


class Steady:
    """So many seconds of the plan in one of the world. While nobody listens, the plan's time stands still."""

    def __init__(self, hours: Hours, speed: float, since: float = 0.0) -> None:
        """Begin now, at the time `since` of the plan."""
        self._hours = hours
        self._speed = speed
        self._since = since
        self._begin = hours.now()

    async def reach(self, at: float) -> None:
        """Sleep until it is time."""
        early = (self.tell(at) - self._hours.now()).total_seconds()
        if early > 0:
            await self._hours.sleep(early)
        elif early < -_FORGIVEN:  # the server was away: going on where we were is better than a flood
            self._begin -= timedelta(seconds=early)

    def tell(self, at: float) -> datetime:
        """Return what time it is then."""
        return self._begin + timedelta(seconds=(at - self._since) / self._speed)


class Utmost:
    """As fast as possible. The plan ends about now, so that nothing in it lies in the future of the world."""

    def __init__(self, hours: Hours, duration: float, margin: float) -> None:
        """Let a plan of this duration end now; `margin`: how far a clock of its adapters may run ahead."""
        self._hours = hours
        self._begin = hours.now() - timedelta(seconds=duration + margin)
        self._steps = 0

    async def reach(self, at: float) -> None:
        """Go on; let others do something now and then."""
        self._steps += 1
        if self._steps % _BREATH == 0:
            await self._hours.sleep(0)

    def tell(self, at: float) -> datetime:
        """Return what time it was then."""
        return self._begin + timedelta(seconds=at)


class Throttle:
    """Lets no more than so many pass in a second."""

    def __init__(self, hours: Hours, rate: float) -> None:
        """Count from now on."""
        self._hours = hours
        self._gap = timedelta(seconds=1.0 / rate)
        self._next = hours.now()

    async def take(self) -> None:
        """Return when one more may pass; a pause that nobody used is not made up for."""
        now = self._hours.now()
        if self._next > now:
            await self._hours.sleep((self._next - now).total_seconds())
        self._next = max(self._next, now) + self._gap
