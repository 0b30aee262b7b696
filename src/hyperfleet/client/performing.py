"""Where flows become I/O: the same few effects, carried out with threads or with an event loop, by httpx.

The only module that knows httpx. It must decide nothing: what is tried again, and when, is decided in `exchange`.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from msgspec import Struct

from hyperfleet.client.effects import Effect, Feed, Flow, Item, Open, Pause, Read, Reply, Request, Send
from hyperfleet.client.endpoint import Endpoint, Options, load_tls
from hyperfleet.client.errors import BadConnection, ConnectionFailed, FleetError
from hyperfleet.client.exchange import EVENT_STREAM, Patience

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_MOST: Final = 512 * 1024 * 1024  # bytes of one answer; more is a mistake, and must not fill our memory
_SECRET: Final = 16  # characters of a token at least; what is shorter is no secret, and part of common words


class Link(Struct, frozen=True):
    """A way to a server with threads."""

    client: httpx.Client
    endpoint: Endpoint
    patience: Patience

    def run(self, flow: Flow[T]) -> T:
        """Carry out a flow to its end."""
        with _Performer(self) as performer:
            step = _Step(flow)
            while (effect := step.next()) is not None:
                with step.catching():
                    step.result = performer.perform(cast(Effect, effect))
            return cast(T, step.returned)

    def iterate(self, feed: Feed[T]) -> Generator[T, None, None]:
        """Carry out a flow, and hand on what it has for us."""
        with _Performer(self) as performer:
            step = _Step(feed)
            while (effect := step.next()) is not None:
                if isinstance(effect, Item):
                    yield effect.value
                    continue
                with step.catching():
                    step.result = performer.perform(effect)


class AsyncLink(Struct, frozen=True):
    """A way to a server with an event loop."""

    client: httpx.AsyncClient
    endpoint: Endpoint
    patience: Patience

    async def run(self, flow: Flow[T]) -> T:
        """Carry out a flow to its end."""
        async with _AsyncPerformer(self) as performer:
            step = _Step(flow)
            while (effect := step.next()) is not None:
                with step.catching():
                    step.result = await performer.perform(cast(Effect, effect))
            return cast(T, step.returned)

    async def iterate(self, feed: Feed[T]) -> AsyncGenerator[T, None]:
        """Carry out a flow, and hand on what it has for us."""
        async with _AsyncPerformer(self) as performer:
            step = _Step(feed)
            while (effect := step.next()) is not None:
                if isinstance(effect, Item):
                    yield effect.value
                    continue
                with step.catching():
                    step.result = await performer.perform(effect)


class _Step:
    """Where a flow is: what came of its last effect, and in the end what it returned."""

    def __init__(self, flow: Generator[Any, Any, Any]) -> None:
        self._flow = flow
        self.result: Any = None
        self.returned: Any = None
        self._error: FleetError | None = None

    def next(self) -> Effect | Item[Any] | None:
        """Tell the flow what came of its last effect; return the next one, or None if it is through."""
        result, error = self.result, self._error
        self.result = self._error = None
        try:
            effect: Effect | Item[Any] = self._flow.send(result) if error is None else self._flow.throw(error)
        except StopIteration as end:
            self.returned = end.value
            return None
        return effect

    @contextmanager
    def catching(self) -> Iterator[None]:
        """Keep what fails in a block for the flow, which may know what to do."""
        try:
            yield
        except FleetError as error:
            self._error = error


# ── with threads ─────────────────────────────────────────────────────────────────────────────────────────────────


def connect(endpoint: Endpoint, patience: Patience, options: Options) -> Link:
    """Make a way to a server; nothing is sent yet."""
    transport = cast("httpx.BaseTransport | None", options.get("transport"))
    with _checking_proxies():
        return Link(_load_httpx().Client(**_settings(endpoint), transport=transport), endpoint, patience)


class _Performer:
    """Carries out the effects of one flow; the answer that it has open is closed with it."""

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
            return self._link.patience.surroundings.sleep(effect.seconds)
        with _translating(self._link.endpoint.url):
            match effect:
                case Send(request, timeout):
                    return self._send(request, timeout)
                case Open(request, timeout, silence):
                    return self._begin(request, timeout, silence)
                case Read():
                    return next(self._pieces, b"")

    def _send(self, request: Request, timeout: float) -> Reply:
        limit = self._link.patience.surroundings.monotonic() + timeout
        with self._link.client.stream(**_arguments(self._link.endpoint, request, timeout)) as response:
            return self._read(response, limit)

    def _begin(self, request: Request, timeout: float, silence: float) -> Reply:
        self._open.close()
        limit = self._link.patience.surroundings.monotonic() + timeout
        stream = self._link.client.stream(**_arguments(self._link.endpoint, request, timeout))
        response = self._open.enter_context(stream)
        reply = _reply(self._link.endpoint, response)
        if not (reply.is_success and reply.media_type == EVENT_STREAM):
            return self._read(response, limit)
        _allow_silence(response, silence)
        self._pieces = response.iter_bytes()
        return reply

    def _read(self, response: httpx.Response, limit: float) -> Reply:
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            _check_progress(len(body), limit - self._link.patience.surroundings.monotonic())
        return _reply(self._link.endpoint, response, bytes(body))


# ── with an event loop ───────────────────────────────────────────────────────────────────────────────────────────


def connect_async(endpoint: Endpoint, patience: Patience, options: Options) -> AsyncLink:
    """Make a way to a server; nothing is sent yet."""
    transport = cast("httpx.AsyncBaseTransport | None", options.get("transport"))
    with _checking_proxies():
        return AsyncLink(_load_httpx().AsyncClient(**_settings(endpoint), transport=transport), endpoint, patience)


class _AsyncPerformer:
    """Carries out the effects of one flow; the answer that it has open is closed with it."""

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
            return await self._link.patience.surroundings.sleep_async(effect.seconds)
        with _translating(self._link.endpoint.url):
            match effect:
                case Send(request, timeout):
                    return await self._send(request, timeout)
                case Open(request, timeout, silence):
                    return await self._begin(request, timeout, silence)
                case Read():
                    return await anext(self._pieces, b"") if self._pieces else b""

    async def _send(self, request: Request, timeout: float) -> Reply:
        limit = self._link.patience.surroundings.monotonic() + timeout
        async with self._link.client.stream(**_arguments(self._link.endpoint, request, timeout)) as response:
            return await self._read(response, limit)

    async def _begin(self, request: Request, timeout: float, silence: float) -> Reply:
        await self._open.aclose()
        limit = self._link.patience.surroundings.monotonic() + timeout
        stream = self._link.client.stream(**_arguments(self._link.endpoint, request, timeout))
        response = await self._open.enter_async_context(stream)
        reply = _reply(self._link.endpoint, response)
        if not (reply.is_success and reply.media_type == EVENT_STREAM):
            return await self._read(response, limit)
        _allow_silence(response, silence)
        self._pieces = response.aiter_bytes()
        return reply

    async def _read(self, response: httpx.Response, limit: float) -> Reply:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            _check_progress(len(body), limit - self._link.patience.surroundings.monotonic())
        return _reply(self._link.endpoint, response, bytes(body))


# ── with either ──────────────────────────────────────────────────────────────────────────────────────────────────


def _load_httpx() -> Any:
    """Import httpx when the first connection is made: it takes longer than the rest of the client together.

    Its command line, which it would import as well, brings rich and pygments: that is left out.
    """
    sys.modules.setdefault("httpx._main", cast(Any, None))
    import httpx  # noqa: PLC0415

    return httpx


def _settings(endpoint: Endpoint) -> dict[str, Any]:
    """Return what httpx needs to know of a server. What goes to this machine goes through no proxy, nor does its token.

    The environment that httpx would trust is that of proxies; certificates are our own business.
    """
    return {"headers": endpoint.headers, "verify": load_tls(endpoint), "trust_env": not endpoint.is_local}


@contextmanager
def _checking_proxies() -> Iterator[None]:
    """Say that the environment names a proxy with which nobody can do anything."""
    try:
        yield
    except (ValueError, ImportError) as error:
        raise BadConnection(f"the proxy that the environment names (HTTP_PROXY …) is of no use: {error}") from error


def _arguments(endpoint: Endpoint, request: Request, timeout: float) -> dict[str, Any]:
    """Return what httpx needs to know of a request."""
    return {
        "method": request.method,
        "url": endpoint.url + request.path,
        "params": list(request.query) or None,
        "headers": dict(request.headers),
        "content": request.body or None,
        "timeout": timeout,
    }


def _reply(endpoint: Endpoint, response: httpx.Response, body: bytes = b"") -> Reply:
    """Take an answer. What tells of a failure is shown to people, so a token that was sent back is taken out of it."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    token = endpoint.token
    if len(token) >= _SECRET and not response.is_success:
        headers = {name: value.replace(token, "…") for name, value in headers.items()}
        body = body.replace(token.encode(), "…".encode())
    return Reply(response.status_code, headers, body)


