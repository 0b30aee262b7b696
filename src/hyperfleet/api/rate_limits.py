"""The pace of callers: so many requests a second, and a burst after a quiet time; whoever is faster is told to wait.

The gate asks here for every request but the probes. A caller counts by name, whatever they send; who is not let in
counts by address, so that tokens cannot be guessed at speed. A refusal is a problem like any other, which each dialect
tells in its own words. Each process counts for itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Address, ip_address
from math import ceil
from typing import Final

from starlette.types import Scope

from hyperfleet.api.problems import Problem
from hyperfleet.services.callers import Caller

CODE: Final = "RateLimited"

_MOST_KNOWN: Final = 20_000  # callers or addresses remembered, each a few hundred bytes; the longest silent one goes
_INSTANT: Final = 1e-6  # seconds; what is less comes of rounding
_NEIGHBOURS: Final = 64  # bits of an IPv6 address that one customer has alone


class TokenBuckets:
    """Token buckets by name. Of each is kept only when it will be full again; a full one is not kept at all."""

    def __init__(self, rate: int, burst: int, now: Callable[[], float] = time.monotonic) -> None:
        """Allow `rate` requests a second, and `burst` of them at once."""
        self._interval = 1 / rate
        self._slack = (burst - 1) / rate
        self._now = now
        self._full_at: dict[str, float] = {}  # in the order of their last requests

    def __len__(self) -> int:
        """Return how many names are remembered."""
        return len(self._full_at)

    def take(self, name: str) -> float:
        """Take one request; if none is left, take nothing and return after how many seconds there will be one."""
        now = self._now()
        full_at = max(self._full_at.pop(name, now), now)
        wait = self._wait(full_at - now)
        self._full_at[name] = full_at if wait else full_at + self._interval
        self._forget(now)
        return wait

    def wait_for(self, name: str) -> float:
        """Return after how many seconds there will be one."""
        now = self._now()
        return self._wait(self._full_at.get(name, now) - now)

    def _wait(self, until_full: float) -> float:
        wait = until_full - self._slack
        return wait if wait > _INSTANT else 0.0

    def _forget(self, now: float) -> None:
        """Forget up to two of the longest silent, so that more are forgotten than come."""
        for _ in range(2):
            oldest = next(iter(self._full_at))
            if self._full_at[oldest] > now and len(self._full_at) <= _MOST_KNOWN:
                return
            del self._full_at[oldest]
            if not self._full_at:
                return


class RateLimiter:
    """Holds back who asks too fast."""

    def __init__(self, rate: int, burst: int | None = None, now: Callable[[], float] = time.monotonic) -> None:
        """Allow everybody `rate` requests a second, and at once `burst` or those of two seconds."""
        self._rate = rate
        self._burst = burst or 2 * rate
        self._callers = TokenBuckets(rate, self._burst, now)
        self._strangers = TokenBuckets(rate, self._burst, now)

    def admit(self, found: Caller | Problem, scope: Scope, *, is_known: bool = True) -> Caller | Problem:
        """Count a request; return who sent it or, if they are too fast, that. `is_known`: by a name of their own."""
        if isinstance(found, Problem):
            return found if found.code == CODE else self._hold_back(self._strangers, _address_of(scope)) or found
        if not is_known:
            return self._hold_back(self._strangers, _address_of(scope)) or found
        return self._hold_back(self._callers, found.name) or found

    def refuse_guess(self, scope: Scope) -> Problem | None:
        """Refuse to look at a token that nobody knows yet, if too many bad ones came from its address."""
        wait = self._strangers.wait_for(_address_of(scope))
        return self._refuse(wait) if wait else None

    def _hold_back(self, allowance: TokenBuckets, name: str) -> Problem | None:
        wait = allowance.take(name)
        return self._refuse(wait) if wait else None

    def _refuse(self, wait: float) -> Problem:
        seconds, window = ceil(wait), ceil(self._burst / self._rate)
        message = f"at most {self._rate} requests a second are answered; the next one after {wait:.3f} s"
        headers = {  # the latter two are those of the IETF's draft on rate limits
            "Retry-After": str(seconds),
            "RateLimit-Policy": f'"requests";q={self._burst};w={window}',
            "RateLimit": f'"requests";r=0;t={seconds}',
        }
        return Problem(CODE, message, headers=headers)


def _address_of(scope: Scope) -> str:
    client = scope.get("client")
    return _neighbourhood(str(client[0])) if client else ""


@lru_cache(maxsize=4096)
def _neighbourhood(text: str) -> str:
    """Return what an address counts as: with IPv6 anybody has so many that the network counts."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    if isinstance(address, IPv4Address):
        return text
    return str(address.ipv4_mapped or int(address) >> _NEIGHBOURS)
