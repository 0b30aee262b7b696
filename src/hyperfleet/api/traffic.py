"""Every request is counted on its way: by the template of its path, how it was answered, and how long that took.

The outermost layer of the application. What a request turned out to be is known only further in, where scopes may be
copies; so there is one `Trip` for each request, which all copies share. Measured: less than 3 µs a request.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable
from time import perf_counter
from typing import Final

from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hyperfleet.services.measures import Measures

TRIP: Final = "hyperfleet.trip"  # where a scope has the trip of its request
UNMATCHED: Final = "unmatched"  # the template of a path that leads nowhere

_VARYING: Final = re.compile(r"\{[^}]*\}")
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_CODES: Final = {status: str(status) for status in range(100, 600)} | {0: "none"}


class Trip:
    """What becomes of one request. It is also the way back to the caller, to see the status go by."""

    __slots__ = ("_send", "is_lasting", "prefix", "problem", "scope", "status", "template")

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send = send
        self.scope = scope  # the copy that the routes see
        self.prefix = ""  # of a mounted application
        self.template = ""  # told by a lane that needs no route
        self.status = 0  # nothing was answered yet
        self.problem = ""  # the code of the problem that was answered
        self.is_lasting = False  # it lasts for as long as the caller likes

    def __call__(self, message: Message) -> Awaitable[None]:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        return self._send(message)

    def find_template(self) -> str:
        """Return the template of the path as the router or a lane has it; empty: it leads nowhere."""
        route = self.scope.get("route")
        return self.prefix + route.path if isinstance(route, Route) else self.template


class Traffic:
    """An application whose requests are counted."""

    def __init__(self, app: ASGIApp, measures: Measures, templates: Iterable[str]) -> None:
        """Count what goes to `app`, by the templates under which its operations are described."""
        self._app = app
        self._measures = measures
        self._described = {_VARYING.sub("{}", template): template for template in templates}
        self._names = {"": UNMATCHED}  # by the templates of routes, which may have other names for what varies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count it when it has ended."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        measures = self._measures
        scope[TRIP] = trip = Trip(scope, send)
        measures.begin_request()
        begun = perf_counter()
        try:
            await self._app(scope, receive, trip)
        finally:
            measures.end_request()
            method = scope["method"] if scope["method"] in _METHODS else "other"
            template = trip.find_template()
            del trip.scope  # which has the trip: as a circle they would wait for the garbage collector
            route = self._names.get(template) or self._name(template)
            measures.requests.add(route, method, _CODES.get(trip.status, "none"))
            if trip.problem:
                measures.problems.add(trip.problem)
            if not trip.is_lasting:
                measures.durations.observe(perf_counter() - begun, route, method)

    def _name(self, template: str) -> str:
        """Return how a route is called in its description; `/clusters/{id:plain}` is `/clusters/{clusterId}`."""
        plain = _VARYING.sub("{}", template)
        name = self._names[template] = self._described.get(plain, plain)
        return name


def tell_scope(scope: Scope, prefix: str = "") -> Scope:
    """Let the trip of a request know the copy of its scope that goes on from here, below a prefix; return that."""
    if TRIP in scope:
        scope[TRIP].scope = scope
        scope[TRIP].prefix = prefix
    return scope


def tell_template(scope: Scope, template: str) -> None:
    """Say what a request is about that is answered before it comes to the routes."""
    if TRIP in scope:
        scope[TRIP].template = template


def tell_problem(scope: Scope, code: str) -> None:
    """Say with which problem a request is answered."""
    if TRIP in scope:
        scope[TRIP].problem = code


def tell_lasting(scope: Scope) -> None:
    """Say that a request lasts for as long as the caller likes, which tells nothing of us."""
    if TRIP in scope:
        scope[TRIP].is_lasting = True
