"""`:reconcile`: asks the adapters of one resource, or of all that match filters, to look again."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.callers import caller_of
from hyperfleet.api.context import Context
from hyperfleet.api.message_shapes import ReconcileRequested
from hyperfleet.api.problems import Refused, from_query, from_refusal
from hyperfleet.api.requests import checked_target, parameters_of, target_of
from hyperfleet.api.responses import answer_written
from hyperfleet.api.wire import path_of
from hyperfleet.model.kind import Kind
from hyperfleet.ports import Query
from hyperfleet.services.callers import Caller
from hyperfleet.services.reconciling import RequestReconcile
from hyperfleet.services.results import Refusal, Target, not_found
from hyperfleet.services.search import read_query

_PAGE: Final = 200  # resources per transaction, so that other writes get their turn
_WITHOUT: Final = ("orderBy", "limit", "continue", "page", "size")


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""
    found = []
    for kind in context.kinds:
        handlers, path = _Reconciling(context, kind), path_of(kind, context.kinds)
        found.append(Route(f"{path}/{{id}}:reconcile", handlers.request_one, methods=["POST"]))
        found.append(Route(f"/{kind.plural}:reconcile", handlers.request_many, methods=["POST"]))
        if kind.parent:
            found.append(Route(f"{path}:reconcile", handlers.request_many, methods=["POST"]))
    return found


class _Reconciling(Struct, frozen=True):
    """The handlers of one kind."""

    context: Context
    kind: Kind

    async def request_one(self, request: Request) -> Response:
        """Ask for one resource."""
        command = RequestReconcile(target_of(request, self.kind), caller_of(request))
        done = await self.context.committer.submit(command)
        if isinstance(done, Refusal):
            raise Refused(from_refusal(done))
        return _answer(request, ReconcileRequested(1, done.record.revision))

    async def request_many(self, request: Request) -> Response:
        """Ask for all resources that match the filters; below a parent, if the path names one."""
        caller, parent_id = caller_of(request), request.path_params.get("parent_id")
        search = read_query(
            parameters_of(request), self.kind.name, caller.scope, parent_id, self.context.clock.now(), without=_WITHOUT
        )
        if search.query is None:
            raise Refused(from_query(search.errors))
        if parent_id is not None:
            await self._check_parent(parent_id, caller)
        count = position = 0
        query: Query | None = replace(search.query, limit=_PAGE, order="name")
        while query is not None:
            found = await self.context.store.find(query)
            position = max(position, await self._request([answer.id for answer in found], caller))
            count += len(found)
            more = len(found) == _PAGE
            query = replace(query, after=(found[-1].key, found[-1].id)) if more else None
        return _answer(request, ReconcileRequested(count, position))

    async def _check_parent(self, parent_id: str, caller: Caller) -> None:
        parent = self.context.kinds.get(self.kind.parent or "")
        assert parent is not None  # noqa: S101  # only paths of a kind with a parent name one
        target = checked_target(Target(parent, parent_id))
        if await self.context.store.read_answer(parent.name, parent_id, caller.scope) is None:
            raise Refused(from_refusal(not_found(target)))

    async def _request(self, ids: list[str], caller: Caller) -> int:
        """Ask for some resources; return the last position. Those that were removed meanwhile are skipped."""
        commands = [RequestReconcile(Target(self.kind, id_), caller) for id_ in ids]
        position = 0
        for result in await self.context.committer.submit_all(commands):
            if isinstance(result, BaseException):
                raise result
            if not isinstance(result, Refusal):
                position = max(position, result.record.revision)
        return position


def _answer(request: Request, requested: ReconcileRequested) -> Response:
    return answer_written(request, 202, msgspec.json.encode(requested))
