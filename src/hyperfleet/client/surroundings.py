"""Clock, sleep and chance: everything that would make an operation different each time. Tests bring their own.

The only module of the client that reads a clock or makes things up.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  # the edge: an adapter's report says when it looked


async def _sleep_async(seconds: float) -> None:
    import asyncio  # noqa: PLC0415  # who awaits has it; plain code need not load it

    await asyncio.sleep(seconds)


class Surroundings(Struct, frozen=True):
    """What the client takes from the machine it runs on."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = _now
    chance: Callable[[], float] = secrets.SystemRandom().random  # from 0 to 1
    make_key: Callable[[], str] = secrets.token_hex
    sleep: Callable[[float], None] = time.sleep
    sleep_async: Callable[[float], Awaitable[None]] = _sleep_async


REAL: Final = Surroundings()
