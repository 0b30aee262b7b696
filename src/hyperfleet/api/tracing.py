"""A span for every request except probes. Wraps the application if traces are collected.

The attributes follow OpenTelemetry's conventions for HTTP servers. URLs are recorded without their query, which may
contain more than a collector should see.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final, Protocol

from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from hyperfleet.api.exchanges import PROBES, Exchange
from hyperfleet.api.request_metrics import METHODS, UNMATCHED
from hyperfleet.services.tracing import Attributes, Span

_OTHER: Final = "_OTHER"  # OpenTelemetry's name for unknown methods
_MAX_TEXT: Final = 1_024  # characters of a path or user agent: real ones are shorter


class RequestTracer(Protocol):
    """Opens the spans of requests."""

    def request(self, traceparent: str, tracestate: str) -> AbstractContextManager[Span]:
        """Open a child span of the one that the headers of a request name; both may be empty."""
        ...


class Tracing(Struct, frozen=True):
    """ASGI middleware that traces requests."""

    app: ASGIApp
    tracer: RequestTracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on inside a span."""
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self.app(scope, receive, send)
            return
        with self.tracer.request(*_read_parent(scope)) as span:
            if not span.is_recorded:
                await self.app(scope, receive, send)
                return
            exchange = Exchange(scope, send)
            try:
                await self.app(scope, receive, exchange.send)
            finally:
                _describe(span, scope, exchange)


def _describe(span: Span, scope: Scope, exchange: Exchange) -> None:
    method = scope["method"] if scope["method"] in METHODS else _OTHER
    route = "" if exchange.route == UNMATCHED else exchange.route
    span.rename(f"{method if method != _OTHER else 'HTTP'} {route}".rstrip())
    span.set_attributes(
        {**_requested(scope, method), **_answered(exchange), **({"http.route": route} if route else {})}
    )
    if exchange.status >= 500:
        span.fail(str(exchange.status))


def _read_parent(scope: Scope) -> tuple[str, str]:
    """Return the headers of W3C Trace Context: `traceparent` and `tracestate`, which may be several headers."""
    parent, state = "", []
    for name, value in scope["headers"]:
        if name == b"traceparent":
            parent = value.decode("latin-1")
        elif name == b"tracestate":
            state.append(value.decode("latin-1"))
    return parent, ",".join(state)


def _requested(scope: Scope, method: str) -> Attributes:
    agent = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"user-agent"), "")
    host, port = (scope.get("server") or ("", 0))[:2]
    attributes = {
        "http.request.method": method,
        "url.scheme": scope["scheme"],
        "url.path": scope["path"][:_MAX_TEXT],
        "network.protocol.version": scope["http_version"],
        "server.address": host,
        "user_agent.original": agent[:_MAX_TEXT],
    }
    return {
        **{name: value for name, value in attributes.items() if value},
        **({"server.port": int(port)} if port else {}),
    }


def _answered(exchange: Exchange) -> Attributes:
    attributes: dict[str, str | int] = {
        "http.response.status_code": exchange.status,
        "http.response.body.size": exchange.size,
        "client.address": exchange.remote,
        "enduser.id": exchange.caller,
        "hyperfleet.request_id": exchange.request_id,
    }
    return {
        name: value
        for name, value in attributes.items()
        if value != "" and (value or name != "http.response.status_code")
    }
