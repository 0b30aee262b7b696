"""One request and its response, with retries: what is retried, when, and for how long. Pure flows, no I/O.

Retried is what does no harm: a request that was never sent, and a repeatable one without an answer or with a temporary
error. The pause doubles each time and has jitter, so that many clients do not come back together; `Retry-After` is
respected. No pause goes beyond the deadline.
"""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.client.answers.document import ApiDocument, D, read_document
from hyperfleet.client.effects import ApiRequest, Flow, Open, Pause, Read, Reply, Send
from hyperfleet.client.errors import ApiError, ConnectionFailed, UnexpectedAnswer, error_of, make_problem, read_problem
from hyperfleet.client.events import EventReader, ServerEvent
from hyperfleet.client.runtime import REAL, ClientRuntime

EVENT_STREAM: Final = "text/event-stream"
JSON: Final = {"Content-Type": "application/json"}
SILENCE: Final = 35.0  # seconds; the server sends something on a stream every ten

_RETRYABLE: Final = (408, 429, 502, 503, 504)
_NOT_PROCESSED: Final = (408, 429)  # so even a request that is not repeatable may be sent again
_FIRST_PAUSE: Final = 0.1  # seconds, before jitter
_LONGEST_PAUSE: Final = 10.0

T = TypeVar("T")


class RetryPolicy(Struct, frozen=True):
    """How long to try: `timeout` per attempt, `deadline` for all attempts, `retries` after the first one."""

    timeout: float = 30.0
    deadline: float = 120.0
    retries: int = 6
    runtime: ClientRuntime = REAL

    def begin(self) -> Attempts:
        """Begin to count attempts, now."""
        return Attempts(self)


class Attempts:
    """Counts the attempts of one operation and computes the pauses between them."""

    def __init__(self, retry: RetryPolicy) -> None:
        """Begin with no failures; the deadline counts from now."""
        self._retry = retry
        self._limit = retry.runtime.monotonic() + retry.deadline
        self._retries: float = retry.retries
        self.failed = 0

    @property
    def remaining(self) -> float:
        """Return the seconds left."""
        return self._limit - self._retry.runtime.monotonic()

    @property
    def timeout(self) -> float:
        """Return the timeout of the next attempt."""
        return max(min(self._retry.timeout, self.remaining), 0.001)

    def pause(self, requested: float | None = None) -> float | None:
        """Return how long to pause after a failure; None: no time or no retries left."""
        longest = min(_FIRST_PAUSE * 2.0 ** min(self.failed, 10), _LONGEST_PAUSE)
        self.failed += 1
        chosen = longest * (0.5 + self._retry.runtime.random() / 2)
        seconds = chosen if requested is None else max(requested, chosen)
        return None if self.failed > self._retries or seconds >= self.remaining else seconds

    def reset(self, until: float | None = None) -> None:
        """Forget earlier failures, because a request succeeded. From now on only time limits the attempts."""
        deadline = self._retry.runtime.monotonic() + self._retry.deadline
        self.failed, self._retries, self._limit = 0, float("inf"), deadline if until is None else until


# ── whole answers ────────────────────────────────────────────────────────────────────────────────────────────────


def exchange(request: ApiRequest, retry: RetryPolicy) -> Flow[Reply]:
    """Send a request, with retries; raise the error of the last response."""
    attempts = retry.begin()
    for tries in count(1):
        failure: ConnectionFailed | ApiError
        try:
            reply: Reply = yield Send(request, attempts.timeout)
        except ConnectionFailed as error:
            failure = error
        else:
            if reply.is_success or reply.status in request.answers:
                return replace(reply, attempts=tries)
            failure = failure_of(reply)
        pause = attempts.pause(requested_pause(failure)) if may_repeat(request, failure) else None
        if pause is None:
            failure.attempts = tries
            raise failure
        yield Pause(pause)
    raise AssertionError("it counts for ever")


