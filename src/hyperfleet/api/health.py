"""Liveness (`/healthz`) and readiness (`/readyz`). Outside the base path.

A server whose database is down is alive but not ready: it gets no requests, and a restart would not help.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.context import Context
from hyperfleet.api.shapes import LivenessBody, ReadinessBody, Unreadiness
from hyperfleet.errors import HyperFleetError

_TIMEOUT: Final = 2.0  # seconds; probes commonly give up after a few
_HEADERS: Final = {"Cache-Control": "no-store"}


def routes(context: Context) -> list[Route]:
    """Return the routes of this module; their paths are absolute."""

    async def live(_: Request) -> Response:
        """Answer that the process is alive."""
        return _answer(LivenessBody())

    async def ready(_: Request) -> Response:
        """Answer whether the server can take reads and writes, and if not, why."""
        reasons = await find_reasons(context)
        warnings = find_warnings(context) or UNSET
        if reasons:
            return _answer(ReadinessBody("notReady", reasons, warnings), 503)
        return _answer(ReadinessBody("ready", (), warnings))

    return [Route("/healthz", live), Route("/readyz", ready)]


async def find_reasons(context: Context) -> tuple[Unreadiness, ...]:
    """Return every reason why the server is not ready."""
    reasons = []
    if store := await _check_store(context):
        reasons.append(Unreadiness("store", store))
    if context.committer.is_full:
        reasons.append(Unreadiness("queue", f"{context.committer.waiting} writes wait, no more are taken"))
    if context.policies.version is None:
        reasons.append(Unreadiness("policy", "no policy is loaded yet"))
    return tuple(reasons)


def find_warnings(context: Context) -> tuple[Unreadiness, ...]:
    """Return what needs attention: the broker is another one than wanted, or takes no messages; the sentinel."""
    events = context.events
    found = [events.choice.warning, events.find_trouble()]
    if context.policies.version is not None and events.choose(context.policies.rules.policies.pubsub) != events.choice:
        found.append("the policy in force sends events elsewhere: restart this server")
    warnings = [Unreadiness("events", message) for message in found if message]
    return (*warnings, *(Unreadiness("sentinel", message) for message in events.find_sentinel_trouble()))


async def _check_store(context: Context) -> str:
    """Return why the store cannot be written to; empty if it can."""
    try:
        async with asyncio.timeout(_TIMEOUT):
            await context.store.check()
    except TimeoutError:
        return f"the store did not answer within {_TIMEOUT:g} s"
    except HyperFleetError as error:
        return f"{error.code}: {error}"
    return ""


def _answer(shape: LivenessBody | ReadinessBody, status: int = 200) -> Response:
    return Response(msgspec.json.encode(shape), status, _HEADERS, "application/json")
