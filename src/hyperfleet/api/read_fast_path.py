"""The fast path of reads: one resource, read without the router.

Anything unusual about a read (a precondition, an answer large enough to compress, not found, an unexpected error) goes
to the router, which answers it. Only the store limits the time; an unreachable store is reported at once, not tried
again. `python -m bench server` measures the gain.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hyperfleet.api.boundary import id_of, send_problem
from hyperfleet.api.callers import caller_or_none
from hyperfleet.api.context import Context
from hyperfleet.api.problems import from_error
from hyperfleet.api.request_metrics import note_template
from hyperfleet.api.requests import ID
from hyperfleet.api.responses import MIN_COMPRESSED
from hyperfleet.api.wire import ALIASES, BASE
from hyperfleet.errors import StoreError
from hyperfleet.ports import StoredAnswer
from hyperfleet.services.callers import Caller

_LOG: Final = logging.getLogger(__name__)

# Headers that change the answer in ways that only the router handles.
_UNUSUAL: Final = frozenset({b"if-match", b"if-none-match", b"range"})
_HEADERS: Final = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-cache"),
    (b"vary", b"Accept-Encoding"),
]


class ReadFastPath:
    """ASGI middleware that answers plain reads of one resource."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        """Answer plain reads; `app` answers the rest."""
        self._app = app
        self._store = context.store
        tops = [kind for kind in context.kinds if kind.parent is None]
        self._kinds = {f"{base}/{kind.plural}": kind.name for base in (BASE, *ALIASES) for kind in tops}
        self._templates = {kind.name: f"{BASE}/{kind.plural}/{{id}}" for kind in tops}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer a plain read of one resource; pass everything else on."""
        if scope["type"] == "http" and scope["method"] == "GET" and not scope["query_string"]:
            collection, _, id_ = scope["path"].rpartition("/")
            kind = self._kinds.get(collection)
            if kind is not None and ID.fullmatch(id_) and _UNUSUAL.isdisjoint(dict(scope["headers"])):
                caller = caller_or_none(scope)
                if caller is not None and caller.may("reader"):
                    return self._answer(kind, id_, caller, scope, receive, send)
        return self._app(scope, receive, send)

    async def _answer(self, kind: str, id_: str, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._store.read_answer(kind, id_, caller.scope)
        except StoreError as error:
            note_template(scope, self._templates[kind])
            await send_problem(from_error(error), scope, send, error)
            return
        except Exception as error:  # noqa: BLE001  # the router meets the same error and reports it
            _LOG.debug("%s %s goes to the router: %s", kind, id_, error)
            answer = None
        if answer is None or len(answer.body) >= MIN_COMPRESSED:
            await self._app(scope, receive, send)
            return
        note_template(scope, self._templates[kind])
        await send(_start_of(answer, scope))
        await send({"type": "http.response.body", "body": answer.body})


def _start_of(answer: StoredAnswer, scope: Scope) -> Message:
    headers = [
        *_HEADERS,
        (b"etag", b'"%d"' % answer.revision),
        (b"content-length", b"%d" % len(answer.body)),
        (b"x-request-id", id_of(scope)),
    ]
    return {"type": "http.response.start", "status": 200, "headers": headers}
