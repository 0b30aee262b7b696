"""Flapping: the marks are those that the whole history of moves gives, though only a few moves are stored."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hyperfleet.aggregation import aggregate
from hyperfleet.aggregation.policy import FlappingLimit
from hyperfleet.aggregation.transitions import transitions_between
from hyperfleet.model.status import Status
from tests.conformance.timeline import load_policy
from tests.property.worlds import send
from tests.world import World

_LIMITS = st.tuples(st.integers(60, 900), st.integers(2, 7)).map(
    lambda drawn: FlappingLimit(timedelta(seconds=drawn[0]), drawn[1])
)
_STEPS = st.lists(
    st.tuples(st.sampled_from(["Completed", "Failed", "edit", "look"]), st.sampled_from([0, 1, 10, 60, 61, 200, 600])),
    max_size=40,
)
_SUBJECTS = ("phase", "Ready")

_POLICY = load_policy("""
requiredAdapters: [dns]
phases: {ready: {requiredConditions: [{type: Ready, status: "True"}]}}
""")


class _Chronicle:
    """Remembers every move and marks by what is written in docs/status.md, looking at all of them each time."""

    def __init__(self, limit: FlappingLimit) -> None:
        self._limit = limit
        self._moves: list[datetime] = []
        self.count = 0  # 0: not marked

    def look(self, now: datetime) -> None:
        if 2 * len(self._within(now)) < self._limit.transitions:
            self.count = 0

    def move(self, now: datetime) -> None:
        self.look(now)
        self._moves.append(now)
        if self.count:
            self.count += 1
        elif len(self._within(now)) >= self._limit.transitions:
            self.count = self._limit.transitions

    def start_anew(self) -> None:
        self._moves = []
        self.count = 0

    def _within(self, now: datetime) -> list[datetime]:
        return [time for time in self._moves if now - time < self._limit.window]


@settings(max_examples=150)
@given(_LIMITS, _STEPS, st.booleans())
def test_the_marks_are_those_of_the_whole_history(limit, steps, is_timely):  # type: ignore[no-untyped-def]
    """Whether the timer wakes in time or never, and though every status goes through the store."""
    world = _world(limit)
    chronicles = {subject: _Chronicle(limit) for subject in _SUBJECTS}
    for action, seconds in steps:
        instant = world.now + timedelta(seconds=seconds)
        if is_timely:
            world.run_until(instant)
        world.now = instant
        before = world.status = _stored(world.status)
        _act(world, action)
        for subject, chronicle in chronicles.items():
            if action == "edit":
                chronicle.start_anew()
            elif any(moved.subject == subject for moved in transitions_between(before, world.status)):
                chronicle.move(world.now)
            else:
                chronicle.look(world.now)
        marks = world.status.flapping
        assert {s: marks[s].transitions if s in marks else 0 for s in _SUBJECTS} == {
            s: chronicle.count for s, chronicle in chronicles.items()
        }


@settings(max_examples=80)
@given(_LIMITS, _STEPS)
def test_what_is_stored_stays_small_and_goes_away(limit, steps):  # type: ignore[no-untyped-def]
    world = _world(limit)
    for action, seconds in steps:
        world.pass_time(timedelta(seconds=seconds))
        _act(world, action)
        for flips in world.status.memory.flips.values():
            assert 0 < len(flips) <= limit.transitions
        assert world.status.flapping.keys() <= world.status.memory.flips.keys()
    world.pass_time(limit.window)
    assert world.status.flapping == {}
    world.write()
    assert b"fl" not in msgspec.json.encode(world.status), "a settled resource stores nothing of flips and flapping"


@settings(max_examples=80)
@given(_LIMITS, _STEPS)
def test_a_mark_changes_only_with_a_move_or_at_a_deadline(limit, steps):  # type: ignore[no-untyped-def]
    world = _world(limit)
    for action, seconds in steps:
        before, deadline = world.status, world.status.next_deadline
        instant = world.now + timedelta(seconds=seconds)
        if deadline is None or instant < deadline:
            world.now = instant
            world.write()
            assert (world.status.flapping, world.status.next_deadline) == (before.flapping, deadline)
        else:
            world.run_until(instant)
        _act(world, action)


@settings(max_examples=150)
@given(_LIMITS, _STEPS, st.integers(0, 900))
def test_a_heartbeat_before_the_deadline_moves_no_mark_and_no_flip(limit, steps, seconds):  # type: ignore[no-untyped-def]
    world = _world(limit)
    send(world, "dns", "Completed")
    for action, passed in steps:
        world.pass_time(timedelta(seconds=passed))
        _act(world, action)
    before, stored, now = world.status, world.reports["dns"], world.now + timedelta(seconds=seconds)
    if before.next_deadline is not None and before.next_deadline <= now:
        return  # the mark may end: that is computed
    beat = replace(stored, effective_time=now, last_heard=now)
    after = aggregate(world.resource, {"dns": beat}, world.policy, before, now)
    assert after.flapping == before.flapping
    for subject, flips in after.memory.flips.items():  # those that are too old to count are forgotten meanwhile
        assert before.memory.flips[subject][-len(flips) :] == flips
    assert after.next_deadline == before.next_deadline


def _world(limit: FlappingLimit) -> World:
    return World(replace(_POLICY, flapping=limit))


def _act(world: World, action: str) -> None:
    if action == "edit":
        world.edit()
    elif action == "look":
        world.write()
    else:
        send(world, "dns", action)


def _stored(status: Status) -> Status:
    return msgspec.json.decode(msgspec.json.encode(status), type=Status)
