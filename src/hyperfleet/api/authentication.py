"""Finds out who sends a request, before the fast paths and the routes see it.

It does not refuse requests itself: the result is in the scope, and `callers` refuses a request when a handler needs a
caller. So probes and the API description stay public, and each API writes a refusal in its own format.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Final

from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from hyperfleet.api.callers import CALLER, CHARGE, OTHER_SCHEME, RECHECK, challenge
from hyperfleet.api.exchanges import PROBES
from hyperfleet.api.problems import RETRY_AFTER, Problem
from hyperfleet.api.rate_limits import BAD_TOKEN, RateLimiter
from hyperfleet.services.callers import Authenticator, Caller, Rejection

ANONYMOUS: Final = Caller("anonymous")  # every caller, if there is no authentication

_SCHEME: Final = b"bearer"
_NO_TOKEN: Final = Problem("Unauthenticated", "send a token: `Authorization: Bearer …`", headers=challenge())
_TWICE: Final = Problem(
    "InvalidRequest", "the header Authorization is given more than once", headers=challenge("invalid_request")
)
_EMPTY: Final = Problem(
    "InvalidRequest", "the header Authorization has no token after `Bearer`", headers=challenge("invalid_request")
)


class Authentication(Struct, frozen=True):
    """ASGI middleware that identifies callers."""

    app: ASGIApp
    authenticator: Authenticator | None  # None: everybody is anonymous
    rate_limiter: RateLimiter | None = None  # None: no rate limit

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Identify the caller and pass the request on; only an unknown token needs a lookup."""
        if scope["type"] != "http":
            return self.app(scope, receive, send)
        found = ANONYMOUS if self.authenticator is None else _recognize(scope, self.authenticator)
        if isinstance(found, _UnknownToken):
            return self._look_up(found, scope, receive, send)
        return self._pass_on(found, scope, receive, send)

    async def _look_up(self, unknown: _UnknownToken, scope: Scope, receive: Receive, send: Send) -> None:
        found = await _identify(unknown, scope, self.rate_limiter)
        await self._pass_on(found, scope, receive, send)

    def _pass_on(self, found: Caller | Problem, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        scope[CALLER] = found if self.rate_limiter is None else self._admit(found, scope, self.rate_limiter)
        if self.rate_limiter is not None:
            is_known = self.authenticator is not None
            scope[CHARGE] = partial(self.rate_limiter.spend, scope, is_known=is_known)
        if self.authenticator is not None:
            scope[RECHECK] = self._is_unchanged
        return self.app(scope, receive, send)

    def _admit(self, found: Caller | Problem, scope: Scope, rate_limiter: RateLimiter) -> Caller | Problem:
        if scope["path"] in PROBES and not _is_bad_token(found):
            return found
        return rate_limiter.admit(found, scope, is_known=self.authenticator is not None)

    async def _is_unchanged(self, scope: Scope) -> bool:
        """Return whether a token still identifies the same caller; true while the issuer cannot be reached."""
        found = ANONYMOUS if self.authenticator is None else _recognize(scope, self.authenticator)
        if isinstance(found, _UnknownToken):
            found = await _identify(found, scope, None)
        return found == scope[CALLER] or (isinstance(found, Problem) and found.code == "IssuerUnavailable")


class _UnknownToken(Struct, frozen=True):
    """A token that must be looked up."""

    token: bytes
    authenticator: Authenticator


def _recognize(scope: Scope, authenticator: Authenticator) -> Caller | Problem | _UnknownToken:
    """Return the caller, if the token is known already."""
    credentials = [value for name, value in scope["headers"] if name == b"authorization"]
    if not any(credentials):
        return _NO_TOKEN
    scheme, _, rest = bytes(credentials[0]).partition(b" ")
    token = rest.strip()
    if len(credentials) > 1:
        return _TWICE
    if scheme.lower() != _SCHEME:
        return OTHER_SCHEME
    if not token:
        return _EMPTY
    return authenticator.recognize(token) or _UnknownToken(token, authenticator)


async def _identify(unknown: _UnknownToken, scope: Scope, rate_limiter: RateLimiter | None) -> Caller | Problem:
    if rate_limiter is not None and (refusal := rate_limiter.refuse_guess(scope)):
        return refusal
    found = await unknown.authenticator.identify(unknown.token)
    return _describe_rejection(found) if isinstance(found, Rejection) else found


def _is_bad_token(found: Caller | Problem) -> bool:
    """Return whether this may be a guessed token, which is limited on every path."""
    return isinstance(found, Problem) and found.code == BAD_TOKEN


def _describe_rejection(rejection: Rejection) -> Problem:
    if rejection.is_temporary:
        return Problem("IssuerUnavailable", rejection.reason, headers={"Retry-After": RETRY_AFTER})
    return Problem("InvalidToken", rejection.reason, headers=challenge("invalid_token", rejection.reason))
