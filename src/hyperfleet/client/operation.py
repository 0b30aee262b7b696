"""One implementation, two faces: an operation is a flow that is written once and bound to either face.

`Fleet` runs it and returns the result; `AsyncFleet` returns a coroutine. A method with `@operation` keeps the types of
its parameters on both faces.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import update_wrapper, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from hyperfleet.client.effects import Feed, Flow
from hyperfleet.client.exchange import RetryPolicy
from hyperfleet.client.transport import AsyncLink, Link

P = ParamSpec("P")
T = TypeVar("T")


class Face:
    """What operations need from the face they are bound to."""

    _link: Link | AsyncLink

    @property
    def _retry(self) -> RetryPolicy:
        return self._link.retry

    def __repr__(self) -> str:
        """Show the server's address, not the token."""
        return f"{type(self).__name__}({self._link.endpoint.url!r})"


class SyncFace(Face):
    """The synchronous face: operations return their results."""

    _link: Link


class AsyncFace(Face):
    """The asynchronous face: operations are awaited."""

    _link: AsyncLink


class ClientOperation(Generic[P, T]):
    """A method of both faces with one result."""

    def __init__(self, flow: Callable[Concatenate[Any, P], Flow[T]]) -> None:
        """Wrap a flow."""
        self.flow = flow
        update_wrapper(self, flow)  # type: ignore[arg-type]  # functools accepts any callable

    @overload
    def __get__(self, face: None, owner: type) -> Self: ...
    @overload
    def __get__(self, face: SyncFace, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, face: AsyncFace, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, face: Face | None, owner: type) -> Any:
        """Bind it to a face."""
        if face is None:
            return self
        link, flow = face._link, self.flow

        @wraps(flow)
        def call(*arguments: P.args, **keywords: P.kwargs) -> Any:
            return link.run(flow(face, *arguments, **keywords))

        return call


class FeedOperation(Generic[P, T]):
    """A method of both faces that yields many results."""

    def __init__(self, feed: Callable[Concatenate[Any, P], Feed[T]]) -> None:
        """Wrap a flow that yields items."""
        self.feed = feed
        update_wrapper(self, feed)  # type: ignore[arg-type]  # as above

    @overload
    def __get__(self, face: None, owner: type) -> Self: ...
    @overload
    def __get__(self, face: SyncFace, owner: type) -> Callable[P, Generator[T, None, None]]: ...
    @overload
    def __get__(self, face: AsyncFace, owner: type) -> Callable[P, AsyncGenerator[T, None]]: ...
    def __get__(self, face: Face | None, owner: type) -> Any:
        """Bind it to a face."""
        if face is None:
            return self
        link, feed = face._link, self.feed

        @wraps(feed)
        def call(*arguments: P.args, **keywords: P.kwargs) -> Any:
            return link.iterate(feed(face, *arguments, **keywords))

        return call


def operation(flow: Callable[Concatenate[Any, P], Flow[T]]) -> ClientOperation[P, T]:
    """Make a flow with one result a method of both faces."""
    return ClientOperation(flow)


def feed(flow: Callable[Concatenate[Any, P], Feed[T]]) -> FeedOperation[P, T]:
    """Make a flow that yields items a method of both faces; it starts when the first item is requested."""
    return FeedOperation(flow)
