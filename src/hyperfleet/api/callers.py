"""Who sends a request. Handlers ask only here; `authentication` has put the result into the scope of the request."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.types import Scope

from hyperfleet.api.problems import Problem, Refused
from hyperfleet.services.callers import Caller, Role

_UNQUOTABLE: Final = re.compile(r"[^ !#-\[\]-~]")  # not allowed in a quoted string of a challenge

CALLER: Final = "hyperfleet.caller"  # scope key: the `Caller`, or the `Problem` why there is none
CHARGE: Final = "hyperfleet.charge"  # scope key: counts a request as several in the rate limit; absent: no limit
RECHECK: Final = "hyperfleet.recheck"  # scope key: a check whether the caller is still valid; absent: always


def caller_of(request: Request) -> Caller:
    """Return who sent a request; refuse it if the caller is not authenticated."""
    return caller_of_scope(request.scope)


def caller_of_scope(scope: Scope) -> Caller:
    """Return who sent a request; refuse it if the caller is not authenticated."""
    found: Caller | Problem = scope[CALLER]
    if isinstance(found, Problem):
        raise Refused(found)
    return found


def caller_or_none(scope: Scope) -> Caller | None:
    """Return who sent a request; None if not authenticated, which the router then refuses."""
    found: Caller | Problem = scope[CALLER]
    return found if isinstance(found, Caller) else None


async def is_still_authorized(scope: Scope) -> bool:
    """Return whether the caller of a long request is still authenticated as the same caller."""
    recheck: Callable[[Scope], Awaitable[bool]] | None = scope.get(RECHECK)
    return recheck is None or await recheck(scope)


def charge(request: Request, number: int) -> None:
    """Count a request as so many in the rate limit: the next ones of the caller wait accordingly."""
    spend: Callable[[int], None] | None = request.scope.get(CHARGE)
    if spend is not None and number > 1:
        spend(number - 1)


def require(request: Request, role: Role) -> None:
    """Refuse a request of a caller without a role."""
    caller = caller_of(request)
    if not caller.may(role):
        has = ", ".join(sorted(caller.roles)) or "none"
        detail = f"this needs the role {role}; {caller.name or 'the caller'} has {has}"
        raise Refused(Problem("Forbidden", detail, headers=challenge("insufficient_scope", scope=role)))


def require_everything(request: Request) -> None:
    """Refuse a request of a caller who does not see the whole fleet, because the request concerns all of it."""
    caller = caller_of(request)
    if caller.scope.tenants is not None:
        detail = f"this concerns the resources of all tenants; {caller.name} sees only some tenants"
        raise Refused(Problem("Forbidden", detail, headers=challenge("insufficient_scope")))


def challenge(error: str = "", description: str = "", scope: str = "") -> dict[str, str]:
    """Return the header that says how to authenticate (RFC 6750)."""
    values = {"error": error, "error_description": _UNQUOTABLE.sub("", description), "scope": scope}
    parts = ['realm="hyperfleet"', *(f'{name}="{text}"' for name, text in values.items() if text)]
    return {"WWW-Authenticate": "Bearer " + ", ".join(parts)}


# As with no credentials at all, RFC 6750 wants a challenge that tells of no error. Here, for dialects tell them apart.
OTHER_SCHEME: Final = Problem(
    "Unauthenticated", "the header Authorization has no token: send `Bearer …`", headers=challenge()
)
