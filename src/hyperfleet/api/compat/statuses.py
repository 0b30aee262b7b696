"""Reports in the compat API: `PUT …/statuses` answers 201, or 204 for a discarded report."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.callers import caller_of
from hyperfleet.api.compat.bodies import read_adapter_report, read_object
from hyperfleet.api.compat.paging import read_page
from hyperfleet.api.compat.resource_collections import ResourceCollection, answer, list_collections
from hyperfleet.api.compat.shapes import CompatPage, shape_report
from hyperfleet.api.context import Context
from hyperfleet.model.report import StoredReport
from hyperfleet.services.reports import REPORT_PREFIX, AcceptReports, Submission
from hyperfleet.services.results import Refusal, Reported

# The original does not show discards; this header has the cause.
DISCARDED: Final = "HyperFleet-Discarded"


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""
    found = []
    for collection in list_collections(context):
        handlers, path = _Statuses(collection), f"{collection.path}/{{id}}/statuses"
        found += [
            Route(path, handlers.read, methods=["GET"]),
            Route(path, handlers.put, methods=["PUT"]),
        ]
    return found


class _Statuses(Struct, frozen=True):
    """The handlers below the resources of one collection."""

    collection: ResourceCollection

    async def read(self, request: Request) -> Response:
        """Answer the last report of every adapter, by name."""
        page = read_page(request)
        record = await self.collection.find(request)
        reports = [record.reports[name] for name in sorted(record.reports)]
        items = [shape_report(stored) for stored in reports[page.offset : page.offset + page.size]]
        return answer(CompatPage(items, page.number, len(items), len(reports)))

    async def put(self, request: Request) -> Response:
        """Accept a report."""
        context = self.collection.context
        body = await read_object(request, context.limits)
        report = await asyncio.to_thread(read_adapter_report, body, context.clock.now(), context.redactor)
        target = await self.collection.find_reported(request)
        submission = Submission(report, context.new_id(REPORT_PREFIX), generation_key="observed_generation")
        command = AcceptReports(target, (submission,), caller_of(request), answer="report")
        result = await context.committer.submit(command)
        if isinstance(result, Refusal):
            if result.code == "GenerationAhead":
                return _answer_discarded(result.code)
            await self.collection.find_parent(request)  # a missing parent is reported first
            raise self.collection.refuse(result, target.id)
        (verdict,) = result.results
        if verdict.outcome == "discarded":
            return _answer_discarded(verdict.cause)
        return answer(shape_report(stored_of(result, report.adapter)), 201)


def stored_of(reported: Reported, adapter: str) -> StoredReport:
    """Return the stored report of an adapter after its report."""
    stored = reported.heartbeat.stored if reported.heartbeat else None
    if stored is None and reported.record is not None:
        stored = reported.record.reports.get(adapter)
    if stored is None:
        raise ValueError(f"{adapter} has reported, but no report is stored")
    return stored


def _answer_discarded(cause: str) -> Response:
    return Response(status_code=204, headers={DISCARDED: cause})
