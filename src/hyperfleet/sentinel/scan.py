"""★ The sentinel's loop: join the others, ask what is due, decide, report the decisions; then wait for the next.

It works over the port `SentinelFleet`: in the server directly, in `hyperfleet sentinel` through the API. Publishing and
scheduling are the server's part, so a crash at any point repeats work and forgets nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct, field

from hyperfleet.sentinel.decision import Decision, Trigger

BATCH: Final = 100  # resources per request: some 500 kB of answers
_BATCHES: Final = 50  # of one kind in one pass, so that every kind gets its turn
_IDLE: Final = 1.0  # seconds: a look is at most this late, and an idle fleet costs one small read a second
_MEMBERSHIP: Final = 5.0  # seconds between renewals, a third of what a membership lasts


class DueResource(Struct, frozen=True):
    """A resource that is due: its answer, and the rules that want a look now."""

    id: str
    answer: bytes
    receipt: str  # names this look; it is no longer valid once the resource has changed its state
    due_since: datetime
    triggers: tuple[Trigger, ...] = ()


class DuePage(Struct, frozen=True):
    """Resources that are due, the time of the server, and when the next one is due."""

    items: tuple[DueResource, ...]
    now: datetime
    next: datetime | None = None


class LookVerdict(Struct, frozen=True):
    """What was decided about a resource: the rule whose event is published; None: no event."""

    id: str
    rule: str | None
    receipt: str = ""  # empty: whether it is due or not
    data: Mapping[str, Any] = field(default_factory=dict)  # more keys for the data of the event


class LookResult(Struct, frozen=True):
    """How many events were published, and how many decisions came too late: the resource had changed meanwhile."""

    published: int = 0
    skipped: int = 0


class SentinelFleet(Protocol):
    """The resources that a member of a sentinel is responsible for."""

    async def join(self) -> Sequence[str]:
        """Become a member, or stay one; return all members."""
        ...

    async def due(self, kind: str, limit: int) -> DuePage:
        """Return what is due of this member's part."""
        ...

    async def look(self, kind: str, verdicts: Sequence[LookVerdict]) -> LookResult:
        """Publish the events that were decided on, and schedule the next looks."""
        ...


Decide = Callable[[DueResource, datetime], Decision]  # pure; the resource and the time of the server


class PassResult(Struct):
    """What one pass did."""

    looked: int = 0
    skipped: int = 0
    published: dict[str, int] = field(default_factory=dict)  # by rule
    next: float = _IDLE  # seconds to the next pass


class Scan:
    """Looks at what is due, again and again. One member of a sentinel."""

    def __init__(self, fleet: SentinelFleet, kinds: Sequence[str], decide: Decide) -> None:
        """Look at resources of these kinds."""
        self._fleet = fleet
        self._kinds = tuple(kinds)
        self._decide = decide
        self._joined = float("-inf")
        self.on_pass: Callable[[PassResult, float], None] | None = None  # called with a result and its seconds
        self.on_decision: Callable[[DueResource, Decision], None] | None = None

    async def turn(self) -> float:
        """Make one pass; return the seconds until the next one."""
        began = time.monotonic()
        if began - self._joined >= _MEMBERSHIP:
            await self._fleet.join()
            self._joined = began
        result = PassResult()
        for kind in self._kinds:
            await self._look_at(kind, result)
        if self.on_pass is not None:
            self.on_pass(result, time.monotonic() - began)
        return result.next

    async def _look_at(self, kind: str, result: PassResult) -> None:
        for _ in range(_BATCHES):
            page = await self._fleet.due(kind, BATCH)
            verdicts = [self._judge(each, page.now) for each in page.items]
            done = await self._fleet.look(kind, verdicts) if verdicts else LookResult()
            _count(result, verdicts, done)
            if len(page.items) < BATCH or done.skipped == len(verdicts):  # another member may be at the same ones
                result.next = min(result.next, _seconds_to(page))
                return
        result.next = 0.0

    def _judge(self, due: DueResource, now: datetime) -> LookVerdict:
        decision = self._decide(due, now)
        if self.on_decision is not None:
            self.on_decision(due, decision)
        return LookVerdict(due.id, decision.rule, due.receipt)


def _count(result: PassResult, verdicts: Sequence[LookVerdict], done: LookResult) -> None:
    result.looked += len(verdicts)
    result.skipped += done.skipped
    for verdict in verdicts:
        if verdict.rule is not None:
            result.published[verdict.rule] = result.published.get(verdict.rule, 0) + 1


def _seconds_to(page: DuePage) -> float:
    """Return the seconds to the next look; a write may make something due before it, hence the limit."""
    return _IDLE if page.next is None else min(max((page.next - page.now).total_seconds(), 0.01), _IDLE)


def decode_answer(answer: bytes) -> Mapping[str, Any]:
    """Return the resource as conditions see it: as the API answers it."""
    decoded: Mapping[str, Any] = msgspec.json.decode(answer)
    return decoded
