"""The history of a resource: transitions of its phase and conditions with their causes, also after its removal."""

from __future__ import annotations

from msgspec import UNSET, Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.callers import caller_of
from hyperfleet.api.context import Context
from hyperfleet.api.problems import Refused, from_query, from_refusal
from hyperfleet.api.requests import parameters_of, target_of
from hyperfleet.api.responses import answer_made
from hyperfleet.api.shapes import HistoryCause, HistoryEntryBody, HistoryPage
from hyperfleet.api.wire import href_of, path_of
from hyperfleet.documents.durations import format_duration
from hyperfleet.model.kind import Kind
from hyperfleet.ports import RecordedTransition
from hyperfleet.services.history_query import HistorySearch, encode_position, read_history_query
from hyperfleet.services.results import Target, not_found


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""
    return [
        Route(f"{path_of(kind, context.kinds)}/{{id}}/history", _History(context, kind).read, methods=["GET"])
        for kind in context.kinds
    ]


class _History(Struct, frozen=True):
    """The handler of one kind."""

    context: Context
    kind: Kind

    async def read(self, request: Request) -> Response:
        """Answer one page of a resource's history, the newest first."""
        target, store, scope = target_of(request, self.kind), self.context.store, caller_of(request).scope
        search = read_history_query(parameters_of(request), target.id, scope, self.context.clock.now())
        if search.errors:
            raise Refused(from_query(search.errors))
        if not await store.existed(self.kind.name, target.id, scope, target.parent_id):
            raise Refused(from_refusal(not_found(target)))
        found = await store.read_transitions(replace(search.query, limit=search.query.limit + 1))
        return answer_made(request, self._present(target, search, found))

    def _present(self, target: Target, search: HistorySearch, found: tuple[RecordedTransition, ...]) -> HistoryPage:
        """Build the page; one more entry was read, to know whether there is another page."""
        page = found[: search.query.limit]
        return HistoryPage(
            f"{href_of(self.kind, target.id, target.parent_id, self.context.kinds)}/history",
            tuple([_present_entry(recorded) for recorded in page]),
            encode_position(search, page[-1]) if len(found) > len(page) else UNSET,
        )


def _present_entry(recorded: RecordedTransition) -> HistoryEntryBody:
    moved, cause = recorded.transition, recorded.cause
    return HistoryEntryBody(
        recorded.position,
        moved.time,
        moved.subject,
        moved.before,
        moved.after,
        moved.reason,
        moved.message,
        HistoryCause(cause.kind, cause.ref or UNSET),
        recorded.policy,
        format_duration(moved.time - recorded.since) if recorded.since else UNSET,
    )
