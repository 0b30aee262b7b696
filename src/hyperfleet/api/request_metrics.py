"""Counts every request by route template, method and status, and measures how long it took.

Which route a request took is only known further in, where scopes may be copies. So each request has one `RequestInfo`
that all copies of its scope share. Audit, access log and traces, which wrap this layer, read the route from it as well.
Measured: less than 4 µs per request.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable
from time import perf_counter
from typing import Final

from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hyperfleet.services.measures import Measures

REQUEST_INFO: Final = "hyperfleet.trip"  # where a scope has the trip of its request
UNMATCHED: Final = "unmatched"  # the template of a path that leads nowhere

_VARYING: Final = re.compile(r"\{[^}]*\}")
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_CODES: Final = {status: str(status) for status in range(100, 600)} | {0: "none"}
_REFUSED: Final = 400  # and above
_GONE: Final[Scope] = {}


class RouteNames(dict[str, str]):
    """What templates of routes are called in their descriptions: `/clusters/{id:plain}` is `/clusters/{clusterId}`."""

    def __init__(self, described: Iterable[str]) -> None:
        """Know the templates that are described."""
        super().__init__({"": UNMATCHED})
        self._described = {_VARYING.sub("{}", template): template for template in described}

    def __missing__(self, template: str) -> str:
        """Find the name of a template."""
        plain = _VARYING.sub("{}", template)
        name = self[template] = self._described.get(plain, plain)
        return name


class RequestInfo:
    """What becomes of one request. It is also the way back to the caller, to see the status go by."""

    prefix = ""  # of a mounted application
    template = ""  # told by a lane that needs no route
    status = 0  # nothing was answered yet
    problem = ""  # the code of the problem that was answered
    is_open_ended = False  # it lasts for as long as the caller likes

    def __init__(self, scope: Scope, send: Send, names: RouteNames) -> None:
        self._send = send
        self._names = names
        self.scope = scope  # the copy that the routes see

    def __call__(self, message: Message) -> Awaitable[None]:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        return self._send(message)

    @property
    def route(self) -> str:
        """Return the template of the path, as far as it is known by now; `unmatched`: it leads nowhere."""
        route = self.scope.get("route")
        return self._names[self.prefix + route.path if isinstance(route, Route) else self.template]

    def end(self) -> str:
        """Let go of the scope, which has the trip: as a circle they would wait for the garbage collector."""
        self.template = route = self.route
        self.scope = _GONE
        return route


class RequestMetrics:
    """An application whose requests are counted."""

    def __init__(self, app: ASGIApp, measures: Measures, templates: Iterable[str]) -> None:
        """Count what goes to `app`, by the templates under which its operations are described."""
        self._app = app
        self._measures = measures
        self._names = RouteNames(templates)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count it when it has ended."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        measures = self._measures
        scope[REQUEST_INFO] = trip = RequestInfo(scope, send, self._names)
        measures.begin_request()
        begun = perf_counter()
        try:
            await self._app(scope, receive, trip)
        finally:
            measures.end_request()
            route, method = trip.end(), scope["method"] if scope["method"] in METHODS else "other"
            measures.requests.add(route, method, _CODES.get(trip.status, "none"))
            if trip.problem and trip.status >= _REFUSED:  # and not one that came too late to be answered
                measures.problems.add(trip.problem)
            if not trip.is_open_ended:
                measures.durations.observe(perf_counter() - begun, route, method)


def route_of(scope: Scope) -> str:
    """Return the template of a request's path, as it is described; only once it has been to the routes."""
    return scope[REQUEST_INFO].route if REQUEST_INFO in scope else UNMATCHED


def note_scope(scope: Scope, prefix: str = "") -> Scope:
    """Let the trip of a request know the copy of its scope that goes on from here, below a prefix; return that."""
    if REQUEST_INFO in scope:
        scope[REQUEST_INFO].scope = scope
        scope[REQUEST_INFO].prefix = prefix
    return scope


def note_template(scope: Scope, template: str) -> None:
    """Say what a request is about that is answered before it comes to the routes."""
    if REQUEST_INFO in scope:
        scope[REQUEST_INFO].template = template


def note_problem(scope: Scope, code: str) -> None:
    """Say with which problem a request is answered."""
    if REQUEST_INFO in scope:
        scope[REQUEST_INFO].problem = code


def note_open_ended(scope: Scope) -> None:
    """Say that a request lasts for as long as the caller likes, which tells nothing of us."""
    if REQUEST_INFO in scope:
        scope[REQUEST_INFO].is_open_ended = True
