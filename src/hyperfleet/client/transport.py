"""Where flows become I/O: httpx performs their effects, with blocking calls or on an event loop.

The only module that uses httpx. It decides nothing: `exchange` decides what is retried, and when.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from msgspec import Struct

from hyperfleet.client.effects import ApiRequest, Effect, Feed, FeedItem, Flow, Open, Pause, Read, Reply, Send
from hyperfleet.client.endpoint import ClientOptions, ServerEndpoint, load_tls
from hyperfleet.client.errors import BadConnection, ConnectionFailed, FleetError
from hyperfleet.client.exchange import EVENT_STREAM, RetryPolicy

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_MAX_BYTES: Final = 512 * 1024 * 1024  # bytes of one response; more is a mistake and must not fill the memory
_SECRET: Final = 16  # characters; shorter tokens are not redacted, because they may be part of common words


class Link(Struct, frozen=True):
    """A connection with blocking calls."""

    client: httpx.Client
    endpoint: ServerEndpoint
    retry: RetryPolicy

    def run(self, flow: Flow[T]) -> T:
        """Run a flow to its end."""
        with _Performer(self) as performer:
            step = _Step(flow)
            while (effect := step.next()) is not None:
                with step.catching():
                    step.result = performer.perform(cast(Effect, effect))
            return cast(T, step.returned)

    def iterate(self, feed: Feed[T]) -> Generator[T, None, None]:
        """Run a flow, and yield its items."""
        with _Performer(self) as performer:
            step = _Step(feed)
            while (effect := step.next()) is not None:
                if isinstance(effect, FeedItem):
                    yield effect.value
                    continue
                with step.catching():
                    step.result = performer.perform(effect)


class AsyncLink(Struct, frozen=True):
    """A connection on an event loop."""

    client: httpx.AsyncClient
    endpoint: ServerEndpoint
    retry: RetryPolicy

    async def run(self, flow: Flow[T]) -> T:
        """Run a flow to its end."""
        async with _AsyncPerformer(self) as performer:
            step = _Step(flow)
            while (effect := step.next()) is not None:
                with step.catching():
                    step.result = await performer.perform(cast(Effect, effect))
            return cast(T, step.returned)

    async def iterate(self, feed: Feed[T]) -> AsyncGenerator[T, None]:
        """Run a flow, and yield its items."""
        async with _AsyncPerformer(self) as performer:
            step = _Step(feed)
            while (effect := step.next()) is not None:
                if isinstance(effect, FeedItem):
                    yield effect.value
                    continue
                with step.catching():
                    step.result = await performer.perform(effect)


class _Step:
    """The state of a running flow: the result of its last effect, and finally its own."""

    def __init__(self, flow: Generator[Any, Any, Any]) -> None:
        self._flow = flow
        self.result: Any = None
        self.returned: Any = None
        self._error: FleetError | None = None

    def next(self) -> Effect | FeedItem[Any] | None:
        """Pass the result of the last effect to the flow; return the next effect, or None at the end."""
        result, error = self.result, self._error
        self.result = self._error = None
        try:
            effect: Effect | FeedItem[Any] = self._flow.send(result) if error is None else self._flow.throw(error)
        except StopIteration as end:
            self.returned = end.value
            return None
        return effect

    @contextmanager
    def catching(self) -> Iterator[None]:
        """Keep an error of the block, to raise it in the flow."""
        try:
            yield
        except FleetError as error:
            self._error = error


# ── blocking ─────────────────────────────────────────────────────────────────────────────────────────────────────


def connect(endpoint: ServerEndpoint, retry: RetryPolicy, options: ClientOptions) -> Link:
    """Create a connection; nothing is sent yet."""
    transport = cast("httpx.BaseTransport | None", options.get("transport"))
    with _checking_proxies():
        return Link(_load_httpx().Client(**_settings(endpoint), transport=transport), endpoint, retry)


class _Performer:
    """Performs the effects of one flow; an open response is closed with it."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._open = ExitStack()
        self._pieces: Iterator[bytes] = iter(())

    def __enter__(self) -> _Performer:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def perform(self, effect: Effect) -> Any:
        if isinstance(effect, Pause):
            return self._link.retry.runtime.sleep(effect.seconds)
        with _translating(self._link.endpoint.url):
            match effect:
                case Send(request, timeout):
                    return self._send(request, timeout)
                case Open(request, timeout, silence):
                    return self._begin(request, timeout, silence)
                case Read():
                    return next(self._pieces, b"")

    def _send(self, request: ApiRequest, timeout: float) -> Reply:
        limit = self._link.retry.runtime.monotonic() + timeout
        with self._link.client.stream(**_arguments(self._link.endpoint, request, timeout)) as response:
            return self._read(response, limit)

    def _begin(self, request: ApiRequest, timeout: float, silence: float) -> Reply:
        self._open.close()
        limit = self._link.retry.runtime.monotonic() + timeout
        stream = self._link.client.stream(**_arguments(self._link.endpoint, request, timeout))
        response = self._open.enter_context(stream)
        reply = _reply(self._link.endpoint, response)
        if not (reply.is_success and reply.media_type == EVENT_STREAM):
            return self._read(response, limit)
        _set_read_timeout(response, silence)
        self._pieces = response.iter_bytes()
        return reply

    def _read(self, response: httpx.Response, limit: float) -> Reply:
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            _check_progress(len(body), limit - self._link.retry.runtime.monotonic())
        return _reply(self._link.endpoint, response, bytes(body))


