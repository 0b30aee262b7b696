"""A request and its answer as seen from outside: route, status, size, caller. For traces and logs.

Its users wrap the whole application, so they see the fast paths and `/compat` like everything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from starlette.types import Message, Scope, Send

from hyperfleet.api.callers import CALLER
from hyperfleet.api.compat.description import describe
from hyperfleet.api.compat.resource_collections import PREFIX as COMPAT
from hyperfleet.api.context import Context
from hyperfleet.api.description.table import list_operations
from hyperfleet.api.request_metrics import route_of
from hyperfleet.services.callers import Caller

PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})  # too frequent to log or trace


class Exchange:
    """Observes the answer as it is sent."""

    def __init__(self, scope: Scope, send: Send) -> None:
        """Observe what is sent in answer to a request."""
        self._scope = scope
        self._send = send
        self.status = 0  # 0: nothing was answered
        self.size = 0  # bytes of the body
        self.request_id = ""

    async def send(self, message: Message) -> None:
        """Observe a part of the answer and pass it on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.request_id = request_id_in(message)
        else:
            self.size += len(message.get("body", b""))
        await self._send(message)

    @property
    def route(self) -> str:
        """Return the template of the path, once the request is over."""
        return route_of(self._scope)

    @property
    def caller(self) -> str:
        """Return the name of the caller; empty if not authenticated."""
        return caller_name(self._scope)

    @property
    def remote(self) -> str:
        """Return the address of the client."""
        return remote_of(self._scope)


def request_id_in(start: Message) -> str:
    """Return the id that a request was answered with."""
    return next((value.decode() for name, value in start["headers"] if name == b"x-request-id"), "")


def caller_name(scope: Scope) -> str:
    """Return the name of the caller; empty if not authenticated."""
    found = scope.get(CALLER)
    return found.name if isinstance(found, Caller) else ""


def remote_of(scope: Scope) -> str:
    """Return the address that a request came from, which may be that of a proxy."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def list_templates(context: Context) -> Iterator[str]:
    """Yield the templates of all paths, as in the OpenAPI documents."""
    yield from (operation.path for operation in list_operations(context))
    yield from (COMPAT + path for path in describe(context)["paths"])
