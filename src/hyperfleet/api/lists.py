"""Lists and summaries of resources: of a kind over the whole fleet, or below one parent.

The items of a list are stored answers, sent unchanged; they are decoded only for a field mask.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.aggregation import BodyProblem
from hyperfleet.api.callers import caller_of
from hyperfleet.api.context import Context
from hyperfleet.api.problems import Refused, from_query, from_refusal
from hyperfleet.api.requests import checked_target, parameters_of
from hyperfleet.api.responses import answer_made
from hyperfleet.api.shapes import ResourceList, SummaryBody, TrendPointBody
from hyperfleet.api.watch import PARAMETERS as WATCHING
from hyperfleet.api.watch import is_watch, watch_list
from hyperfleet.api.wire import BASE, RESOURCE_KEYS, path_of
from hyperfleet.errors import HistoryPruned
from hyperfleet.model.kind import Kind
from hyperfleet.ports import GroupCount, Query
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.results import Refusal, Target, not_found
from hyperfleet.services.search import (
    FieldMask,
    GroupBy,
    SearchResult,
    encode_continue,
    mask_answer,
    read_fields,
    read_group_by,
    read_query,
)
from hyperfleet.services.trends import PARAMETERS as MOMENTS
from hyperfleet.services.trends import Moments, TooFar, count_past, read_moments, refuse_too_far

MAX_LIST_BYTES: Final = 4 * 1024 * 1024  # of one answer: 1,000 usual resources; the rest follows with `continue`

_FIELDS: Final = "fields"
_GROUP_BY: Final = "groupBy"
_DEFAULT_GROUP: Final = "phase"
_FOR_LISTS_ONLY: Final = ("orderBy", "limit", "continue", "page", "size")
_FOR_PAGES_ONLY: Final = (*_FOR_LISTS_ONLY, "updatedSince")  # every later change was updated since then anyway


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, relative to the base path."""
    parents = [(kind, context.kinds.get(kind.parent or "")) for kind in context.kinds]
    collections = [_Collection(context, kind) for kind in context.kinds]
    collections += [_Collection(context, kind, parent) for kind, parent in parents if parent]
    return [
        route
        for collection in collections
        for route in (
            Route(collection.path, collection.list, methods=["GET"]),
            Route(f"{collection.path}:summary", collection.summarize, methods=["GET"]),
        )
    ]


def _rows(group_by: GroupBy, groups: Sequence[GroupCount]) -> tuple[dict[str, str | int | None], ...]:
    rows = ({**dict(zip(group_by.names, group.values, strict=True)), "count": group.count} for group in groups)
    return tuple(rows)