# ── on an event loop ─────────────────────────────────────────────────────────────────────────────────────────────


def connect_async(endpoint: ServerEndpoint, retry: RetryPolicy, options: ClientOptions) -> AsyncLink:
    """Create a connection; nothing is sent yet."""
    transport = cast("httpx.AsyncBaseTransport | None", options.get("transport"))
    with _checking_proxies():
        return AsyncLink(_load_httpx().AsyncClient(**_settings(endpoint), transport=transport), endpoint, retry)


class _AsyncPerformer:
    """Performs the effects of one flow; an open response is closed with it."""

    def __init__(self, link: AsyncLink) -> None:
        self._link = link
        self._open = AsyncExitStack()
        self._pieces: AsyncIterator[bytes] | None = None

    async def __aenter__(self) -> _AsyncPerformer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def perform(self, effect: Effect) -> Any:
        if isinstance(effect, Pause):
            return await self._link.retry.runtime.sleep_async(effect.seconds)
        with _translating(self._link.endpoint.url):
            match effect:
                case Send(request, timeout):
                    return await self._send(request, timeout)
                case Open(request, timeout, silence):
                    return await self._begin(request, timeout, silence)
                case Read():
                    return await anext(self._pieces, b"") if self._pieces else b""

    async def _send(self, request: ApiRequest, timeout: float) -> Reply:
        limit = self._link.retry.runtime.monotonic() + timeout
        async with self._link.client.stream(**_arguments(self._link.endpoint, request, timeout)) as response:
            return await self._read(response, limit)

    async def _begin(self, request: ApiRequest, timeout: float, silence: float) -> Reply:
        await self._open.aclose()
        limit = self._link.retry.runtime.monotonic() + timeout
        stream = self._link.client.stream(**_arguments(self._link.endpoint, request, timeout))
        response = await self._open.enter_async_context(stream)
        reply = _reply(self._link.endpoint, response)
        if not (reply.is_success and reply.media_type == EVENT_STREAM):
            return await self._read(response, limit)
        _set_read_timeout(response, silence)
        self._pieces = response.aiter_bytes()
        return reply

    async def _read(self, response: httpx.Response, limit: float) -> Reply:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            _check_progress(len(body), limit - self._link.retry.runtime.monotonic())
        return _reply(self._link.endpoint, response, bytes(body))


