"""Flapping: mark what moves too often, so that its current value is not mistaken for its state.

`aggregate` calls `follow` with what moved. A mark is shown beside a phase or a condition and never changes one.

A subject (the phase, or a condition by its type) is marked when it has moved as often as its limit allows within the
window. The mark stays until fewer than half as many moves, rounded up, are left in the window, so that it does not
flap itself; when that happens is a deadline like any other. A new generation resets the count: a change that was
requested is not flapping.
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


class FlappingState(Struct, frozen=True):
    """Recent moves, the marks that follow from them, and when each mark ends if nothing else moves."""

    flips: Mapping[str, Flips] = {}
    flapping: Mapping[str, Flapping] = {}
    instants: tuple[datetime, ...] = ()


_NO_MOVES: Final = FlappingState()
_ALWAYS_TRACKED: Final = frozenset({PHASE_SUBJECT, AVAILABLE, READY})
_NO_LIMIT: Final = FlappingLimit(transitions=0)


def follow(situation: Situation, moves: Mapping[str, str]) -> FlappingState:
    """Add the moves of this write, by subject, to the earlier ones, and mark what has moved too often."""
    previous = situation.previous
    if previous is None or not (moves or previous.memory.flips) or _is_new_generation(situation):
        return _NO_MOVES
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
        # A mark may end by time before this write's move counts, so that a late write decides as a timely one would.
        mark = previous.flapping.get(subject) if len(recent) >= limit.calm_below else None
        if subject in moves:
            recent = (*recent, Flip(now, moves[subject]))[-limit.transitions :]
        flips[subject] = recent
        mark = _mark(mark, recent, limit, now, has_moved=subject in moves)
        if mark is not None:
            flapping[subject] = mark
            instants.append(recent[-limit.calm_below].time + limit.window)
    return FlappingState(flips, flapping, tuple(instants))


def _forget(flips: Mapping[str, Flips], policy: Policy, now: datetime) -> Mapping[str, Flips]:
    """Drop flips that are too old to count, and those of subjects that are no longer tracked."""
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
    """Return the limit of the phase or of a condition; a condition without a rule has none."""
    for rule in policy.rules:
        if rule.type == subject:
            return rule.flapping or policy.flapping
    return policy.flapping if subject in _ALWAYS_TRACKED else _NO_LIMIT


def _is_new_generation(situation: Situation) -> bool:
    """Tell whether the generation has changed since the previous status, as recorded in Ready."""
    ready = situation.previous.condition(READY) if situation.previous else None
    return ready is not None and ready.observed_generation != situation.resource.generation