class _Collection(Struct, frozen=True):
    """The handlers for the resources of a kind: all of them, or those below the parent that the path names."""

    context: Context
    kind: Kind
    parent: Kind | None = None

    @property
    def path(self) -> str:
        """Return its path, below the base path."""
        return path_of(self.kind, self.context.kinds) if self.parent else f"/{self.kind.plural}"

    async def list(self, request: Request) -> Response:
        """Answer one page of resources; with `watch=true`, all of them and then changes."""
        mask = read_fields(request.query_params.getlist(_FIELDS), RESOURCE_KEYS)
        does_watch = is_watch(request, without=_FOR_PAGES_ONLY)
        search = await self._search(request, mask.errors, read_elsewhere=(_FIELDS, *WATCHING))
        if does_watch and search.query is not None:
            return await watch_list(request, self.context, self.kind, search.query, mask)
        return answer_made(request, await self._find(request, search, mask))

    async def summarize(self, request: Request) -> Response:
        """Count resources in groups."""
        group_by = read_group_by(*(request.query_params.getlist(_GROUP_BY) or [_DEFAULT_GROUP]))
        given, now = Parameters(parameters_of(request)), self.context.clock.now()
        moments = read_moments(given, now)
        search = await self._search(
            request, (*group_by.errors, *given.errors), read_elsewhere=(_GROUP_BY, *MOMENTS), without=_FOR_LISTS_ONLY
        )
        assert search.query is not None  # noqa: S101  # without errors there is a query
        if moments.at is not None or moments.trend:
            return answer_made(request, await self._summarize_past(given, search.query, group_by, moments, now))
        groups = await self.context.store.summarize(search.query, group_by.prefixes)
        total = await self.context.store.count(search.query)
        return answer_made(request, SummaryBody(group_by.names, total, _rows(group_by, groups)))

    async def _summarize_past(
        self, given: Parameters, query: Query, group_by: GroupBy, moments: Moments, now: datetime
    ) -> SummaryBody:
        """Count resources as of past moments."""
        if query.updated_since is not None:
            message = "updatedSince cannot be given with at or trend: past times of updates are not kept"
            given.refuse("updatedSince", "Exclusive", message)
            raise Refused(from_query(given.errors))
        try:
            counts = await count_past(self.context.store, query, group_by.prefixes, moments, now)
        except HistoryPruned as error:
            refusal = Refusal("Forgotten", f"the counts of that time are no longer available: {error}")
            raise Refused(from_refusal(refusal)) from error
        if isinstance(counts, TooFar):
            refuse_too_far(given, moments, counts)
            raise Refused(from_query(given.errors))
        points = [TrendPointBody(each.at, each.total, _rows(group_by, each.groups)) for each in counts]
        shown = SummaryBody(group_by.names, points[-1].total, points[-1].groups, moments.at or UNSET)
        return replace(shown, trend=tuple(points)) if moments.trend else shown

    # steps

    async def _search(
        self,
        request: Request,
        errors: Sequence[BodyProblem],
        read_elsewhere: Collection[str],
        without: Collection[str] = (),
    ) -> SearchResult:
        """Read the filters, refuse the request with all errors at once, then check that the parent exists."""
        scope, parent_id = caller_of(request).scope, self._parent_id(request)
        search = read_query(
            parameters_of(request),
            self.kind.name,
            scope,
            parent_id,
            self.context.clock.now(),
            read_elsewhere=read_elsewhere,
            without=without,
        )
        if search.errors or errors:
            raise Refused(from_query((*search.errors, *errors)))
        if self.parent is not None and parent_id is not None:
            parent = checked_target(Target(self.parent, parent_id))
            if await self.context.store.read_answer(self.parent.name, parent_id, scope) is None:
                raise Refused(from_refusal(not_found(parent)))
        return search

    async def _find(self, request: Request, search: SearchResult, mask: FieldMask) -> ResourceList:
        """Find one page; one more resource is read, to know whether there is another page.

        A page of large resources may have fewer than asked for.
        """
        query, store = search.query, self.context.store
        assert query is not None  # noqa: S101  # without errors there is a query
        answers = await store.find(replace(query, limit=query.limit + 1, max_bytes=MAX_LIST_BYTES))
        is_cut = sum(len(answer.body) for answer in answers) >= MAX_LIST_BYTES
        page, has_more = answers[: query.limit], is_cut or len(answers) > query.limit
        if is_cut and search.is_paged and len(page) < query.limit:
            message = f"the page has more than {MAX_LIST_BYTES} bytes: use a smaller size, or limit and continue"
            raise Refused(from_query([BodyProblem("size", "TooLarge", message)]))
        path = self.path.format(parent_id=self._parent_id(request))
        items = tuple([Raw(mask_answer(answer.body, mask)) for answer in page])
        shown = ResourceList(f"{self.kind.name}List", BASE + path, items)
        if search.is_paged:
            total = await store.count(query)
            return replace(shown, page=query.offset // query.limit + 1, size=query.limit, total=total)
        return replace(shown, continue_=encode_continue(query, page[-1]) if has_more else UNSET)

    def _parent_id(self, request: Request) -> str | None:
        return str(request.path_params["parent_id"]) if self.parent else None
