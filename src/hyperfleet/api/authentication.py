"""The gate: finds out who sends a request before the fast lanes and the routes look at it.

It turns nobody away itself: what it found is in the scope, and whoever asks `callers` for it refuses with it. So the
probes and the description stay open to everybody, and each dialect tells a refusal in its own words.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from hyperfleet.api.callers import CALLER, OTHER_SCHEME, RECHECK, challenge
from hyperfleet.api.exchanges import PROBES
from hyperfleet.api.problems import RETRY_AFTER, Problem
from hyperfleet.api.rate_limits import RateLimiter
from hyperfleet.services.callers import Authenticator, Caller, Rejection

ANONYMOUS: Final = Caller("anonymous")  # everybody, where nobody is asked who they are

_SCHEME: Final = b"bearer"
_UNKNOWN: Final = Problem("Unauthenticated", "send a token: `Authorization: Bearer …`", headers=challenge())
_TWICE: Final = Problem(
    "InvalidRequest", "the header Authorization is there more than once", headers=challenge("invalid_request")
)
_EMPTY: Final = Problem(
    "InvalidRequest", "the header Authorization has no token behind `Bearer`", headers=challenge("invalid_request")
)


class Authentication(Struct, frozen=True):
    """An application that knows who asks."""

    app: ASGIApp
    authenticator: Authenticator | None  # None: nobody is asked
    rate_limiter: RateLimiter | None = None  # None: everybody may ask as fast as they can

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Find out who sends a request, and pass it on: at once, unless somebody must be asked who that is."""
        if scope["type"] != "http":
            return self.app(scope, receive, send)
        found = ANONYMOUS if self.authenticator is None else _recognize(scope, self.authenticator)
        if isinstance(found, _Stranger):
            return self._ask(found, scope, receive, send)
        return self._pass_on(found, scope, receive, send)

    async def _ask(self, stranger: _Stranger, scope: Scope, receive: Receive, send: Send) -> None:
        found = await _identify(stranger, scope, self.rate_limiter)
        await self._pass_on(found, scope, receive, send)

    def _pass_on(self, found: Caller | Problem, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        scope[CALLER] = found if self.rate_limiter is None else self._admit(found, scope, self.rate_limiter)
        if self.authenticator is not None:
            scope[RECHECK] = self._is_unchanged
        return self.app(scope, receive, send)

    def _admit(self, found: Caller | Problem, scope: Scope, rate_limiter: RateLimiter) -> Caller | Problem:
        if scope["path"] in PROBES and not _is_bad_token(found):
            return found
        return rate_limiter.admit(found, scope, is_known=self.authenticator is not None)

    async def _is_unchanged(self, scope: Scope) -> bool:
        """Tell whether a token still lets the same caller in; while nobody can tell, it does."""
        found = ANONYMOUS if self.authenticator is None else _recognize(scope, self.authenticator)
        if isinstance(found, _Stranger):
            found = await _identify(found, scope, None)
        return found == scope[CALLER] or (isinstance(found, Problem) and found.code == "IssuerUnavailable")


class _Stranger(Struct, frozen=True):
    """Somebody whose token is not known without asking."""

    token: bytes
    authenticator: Authenticator


def _recognize(scope: Scope, authenticator: Authenticator) -> Caller | Problem | _Stranger:
    """Return who sends a request, as far as that is known without any work."""
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
    return authenticator.recognize(token) or _Stranger(token, authenticator)


async def _identify(stranger: _Stranger, scope: Scope, rate_limiter: RateLimiter | None) -> Caller | Problem:
    if rate_limiter is not None and (refusal := rate_limiter.refuse_guess(scope)):
        return refusal
    found = await stranger.authenticator.identify(stranger.token)
    return _turn_away(found) if isinstance(found, Rejection) else found


def _is_bad_token(found: Caller | Problem) -> bool:
    """Tell whether somebody may be guessing, which counts wherever they do."""
    return isinstance(found, Problem) and found.code == "InvalidToken"


def _turn_away(rejection: Rejection) -> Problem:
    if rejection.is_passing:
        return Problem("IssuerUnavailable", rejection.reason, headers={"Retry-After": RETRY_AFTER})
    return Problem("InvalidToken", rejection.reason, headers=challenge("invalid_token", rejection.reason))
