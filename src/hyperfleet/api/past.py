"""Resources and reports as they were at a past moment (`at`).

`resources` and `statuses` call this when the parameter is given. The answer is what a GET answered then, byte for byte.
A write of that moment may still be in progress, so caches must revalidate, as they must for the present.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from hyperfleet.api.callers import caller_of
from hyperfleet.api.context import Context
from hyperfleet.api.problems import Refused, from_query, from_refusal
from hyperfleet.api.requests import parameters_of
from hyperfleet.api.responses import answer_made, answer_stored
from hyperfleet.api.wire import status_object
from hyperfleet.model.resource import Resource
from hyperfleet.ports import LoggedEvent
from hyperfleet.services.field_masks import FieldMask, mask_answer
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.past import AT, find_reports, find_version, read_moment
from hyperfleet.services.results import Refusal, Target

GENERATION: Final = "generation"


async def answer_past(request: Request, context: Context, target: Target, mask: FieldMask) -> Response:
    """Answer with a resource as of the requested time."""
    at = _read_at(Parameters(parameters_of(request)), context)
    entry = await _find(request, context, target, at)
    return answer_stored(request, mask_answer(answer_of(entry), mask), entry.position)


async def answer_past_reports(request: Request, context: Context, target: Target) -> Response:
    """Answer with the last report of every adapter as of the requested time."""
    given = Parameters(parameters_of(request))
    given.refuse_unknown((AT, GENERATION))
    if given.all(GENERATION):
        given.refuse(
            GENERATION, "Exclusive", f"{GENERATION} cannot be given with {AT}: at one moment there is one generation"
        )
    at = _read_at(given, context)
    entry = await _find(request, context, target, at)
    listed = {adapter["name"] for adapter in msgspec.json.decode(answer_of(entry))["status"]["adapters"]}
    reports = await find_reports(context.store, target, caller_of(request).scope, at, listed)
    if isinstance(reports, Refusal):
        raise Refused(from_refusal(reports))
    return answer_made(request, status_object(_resource_of(entry), reports, None, context.kinds))


def answer_of(entry: LoggedEvent) -> bytes:
    """Return what a GET answered after an event."""
    if entry.answer is None:
        raise ValueError(f"{entry.resource_id} was removed, so there is no answer")
    return entry.answer


def _read_at(given: Parameters, context: Context) -> datetime:
    at = read_moment(given, AT, context.clock.now())
    if at is None or given.errors:
        raise Refused(from_query(given.errors))
    return at


async def _find(request: Request, context: Context, target: Target, at: datetime) -> LoggedEvent:
    entry = await find_version(context.store, target, caller_of(request).scope, at)
    if isinstance(entry, Refusal):
        raise Refused(from_refusal(entry))
    return entry


def _resource_of(entry: LoggedEvent) -> Resource:
    """Return the parts of a resource that its status object shows."""
    return Resource(
        id=entry.resource_id,
        kind=entry.kind,
        name="",
        generation=entry.generation,
        generation_time=entry.time,
        created_time=entry.time,
        tenant=entry.tenant,
        parent_id=entry.parent_id,
    )
