"""Damping: a raw result younger than its delay never changes what is published."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperfleet.aggregation.transitions import transitions_between
from hyperfleet.model.status import Status
from tests.conformance.timeline import load_policy
from tests.property.worlds import send
from tests.world import World, statuses

DAMPED = load_policy("""
requiredAdapters: [dns]
clusterConditions:
  - type: Working
    goBadAfter: 5m
    goGoodAfter: 1m
    evaluate: {expr: 'adapters["dns"].available == "True"'}
  - type: Broken
    polarity: Negative
    goBadAfter: 5m
    goGoodAfter: 1m
    evaluate: {expr: 'adapters["dns"].available == "False"'}
""")
BAD_AFTER, GOOD_AFTER = timedelta(minutes=5), timedelta(minutes=1)
GOOD = {"Working": "True", "Broken": "False"}

steps = st.lists(st.tuples(st.sampled_from(["Completed", "Failed", "Running"]), st.integers(0, 600)), max_size=12)


@settings(max_examples=80)
@given(steps)
def test_only_a_result_that_held_long_enough_is_published(timeline):  # type: ignore[no-untyped-def]
    world = World(DAMPED)
    send(world, "dns", "Completed")
    for kind, seconds in timeline:
        end = world.now + timedelta(seconds=seconds)
        while world.now < end:
            before = world.status
            world.run_until(min(end, before.next_deadline or end))
            _check(world, before)
        before = world.status
        send(world, "dns", kind)
        _check(world, before)


def _check(world: World, before: Status) -> None:
    for moved in transitions_between(before, world.status):
        if moved.subject in GOOD and moved.before is not None:
            raw = world.status.raw[moved.subject]
            assert raw.status == moved.after
            held = moved.time - raw.since
            assert held >= (GOOD_AFTER if moved.after == GOOD[moved.subject] else BAD_AFTER)
    for type_, good in GOOD.items():
        condition, raw = world.status.condition(type_), world.status.raw[type_]
        assert condition is not None
        if condition.status != raw.status:
            due = raw.since + (GOOD_AFTER if raw.status == good else BAD_AFTER)
            assert world.status.next_deadline is not None
            assert world.status.next_deadline <= due
            assert due > world.status.memory.written_time


def test_a_flicker_is_never_seen() -> None:
    world = World(DAMPED)
    send(world, "dns", "Completed")
    world.pass_time(GOOD_AFTER)
    assert statuses(world.status.conditions)["Working"] == "True"
    first = world.status.condition("Working")
    for _ in range(20):
        send(world, "dns", "Failed")
        world.pass_time(timedelta(minutes=4))
        send(world, "dns", "Completed")
        world.pass_time(timedelta(seconds=30))
    assert world.status.condition("Working") == first
