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

REQUEST_INFO: Final = "hyperfleet.info"  # scope key: the `RequestInfo` of a request
UNMATCHED: Final = "unmatched"  # the template of an unknown path

_VARYING: Final = re.compile(r"\{[^}]*\}")
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_CODES: Final = {status: str(status) for status in range(100, 600)} | {0: "none"}
_REFUSED: Final = 400  # and above
_EMPTY: Final[Scope] = {}


class RouteNames(dict[str, str]):
    """Maps route templates to those of the API description: `/clusters/{id:plain}` to `/clusters/{clusterId}`."""

    def __init__(self, described: Iterable[str]) -> None:
        """Use the templates of the API description."""
        super().__init__({"": UNMATCHED})
        self._described = {_VARYING.sub("{}", template): template for template in described}

    def __missing__(self, template: str) -> str:
        """Look a template up once and keep the result."""
        plain = _VARYING.sub("{}", template)
        name = self[template] = self._described.get(plain, plain)
        return name


class RequestInfo:
    """What is known of one request so far. It is also its `send`, to observe the status."""

    prefix = ""  # of a mounted application
    template = ""  # set by a fast path, which has no route
    status = 0  # 0: no answer yet
    problem = ""  # the code of the answered problem
    is_open_ended = False  # a stream: the caller decides how long it lasts

    def __init__(self, scope: Scope, send: Send, names: RouteNames) -> None:
        self._send = send
        self._names = names
        self.scope = scope  # the copy that the router sees

    def __call__(self, message: Message) -> Awaitable[None]:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        return self._send(message)

    @property
    def route(self) -> str:
        """Return the template of the path as known so far; `unmatched`: no route."""
        route = self.scope.get("route")
        return self._names[self.prefix + route.path if isinstance(route, Route) else self.template]

    def end(self) -> str:
        """Drop the scope, which refers back to this: a cycle would have to wait for the garbage collector."""
        self.template = route = self.route
        self.scope = _EMPTY
        return route


class RequestMetrics:
    """ASGI middleware that counts requests and measures their duration."""

    def __init__(self, app: ASGIApp, measures: Measures, templates: Iterable[str]) -> None:
        """Count requests to `app` by the templates of the API description."""
        self._app = app
        self._measures = measures
        self._names = RouteNames(templates)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and count it when it has ended."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        measures = self._measures
        scope[REQUEST_INFO] = info = RequestInfo(scope, send, self._names)
        measures.begin_request()
        started = perf_counter()
        try:
            await self._app(scope, receive, info)
        finally:
            measures.end_request()
            route, method = info.end(), scope["method"] if scope["method"] in METHODS else "other"
            measures.requests.add(route, method, _CODES.get(info.status, "none"))
            if info.problem and info.status >= _REFUSED:  # not one that came too late to be answered
                measures.problems.add(info.problem)
            if not info.is_open_ended:
                measures.durations.observe(perf_counter() - started, route, method)


def route_of(scope: Scope) -> str:
    """Return the template of the path of a request; known only after routing."""
    return scope[REQUEST_INFO].route if REQUEST_INFO in scope else UNMATCHED


def note_scope(scope: Scope, prefix: str = "") -> Scope:
    """Record the copy of the scope that goes on from here, below a prefix; return it."""
    if REQUEST_INFO in scope:
        scope[REQUEST_INFO].scope = scope
        scope[REQUEST_INFO].prefix = prefix
    return scope


def note_template(scope: Scope, template: str) -> None:
    """Record the template of a request that a fast path answers."""
    if REQUEST_INFO in scope:
        scope[REQUEST_INFO].template = template


def note_problem(scope: Scope, code: str) -> None:
    """Record the problem that a request is answered with."""
    if REQUEST_INFO in scope:
        scope[REQUEST_INFO].problem = code


def note_open_ended(scope: Scope) -> None:
    """Record that a request is a stream, whose duration says nothing about the server."""
    if REQUEST_INFO in scope:
        scope[REQUEST_INFO].is_open_ended = True
