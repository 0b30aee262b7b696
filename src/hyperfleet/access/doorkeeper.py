"""The doorkeeper: knows callers by their tokens, and remembers those it has seen until their tokens expire.

The gate asks `recognize` for every request, so that is one look into a dictionary; `identify` is for tokens that were
never seen. Whenever tokens or keys change, everything is forgotten: what was revoked is not remembered.
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

if TYPE_CHECKING:  # these load cryptography, which a file of tokens does not need
    from hyperfleet.access.jwt import Verifier
    from hyperfleet.access.keys import Keys

V = TypeVar("V")

MAX_TOKEN: Final = 8 * 1024  # bytes; proxies let no more through in a header
_MOST_KNOWN: Final = 4_096  # tokens; a fleet has hundreds of adapters
_MOST_REFUSED: Final = 1_024
_REFUSED_FOR: Final = 5.0  # seconds for which a bad token is not looked at again
_PAUSE: Final = 2.0  # seconds between two looks at the token file

_TOO_LONG: Final = Rejection("the token is too long to be one")


class TokenDoorkeeper:
    """Knows the tokens of a file and of issuers."""

    def __init__(
        self,
        now: Callable[[], float],
        tokens: Tokens | None,
        verifier: Verifier | None = None,
        keys: Sequence[Keys] = (),
    ) -> None:
        """Know nobody yet; `now` tells the seconds since 1970, and `start` keeps tokens and keys current."""
        self._tokens = tokens
        self._verifier = verifier
        self._now = now
        self._known: OrderedDict[bytes, Ticket] = OrderedDict()
        self._refused: OrderedDict[bytes, tuple[Rejection, float]] = OrderedDict()
        self._loops = [Loop("keys", each.refresh) for each in keys]
        if tokens is not None:
            self._loops.append(Loop("tokens", self._look_at_tokens))
        for each in keys:
            each.on_change = self.forget

    def start(self) -> None:
        """Keep tokens and keys current from now on; nobody is waited for."""
        for loop in self._loops:
            loop.start()

    async def stop(self) -> None:
        """Leave them as they are."""
        for loop in self._loops:
            await loop.stop()

    def reload(self) -> None:
        """Look at tokens and keys now."""
        for loop in self._loops:
            loop.nudge()

    def forget(self) -> None:
        """Ask everybody again who they are."""
        self._known.clear()
        self._refused.clear()

    def recognize(self, token: bytes) -> Caller | None:
        """Return whose token this is, if it was seen before and is still good."""
        ticket = self._known.get(token)
        if ticket is None or ticket.until <= self._now():
            return None
        self._known.move_to_end(token)
        return ticket.caller

    async def identify(self, token: bytes) -> Caller | Rejection:
        """Find out whose token this is."""
        if len(token) > MAX_TOKEN:
            return _TOO_LONG
        digest, now = sha256(token).digest(), self._now()
        rejection, until = self._refused.get(digest, (UNKNOWN, 0.0))
        if now < until:
            return rejection
        found = await self._examine(token, digest, now)
        if isinstance(found, Ticket):
            _remember(self._known, token, found, _MOST_KNOWN)
            return found.caller
        if not found.is_passing:
            _remember(self._refused, digest, (found, now + _REFUSED_FOR), _MOST_REFUSED)
        return found

    async def _examine(self, token: bytes, digest: bytes, now: float) -> Ticket | Rejection:
        ticket = self._tokens.find(digest) if self._tokens is not None else None
        if ticket is not None:
            return ticket if now < ticket.until else EXPIRED
        return UNKNOWN if self._verifier is None else await self._verifier.verify(token, now)

    async def _look_at_tokens(self) -> float:
        if self._tokens is not None and await asyncio.to_thread(self._tokens.refresh):
            self.forget()
        return _PAUSE


def _remember(memory: OrderedDict[bytes, V], key: bytes, value: V, most: int) -> None:
    """Keep something in place of what was not asked for longest."""
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > most:
        memory.popitem(last=False)
