"""Failing adapters over the whole fleet, grouped by cause, with the labels that their resources share."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.aggregation import BodyProblem
from hyperfleet.api.callers import caller_of
from hyperfleet.api.context import Context
from hyperfleet.api.problems import Refused, from_query
from hyperfleet.api.requests import parameters_of
from hyperfleet.api.responses import answer_made
from hyperfleet.api.shapes import AffectedResourceBody, CauseGrowth, MostlyShared, SharedCauseBody, SharedCauses
from hyperfleet.api.wire import href_of
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import Query
from hyperfleet.services.failure_search import search_failures
from hyperfleet.services.failures import CauseGroup, Failure, group_failures
from hyperfleet.services.search import read_query

# What is shown of one cause: enough to act on; list filters find the rest.
_MAX_RESOURCES: Final = 20
_MAX_LABELS: Final = 20
_MAX_MESSAGE: Final = 1_000  # characters of an example
_FOR_LISTS_ONLY: Final = ("orderBy", "continue", "page", "size")


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""

    async def group(request: Request) -> Response:
        """Answer the causes of failures, those with the most resources first."""
        now = context.clock.now()
        queries = _read_queries(request, context, now)
        survey = await search_failures(context.store, context.policies.rules, queries)
        groups = await asyncio.to_thread(group_failures, survey.failures, now)
        shown = tuple([_present(each, context.kinds) for each in groups[: queries[0].limit]])
        return answer_made(request, SharedCauses(shown, len(groups), survey.examined, survey.is_complete))

    return [Route("/problems", group, methods=["GET"])]


def _read_queries(request: Request, context: Context, now: datetime) -> list[Query]:
    """Read the filters, which are those of lists, for each kind."""
    given, scope = parameters_of(request), caller_of(request).scope
    searches = [read_query(given, kind.name, scope, None, now, read_elsewhere=()) for kind in context.kinds]
    strays = [
        BodyProblem(name, "UnknownParameter", f"{name} is only for lists; problems come in one page, the largest first")
        for name in _FOR_LISTS_ONLY
        if name in given
    ]
    if searches[0].errors or strays:
        raise Refused(from_query((*searches[0].errors, *strays)))
    return [search.query for search in searches if search.query is not None]


def _present(group: CauseGroup, kinds: Kinds) -> SharedCauseBody:
    oldest, newest = group.failures[0], group.failures[-1]
    shared = {label.key: label.value for label in group.labels if label.share == 1}
    mostly = [label for label in group.labels if label.share < 1][:_MAX_LABELS]
    return SharedCauseBody(
        group.adapter,
        group.reason,
        group.message,
        newest.message[:_MAX_MESSAGE],
        len(group.failures),
        dict(group.kinds),
        tuple([_present_resource(failure, kinds) for failure in group.failures[:_MAX_RESOURCES]]),
        shared,
        tuple([MostlyShared(label.key, label.value, round(label.share, 3)) for label in mostly]),
        oldest.since,
        newest.since,
        CauseGrowth(group.growth.last_hour, group.growth.last_day),
    )


def _present_resource(failure: Failure, kinds: Kinds) -> AffectedResourceBody:
    resource = failure.resource
    kind = kinds.get(resource.kind)
    href = href_of(kind, resource.id, resource.parent_id, kinds) if kind else ""
    return AffectedResourceBody(resource.id, resource.name, resource.kind, href, failure.since)
