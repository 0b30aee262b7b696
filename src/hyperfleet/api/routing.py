"""What all routes of the fleet have in common: their callers have the role that is needed, no parameter is ignored.

`app` calls this. Which operations read query parameters is told by their description; they refuse unknown ones
themselves, together with whatever else is wrong. All others refuse every one here: a `dryRun` that is ignored would
be a disaster. Paths outside the base path take any, because probes and browsers add some of their own.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.callers import require
from hyperfleet.api.description.operations import Operation
from hyperfleet.api.requests import refuse_parameters
from hyperfleet.api.wire import BASE

Endpoint = Callable[[Request], Awaitable[Response]]

_PLACE: Final = re.compile(r"\{[^}]*\}")  # a part of a path that varies, whatever its name


def below_base(routes: Iterable[Route], operations: Iterable[Operation]) -> list[Route]:
    """Move routes below the base path, each guarded as its description says."""
    described = {(each.method.upper(), _PLACE.sub("{}", each.path)): each for each in operations}
    return [_move(route, described) for route in routes]


def _move(route: Route, described: Mapping[tuple[str, str], Operation]) -> Route:
    path, methods = BASE + route.path, (route.methods or set()) - {"HEAD"}  # which comes with GET
    (operation,) = [described[method, _PLACE.sub("{}", path)] for method in methods]
    return Route(path, _guard(route.endpoint, operation), methods=list(methods), name=route.name)


def _guard(endpoint: Endpoint, operation: Operation) -> Endpoint:
    """Let in who has the role that an operation needs, with the query parameters that it reads."""
    role = operation.role
    is_reading = any(parameter.place == "query" for parameter in operation.parameters)

    async def answer(request: Request) -> Response:
        if role is not None:
            require(request, role)
        if request.scope["query_string"] and not is_reading:
            refuse_parameters(request)
        return await endpoint(request)

    return answer
