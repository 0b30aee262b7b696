"""Rate limits of callers: a number of requests per second, and a burst.

`authentication` asks here for every request except probes. Authenticated callers are limited by name, all others by
address. Bad tokens are limited by address in any case, so that they cannot be guessed quickly. A refusal is an ordinary
problem. Each process counts on its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Address, ip_address
from math import ceil
from typing import Final

from starlette.types import Scope

from hyperfleet.api.callers import CALLER
from hyperfleet.api.problems import Problem
from hyperfleet.services.callers import Caller

CODE: Final = "RateLimited"
BAD_TOKEN: Final = "InvalidToken"  # noqa: S105  # a problem code

# Different bad tokens of one address, if there is no other limit.
_FAILURES_PER_SECOND: Final = 1
_FAILURE_BURST: Final = 20

_MAX_NAMES: Final = 20_000  # callers or addresses; a few hundred bytes each, so a few MB
_ROUNDING: Final = 1e-6  # seconds; shorter waits are rounding errors
_IPV6_HOST_BITS: Final = 64  # a customer usually gets a whole /64 network


class TokenBuckets:
    """Token buckets by name. Of each, only the time when it will be full again is kept; a full bucket is not kept."""

    def __init__(self, rate: int, burst: int, now: Callable[[], float] = time.monotonic) -> None:
        """Allow `rate` requests a second, and `burst` of them at once."""
        self._interval = 1 / rate
        self._slack = (burst - 1) / rate
        self._now = now
        self._full_at: dict[str, float] = {}  # ordered by last request

    def __len__(self) -> int:
        """Return the number of buckets that are kept."""
        return len(self._full_at)

    def take(self, name: str) -> float:
        """Take a token and return 0; if there is none, take nothing and return the seconds until there is one."""
        now = self._now()
        full_at = max(self._full_at.pop(name, now), now)
        wait = self._wait(full_at - now)
        self._full_at[name] = full_at if wait else full_at + self._interval
        self._drop_oldest(now)
        return wait

    def spend(self, name: str, number: int) -> None:
        """Take tokens that are there or will be: later requests wait for them."""
        now = self._now()
        self._full_at[name] = max(self._full_at.pop(name, now), now) + number * self._interval

    def wait_for(self, name: str) -> float:
        """Return the seconds until there is a token."""
        now = self._now()
        return self._wait(self._full_at.get(name, now) - now)

    def _wait(self, until_full: float) -> float:
        wait = until_full - self._slack
        return wait if wait > _ROUNDING else 0.0

    def _drop_oldest(self, now: float) -> None:
        """Drop up to two of the least recently used buckets, so that more are dropped than added."""
        for _ in range(2):
            oldest = next(iter(self._full_at))
            if self._full_at[oldest] > now and len(self._full_at) <= _MAX_NAMES:
                return
            del self._full_at[oldest]
            if not self._full_at:
                return


class RateLimiter:
    """Refuses requests of callers who exceed the rate limit, and of addresses that send too many bad tokens."""

    def __init__(
        self, rate: int | None = None, burst: int | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Allow each caller `rate` requests per second, and bursts of `burst`; by default, those of two seconds.

        Without a rate only bad tokens are limited.
        """
        self._is_limited = rate is not None
        self._rate = rate or _FAILURES_PER_SECOND
        self._burst = (burst or 2 * rate) if rate else _FAILURE_BURST
        self._callers = TokenBuckets(self._rate, self._burst, now)
        self._addresses = TokenBuckets(self._rate, self._burst, now)
        self._guesses: dict[tuple[str, int], None] = {}  # addresses and bad tokens, the oldest first

    def admit(self, found: Caller | Problem, scope: Scope, *, is_known: bool = True) -> Caller | Problem:
        """Count a request; return `found` or, above the limit, a problem. `is_known`: callers have names."""
        if isinstance(found, Problem):
            is_counted = found.code != CODE if self._is_limited else self._is_guess(found, scope)
            return (self._take(self._addresses, _address_of(scope)) if is_counted else None) or found
        if not self._is_limited:
            return found
        if not is_known:
            return self._take(self._addresses, _address_of(scope)) or found
        return self._take(self._callers, found.name) or found

    def _is_guess(self, found: Problem, scope: Scope) -> bool:
        """Return whether a bad token is a new one of its address: to send an old one again is no guess."""
        if found.code != BAD_TOKEN:
            return False
        credentials = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        guess = (_address_of(scope), hash(credentials))
        if guess in self._guesses:
            return False
        self._guesses[guess] = None
        if len(self._guesses) > _MAX_NAMES:
            del self._guesses[next(iter(self._guesses))]
        return True

    def spend(self, scope: Scope, number: int, *, is_known: bool) -> None:
        """Count an admitted request as so many more: it has many reports."""
        caller = scope[CALLER]
        if not self._is_limited:
            return
        if is_known and isinstance(caller, Caller):
            self._callers.spend(caller.name, number)
        else:
            self._addresses.spend(_address_of(scope), number)

    def refuse_guess(self, scope: Scope) -> Problem | None:
        """Refuse to look up an unknown token if too many bad ones came from its address."""
        wait = self._addresses.wait_for(_address_of(scope))
        return self._refuse(wait) if wait else None

    def _take(self, allowance: TokenBuckets, name: str) -> Problem | None:
        wait = allowance.take(name)
        return self._refuse(wait) if wait else None

    def _refuse(self, wait: float) -> Problem:
        seconds, window = ceil(wait), ceil(self._burst / self._rate)
        what = "requests" if self._is_limited else "bad tokens from one address"
        message = f"the limit is {self._rate} {what} per second; retry after {wait:.3f} s"
        headers = {  # RateLimit-*: the IETF draft on rate limit headers
            "Retry-After": str(seconds),
            "RateLimit-Policy": f'"requests";q={self._burst};w={window}',
            "RateLimit": f'"requests";r=0;t={seconds}',
        }
        return Problem(CODE, message, headers=headers)


def _address_of(scope: Scope) -> str:
    client = scope.get("client")
    return _network_of(str(client[0])) if client else ""


@lru_cache(maxsize=4096)
def _network_of(text: str) -> str:
    """Return what an address is limited by: an IPv6 address by its network, because one customer has many."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    if isinstance(address, IPv4Address):
        return text
    return str(address.ipv4_mapped or int(address) >> _IPV6_HOST_BITS)
