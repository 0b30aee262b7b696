"""The application of the compat API, mounted at `/compat`: paths, methods and errors of the original."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from hyperfleet import __version__
from hyperfleet.api.boundary import ProblemFormatter, format_problems_with
from hyperfleet.api.callers import require
from hyperfleet.api.compat import resources, statuses
from hyperfleet.api.compat.description import describe
from hyperfleet.api.compat.problems import NO_ENDPOINT, CompatRefused, answer_refused, from_error, from_problem
from hyperfleet.api.compat.resource_collections import PREFIX, answer
from hyperfleet.api.context import Context
from hyperfleet.api.problems import Problem, Refused, from_http_error
from hyperfleet.api.request_metrics import note_scope
from hyperfleet.api.routing import Endpoint
from hyperfleet.api.wire import BASE
from hyperfleet.errors import HyperFleetError
from hyperfleet.services.callers import Role

_LOG: Final = logging.getLogger(__name__)
_ROOT: Final = "/api/hyperfleet"
_PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>HyperFleet for Go clients</title>
<h1>HyperFleet, as the Go clients know it</h1>
<p>For programs: <a href="openapi">openapi</a>.</p>
<ul>
{lines}
</ul></html>
"""
_PAGE_HEADERS: Final = {"Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"}
_ERRORS: Final = (CompatRefused, Refused, HTTPException, HyperFleetError, Exception)


def mount(context: Context) -> Mount:
    """Build the application."""

    async def answer_error(request: Request, error: Exception) -> Response:
        return _answer_error(request, error, context)

    def answer_problem(problem: Problem, request: Request) -> Response:
        return answer_refused(from_problem(problem), request, context.clock.now())

    below = [*resources.routes(context), *statuses.routes(context)]
    routes: list[BaseRoute] = [
        Route(BASE + each.path, _guard(each), methods=list(each.methods or ())) for each in below
    ]
    routes += _public_routes(context)
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(_ERRORS, answer_error))
    app.router.redirect_slashes = False
    return Mount(PREFIX, _adapt(app, answer_problem))


def _guard(route: Route) -> Endpoint:
    """Check the role before an endpoint."""
    endpoint: Endpoint = route.endpoint
    role = _role_of(route.path, route.methods or set())

    async def answer_guarded(request: Request) -> Response:
        require(request, role)
        return await endpoint(request)

    return answer_guarded


def _role_of(path: str, methods: Collection[str]) -> Role:
    if "GET" in methods:
        return "reader"
    if path.endswith("/force-delete"):
        return "admin"
    return "reporter" if path.endswith("/statuses") else "editor"


def _adapt(app: ASGIApp, formatter: ProblemFormatter) -> ASGIApp:
    """Ignore one slash at the end of a path, and write problems in the format of the compat API."""

    async def pass_on(scope: Scope, receive: Receive, send: Send) -> None:
        format_problems_with(formatter, scope)
        below = {**scope, "path": scope["path"].removesuffix("/"), "route": None}
        await app(note_scope(below, PREFIX), receive, send)

    return pass_on


def _public_routes(context: Context) -> list[Route]:
    """Return the routes without authentication: metadata and the API description."""
    document = describe(context)

    async def read_metadata(_: Request) -> Response:
        """Answer the metadata of the API."""
        return answer({"id": "hyperfleet", "href": _ROOT, "kind": "API", "version": __version__, "build_time": ""})

    async def read_document(_: Request) -> Response:
        """Answer the OpenAPI document."""
        return answer(document)

    async def read_page(_: Request) -> Response:
        """List the operations as a page; the OpenAPI document has the details."""
        lines = [
            f"<li><code>{method.upper()} {path}</code> {operation['summary']}</li>"
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
        ]
        return HTMLResponse(_PAGE.format(lines="\n".join(lines)), headers=_PAGE_HEADERS)

    return [
        Route(_ROOT, read_metadata, methods=["GET"]),
        Route(f"{BASE}/openapi", read_document, methods=["GET"]),
        Route(f"{BASE}/openapi.html", read_page, methods=["GET"]),
    ]


def _answer_error(request: Request, error: Exception, context: Context) -> Response:
    match error:
        case HTTPException(status_code=405):
            return PlainTextResponse("Method Not Allowed\n", 405, {"Allow": _methods_of(request)})
        case HTTPException(status_code=404):
            refused = CompatRefused(NO_ENDPOINT, f"there is no path {request.state.path}")
        case HTTPException():
            refused = from_problem(from_http_error(error))
        case CompatRefused():
            refused = error
        case Refused():
            refused = from_problem(error.problem)
        case ClientDisconnect():
            refused = from_problem(Problem("InvalidRequest", "the body ended early, or its chunks are malformed"))
        case HyperFleetError():
            _LOG.warning("request %s: %s: %s", request.state.request_id, type(error).__name__, error)
            refused = from_error(error)
        case _:
            refused = from_error(error)  # it goes on to the request boundary, which logs it
    return answer_refused(refused, request, context.clock.now())


def _methods_of(request: Request) -> str:
    """List the methods of a path; several routes may share it."""
    matching = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return ", ".join(sorted({method for route in matching for method in route.methods or ()}))
