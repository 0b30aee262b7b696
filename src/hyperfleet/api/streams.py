"""Server-sent events: the frames, and the response that sends them for as long as the caller is there and let in.

`watch`, `adapter_watch` and others make the frames. Nothing is queued for a caller: the next frames are asked for when
the connection has taken the last ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hyperfleet.api.boundary import lift_time_limit
from hyperfleet.api.callers import caller_of_scope, is_still_authorized
from hyperfleet.errors import StoreError

EVENT_STREAM: Final = "text/event-stream"
# A line that readers ignore. It is the first thing we say, so that the headers leave at once, and whatever we say
# when there is nothing to say, so that nobody takes a quiet connection for a dead one.
HEARTBEAT: Final = b":\n\n"
QUIET: Final = 10.0  # seconds; many proxies give up on a connection that says nothing for thirty
RECHECK: Final = 5.0  # seconds after which a token is looked at again before anything more is sent to its owner

_LOG: Final = logging.getLogger(__name__)
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # asks nginx not to gather frames
}

Frames = AsyncIterator[bytes]
T = TypeVar("T")


class Seats(Protocol):
    """Where those sit who are served for long; there are only so many."""

    def seat(self, caller: str) -> AbstractContextManager[None]:
        """Let a caller take a seat for the length of a block; raise `Overloaded` if none is left."""
        ...


def frame(event: str, data: bytes, position: int | None = None) -> bytes:
    """Write one event; `data` is JSON on one line. With a position, a reader can go on after it."""
    id_ = b"" if position is None else b"id: %d\n" % position
    return b"event: %b\n%bdata: %b\n\n" % (event.encode(), id_, data)


class EventStream(Response):
    """A response without an end, unless the frames have one."""

    media_type = EVENT_STREAM

    def __init__(self, seats: Seats, frames: Frames) -> None:
        """Send `frames` to somebody who takes one of the `seats`."""
        super().__init__(None, 200, _HEADERS)
        del self.headers["content-length"]
        self._seats = seats
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the frames until they end or the caller has gone."""
        with self._seats.seat(caller_of_scope(scope).name):
            lift_time_limit(scope)
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if scope["method"] != "HEAD":
                await attend(receive, self._pump(scope, send))
            await send({"type": "http.response.body", "body": b""})

    async def _pump(self, scope: Scope, send: Send) -> None:
        await send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})
        time = asyncio.get_running_loop().time
        recheck_at = time() + RECHECK
        try:
            async for frames in self._frames:
                if time() >= recheck_at:
                    if not await is_still_authorized(scope):
                        return  # who comes back is told why
                    recheck_at = time() + RECHECK
                if frames:  # an empty piece could be taken for the end
                    await send({"type": "http.response.body", "body": frames, "more_body": True})
        except StoreError as error:
            _LOG.warning("a stream ends before its time: %s", error)  # its reader comes back and gets a proper answer
        finally:
            if isinstance(self._frames, AsyncGenerator):
                await self._frames.aclose()


async def attend(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Do something for as long as the caller is there; raise `ClientDisconnect` when they have gone."""
    working, leaving = asyncio.create_task(work), asyncio.create_task(_until_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