# ── both ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _load_httpx() -> Any:
    """Import httpx when the first connection is made: it takes longer than the rest of the client.

    Its command line, which it would import as well, needs rich and pygments: that is blocked.
    """
    sys.modules.setdefault("httpx._main", cast(Any, None))
    try:
        import httpx  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"hyperfleet.client needs {error.name}: pip install 'hyperfleet[client]'", name=error.name
        ) from error
    return httpx


def _settings(endpoint: ServerEndpoint) -> dict[str, Any]:
    """Return the settings of the httpx client. Requests to this machine use no proxy, so the token is not sent to one.

    `trust_env` is about proxies only; certificates are loaded by `load_tls`.
    """
    return {"headers": endpoint.headers, "verify": load_tls(endpoint), "trust_env": not endpoint.is_local}


@contextmanager
def _checking_proxies() -> Iterator[None]:
    """Report an unusable proxy in the environment."""
    try:
        yield
    except ModuleNotFoundError:  # httpx itself; for a proxy it lacks a package for, it raises ImportError
        raise
    except (ValueError, ImportError) as error:
        raise BadConnection(f"the proxy in the environment (HTTP_PROXY …) cannot be used: {error}") from error


def _arguments(endpoint: ServerEndpoint, request: ApiRequest, timeout: float) -> dict[str, Any]:
    """Return the arguments of an httpx request."""
    return {
        "method": request.method,
        "url": endpoint.url + request.path,
        "params": list(request.query) or None,
        "headers": dict(request.headers),
        "content": request.body or None,
        "timeout": timeout,
    }


def _reply(endpoint: ServerEndpoint, response: httpx.Response, body: bytes = b"") -> Reply:
    """Convert a response. Failures are shown to people, so a token that the server echoes is redacted."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    token = endpoint.token
    if len(token) >= _SECRET and not response.is_success:
        headers = {name: value.replace(token, "…") for name, value in headers.items()}
        body = body.replace(token.encode(), "…".encode())
    return Reply(response.status_code, headers, body)


def _set_read_timeout(response: httpx.Response, seconds: float) -> None:
    """Set how long a stream may be silent; until now the timeout was that of a response."""
    response.request.extensions["timeout"]["read"] = seconds


def _check_progress(size: int, remaining: float) -> None:
    """Raise if a response comes in too slowly or is too long."""
    if remaining <= 0:
        raise ConnectionFailed("the answer began but did not end in time", is_sent=True)
    if size > _MAX_BYTES:
        raise ConnectionFailed(f"the answer is longer than {_MAX_BYTES} bytes", is_sent=True, is_lasting=True)


@contextmanager
def _translating(url: str) -> Iterator[None]:
    """Convert errors of httpx to the client's."""
    httpx = _load_httpx()
    try:
        yield
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise BadConnection(f"cannot connect to the address {url}: {error}") from error
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
        raise _unreachable(url, error) from error
    except httpx.TimeoutException as error:
        raise ConnectionFailed(f"{url} did not answer in time", is_sent=True) from error
    except (httpx.RequestError, OSError) as error:  # on an event loop, a TLS alert is not wrapped
        raise ConnectionFailed(f"the connection to {url} was lost: {_describe(error)}", is_sent=True) from error


def _unreachable(url: str, error: Exception) -> ConnectionFailed:
    import ssl  # noqa: PLC0415  # httpx has loaded it

    certificate = next((each for each in _causes(error) if isinstance(each, ssl.SSLCertVerificationError)), None)
    if certificate is not None:
        why = f"the certificate of {url} is not trusted: {certificate.verify_message}; pass the CA that signed it (ca=)"
        return ConnectionFailed(why, is_lasting=True)
    return ConnectionFailed(f"cannot connect to {url}: {_describe(error)}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _describe(error: Exception) -> str:
    return str(error) or type(error).__name__
