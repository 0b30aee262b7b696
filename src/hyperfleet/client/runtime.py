"""Clock, sleep and randomness: everything non-deterministic. Tests pass their own.

The only module of the client that reads a clock or draws random numbers.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  # the edge: a report contains the time of observation


async def _sleep_async(seconds: float) -> None:
    import asyncio  # noqa: PLC0415  # asynchronous code has it loaded; others need not

    await asyncio.sleep(seconds)


class ClientRuntime(Struct, frozen=True):
    """What the client uses from the machine it runs on."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = _now
    random: Callable[[], float] = secrets.SystemRandom().random  # from 0 to 1
    make_key: Callable[[], str] = secrets.token_hex
    sleep: Callable[[float], None] = time.sleep
    sleep_async: Callable[[float], Awaitable[None]] = _sleep_async


REAL: Final = ClientRuntime()