def _allow_silence(response: httpx.Response, seconds: float) -> None:
    """Let so much time pass between the pieces of a stream; until now it was that of an answer."""
    response.request.extensions["timeout"]["read"] = seconds


def _check_progress(size: int, remaining: float) -> None:
    """Raise if an answer drips in so slowly, or is so long, that it will not do."""
    if remaining <= 0:
        raise ConnectionFailed("the answer began but did not end in time", is_sent=True)
    if size > _MOST:
        raise ConnectionFailed(f"the answer is longer than {_MOST} bytes", is_sent=True, is_lasting=True)


@contextmanager
def _translating(url: str) -> Iterator[None]:
    """Turn errors of httpx into ours."""
    httpx = _load_httpx()
    try:
        yield
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise BadConnection(f"{url} is no address to connect to: {error}") from error
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
        raise _unreachable(url, error) from error
    except httpx.TimeoutException as error:
        raise ConnectionFailed(f"{url} did not answer in time", is_sent=True) from error
    except (httpx.RequestError, OSError) as error:  # with an event loop, an alert of TLS comes as it is
        raise ConnectionFailed(f"the connection to {url} was lost: {_say(error)}", is_sent=True) from error


def _unreachable(url: str, error: Exception) -> ConnectionFailed:
    import ssl  # noqa: PLC0415  # httpx has it by now

    certificate = next((each for each in _causes(error) if isinstance(each, ssl.SSLCertVerificationError)), None)
    if certificate is not None:
        why = f"the certificate of {url} is not trusted: {certificate.verify_message}; give the CA that signed it (ca=)"
        return ConnectionFailed(why, is_lasting=True)
    return ConnectionFailed(f"cannot connect to {url}: {_say(error)}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _say(error: Exception) -> str:
    return str(error) or type(error).__name__
