"""Who is asking. Handlers ask here and nowhere else; the gate has put the answer into the scope of the request."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.types import Scope

from hyperfleet.api.problems import Problem, Refused
from hyperfleet.services.callers import Caller, Role

_UNQUOTABLE: Final = re.compile(r"[^ !#-\[\]-~]")  # what may not stand in the text of a challenge

CALLER: Final = "hyperfleet.caller"  # where a scope has a `Caller`, or the `Problem` with which it is turned away
RECHECK: Final = "hyperfleet.recheck"  # where it has who tells whether that still holds; nothing: it always does


def caller_of(request: Request) -> Caller:
    """Return who sent a request; refuse it if they are not let in."""
    return caller_of_scope(request.scope)


def caller_of_scope(scope: Scope) -> Caller:
    """Return who sent a request; refuse it if they are not let in."""
    found: Caller | Problem = scope[CALLER]
    if isinstance(found, Problem):
        raise Refused(found)
    return found


def caller_or_none(scope: Scope) -> Caller | None:
    """Return who sent a request; None if they are not let in, which the ordinary way tells them."""
    found: Caller | Problem = scope[CALLER]
    return found if isinstance(found, Caller) else None


async def is_still_authorized(scope: Scope) -> bool:
    """Tell whether who sent a request that lasts would be let in now as they were then."""
    recheck: Callable[[Scope], Awaitable[bool]] | None = scope.get(RECHECK)
    return recheck is None or await recheck(scope)


def require(request: Request, role: Role) -> None:
    """Refuse a request of somebody who may not do what a role may."""
    caller = caller_of(request)
    if not caller.may(role):
        has = ", ".join(sorted(caller.roles)) or "none"
        detail = f"this needs the role {role}; {caller.name or 'the caller'} has {has}"
        raise Refused(Problem("Forbidden", detail, headers=challenge("insufficient_scope", scope=role)))


def require_everything(request: Request) -> None:
    """Refuse a request of somebody who does not see the whole fleet, for it is about all of it."""
    caller = caller_of(request)
    if caller.scope.tenants is not None:
        detail = f"this concerns everybody's resources; {caller.name} sees those of some tenants only"
        raise Refused(Problem("Forbidden", detail, headers=challenge("insufficient_scope")))


def challenge(error: str = "", description: str = "", scope: str = "") -> dict[str, str]:
    """Return the header that tells how to be let in (RFC 6750)."""
    told = {"error": error, "error_description": _UNQUOTABLE.sub("", description), "scope": scope}
    parts = ['realm="hyperfleet"', *(f'{name}="{text}"' for name, text in told.items() if text)]
    return {"WWW-Authenticate": "Bearer " + ", ".join(parts)}


# As with no credentials at all, RFC 6750 wants a challenge that tells of no error. Here, for dialects tell them apart.
OTHER_SCHEME: Final = Problem(
    "Unauthenticated", "the header Authorization has no token: send `Bearer …`", headers=challenge()
)
