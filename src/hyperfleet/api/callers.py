"""Who is asking. The only place that will read credentials: handlers ask here and nowhere else."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.types import Scope

from hyperfleet.services.results import Caller

ANONYMOUS: Final = Caller("anonymous")


def caller_of(request: Request) -> Caller:
    """Return who sent a request."""
    return caller_of_scope(request.scope)


def caller_of_scope(scope: Scope) -> Caller:
    """Return who sent a request; until there is authentication, everybody is the same."""
    del scope
    return ANONYMOUS
