"""Flapping: what moves too often is marked, so that nobody takes what it says just now for how it is.

`aggregate` calls `follow` with what moved. A mark is
told beside a phase or a condition and never moves one.

A subject (the phase, or a condition by its type) is marked when it has moved as often as its limit says within the
window. The mark stays until fewer than half as many moves, rounded up, are left in the window, so that it does not
flap itself; when that will be is a deadline like any other. A new generation starts the count anew: what somebody
asked for is not flapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from hyperfleet.aggregation.availability import READY
from hyperfleet.aggregation.policy import FlappingLimit, Policy
from hyperfleet.aggregation.situation import Situation
from hyperfleet.model.event import PHASE_SUBJECT
from hyperfleet.model.report import AVAILABLE
from hyperfleet.model.status import Flapping, Flip, Flips


class Movements(Struct, frozen=True):
    """What moved lately, what of it is flapping, and when each mark ends if nothing moves any more."""

    flips: Mapping[str, Flips] = {}
    flapping: Mapping[str, Flapping] = {}
    instants: tuple[datetime, ...] = ()


_STILL: Final = Movements()
_ALWAYS_WATCHED: Final = frozenset({PHASE_SUBJECT, AVAILABLE, READY})
_NO_LIMIT: Final = FlappingLimit(transitions=0)


def follow(situation: Situation, moves: Mapping[str, str]) -> Movements:
    """Add what moves now, by subject, to what moved before, and mark what has moved too often."""
    previous = situation.previous
    if previous is None or not (moves or previous.memory.flips) or _is_new_generation(situation):
        return _STILL
    policy, now = situation.policy, situation.now
    before = previous.memory.flips
    before = _forget(before, policy, now)
    flips: dict[str, Flips] = {}
    flapping: dict[str, Flapping] = {}
    instants: list[datetime] = []
    for subject in dict.fromkeys((*before, *moves)):
        limit = _limit_for(subject, policy)
        if not limit.transitions:
            continue
        recent = before.get(subject, ())
        # Time alone ends a mark, before this write's move counts: so a late write decides as a timely one would have.
        mark = previous.flapping.get(subject) if len(recent) >= limit.calm_below else None
        if subject in moves:
            recent = (*recent, Flip(now, moves[subject]))[-limit.transitions :]
        flips[subject] = recent
        mark = _mark(mark, recent, limit, now, has_moved=subject in moves)
        if mark is not None:
            flapping[subject] = mark
            instants.append(recent[-limit.calm_below].time + limit.window)
    return Movements(flips, flapping, tuple(instants))


def _forget(flips: Mapping[str, Flips], policy: Policy, now: datetime) -> Mapping[str, Flips]:
    """Leave out the flips that are too old to count, and those of a subject that is not watched any more."""
    kept: dict[str, Flips] = {}
    for subject, recent in flips.items():
        limit = _limit_for(subject, policy)
        is_recent = recent[0].time + limit.window > now  # then so are all others
        left = recent if is_recent else tuple([flip for flip in recent if flip.time + limit.window > now])
        if left and limit.transitions:
            kept[subject] = left[-limit.transitions :]
    return kept


def _mark(
    before: Flapping | None, recent: Flips, limit: FlappingLimit, now: datetime, *, has_moved: bool
) -> Flapping | None:
    if before is not None:
        return Flapping(before.since, before.transitions + has_moved, limit.window)
    return Flapping(now, len(recent), limit.window) if len(recent) >= limit.transitions else None


def _limit_for(subject: str, policy: Policy) -> FlappingLimit:
    """Return the limit of the phase or of a condition; what has no rule any more has none."""
    for rule in policy.rules:
        if rule.type == subject:
            return rule.flapping or policy.flapping
    return policy.flapping if subject in _ALWAYS_WATCHED else _NO_LIMIT


def _is_new_generation(situation: Situation) -> bool:
    """Tell whether somebody has asked for something else since the status before: Ready says what it was about."""
    ready = situation.previous.condition(READY) if situation.previous else None
    return ready is not None and ready.observed_generation != situation.resource.generation
