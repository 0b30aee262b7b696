"""Authenticate callers by their bearer tokens, with a cache.

The gate calls `recognize` for every request, so that is a single dictionary lookup; `identify` is for tokens that are
not in the cache. The cache is cleared whenever tokens or keys change, so a revoked token is not accepted from it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeVar

from hyperfleet.access.token_file import Ticket
from hyperfleet.access.tokens import Tokens
from hyperfleet.services.callers import EXPIRED, UNKNOWN, Caller, Rejection
from hyperfleet.services.loops import Loop

if TYPE_CHECKING:  # these load cryptography, which a token file does not need
    from hyperfleet.access.jwt import Verifier
    from hyperfleet.access.keys import Keys

V = TypeVar("V")

MAX_TOKEN: Final = 8 * 1024  # bytes; proxies let no more through in a header
_MAX_KNOWN: Final = 4_096  # tokens; a fleet has hundreds of adapters
_MAX_REFUSED: Final = 1_024
_REFUSED_FOR: Final = 5.0  # seconds for which a rejected token is not checked again
_PAUSE: Final = 2.0  # seconds between checks of the token file

_TOO_LONG: Final = Rejection("the token is too long to be one")


class TokenAuthenticator:
    """Authenticates by the tokens of a file and by JWTs of issuers."""

    def __init__(
        self,
        now: Callable[[], float],
        tokens: Tokens | None,
        verifier: Verifier | None = None,
        keys: Sequence[Keys] = (),
    ) -> None:
        """Start with an empty cache. `now` returns seconds since 1970; `start` keeps tokens and keys current."""
        self._tokens = tokens
        self._verifier = verifier
        self._now = now
        self._known: OrderedDict[bytes, Ticket] = OrderedDict()
        self._refused: OrderedDict[bytes, tuple[Rejection, float]] = OrderedDict()
        self._loops = [Loop("keys", each.refresh) for each in keys]
        if tokens is not None:
            self._loops.append(Loop("tokens", self._refresh_tokens))
        for each in keys:
            each.on_change = self.clear_cache

    def start(self) -> None:
        """Start keeping tokens and keys current in the background."""
        for loop in self._loops:
            loop.start()

    async def stop(self) -> None:
        """Stop the background loops."""
        for loop in self._loops:
            await loop.stop()

    def reload(self) -> None:
        """Check tokens and keys now."""
        for loop in self._loops:
            loop.nudge()

    def clear_cache(self) -> None:
        """Drop every cached result; all tokens are checked again."""
        self._known.clear()
        self._refused.clear()

    def recognize(self, token: bytes) -> Caller | None:
        """Return the caller from the cache, if the token is there and has not expired."""
        ticket = self._known.get(token)
        if ticket is None or ticket.until <= self._now():
            return None
        self._known.move_to_end(token)
        return ticket.caller

    async def identify(self, token: bytes) -> Caller | Rejection:
        """Check a token that is not in the cache."""
        if len(token) > MAX_TOKEN:
            return _TOO_LONG
        digest, now = sha256(token).digest(), self._now()
        rejection, until = self._refused.get(digest, (UNKNOWN, 0.0))
        if now < until:
            return rejection
        found = await self._check(token, digest, now)
        if isinstance(found, Ticket):
            _remember(self._known, token, found, _MAX_KNOWN)
            return found.caller
        if not found.is_temporary:
            _remember(self._refused, digest, (found, now + _REFUSED_FOR), _MAX_REFUSED)
        return found

    async def _check(self, token: bytes, digest: bytes, now: float) -> Ticket | Rejection:
        ticket = self._tokens.find(digest) if self._tokens is not None else None
        if ticket is not None:
            return ticket if now < ticket.until else EXPIRED
        return UNKNOWN if self._verifier is None else await self._verifier.verify(token, now)

    async def _refresh_tokens(self) -> float:
        if self._tokens is not None and await asyncio.to_thread(self._tokens.refresh):
            self.clear_cache()
        return _PAUSE


def _remember(cache: OrderedDict[bytes, V], key: bytes, value: V, most: int) -> None:
    """Add an entry; drop the least recently used one when there are too many."""
    cache[key] = value
    cache.move_to_end(key)
    if len(cache) > most:
        cache.popitem(last=False)
