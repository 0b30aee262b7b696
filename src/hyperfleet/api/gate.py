"""The gate: finds out who sends a request before the fast lanes and the routes look at it.

It turns nobody away itself: what it found is in the scope, and whoever asks `callers` for it refuses with it. So the
probes and the description stay open to everybody, and each dialect tells a refusal in its own words.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from hyperfleet.api.callers import CALLER, OTHER_SCHEME, RECHECK, challenge
from hyperfleet.api.exchanges import PROBES
from hyperfleet.api.pace import Pace
from hyperfleet.api.problems import RETRY_AFTER, Problem
from hyperfleet.services.callers import Caller, Doorkeeper, Rejection

ANONYMOUS: Final = Caller("anonymous")  # everybody, where nobody is asked who they are

_SCHEME: Final = b"bearer"
_UNKNOWN: Final = Problem("Unauthenticated", "send a token: `Authorization: Bearer …`", headers=challenge())
_TWICE: Final = Problem(
    "InvalidRequest", "the header Authorization is there more than once", headers=challenge("invalid_request")
)
_EMPTY: Final = Problem(
    "InvalidRequest", "the header Authorization has no token behind `Bearer`", headers=challenge("invalid_request")
)


class Gate(Struct, frozen=True):
    """An application that knows who asks."""

    app: ASGIApp
    doorkeeper: Doorkeeper | None  # None: nobody is asked
    pace: Pace | None = None  # None: everybody may ask as fast as they can

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Find out who sends a request, and pass it on."""
        if scope["type"] == "http":
            scope[CALLER] = await self._find(scope)
            if self.doorkeeper is not None:
                scope[RECHECK] = self._is_unchanged
        await self.app(scope, receive, send)

    async def _find(self, scope: Scope) -> Caller | Problem:
        doorkeeper, pace = self.doorkeeper, self.pace
        found = ANONYMOUS if doorkeeper is None else await _identify(scope, doorkeeper, pace)
        if pace is None or (scope["path"] in PROBES and not _is_bad_token(found)):
            return found
        return pace.admit(found, scope, is_known=doorkeeper is not None)

    async def _is_unchanged(self, scope: Scope) -> bool:
        """Tell whether a token still lets the same caller in; while nobody can tell, it does."""
        found = ANONYMOUS if self.doorkeeper is None else await _identify(scope, self.doorkeeper, None)
        return found == scope[CALLER] or (isinstance(found, Problem) and found.code == "IssuerUnavailable")


async def _identify(scope: Scope, doorkeeper: Doorkeeper, pace: Pace | None) -> Caller | Problem:
    credentials = [value for name, value in scope["headers"] if name == b"authorization"]
    if not any(credentials):
        return _UNKNOWN
    scheme, _, rest = bytes(credentials[0]).partition(b" ")
    token = rest.strip()
    if len(credentials) > 1:
        return _TWICE
    if scheme.lower() != _SCHEME:
        return OTHER_SCHEME
    if not token:
        return _EMPTY
    known = doorkeeper.recognize(token)
    if known is not None:
        return known
    if pace is not None and (refusal := pace.refuse_guess(scope)):
        return refusal
    found = await doorkeeper.identify(token)
    return _turn_away(found) if isinstance(found, Rejection) else found


def _is_bad_token(found: Caller | Problem) -> bool:
    """Tell whether somebody may be guessing, which counts wherever they do."""
    return isinstance(found, Problem) and found.code == "InvalidToken"


def _turn_away(rejection: Rejection) -> Problem:
    if rejection.is_passing:
        return Problem("IssuerUnavailable", rejection.reason, headers={"Retry-After": RETRY_AFTER})
    return Problem("InvalidToken", rejection.reason, headers=challenge("invalid_token", rejection.reason))
