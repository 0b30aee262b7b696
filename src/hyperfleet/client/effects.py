"""The effects that operations yield and the two faces of the client perform.

An operation is a generator (a *flow*). It yields effects and is sent the result of each; an effect that fails raises
where it was yielded. So every operation is written once and does no I/O itself; `transport` performs the effects with
blocking calls or on an event loop.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct, field

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Query: TypeAlias = tuple[tuple[str, str], ...]


class ApiRequest(Struct, frozen=True):
    """One request. `is_repeatable`: idempotent, so it may be sent again."""

    method: str
    path: str
    query: Query = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_repeatable: bool = True
    answers: tuple[int, ...] = ()  # error statuses that are valid answers to this request


class Reply(Struct, frozen=True):
    """One response; header names are in lower case. `attempts`: how often the request was sent."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    attempts: int = 1

    @property
    def is_success(self) -> bool:
        """Return whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def media_type(self) -> str:
        """Return the media type without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Send(Struct, frozen=True):
    """Send a request and read the whole response, within `timeout` seconds. Gives a `Reply`."""

    request: ApiRequest
    timeout: float


class Open(Struct, frozen=True):
    """Send a request and keep the response open. Gives a `Reply`, without a body if it is an event stream."""

    request: ApiRequest
    timeout: float  # until the response begins
    silence: float  # seconds without data after which the connection counts as lost


class Read(Struct, frozen=True):
    """Read more of the response that was opened last. Gives bytes; b"" at its end. The face closes it."""


class Pause(Struct, frozen=True):
    """Sleep."""

    seconds: float


class FeedItem(Struct, Generic[T_co], frozen=True):
    """Yield a value to the caller that iterates over the operation."""

    value: T_co


Effect: TypeAlias = Send | Open | Read | Pause
# What is sent into a flow depends on the effect it has just yielded; `exchange` has a typed step for each.
Flow: TypeAlias = Generator[Effect, Any, T]
Feed: TypeAlias = Generator[Effect | FeedItem[T], Any, None]
