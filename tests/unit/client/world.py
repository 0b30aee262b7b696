"""A world for flows: what comes of each effect is written down beforehand, and time passes only in pauses."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from hyperfleet.client.effects import ApiRequest, Feed, FeedItem, Flow, Open, Pause, Read, Reply, Send
from hyperfleet.client.errors import ConnectionFailed, FleetError
from hyperfleet.client.exchange import EVENT_STREAM, RetryPolicy
from hyperfleet.client.runtime import ClientRuntime

T = TypeVar("T")

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
LOST = ConnectionFailed("the connection was lost", is_sent=True)
REFUSED = ConnectionFailed("cannot connect")

Outcome = Reply | bytes | FleetError


class World:
    """Answers effects with what it was given; keeps what was sent and how long was paused."""

    def __init__(self, *outcomes: Outcome, random: float = 1.0, takes: float = 0.0) -> None:
        """Let every answer take so many seconds. With chance 1, pauses have their full length."""
        self._outcomes = list(outcomes)
        self._takes = takes
        self.time = 1000.0
        self.sent: list[ApiRequest] = []
        self.timeouts: list[float] = []
        self.silences: list[float] = []
        self.pauses: list[float] = []
        self.runtime = ClientRuntime(
            monotonic=lambda: self.time, now=lambda: NOW, random=lambda: random, make_key=lambda: "key-1"
        )

    def retry(self, **limits: Any) -> RetryPolicy:
        """Return patience that goes by the clock of this world."""
        return RetryPolicy(**limits, runtime=self.runtime)

    def run(self, flow: Flow[T]) -> T:
        """Carry a flow out to its end."""
        items, returned = self._carry_out(flow, None)
        assert items == []
        return returned  # type: ignore[no-any-return]  # what a generator returns is not in its type here

    def collect(self, feed: Feed[T], most: int | None = None) -> list[T]:
        """Carry a feed out to its end, or until it has yielded so many items."""
        return self._carry_out(feed, most)[0]

    def _carry_out(self, flow: Generator[Any, Any, Any], most: int | None) -> tuple[list[Any], Any]:
        items: list[Any] = []
        outcome: Any = None
        while most is None or len(items) < most:
            try:
                effect = flow.throw(outcome) if isinstance(outcome, FleetError) else flow.send(outcome)
            except StopIteration as end:
                return items, end.value
            outcome = None
            match effect:
                case FeedItem(value):
                    items.append(value)
                case Pause(seconds):
                    self.pauses.append(seconds)
                    self.time += seconds
                case Send(request, timeout) | Open(request, timeout, _):
                    self.sent.append(request)
                    self.timeouts.append(timeout)
                    if isinstance(effect, Open):
                        self.silences.append(effect.silence)
                    outcome = self._next()
                case Read():
                    outcome = self._next()
        return items, None

    def _next(self) -> Outcome:
        assert self._outcomes, f"nothing more was to happen; sent so far: {self.sent}"
        self.time += self._takes
        return self._outcomes.pop(0)

    @property
    def is_over(self) -> bool:
        """Tell whether everything that was to happen did."""
        return not self._outcomes


def answer(body: Any, status: int = 200, **headers: str) -> Reply:
    """Make an answer in JSON."""
    return Reply(status, {"content-type": "application/json", **headers}, msgspec.json.encode(body))


def problem(status: int, code: str, retry_after: str = "") -> Reply:
    """Make an answer with a problem document."""
    document = {"title": "No", "status": status, "code": code, "detail": "no"}
    headers = {"content-type": "application/problem+json", "retry-after": retry_after}
    return Reply(status, headers, msgspec.json.encode(document))


def stream() -> Reply:
    """Make the beginning of a stream of events."""
    return Reply(200, {"content-type": EVENT_STREAM})


def event(name: str, data: Any = None, position: int | None = None) -> bytes:
    """Write an event as the server does."""
    id_ = b"" if position is None else b"id: %d\n" % position
    return b"event: %b\n%bdata: %b\n\n" % (name.encode(), id_, msgspec.json.encode(data or {}))
