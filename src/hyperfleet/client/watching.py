"""Watching without end: events of a stream, resumed by position after a lost connection. Flows of both faces.

If a watch cannot resume (the position is no longer kept, or the connection broke during the list), it starts over with
a list and announces that with an event of its own, `relist`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic

from msgspec.structs import replace

from hyperfleet.client.answers.resource import DeletedItem, W, WatchEvent
from hyperfleet.client.effects import ApiRequest, Feed, FeedItem, Flow, Pause
from hyperfleet.client.errors import (
    ApiError,
    ConnectionFailed,
    Forgotten,
    NotFound,
    error_of,
    make_problem,
    read_problem,
)
from hyperfleet.client.events import ServerEvent
from hyperfleet.client.exchange import (
    SILENCE,
    Attempts,
    RetryPolicy,
    decode_part,
    may_repeat,
    open_stream,
    requested_pause,
)

_GONE: Final = "gone"  # the server's last event to a client that reads too slowly


class Watch(Generic[W]):
    """One watch: its position, and what it has emitted since the last list."""

    def __init__(self, request: ApiRequest, shape: type[W], retry: RetryPolicy, *, after: int | None = None) -> None:
        """Start with a list, or after a position."""
        self._request = replace(request, query=(*request.query, ("watch", "true")))
        self._shape = shape
        self._retry = retry
        self._position = after
        self._is_resumable = after is not None  # there is a position, and no list is in progress
        self._has_emitted = after is not None  # since the last `relist`
        self._has_existed = self._has_emitted

    def follow(self, *, is_single: bool = False, is_log: bool = True) -> Feed[WatchEvent[W]]:
        """Yield events until none can follow. `is_single`: one resource; not `is_log`: there are no positions."""
        attempts = self._retry.begin()
        while True:
            failure: ApiError | ConnectionFailed | None = None
            stream = None
            try:
                stream = yield from open_stream(self._ask(), attempts.timeout)
                while (received := (yield from stream.next())) is not None and received.name != _GONE:
                    event = self._read(received)
                    yield FeedItem(event)
                    if is_single and event.kind == "deleted":
                        return
                if received is not None:
                    self._forget()
            except Forgotten:
                self._forget()
            except NotFound:
                if not (is_single and self._has_existed):
                    raise
                yield FeedItem(WatchEvent("deleted", reason="Removed"))
                return
            except (ConnectionFailed, ApiError) as error:
                failure = error
            if stream is not None and stream.is_alive:
                attempts.reset()
            yield from self._pause_before_retry(attempts, failure)
            if not (self._is_resumable and is_log) and self._has_emitted:
                self._forget()
                self._has_emitted = False
                yield FeedItem(WatchEvent("relist"))

    def _ask(self) -> ApiRequest:
        if not self._is_resumable:
            return self._request
        return replace(self._request, headers={**self._request.headers, "Last-Event-ID": str(self._position)})

    def _forget(self) -> None:
        self._position, self._is_resumable = None, False

    def _pause_before_retry(self, attempts: Attempts, failure: ApiError | ConnectionFailed | None) -> Flow[None]:
        """Pause before the next connection; raise the failure if retrying does not help or the deadline is over."""
        if failure is not None and not may_repeat(self._request, failure):
            raise failure
        pause = attempts.pause(requested_pause(failure) if failure else None)
        if pause is None:
            raise failure or ConnectionFailed("the server closes every watch at once", is_sent=True)
        yield Pause(pause)

    def _read(self, event: ServerEvent) -> WatchEvent[W]:
        """Convert an event of the stream to one of the watch, and keep its position."""
        self._has_emitted = self._has_existed = True
        if event.position is not None:
            self._position, self._is_resumable = event.position, True
        match event.name:
            case "added" | "modified" | "transitions" as kind:
                resource = decode_part(self._shape, event.data)
                return WatchEvent(kind, event.position, getattr(resource, "id", ""), resource)
            case "deleted":
                left = decode_part(DeletedItem, event.data)
                after = decode_part(self._shape, left.object) if bytes(left.object) else None
                return WatchEvent("deleted", event.position, left.id, after, left.reason)
            case "synced":
                return WatchEvent("synced", event.position)
        return WatchEvent("bookmark", event.position)  # also events that only a newer server knows


def read_result(
    request: ApiRequest, timeout: float, on_progress: Callable[[ServerEvent], None], silence: float = SILENCE
) -> Flow[ServerEvent]:
    """Read a stream that ends with `result` or `failed`: return the one, raise the other, pass on the rest."""
    stream = yield from open_stream(request, timeout, silence)
    while (event := (yield from stream.next())) is not None:
        if event.name == "result":
            return event
        if event.name == "failed":
            raise error_of(read_problem(event.data, 0) or make_problem(500, event.data))
        on_progress(event)
    raise ConnectionFailed("the stream ended before its result", is_sent=True)
