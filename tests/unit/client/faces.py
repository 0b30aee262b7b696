"""Both faces of the client, driven by the same words: what one does, the other must do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from itertools import islice
from typing import Any, Protocol

from hyperfleet.client import AsyncFleet, ClientRuntime, Fleet

# Nobody waits in tests, and everything that is left to chance is the same each time.
PAUSES: list[float] = []


async def _do_not_sleep(seconds: float) -> None:
    PAUSES.append(seconds)


PATIENT = ClientRuntime(random=lambda: 0.0, sleep=PAUSES.append, sleep_async=_do_not_sleep)

Ask = Callable[[Any], Any]  # the fleet of either face → what its operation gives


class Face(Protocol):
    """One of the faces."""

    def ask(self, url: str, ask: Ask, **options: Any) -> Any:
        """Carry out one operation."""
        ...

    def collect(self, url: str, ask: Ask, most: int | None = None, **options: Any) -> list[Any]:
        """Go through what an operation yields, or the first of it."""
        ...


class Plain:
    """The face for plain code."""

    def ask(self, url: str, ask: Ask, **options: Any) -> Any:
        """Carry out one operation."""
        with Fleet(url, **{"runtime": PATIENT, **options}) as fleet:
            return ask(fleet)

    def collect(self, url: str, ask: Ask, most: int | None = None, **options: Any) -> list[Any]:
        """Go through what an operation yields."""
        with Fleet(url, **{"runtime": PATIENT, **options}) as fleet:
            items = ask(fleet)
            taken = list(islice(items, most))
            items.close()
            return taken


class Awaited:
    """The face for an event loop."""

    def ask(self, url: str, ask: Ask, **options: Any) -> Any:
        """Carry out one operation."""

        async def go() -> Any:
            async with AsyncFleet(url, **{"runtime": PATIENT, **options}) as fleet:
                return await ask(fleet)

        return asyncio.run(go())

    def collect(self, url: str, ask: Ask, most: int | None = None, **options: Any) -> list[Any]:
        """Go through what an operation yields."""

        async def go() -> list[Any]:
            taken: list[Any] = []
            async with AsyncFleet(url, **{"runtime": PATIENT, **options}) as fleet, aclosing(ask(fleet)) as items:
                async for item in items:
                    taken.append(item)
                    if len(taken) == most:
                        break
            return taken

        return asyncio.run(go())


FACES: dict[str, Face] = {"plain": Plain(), "awaited": Awaited()}
