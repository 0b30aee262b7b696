"""One request and its answer, with patience: what is tried again, when, and for how long. Pure flows, no I/O.

Tried again is what does no harm: a request that never left, and one that is repeatable and was not answered or was
answered with «not now». The pause doubles each time and is cut by chance, so that many clients do not come back
together; a server that says when to come back is believed. Nothing sleeps beyond the deadline.
"""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.client.answers.document import D, Document, read_document
from hyperfleet.client.effects import Flow, Open, Pause, Read, Reply, Request, Send
from hyperfleet.client.errors import ApiError, ConnectionFailed, UnexpectedAnswer, error_of, make_problem, read_problem
from hyperfleet.client.events import EventReader, ServerEvent
from hyperfleet.client.surroundings import REAL, Surroundings

EVENT_STREAM: Final = "text/event-stream"
JSON: Final = {"Content-Type": "application/json"}
SILENCE: Final = 35.0  # seconds; a stream of the server says something every ten

_NOT_NOW: Final = (408, 429, 502, 503, 504)
_NOTHING_DONE: Final = (408, 429)  # so even what is not repeatable may be sent again
_FIRST_PAUSE: Final = 0.1  # seconds, before it is cut by chance
_LONGEST_PAUSE: Final = 10.0

T = TypeVar("T")


class Patience(Struct, frozen=True):
    """How long to try: `timeout` for one attempt, `deadline` for all of them, `retries` after the first one."""

    timeout: float = 30.0
    deadline: float = 120.0
    retries: int = 6
    surroundings: Surroundings = REAL

    def begin(self) -> Attempts:
        """Begin to try something, now."""
        return Attempts(self)


class Attempts:
    """The attempts at one thing: counts them, and says how long to pause before the next one."""

    def __init__(self, patience: Patience) -> None:
        """Try as often and as long as patience lasts, from now on."""
        self._patience = patience
        self._limit = patience.surroundings.monotonic() + patience.deadline
        self._retries: float = patience.retries
        self.failed = 0

    @property
    def remaining(self) -> float:
        """Return how many seconds are left."""
        return self._limit - self._patience.surroundings.monotonic()

    @property
    def timeout(self) -> float:
        """Return how long the next attempt may take."""
        return max(min(self._patience.timeout, self.remaining), 0.001)

    def pause(self, told: float | None = None) -> float | None:
        """Return how long to pause after a failure; None: there is no time or patience left for another attempt."""
        longest = min(_FIRST_PAUSE * 2.0 ** min(self.failed, 10), _LONGEST_PAUSE)
        self.failed += 1
        chosen = longest * (0.5 + self._patience.surroundings.chance() / 2)
        seconds = chosen if told is None else max(told, chosen)
        return None if self.failed > self._retries or seconds >= self.remaining else seconds

    def persist(self, until: float | None = None) -> None:
        """Forget earlier failures: something got through. From now on only time counts, not how often we try."""
        deadline = self._patience.surroundings.monotonic() + self._patience.deadline
        self.failed, self._retries, self._limit = 0, float("inf"), deadline if until is None else until


# ── whole answers ────────────────────────────────────────────────────────────────────────────────────────────────


def exchange(request: Request, patience: Patience) -> Flow[Reply]:
    """Send a request until it is answered; raise the error that the last answer stands for."""
    attempts = patience.begin()
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
        pause = attempts.pause(told_pause(failure)) if may_repeat(request, failure) else None
        if pause is None:
            failure.attempts = tries
            raise failure
        yield Pause(pause)
    raise AssertionError("it counts for ever")


def fetch(type_: type[D], request: Request, patience: Patience) -> Flow[D]:
    """Send a request and read the answer as a document."""
    reply = yield from exchange(request, patience)
    return decode(type_, reply)


def decode(type_: type[D], reply: Reply) -> D:
    """Read an answer as a document."""
    try:
        return read_document(type_, reply.body, reply.headers.get("etag", ""))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnexpectedAnswer(_misunderstood(type_, reply, error)) from error


def decode_part(type_: type[T], body: Any) -> T:
    """Read a part of an answer or the data of an event."""
    try:
        if issubclass(type_, Document):
            return read_document(type_, bytes(body))
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnexpectedAnswer(f"what the server sent is not a {type_.__name__}: {error}") from error


def may_repeat(request: Request, failure: ConnectionFailed | ApiError) -> bool:
    """Tell whether a request that failed like that may do better, and does no harm, if it is sent again."""
    if isinstance(failure, ConnectionFailed):
        return not failure.is_lasting and (request.is_repeatable or not failure.is_sent)
    if failure.code == "WaitTimeout":
        return False
    return failure.status in (_NOT_NOW if request.is_repeatable else _NOTHING_DONE)


def told_pause(failure: ConnectionFailed | ApiError) -> float | None:
    """Return the pause that the server asked for."""
    return failure.retry_after if isinstance(failure, ApiError) else None


def failure_of(reply: Reply) -> ApiError:
    """Return the error that an answer stands for; raise `UnexpectedAnswer` if it leads elsewhere."""
    if 300 <= reply.status < 400:
        where = reply.headers.get("location", "nowhere")
        raise UnexpectedAnswer(
            f"the answer is a redirect (HTTP {reply.status}) to {where}; give that address itself if it is right"
        )
    request_id = reply.headers.get("x-request-id", "")
    problem = read_problem(reply.body, reply.status, request_id) or make_problem(reply.status, reply.body, request_id)
    return error_of(problem, _read_seconds(reply.headers.get("retry-after", "")))


def _read_seconds(text: str) -> float | None:
    return float(text) if text.isdecimal() and len(text) < 8 else None


def _misunderstood(type_: type[Document], reply: Reply, error: Exception) -> str:
    what = reply.media_type or "an answer of no type"
    if what not in ("application/json", EVENT_STREAM):
        return f"the answer is {what}, not JSON (HTTP {reply.status}); is this the address of a HyperFleet server?"
    return f"the answer is not a {type_.__name__} as this client knows it: {error}"


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Listening:
    """A stream that is open; its events are asked for one by one."""

    def __init__(self) -> None:
        """Begin with nothing heard."""
        self._reader = EventReader()
        self._heard: deque[ServerEvent] = deque()
        self.is_alive = False  # something was heard at all, be it only that the server is there

    def next(self) -> Flow[ServerEvent | None]:
        """Return the next event; None at the end of the stream."""
        while not self._heard:
            piece: bytes = yield Read()
            if not piece:
                return None
            self.is_alive = True
            self._heard.extend(self._take(piece))
        return self._heard.popleft()

    def _take(self, piece: bytes) -> list[ServerEvent]:
        try:
            return self._reader.take(piece)
        except ValueError as error:
            raise UnexpectedAnswer(f"the stream makes no sense: {error}") from error


def listen(request: Request, timeout: float, silence: float = SILENCE) -> Flow[Listening]:
    """Open a stream, once; raise what keeps it from beginning."""
    asking = replace(request, headers={**request.headers, "Accept": EVENT_STREAM})
    reply: Reply = yield Open(asking, timeout, silence)
    if not reply.is_success:
        raise failure_of(reply)
    if reply.media_type != EVENT_STREAM:
        raise UnexpectedAnswer(
            f"the answer is {reply.media_type or 'of no type'}, not a stream of events; "
            "is this the address of a HyperFleet server?"
        )
    return Listening()
