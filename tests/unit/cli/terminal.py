"""A terminal for tests: runs command lines in this process, against a real server with a manual clock.

The server is the real application on the memory store; requests reach it without sockets. Streams come piece by piece,
and a test can run something as soon as a text has appeared, so that nothing depends on time.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import httpx
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.api.app import create_app
from hyperfleet.api.context import RequestLimits
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.cli import run
from hyperfleet.cli.session import CliSession
from tests.api.fleet import Fleet, HandClock

# Node pools need an adapter of their own, so that there are bad ones.
POLICY = """
name: clusters
requiredAdapters: [validation, dns, infrastructure, hypershift]
optionalAdapters: [monitoring]
clusterConditions:
  - type: AllAdaptersReady
    evaluate: {expr: 'all(requiredAdapters, {.state == "Completed"})'}
  - type: AdaptersFailed
    polarity: Negative
    evaluate: {expr: 'any(requiredAdapters, {.state == "Failed"})'}
phases:
  failed:
    description: One or more required adapters failed
    requiredConditions: [{type: AdaptersFailed, status: "True"}]
  ready:
    description: All required adapters completed successfully
    requiredConditions: [{type: AllAdaptersReady, status: "True"}]
policies: {staleThreshold: 1h, staleAction: degraded}
---
name: pools
appliesTo: {kind: NodePool}
requiredAdapters: [nodepool]
clusterConditions:
  - type: Done
    evaluate: {expr: 'all(requiredAdapters, {.state == "Completed"})'}
phases: {ready: {requiredConditions: [{type: Done, status: "True"}]}}
"""

_PATIENCE = 20.0  # seconds until what should come by counts as not coming

Step = tuple[str, Callable[[], object]]  # as soon as this text has come by, do this


class Done(Struct, frozen=True):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


class Terminal:
    """Somebody at a keyboard, and the server they speak to."""

    def __init__(self, server: NumberedFleet, runner: asyncio.Runner) -> None:
        self.server = server
        self.clock = server.clock
        self.environment: dict[str, str] = {"HYPERFLEET_SERVER": "http://127.0.0.1:8000", "HOME": "/nowhere"}
        self.width: int | None = None  # of a window; None: output goes into a pipe
        self._runner = runner

    def run(self, *arguments: str, then: Sequence[Step] = ()) -> Done:
        """Run a command line. Of a stream: do what `then` says one after the other, in the end press Ctrl-C."""
        wire = Wire(self._runner, self.server, [*then])
        session = _Session(self.environment, self.clock.now, wire, self.width)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(arguments, session)
        return Done(code, out.getvalue(), err.getvalue())

    def pass_time(self, **duration: float) -> None:
        """Let time pass; what is due by then happens only with the next write."""
        self.clock.pass_time(timedelta(**duration))


class NumberedFleet(Fleet):
    """A server whose ids tell the order in which things were made."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        numbers = count(1)
        self.context = replace(self.context, new_id=lambda prefix: f"{prefix}-{next(numbers):04}")
        self.app = create_app(self.context)
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(self.app))

    @property
    def application(self) -> Any:
        """Return what answers requests."""
        return self.app


class _Session(CliSession):
    """A session whose terminal has a width, or is none."""

    def __init__(
        self,
        environment: Mapping[str, str],
        clock: Callable[[], datetime],
        wire: httpx.BaseTransport,
        width: int | None,
    ) -> None:
        super().__init__(environment, clock, wire)
        self._width = width

    @property
    def is_terminal(self) -> bool:
        return self._width is not None

    @property
    def width(self) -> int | None:
        return self._width

    def read_server_clock(self) -> datetime | None:
        return self.now()


class Wire(httpx.BaseTransport):
    """Carries requests to an application in this process, and its answers back piece by piece."""

    def __init__(self, runner: asyncio.Runner, server: NumberedFleet, steps: list[Step]) -> None:
        self._runner = runner
        self._server = server
        self._steps = steps

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Hand a request over and return as soon as the answer begins."""
        exchange = _Exchange(self._server.application, request)
        status, headers = self._runner.run(exchange.begin(request.read()))
        is_stream = dict(headers).get(b"content-type", b"").startswith(b"text/event-stream")
        steps = self._steps if is_stream else []
        return httpx.Response(status, headers=headers, stream=_Body(self._runner, exchange, steps))


class _Exchange:
    """One request that the application answers."""

    def __init__(self, application: Any, request: httpx.Request) -> None:
        self._application = application
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "headers": [(key.lower(), value) for key, value in request.headers.raw],
            "scheme": request.url.scheme,
            "path": request.url.path,
            "raw_path": request.url.raw_path.split(b"?")[0],
            "query_string": request.url.query,
            "server": (request.url.host, request.url.port),
            "client": ("127.0.0.1", 123),
            "root_path": "",
        }

    async def begin(self, body: bytes) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Start the application; return status and headers."""
        self._requests: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._requests.put_nowait({"type": "http.request", "body": body, "more_body": False})
        self._task = asyncio.create_task(self._application(self._scope, self._requests.get, self._answers.put))
        self._task.add_done_callback(lambda _: self._answers.put_nowait({"type": "end"}))
        start = await self._answers.get()
        if start["type"] == "end":
            await self._task  # raises what went wrong
        return start["status"], list(start["headers"])

    async def read(self) -> bytes | None:
        """Return the next piece of the answer; None: that was all."""
        message = await asyncio.wait_for(self._answers.get(), _PATIENCE)
        if message["type"] == "end":
            return None
        return bytes(message.get("body", b""))

    async def end(self) -> None:
        """Hang up."""
        self._requests.put_nowait({"type": "http.disconnect"})
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task


class _Body(httpx.SyncByteStream):
    """An answer that is read piece by piece; between the pieces things may happen."""

    def __init__(self, runner: asyncio.Runner, exchange: _Exchange, steps: list[Step]) -> None:
        self._runner = runner
        self._exchange = exchange
        self._steps = steps

    def __iter__(self) -> Iterator[bytes]:
        seen = b""
        is_scripted = bool(self._steps)
        while (piece := self._runner.run(self._exchange.read())) is not None:
            yield piece
            seen += piece
            while self._steps and self._steps[0][0].encode() in seen:
                seen = b""
                self._steps.pop(0)[1]()
            if is_scripted and not self._steps:
                raise KeyboardInterrupt

    def close(self) -> None:
        self._runner.run(self._exchange.end())


@contextlib.contextmanager
def open_terminal(policy: str = POLICY) -> Iterator[Terminal]:
    """Sit down at a terminal, before a server that knows nothing yet."""
    clock = HandClock()
    with asyncio.Runner() as runner:

        async def make() -> NumberedFleet:
            return NumberedFleet(MemoryStore(clock), clock, runner, RequestLimits(), policy)

        server = runner.run(make())
        runner.run(server.start())
        try:
            yield Terminal(server, runner)
        finally:
            runner.run(server.stop())


def nothing() -> None:
    """Do nothing: the last step before Ctrl-C."""