def fetch(type_: type[D], request: ApiRequest, retry: RetryPolicy) -> Flow[D]:
    """Send a request and decode the response as a document."""
    reply = yield from exchange(request, retry)
    return decode(type_, reply)


def decode(type_: type[D], reply: Reply) -> D:
    """Decode a response as a document."""
    try:
        return read_document(type_, reply.body, reply.headers.get("etag", ""))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnexpectedAnswer(_undecodable(type_, reply, error)) from error


def decode_part(type_: type[T], body: Any) -> T:
    """Decode a part of a response, or the data of an event."""
    try:
        if issubclass(type_, ApiDocument):
            return read_document(type_, bytes(body))
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnexpectedAnswer(f"what the server sent is not a {type_.__name__}: {error}") from error


def may_repeat(request: ApiRequest, failure: ConnectionFailed | ApiError) -> bool:
    """Return whether retrying a request after this failure is safe and may help."""
    if isinstance(failure, ConnectionFailed):
        return not failure.is_lasting and (request.is_repeatable or not failure.is_sent)
    if failure.code == "WaitTimeout":
        return False
    return failure.status in (_RETRYABLE if request.is_repeatable else _NOT_PROCESSED)


def requested_pause(failure: ConnectionFailed | ApiError) -> float | None:
    """Return the pause that the server requested."""
    return failure.retry_after if isinstance(failure, ApiError) else None


def failure_of(reply: Reply) -> ApiError:
    """Return the error of a response; raise `UnexpectedAnswer` for a redirect."""
    if 300 <= reply.status < 400:
        where = reply.headers.get("location", "nowhere")
        raise UnexpectedAnswer(
            f"the answer is a redirect (HTTP {reply.status}) to {where}; use that address if it is the right one"
        )
    request_id = reply.headers.get("x-request-id", "")
    problem = read_problem(reply.body, reply.status, request_id) or make_problem(reply.status, reply.body, request_id)
    return error_of(problem, _read_seconds(reply.headers.get("retry-after", "")))


def _read_seconds(text: str) -> float | None:
    return float(text) if text.isdecimal() and len(text) < 8 else None


def _undecodable(type_: type[ApiDocument], reply: Reply, error: Exception) -> str:
    what = reply.media_type or "an answer of no type"
    if what not in ("application/json", EVENT_STREAM):
        return f"the answer is {what}, not JSON (HTTP {reply.status}); is this the address of a HyperFleet server?"
    return f"the answer is not a {type_.__name__} as this client knows it: {error}"


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────


class ServerEventStream:
    """An open event stream; its events are read one by one."""

    def __init__(self) -> None:
        """Begin with an empty queue."""
        self._reader = EventReader()
        self._events: deque[ServerEvent] = deque()
        self.is_alive = False  # anything was received, even just a comment

    def next(self) -> Flow[ServerEvent | None]:
        """Return the next event; None at the end of the stream."""
        while not self._events:
            piece: bytes = yield Read()
            if not piece:
                return None
            self.is_alive = True
            self._events.extend(self._take(piece))
        return self._events.popleft()

    def _take(self, piece: bytes) -> list[ServerEvent]:
        try:
            return self._reader.take(piece)
        except ValueError as error:
            raise UnexpectedAnswer(f"the stream is invalid: {error}") from error


def open_stream(request: ApiRequest, timeout: float, silence: float = SILENCE) -> Flow[ServerEventStream]:
    """Open a stream, without retries."""
    stream_request = replace(request, headers={**request.headers, "Accept": EVENT_STREAM})
    reply: Reply = yield Open(stream_request, timeout, silence)
    if not reply.is_success:
        raise failure_of(reply)
    if reply.media_type != EVENT_STREAM:
        raise UnexpectedAnswer(
            f"the answer is {reply.media_type or 'of no type'}, not a stream of events; "
            "is this the address of a HyperFleet server?"
        )
    return ServerEventStream()
