"""The fast lane of readings: one resource, read without anything around it.

Whatever is unusual about a reading (a condition, an answer so large that it is worth compressing, nothing found, a
fault) makes it take the ordinary way, where it gets its answer. There is no time limit on it but the store's own; that
it cannot be reached is told at once, not tried a second time. `python -m bench server` tells what this is worth.
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
from hyperfleet.api.responses import WORTHWHILE
from hyperfleet.api.wire import ALIASES, BASE
from hyperfleet.errors import StoreError
from hyperfleet.ports import Answer
from hyperfleet.services.callers import Caller

_LOG: Final = logging.getLogger(__name__)

# Headers that change what is answered, beyond what is done here.
_UNUSUAL: Final = frozenset({b"if-match", b"if-none-match", b"range"})
_HEADERS: Final = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-cache"),
    (b"vary", b"Accept-Encoding"),
]


class ReadFastPath:
    """An application whose resources are read at once."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        """Take what is usual off `app`."""
        self._app = app
        self._store = context.store
        tops = [kind for kind in context.kinds if kind.parent is None]
        self._kinds = {f"{base}/{kind.plural}": kind.name for base in (BASE, *ALIASES) for kind in tops}
        self._templates = {kind.name: f"{BASE}/{kind.plural}/{{id}}" for kind in tops}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer a usual reading of one resource; pass everything else on."""
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
        except Exception as error:  # noqa: BLE001  # whatever it is, it is told on the ordinary way
            _LOG.debug("%s %s takes the ordinary way: %s", kind, id_, error)
            answer = None
        if answer is None or len(answer.body) >= WORTHWHILE:
            await self._app(scope, receive, send)
            return
        note_template(scope, self._templates[kind])
        await send(_start_of(answer, scope))
        await send({"type": "http.response.body", "body": answer.body})


def _start_of(answer: Answer, scope: Scope) -> Message:
    headers = [
        *_HEADERS,
        (b"etag", b'"%d"' % answer.revision),
        (b"content-length", b"%d" % len(answer.body)),
        (b"x-request-id", id_of(scope)),
    ]
    return {"type": "http.response.start", "status": 200, "headers": headers}
