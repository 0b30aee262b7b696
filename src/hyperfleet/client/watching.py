"""Watching without end: what a stream tells, resumed by position when a connection is lost. Flows of both faces.

When nobody can go on (the position is forgotten, or the connection broke in the midst of a list), the watch begins
anew with a list and says so with an event of its own, `relist`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic

from msgspec.structs import replace

from hyperfleet.client.answers.resource import Departure, W, WatchEvent
from hyperfleet.client.effects import Feed, Flow, Item, Pause, Request
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
from hyperfleet.client.exchange import SILENCE, Attempts, Patience, decode_part, listen, may_repeat, told_pause

_GONE: Final = "gone"  # the server's last word to somebody who reads too slowly


class Watch(Generic[W]):
    """One watch: where it is, and what whoever watches was told of the present list."""

    def __init__(self, request: Request, shape: type[W], patience: Patience, *, after: int | None = None) -> None:
        """Begin with a list, or after a position."""
        self._request = replace(request, query=(*request.query, ("watch", "true")))
        self._shape = shape
        self._patience = patience
        self._position = after
        self._is_resumable = after is not None  # there is a position, and nothing of a list is under way
        self._has_told = after is not None  # of the present list, or of what came after it
        self._was_there = self._has_told

    def follow(self, *, is_single: bool = False, is_log: bool = True) -> Feed[WatchEvent[W]]:
        """Yield events until nothing can follow. `is_single`: one resource; not `is_log`: there are no positions."""
        attempts = self._patience.begin()
        while True:
            failure: ApiError | ConnectionFailed | None = None
            stream = None
            try:
                stream = yield from listen(self._ask(), attempts.timeout)
                while (heard := (yield from stream.next())) is not None and heard.name != _GONE:
                    event = self._read(heard)
                    yield Item(event)
                    if is_single and event.kind == "deleted":
                        return
                if heard is not None:
                    self._forget()
            except Forgotten:
                self._forget()
            except NotFound:
                if not (is_single and self._was_there):
                    raise
                yield Item(WatchEvent("deleted", reason="Removed"))
                return
            except (ConnectionFailed, ApiError) as error:
                failure = error
            if stream is not None and stream.is_alive:
                attempts.persist()
            yield from self._rest(attempts, failure)
            if not (self._is_resumable and is_log) and self._has_told:
                self._forget()
                self._has_told = False
                yield Item(WatchEvent("relist"))

    def _ask(self) -> Request:
        if not self._is_resumable:
            return self._request
        return replace(self._request, headers={**self._request.headers, "Last-Event-ID": str(self._position)})

    def _forget(self) -> None:
        self._position, self._is_resumable = None, False

    def _rest(self, attempts: Attempts, failure: ApiError | ConnectionFailed | None) -> Flow[None]:
        """Pause before the next connection; give up if it will not do better, or has not for too long."""
        if failure is not None and not may_repeat(self._request, failure):
            raise failure
        pause = attempts.pause(told_pause(failure) if failure else None)
        if pause is None:
            raise failure or ConnectionFailed("the server ends every watch at once", is_sent=True)
        yield Pause(pause)

    def _read(self, heard: ServerEvent) -> WatchEvent[W]:
        """Turn an event of the stream into one of the watch, and note where that leaves us."""
        self._has_told = self._was_there = True
        if heard.position is not None:
            self._position, self._is_resumable = heard.position, True
        match heard.name:
            case "added" | "modified" | "transitions" as kind:
                resource = decode_part(self._shape, heard.data)
                return WatchEvent(kind, heard.position, getattr(resource, "id", ""), resource)
            case "deleted":
                left = decode_part(Departure, heard.data)
                after = decode_part(self._shape, left.object) if bytes(left.object) else None
                return WatchEvent("deleted", heard.position, left.id, after, left.reason)
            case "synced":
                return WatchEvent("synced", heard.position)
        return WatchEvent("bookmark", heard.position)  # also what only a newer server knows


def conclude(
    request: Request, timeout: float, on_progress: Callable[[ServerEvent], None], silence: float = SILENCE
) -> Flow[ServerEvent]:
    """Listen to a stream that ends with `result` or `failed`; return the one, raise the other, hand on the rest."""
    stream = yield from listen(request, timeout, silence)
    while (heard := (yield from stream.next())) is not None:
        if heard.name == "result":
            return heard
        if heard.name == "failed":
            raise error_of(read_problem(heard.data, 0) or make_problem(500, heard.data))
        on_progress(heard)
    raise ConnectionFailed("the stream ended before its result", is_sent=True)
