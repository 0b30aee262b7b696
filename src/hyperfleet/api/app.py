"""The application: its routes, and how errors become responses. The composition root calls `create_app`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Lifespan

from hyperfleet.api import (
    adapters,
    differences,
    explanations,
    failures,
    health,
    history,
    lists,
    metrics,
    openapi,
    policy,
    policy_versions,
    reconciling,
    resources,
    sentinels,
    simulation,
    statuses,
    subscriptions,
    transitions,
    waiting,
    webhooks,
)
from hyperfleet.api.audit import Audit
from hyperfleet.api.authentication import Authentication
from hyperfleet.api.boundary import RequestBoundary
from hyperfleet.api.browsers import BrowserGuard
from hyperfleet.api.compat import app as compat
from hyperfleet.api.compat.fast_path import CompatFastPath
from hyperfleet.api.context import Context
from hyperfleet.api.description.table import list_operations
from hyperfleet.api.exchanges import list_templates
from hyperfleet.api.problems import Problem, Refused, answer_problem, from_error, from_http_error
from hyperfleet.api.read_fast_path import ReadFastPath
from hyperfleet.api.report_fast_path import ReportFastPath
from hyperfleet.api.request_metrics import RequestMetrics
from hyperfleet.api.routing import below_base
from hyperfleet.api.wire import BASE
from hyperfleet.errors import HyperFleetError

_LOG: Final = logging.getLogger(__name__)

_ERRORS: Final = (Refused, HTTPException, HyperFleetError, Exception)
# Below the base path; the most frequent routes come first.
_FLEET: Final = (
    statuses,
    resources,
    lists,
    waiting,
    history,
    transitions,
    differences,
    explanations,
    failures,
    adapters,
    policy,
    policy_versions,
    simulation,
    reconciling,
    subscriptions,
    sentinels,
    webhooks,
)
_SERVER: Final = (health, openapi, metrics)  # outside the base path


def create_app(context: Context, lifespan: Lifespan[Any] | None = None) -> ASGIApp:
    """Build the application."""
    below = [route for module in _FLEET for route in module.routes(context)]
    routes: list[BaseRoute] = [*below_base(below, list_operations(context))]
    routes += [route for module in _SERVER for route in module.routes(context)]
    routes.append(compat.mount(context))  # the API of the existing Go clients
    router = Starlette(routes=routes, exception_handlers=dict.fromkeys(_ERRORS, _answer_error), lifespan=lifespan)
    router.router.redirect_slashes = False  # many clients drop the body of a redirected POST
    fast = ReadFastPath(ReportFastPath(CompatFastPath(RequestBoundary(router, context), context), context), context)
    known = Authentication(fast, context.authenticator, context.rate_limiter)
    app = RequestMetrics(BrowserGuard(known, context.browsers), context.measures, list_templates(context))
    if context.journal is None:
        return app
    return Audit(app, context, context.journal, has_reports=context.journals_reports)


async def _answer_error(request: Request, error: Exception) -> Response:
    return answer_problem(_problem_of(error, request), request)


def _problem_of(error: Exception, request: Request) -> Problem:
    """Translate an error for the caller; details that callers must not see go to the log."""
    match error:
        case Refused():
            return error.problem
        case ClientDisconnect():  # the caller may still read, if only its body was cut off
            return Problem("InvalidRequest", "the body ended early, or its chunks are malformed")
        case HTTPException(status_code=404):
            return Problem("NotFound", f"there is no such path; {_hint_at(request)}")
        case HTTPException(status_code=405):
            allowed = _methods_of(request, request.app.routes)
            return Problem(
                "MethodNotAllowed",
                f"this path does not support {request.method}; use {allowed}",
                (),
                {"Allow": allowed},
            )
        case HTTPException():
            return from_http_error(error)
        case HyperFleetError():
            _LOG.warning("request %s: %s: %s", request.state.request_id, type(error).__name__, error)
    return from_error(error)  # unexpected errors go on to the request boundary, which logs them


def _hint_at(request: Request) -> str:
    """Suggest what an unknown path may have been meant to be."""
    path, asked = request.scope["path"], request.state.path
    trimmed = path.rstrip("/")
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    if trimmed != path and any(route.path_regex.match(trimmed) for route in routes):
        return f"without the / at the end it exists: {asked.rstrip('/')}"
    return f"the API is below {BASE}; /docs lists its paths"


def _methods_of(request: Request, routes: Sequence[BaseRoute]) -> str:
    """List the methods of a path; several routes may share it."""
    matching = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    methods = {method for route in matching if isinstance(route, Route) for method in route.methods or ()}
    return ", ".join(sorted(methods))
