"""What every request gets: a canonical path, an id, a time limit, and an answer even if the handler fails.

The layer around the router, inside the fast paths. It never reads bodies and knows nothing of resources.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from contextvars import ContextVar
from itertools import count
from typing import Final
from uuid import uuid4

from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hyperfleet.api.callers import CALLER
from hyperfleet.api.context import Context
from hyperfleet.api.outgoing import PIECE, STALLED, OutgoingBytes, split
from hyperfleet.api.problems import Problem, answer_problem, from_code, from_error
from hyperfleet.api.request_metrics import note_open_ended, note_scope
from hyperfleet.api.wire import ALIASES, BASE
from hyperfleet.errors import HyperFleetError, Overloaded

_LOG: Final = logging.getLogger(__name__)
_MAX_ADDRESS: Final = 16_384  # characters; twice what common proxies accept (8 KiB)
_MAX_PATH_SHOWN: Final = 1_024  # characters; longer paths would bloat logs and problem documents
_TIME_LIMIT: Final = "time_limit"  # key in the state of a request
_FORMATTER: Final = "formatter"  # key in the state of a request: how problems are written, if not as ours
_SANE_ID: Final = re.compile(rb"[\x21-\x7e]{1,128}")

ProblemFormatter = Callable[[Problem, Request], Response]

# The request that the current task serves, for the log. The fast paths set it only when they log something.
REQUEST: Final[ContextVar[Scope | None]] = ContextVar("hyperfleet.request", default=None)


# Cheap, because every request gets one: a random prefix for the process, and a counter.
_ids: Final = map(f"req-{uuid4().hex[:12]}-%x".encode().__mod__, count(1))


def id_of(scope: Scope) -> bytes:
    """Return the id that a request came with, or make one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _SANE_ID.fullmatch(value):
            return bytes(value)
    return next(_ids)


async def send_problem(problem: Problem, scope: Scope, send: Send, error: Exception | None = None) -> None:
    """Answer with a problem outside the boundary; `error` goes to the log only."""
    request_id = id_of(scope)
    _describe_request(scope, request_id)
    if error is not None:
        _log_failure(error, scope)
    await _Reply(send, request_id, scope).answer_instead(problem, Request(scope, _receive_nothing))


def lift_time_limit(scope: Scope) -> None:
    """Let a request run until its caller disconnects: it is a stream, or has a limit of its own."""
    scope["state"][_TIME_LIMIT].reschedule(None)
    note_open_ended(scope)


def format_problems_with(formatter: ProblemFormatter, scope: Scope) -> None:
    """Write problems that the boundary answers, such as a timeout, in the format of another API."""
    scope["state"][_FORMATTER] = formatter


class RequestBoundary(Struct, frozen=True):
    """ASGI middleware that answers every request, whatever happens inside."""

    app: ASGIApp
    context: Context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and answer it if the application does not in time."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = id_of(scope)
        _describe_request(scope, request_id)
        reply = _Reply(send, request_id, scope, self.context.outgoing)
        token = REQUEST.set(scope)
        try:
            problem = await self._pass_on(scope, _Upload(receive), reply)
        finally:
            REQUEST.reset(token)
        if problem is not None:
            await reply.answer_instead(problem, Request(scope, receive))

    async def _pass_on(self, scope: Scope, upload: _Upload, reply: _Reply) -> Problem | None:
        """Let the application answer; return the problem to answer if it did not."""
        if len(scope["path"]) + len(scope["query_string"]) > _MAX_ADDRESS:
            return from_code("UriTooLong")
        try:
            async with asyncio.timeout(self.context.limits.time.total_seconds()) as limit:
                scope["state"][_TIME_LIMIT] = limit
                try:
                    await self.app(_under_base(scope), upload, reply)
                finally:
                    reply.close()
                if reply.refusal is not None:
                    return from_error(reply.refusal)
        except ClientDisconnect:
            return None  # the caller has disconnected
        except TimeoutError:
            return from_code("RequestTimeout" if upload.is_awaited else "Timeout")
        except Exception as error:  # noqa: BLE001  # the outermost loop: whatever it is, the caller gets an answer
            _log_failure(error, scope)
            return from_error(error)
        return None


