"""What all routes of the fleet have in common: they are below the base path, and no query parameter is ignored.

`app` calls this. Which operations read query parameters is told by their description; they refuse unknown ones
themselves, together with whatever else is wrong. All others refuse every one here: a `dryRun` that is ignored would
be a disaster. Paths outside the base path take any, because probes and browsers add some of their own.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.description.operations import Operation
from hyperfleet.api.requests import refuse_parameters
from hyperfleet.api.wire import BASE

Endpoint = Callable[[Request], Awaitable[Response]]

_PLACE: Final = re.compile(r"\{[^}]*\}")  # a part of a path that varies, whatever its name


def below_base(routes: Iterable[Route], operations: Iterable[Operation]) -> list[Route]:
    """Move routes below the base path, and let those refuse query parameters that read none."""
    reading = {
        (operation.method.upper(), _PLACE.sub("{}", operation.path))
        for operation in operations
        if any(parameter.place == "query" for parameter in operation.parameters)
    }
    return [_move(route, reading) for route in routes]


def _move(route: Route, reading: set[tuple[str, str]]) -> Route:
    path, methods = BASE + route.path, route.methods or set()
    is_reading = any((method, _PLACE.sub("{}", path)) in reading for method in methods)
    endpoint = route.endpoint if is_reading else _without_parameters(route.endpoint)
    return Route(path, endpoint, methods=list(methods), name=route.name)


def _without_parameters(endpoint: Endpoint) -> Endpoint:
    async def answer(request: Request) -> Response:
        if request.scope["query_string"]:
            refuse_parameters(request)
        return await endpoint(request)

    return answer
