"""The sentinel inside a server: on every replica one member of the sentinel `default`, which shares the fleet.

Besides, it looks at everything after the rules have changed or events were lost; a server does that even if its own
sentinel is switched off, as the schedule is the server's.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

from hyperfleet.errors import HyperFleetError
from hyperfleet.events.looking import DEFAULT_SENTINEL, Looking, Sentinel, Share
from hyperfleet.ports import EVERYTHING, LookCounts
from hyperfleet.sentinel.decision import Decision, decide
from hyperfleet.sentinel.scan import DuePage, DueResource, LookResult, LookVerdict, PassResult, Scan, decode_answer
from hyperfleet.sentinel.warnings import find_warnings
from hyperfleet.services.loops import Loop

_LOG: Final = logging.getLogger(__name__)
_OFF: Final = 60.0  # seconds between turns of a sentinel that is switched off; a gap wakes it
_COUNTING: Final = 5.0  # seconds between counts of what is due, for the metrics
_STUCK: Final = 60.0  # seconds without a finished pass; a usual one takes a fraction of a second
_LATE: Final = 300.0  # seconds for which something may be due; longer than any hand-over


class ServerSentinel:
    """Runs in `loop` on every replica."""

    def __init__(self, looking: Looking, kinds: Sequence[str], member: str, *, is_enabled: bool) -> None:
        """Take part under the name `member`, unless this server's sentinel is switched off."""
        self._looking = looking
        self._kinds = tuple(kinds)
        self._fleet = _OwnFleet(looking, member)
        self._scan = Scan(self._fleet, kinds, decide_due) if is_enabled else None
        self._has_adopted = self._has_gap = False
        self._counts: tuple[LookCounts, ...] = ()
        self._counted_at = self._passed_at = time.monotonic()
        self.last_pass = 0.0  # seconds since 1970
        self.on_pass: Callable[[float], None] | None = None  # called with the seconds that a pass took
        if self._scan is not None:
            self._scan.on_pass = self._note_pass
        self.loop = Loop("sentinel", self.turn)

    async def note_gap(self) -> None:
        """Look at everything soon: events were lost. Once this returns, a crash does not change that."""
        await self._looking.plan_to_look_at_everything()
        self._has_gap = True
        self.loop.nudge()

    async def stop(self) -> None:
        """Stop, and let the other members take over at once."""
        await self.loop.stop()
        if self._scan is not None:
            with suppress(HyperFleetError):  # the membership expires by itself
                await self._fleet.leave()

    @property
    def due(self) -> int:
        """Return how many resources are due, by the last count."""
        return sum(each.due for each in self._counts)

    @property
    def lag_seconds(self) -> float:
        """Return for how long the first resource has been due, by the last count."""
        lags = [(each.now - each.oldest).total_seconds() for each in self._counts if each.oldest is not None]
        return max([0.0, *lags])

    def find_trouble(self) -> tuple[str, ...]:
        """Return what is wrong: it does not finish passes, it is late, or the rules let adapters go stale."""
        found = list(find_warnings(self._looking.rules.rules, self._looking.policies.policies))
        idle = time.monotonic() - self._passed_at
        if self._scan is not None and idle > _STUCK:
            found.append(f"the sentinel has not finished a pass for {idle:.0f} s")
        if self.lag_seconds > _LATE:
            found.append(f"{self.due} resources are due, the first for {self.lag_seconds:.0f} s")
        return tuple(found)

    async def turn(self) -> float:
        """Make one pass; return the seconds until the next one."""
        if not self._has_adopted:
            if await self._looking.adopt_rules():
                _LOG.info("the sentinel has new rules: it looks at everything within minutes")
            self._has_adopted = True
        if self._has_gap:
            _LOG.warning("events were lost: the sentinel looks at everything within minutes")
            await self._looking.look_at_everything()
            self._has_gap = False
        if self._scan is None:
            return _OFF
        pause = await self._scan.turn()
        await self._count()
        return pause

    async def _count(self) -> None:
        if time.monotonic() - self._counted_at >= _COUNTING:
            self._counts = tuple([await self._looking.count(kind, EVERYTHING) for kind in self._kinds])
            self._counted_at = time.monotonic()

    def _note_pass(self, result: PassResult, seconds: float) -> None:
        self._passed_at, self.last_pass = time.monotonic(), time.time()
        if self.on_pass is not None:
            self.on_pass(seconds)


class _OwnFleet:
    """The part of the fleet that this member looks at, without requests."""

    def __init__(self, looking: Looking, member: str) -> None:
        self._looking = looking
        self._sentinel = Sentinel(DEFAULT_SENTINEL, EVERYTHING)
        self._member = member

    async def join(self) -> Sequence[str]:
        return await self._looking.join(self._sentinel, self._member) or ()

    async def due(self, kind: str, limit: int) -> DuePage:
        members = await self._looking.members(self._sentinel)
        if self._member not in members:  # frozen for longer than a membership lasts
            members = await self._looking.join(self._sentinel, self._member) or ()
        return await self._looking.due(kind, EVERYTHING, limit, Share(self._member, tuple(members)))

    async def look(self, kind: str, verdicts: Sequence[LookVerdict]) -> LookResult:
        return await self._looking.look(kind, self._sentinel, verdicts)

    async def leave(self) -> None:
        await self._looking.leave(self._sentinel, self._member)


def decide_due(due: DueResource, now: datetime) -> Decision:
    """Decide about a resource that is due; without conditions its answer need not be read."""
    has_conditions = any(each.when for each in due.triggers)
    return decide(decode_answer(due.answer) if has_conditions else {}, due.triggers, now)