class _Upload:
    """The `receive` of a request: knows whether we wait for the caller, so that a timeout gets the right code."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._is_complete = False
        self.is_awaited = False

    async def __call__(self) -> Message:
        self.is_awaited = not self._is_complete  # after the body, one waits only for a disconnect
        message = await self._receive()
        self.is_awaited = False
        self._is_complete = not message.get("more_body", False)
        return message


class _Reply:
    """The `send` of a request: adds the request id, drops the body of a HEAD, and sends at the pace of the reader."""

    def __init__(self, send: Send, request_id: bytes, scope: Scope, outgoing: OutgoingBytes | None = None) -> None:
        self._send = send
        self._header = (b"x-request-id", request_id)
        self._scope = scope
        self._outgoing = outgoing
        self._held: Message | None = None  # the start, until the size of the body is known
        self._taken = 0
        self._is_started = False
        self.refusal: Overloaded | None = None  # why the answer was not sent

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._held = {**message, "headers": [*message["headers"], self._header]}
            return
        if message["type"] != "http.response.body":
            await self._send(message)
            return
        body = b"" if self._scope["method"] == "HEAD" else message.get("body", b"")
        if self.refusal is None:
            self._take(len(body))
        if self.refusal is not None:
            return
        if self._held is not None:
            self._is_started, held, self._held = True, self._held, None
            await self._send(held)
        await self._send_body(body, has_more=message.get("more_body", False))

    def _take(self, size: int) -> None:
        """Take memory for a large answer; refuse it if too much waits for its readers already.

        It must not raise: the framework believes that the answer has been started.
        """
        if size > PIECE and self._outgoing is not None and self._held is not None:
            try:
                self._outgoing.take(_reader_of(self._scope), size)
                self._taken = size
            except Overloaded as error:
                self._held, self.refusal = None, error

    async def _send_body(self, body: bytes, *, has_more: bool) -> None:
        if len(body) <= PIECE and not has_more:
            await self._send({"type": "http.response.body", "body": body})
            return
        limit: asyncio.Timeout | None = self._scope["state"].get(_TIME_LIMIT)
        for piece, is_last in split(body):
            async with asyncio.timeout(STALLED):
                await self._send({"type": "http.response.body", "body": piece, "more_body": has_more or not is_last})
            if limit is not None and limit.when() is not None:  # the time limit is for the work, not for the reader
                limit.reschedule(asyncio.get_running_loop().time() + STALLED)

    def close(self) -> None:
        """Give the memory back; call it when nothing more is sent."""
        if self._taken and self._outgoing is not None:
            self._outgoing.give_back(_reader_of(self._scope), self._taken)
            self._taken = 0

    async def answer_instead(self, problem: Problem, request: Request) -> None:
        """Answer with a problem, unless an answer has been started."""
        if not self._is_started:
            self._held = self.refusal = None
            answer: ProblemFormatter = request.scope["state"].get(_FORMATTER, answer_problem)
            await answer(problem, request)(request.scope, request.receive, self)


def _describe_request(scope: Scope, request_id: bytes) -> None:
    """Store the id and the path of a request in its state, for logs and problem documents."""
    state = {"request_id": request_id.decode("ascii"), "path": scope["path"][:_MAX_PATH_SHOWN]}
    scope["state"] = {**scope.get("state", {}), **state}


def _log_failure(error: Exception, scope: Scope) -> None:
    """Log an error: our own in one line, unexpected ones with a traceback."""
    state = scope["state"]
    token = REQUEST.set(scope)
    if isinstance(error, HyperFleetError):
        _LOG.warning("request %s: %s: %s", state["request_id"], type(error).__name__, error)
    else:
        _LOG.error("request %s failed: %s %r", state["request_id"], scope["method"], state["path"], exc_info=error)
    REQUEST.reset(token)


def _reader_of(scope: Scope) -> str:
    """Return who an answer is for: a caller, and the address, because without authentication all have one name."""
    address, _ = scope.get("client") or ("", 0)
    return f"{getattr(scope.get(CALLER), 'name', '')} {address}"


async def _receive_nothing() -> Message:
    return {"type": "http.disconnect"}


def _under_base(scope: Scope) -> Scope:
    """Replace an alias of the base path by the base path."""
    path = scope["path"]
    for alias in ALIASES:
        if path.startswith(f"{alias}/"):
            return note_scope({**scope, "path": BASE + path.removeprefix(alias)})
    return scope
