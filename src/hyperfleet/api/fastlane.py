"""The fast lanes: reading one resource and taking in a report, which make up nearly all traffic.

`FastLane` answers the first without anything around it; `ReportLane` hands the second to its handler without asking
the router. Whatever is unusual about such a reading (a condition, a wish for compression, nothing found, a fault)
makes it take the ordinary way, where it gets its answer. There is no time limit on it but the store's own; that it
cannot be reached is told at once, not tried a second time. `python -m bench server` tells what this is worth.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hyperfleet.api.callers import caller_of_scope
from hyperfleet.api.context import Context
from hyperfleet.api.envelope import new_request_id
from hyperfleet.api.problems import Refused, answer_problem, from_error
from hyperfleet.api.requests import is_id
from hyperfleet.api.wire import ALIASES, BASE
from hyperfleet.errors import HyperFleetError, StoreError
from hyperfleet.ports import Answer

Endpoint = Callable[[Request], Awaitable[Response]]
AnswerError = Callable[[Request, Exception], Awaitable[Response]]

_LOG: Final = logging.getLogger(__name__)
_REPORTS: Final = "/statuses"

# Headers that change what is answered, beyond what is done here.
_UNUSUAL: Final = frozenset({b"if-match", b"if-none-match", b"accept-encoding", b"range", b"x-request-id"})
_HEADERS: Final = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-cache"),
    (b"vary", b"Accept-Encoding"),
]


class FastLane:
    """An application whose resources are read at once."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        """Take what is usual off `app`."""
        self._app = app
        self._store = context.store
        tops = [kind for kind in context.kinds if kind.parent is None]
        self._kinds = {f"{base}/{kind.plural}": kind.name for base in (BASE, *ALIASES) for kind in tops}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a usual reading of one resource; pass everything else on."""
        if scope["type"] == "http" and scope["method"] == "GET" and not scope["query_string"]:
            collection, _, id_ = scope["path"].rpartition("/")
            kind = self._kinds.get(collection)
            is_usual = is_id(id_) and _UNUSUAL.isdisjoint([name for name, _ in scope["headers"]])
            if kind is not None and is_usual and await self._answer(kind, id_, scope, receive, send):
                return
        await self._app(scope, receive, send)

    async def _answer(self, kind: str, id_: str, scope: Scope, receive: Receive, send: Send) -> bool:
        try:
            answer = await self._store.read_answer(kind, id_, caller_of_scope(scope).scope)
        except StoreError as error:
            await _send_problem(error, scope, receive, send)
            return True
        except Exception as error:  # noqa: BLE001  # whatever it is, it is told on the ordinary way
            _LOG.debug("%s %s takes the ordinary way: %s", kind, id_, error)
            return False
        if answer is not None:
            await _send(answer, send)
        return answer is not None


class ReportLane:
    """An application whose reports go straight to their handlers."""

    def __init__(self, app: ASGIApp, endpoints: Mapping[str, Endpoint], answer_error: AnswerError) -> None:
        """Take `POST …/statuses` off `app`; `endpoints` has the handlers by the path of their collection."""
        self._app = app
        self._endpoints = endpoints
        self._answer_error = answer_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take in a report; pass everything else on."""
        endpoint, id_ = self._find(scope) if scope["type"] == "http" else (None, "")
        if endpoint is None:
            await self._app(scope, receive, send)
            return
        request = Request({**scope, "path_params": {"id": id_}}, receive)
        try:
            response = await endpoint(request)
        except (Refused, HyperFleetError) as error:
            response = await self._answer_error(request, error)
        await response(scope, receive, send)

    def _find(self, scope: Scope) -> tuple[Endpoint | None, str]:
        if scope["method"] != "POST" or scope["query_string"] or not scope["path"].endswith(_REPORTS):
            return None, ""
        collection, _, id_ = scope["path"].removesuffix(_REPORTS).rpartition("/")
        return self._endpoints.get(collection), id_


async def _send_problem(error: StoreError, scope: Scope, receive: Receive, send: Send) -> None:
    request_id = new_request_id()
    _LOG.warning("request %s: %s: %s", request_id, type(error).__name__, error)
    scope["state"] = {**scope.get("state", {}), "request_id": request_id}
    response = answer_problem(from_error(error), Request(scope, receive))
    response.headers["X-Request-Id"] = request_id
    await response(scope, receive, send)


async def _send(answer: Answer, send: Send) -> None:
    headers = [
        *_HEADERS,
        (b"etag", b'"%d"' % answer.revision),
        (b"content-length", b"%d" % len(answer.body)),
        (b"x-request-id", new_request_id().encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
