"""One implementation, two faces: an operation is a flow that is written once and bound to whichever face asks.

`Fleet` carries it out and returns the result; `AsyncFleet` returns something to await. The types say so, too: what
`@operation` makes of a method has the method's own parameters on both faces.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import update_wrapper, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from hyperfleet.client.effects import Feed, Flow
from hyperfleet.client.exchange import Patience
from hyperfleet.client.performing import AsyncLink, Link

P = ParamSpec("P")
T = TypeVar("T")


class Face:
    """What operations need to know of the face they are on."""

    _link: Link | AsyncLink

    @property
    def _patience(self) -> Patience:
        return self._link.patience

    def __repr__(self) -> str:
        """Say where the server is; the token is not shown."""
        return f"{type(self).__name__}({self._link.endpoint.url!r})"


class SyncFace(Face):
    """A face for plain code: operations return their results."""

    _link: Link


class AsyncFace(Face):
    """A face for code in an event loop: operations are awaited."""

    _link: AsyncLink


class Operation(Generic[P, T]):
    """A method of both faces that has a result."""

    def __init__(self, flow: Callable[Concatenate[Any, P], Flow[T]]) -> None:
        """Make a method of a flow."""
        self.flow = flow
        update_wrapper(self, flow)  # type: ignore[arg-type]  # it takes what functools calls a callable

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
    """A method of both faces that has many results, one after the other."""

    def __init__(self, feed: Callable[Concatenate[Any, P], Feed[T]]) -> None:
        """Make a method of a flow that yields items."""
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


def operation(flow: Callable[Concatenate[Any, P], Flow[T]]) -> Operation[P, T]:
    """Make a method of both faces of a flow with a result."""
    return Operation(flow)


def feed(flow: Callable[Concatenate[Any, P], Feed[T]]) -> FeedOperation[P, T]:
    """Make a method of both faces of a flow that yields items; it begins when the first one is asked for."""
    return FeedOperation(flow)
