"""The gate: finds out who sends a request before anything else looks at it. The outermost layer of the application.

It turns nobody away itself: what it found is in the scope, and whoever asks `callers` for it refuses with it. So the
probes and the description stay open to everybody, and each dialect tells a refusal in its own words.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from hyperfleet.api.callers import CALLER
from hyperfleet.api.problems import Problem
from hyperfleet.services.callers import Caller, Doorkeeper, Rejection

ANONYMOUS: Final = Caller("anonymous")  # everybody, where nobody is asked who they are

_SCHEME: Final = b"bearer "
_CHALLENGE: Final = 'Bearer realm="hyperfleet"'
_UNKNOWN: Final = Problem(
    "Unauthenticated", "send a token: `Authorization: Bearer …`", headers={"WWW-Authenticate": _CHALLENGE}
)


class Gate(Struct, frozen=True):
    """An application that knows who asks."""

    app: ASGIApp
    doorkeeper: Doorkeeper | None  # None: nobody is asked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Find out who sends a request, and pass it on."""
        if scope["type"] == "http":
            scope[CALLER] = ANONYMOUS if self.doorkeeper is None else await _identify(scope, self.doorkeeper)
        await self.app(scope, receive, send)


async def _identify(scope: Scope, doorkeeper: Doorkeeper) -> Caller | Problem:
    credentials = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(credentials) != 1 or credentials[0][: len(_SCHEME)].lower() != _SCHEME:
        return _UNKNOWN
    token = bytes(credentials[0][len(_SCHEME) :]).strip()
    found = doorkeeper.recognize(token) or await doorkeeper.identify(token)
    return _turn_away(found) if isinstance(found, Rejection) else found


def _turn_away(rejection: Rejection) -> Problem:
    challenge = f'{_CHALLENGE}, error="invalid_token"'
    return Problem("InvalidToken", rejection.reason, headers={"WWW-Authenticate": challenge})
