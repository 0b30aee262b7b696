"""What all routes of the fleet have in common: a required role, and no ignored query parameters.

`app` calls this. Operations whose description has query parameters refuse unknown ones themselves, together with other
errors. All other operations refuse every parameter here: ignoring a `dryRun` would be a disaster. Paths outside the
base path accept any, because probes and browsers add their own.
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

_VARIABLE: Final = re.compile(r"\{[^}]*\}")  # a path parameter, whatever its name


def below_base(routes: Iterable[Route], operations: Iterable[Operation]) -> list[Route]:
    """Move routes below the base path, each with the checks of its description."""
    described = {(each.method.upper(), _VARIABLE.sub("{}", each.path)): each for each in operations}
    return [_move(route, described) for route in routes]


def _move(route: Route, described: Mapping[tuple[str, str], Operation]) -> Route:
    path, methods = BASE + route.path, (route.methods or set()) - {"HEAD"}  # comes with GET
    (operation,) = [described[method, _VARIABLE.sub("{}", path)] for method in methods]
    return Route(path, _guard(route.endpoint, operation), methods=list(methods), name=route.name)


def _guard(endpoint: Endpoint, operation: Operation) -> Endpoint:
    """Check role and query parameters before an endpoint."""
    role = operation.role
    has_query = any(parameter.location == "query" for parameter in operation.parameters)

    async def answer(request: Request) -> Response:
        if role is not None:
            require(request, role)
        if request.scope["query_string"] and not has_query:
            refuse_parameters(request)
        return await endpoint(request)

    return answer
