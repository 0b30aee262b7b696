"""The fast lane: reading one resource, the request that there are most of, without anything around it.

Whatever is unusual about such a request (a condition, a wish for compression, nothing found, an error) makes it take
the ordinary way, where it gets its answer. There is no time limit here but the store's own, which is shorter than
anybody's patience. `python -m bench server` tells what this is worth.
"""

from __future__ import annotations

import logging
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from hyperfleet.api.callers import caller_of_scope
from hyperfleet.api.context import Context
from hyperfleet.api.envelope import new_request_id
from hyperfleet.api.requests import is_id
from hyperfleet.api.wire import ALIASES, BASE
from hyperfleet.ports import Answer

_LOG: Final = logging.getLogger(__name__)

# Headers that change what is answered, beyond what is done here.
_UNUSUAL: Final = frozenset({b"if-none-match", b"accept-encoding", b"range", b"x-request-id"})
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
            if kind is not None and is_id(id_) and _UNUSUAL.isdisjoint([name for name, _ in scope["headers"]]):
                answer = await self._read(kind, id_, scope)
                if answer is not None:
                    await _send(answer, send)
                    return
        await self._app(scope, receive, send)

    async def _read(self, kind: str, id_: str, scope: Scope) -> Answer | None:
        try:
            return await self._store.read_answer(kind, id_, caller_of_scope(scope).scope)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is told on the ordinary way
            _LOG.debug("%s %s takes the ordinary way: %s", kind, id_, error)
            return None


async def _send(answer: Answer, send: Send) -> None:
    headers = [
        *_HEADERS,
        (b"etag", b'"%d"' % answer.revision),
        (b"content-length", b"%d" % len(answer.body)),
        (b"x-request-id", new_request_id().encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
