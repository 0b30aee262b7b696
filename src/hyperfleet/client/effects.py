"""What an operation asks of the world: the vocabulary between the operations and the two faces of the client.

An operation is a generator (a *flow*). It yields effects and is sent what came of each; it returns its result, and an
effect that failed is raised where it was yielded. So every operation is written once, does no I/O itself, and
`performing` carries the same steps out with threads or with an event loop.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct, field

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Query: TypeAlias = tuple[tuple[str, str], ...]


class Request(Struct, frozen=True):
    """One request. `is_repeatable`: done twice, it does what it does once, so it may be sent again."""

    method: str
    path: str
    query: Query = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_repeatable: bool = True
    answers: tuple[int, ...] = ()  # statuses that are answers here although they tell of an error elsewhere


class Reply(Struct, frozen=True):
    """One answer; names of headers are in lower case. `attempts`: how often the request had to be sent for it."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    attempts: int = 1

    @property
    def is_success(self) -> bool:
        """Tell whether the server did what it was asked to."""
        return 200 <= self.status < 300

    @property
    def media_type(self) -> str:
        """Return what the body is, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Send(Struct, frozen=True):
    """Send a request and read the whole answer, all within `timeout` seconds. Gives a `Reply`."""

    request: Request
    timeout: float


class Open(Struct, frozen=True):
    """Send a request and leave the answer open. Gives a `Reply`, without a body if it is a stream of events."""

    request: Request
    timeout: float  # until the answer begins
    silence: float  # how long nothing may come before the connection counts as lost


class Read(Struct, frozen=True):
    """Read more of the answer that was opened last. Gives bytes; none at its end. The faces hang up."""


class Pause(Struct, frozen=True):
    """Do nothing for a while."""

    seconds: float


class Item(Struct, Generic[T_co], frozen=True):
    """Hand something to whoever iterates over the operation."""

    value: T_co


Effect: TypeAlias = Send | Open | Read | Pause
# What is sent into a flow depends on the effect it has just yielded; `exchange` has a typed step for each.
Flow: TypeAlias = Generator[Effect, Any, T]
Feed: TypeAlias = Generator[Effect | Item[T], Any, None]
