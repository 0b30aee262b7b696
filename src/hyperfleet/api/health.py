"""Whether the process lives (`/healthz`) and whether it can do its work (`/readyz`). Outside the base path.

Whoever restarts processes asks the first, whoever sends them requests asks the second: a server whose database is
away must be left alone, not restarted.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.context import Context
from hyperfleet.api.shapes import LivenessBody, ReadinessBody, Unreadiness
from hyperfleet.errors import HyperFleetError

_PATIENCE: Final = 2.0  # seconds; whoever asks usually gives up soon after
_HEADERS: Final = {"Cache-Control": "no-store"}


def routes(context: Context) -> list[Route]:
    """Return the routes of this module; their paths are absolute."""

    async def live(_: Request) -> Response:
        """Say that the process answers."""
        return _answer(LivenessBody())

    async def ready(_: Request) -> Response:
        """Say whether reads and writes can be taken now, and if not, why."""
        reasons = await find_reasons(context)
        if reasons:
            return _answer(ReadinessBody("notReady", reasons), 503)
        return _answer(ReadinessBody("ready"))

    return [Route("/healthz", live), Route("/readyz", ready)]


async def find_reasons(context: Context) -> tuple[Unreadiness, ...]:
    """Return everything that stands in the way, not only the first thing."""
    reasons = []
    if store := await _ask_store(context):
        reasons.append(Unreadiness("store", store))
    if context.committer.is_full:
        reasons.append(Unreadiness("queue", f"{context.committer.waiting} writes wait, no more are taken"))
    if context.policies.version is None:
        reasons.append(Unreadiness("policy", "no policy is loaded yet"))
    return tuple(reasons)


async def _ask_store(context: Context) -> str:
    """Return why the store cannot be written to; empty if it can."""
    try:
        async with asyncio.timeout(_PATIENCE):
            await context.store.check()
    except TimeoutError:
        return f"the store did not answer within {_PATIENCE:g} s"
    except HyperFleetError as error:
        return f"{error.code}: {error}"
    return ""


def _answer(shape: LivenessBody | ReadinessBody, status: int = 200) -> Response:
    return Response(msgspec.json.encode(shape), status, _HEADERS, "application/json")
