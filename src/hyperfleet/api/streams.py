"""Server-sent events: frames, and the response that sends them while the caller is connected and authenticated.

`watch`, `adapter_watch` and others make the frames. Nothing is queued for a caller: the next frames are made when the
connection has accepted the last ones.
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
# A comment, which clients ignore. Sent first, so that the headers go out at once, and during silence, so that a quiet
# connection is not taken for a dead one.
HEARTBEAT: Final = b":\n\n"
QUIET: Final = 10.0  # seconds; many proxies close a connection after thirty seconds of silence
RECHECK: Final = 5.0  # seconds; a revoked token stops a stream within this time

_LOG: Final = logging.getLogger(__name__)
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # tells nginx not to buffer frames
}

Frames = AsyncIterator[bytes]
T = TypeVar("T")


class StreamSlots(Protocol):
    """A limited number of slots for long requests."""

    def admit(self, caller: str) -> AbstractContextManager[None]:
        """Hold a slot for a caller within a block; raise `Overloaded` if none is left."""
        ...


def frame(event: str, data: bytes, position: int | None = None) -> bytes:
    """Write one event; `data` is JSON on one line. A position lets a client resume after it."""
    id_ = b"" if position is None else b"id: %d\n" % position
    return b"event: %b\n%bdata: %b\n\n" % (event.encode(), id_, data)


class EventStream(Response):
    """A response that lasts until the frames end or the caller disconnects."""

    media_type = EVENT_STREAM

    def __init__(self, slots: StreamSlots, frames: Frames) -> None:
        """Send `frames` while holding one of the `slots`."""
        super().__init__(None, 200, _HEADERS)
        del self.headers["content-length"]
        self._slots = slots
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the frames until they end or the caller disconnects."""
        with self._slots.admit(caller_of_scope(scope).name):
            lift_time_limit(scope)
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if scope["method"] != "HEAD":
                await run_while_connected(receive, self._pump(scope, send))
            await send({"type": "http.response.body", "body": b""})

    async def _pump(self, scope: Scope, send: Send) -> None:
        await send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})
        time = asyncio.get_running_loop().time
        recheck_at = time() + RECHECK
        try:
            async for frames in self._frames:
                if time() >= recheck_at:
                    if not await is_still_authorized(scope):
                        return  # the client learns why when it reconnects
                    recheck_at = time() + RECHECK
                if frames:  # servers may take an empty chunk for the end
                    await send({"type": "http.response.body", "body": frames, "more_body": True})
        except StoreError as error:
            _LOG.warning("a stream was ended: %s", error)  # the client reconnects and gets a proper error
        finally:
            if isinstance(self._frames, AsyncGenerator):
                await self._frames.aclose()


async def run_while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Run `work` while the caller is connected; raise `ClientDisconnect` when the caller disconnects."""
    working, leaving = asyncio.create_task(work), asyncio.create_task(_until_disconnected(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
