"""Explain tells the story of `aggregate` and no other, and its remedies are minimal."""

from __future__ import annotations

from datetime import timedelta
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperfleet.aggregation.aggregate import aggregate, judge
from hyperfleet.aggregation.explanation import explain
from hyperfleet.aggregation.explanation_text import render
from hyperfleet.aggregation.hypothetical import imagine_change
from hyperfleet.aggregation.remedies import Remedy, find_remedies
from hyperfleet.aggregation.situation import read_situation
from hyperfleet.model.condition import TRUE
from tests.conformance.timeline import load_policy
from tests.property.worlds import kinds, send, worlds
from tests.world import World

THREE = load_policy("""
requiredAdapters: [a, b, c]
policies: {staleThreshold: 10m}
clusterConditions:
  - {type: All, evaluate: {expr: 'all(requiredAdapters, {.state == "Completed"})'}}
  - {type: Two, evaluate: {expr: 'len(filter(requiredAdapters, {.available == "True"})) >= 2'}}
  - {type: Exactly, evaluate: {expr: 'count(requiredAdapters, {.state == "Running"}) == 1'}}
  - {type: Either, evaluate: {expr: 'adapters["a"].available == "True" || adapters["d"].available == "True"'}}
  - {type: Unhealthy, polarity: Negative, evaluate: {expr: 'any(allAdapters, {.health == "False"})'}}
""")
TYPES = ("Ready", "Available", "All", "Two", "Exactly", "Either", "Unhealthy")


@st.composite
def small_worlds(draw: st.DrawFn) -> World:
    """Draw a world of three adapters, of which some have reported, perhaps for an older generation."""
    world = World(THREE)
    for adapter in draw(st.permutations("abc")):
        if draw(st.integers(0, 3)):
            send(world, adapter, draw(kinds))
        if draw(st.integers(0, 9)) == 0:
            world.edit()
    world.pass_time(draw(st.sampled_from([timedelta(), timedelta(minutes=11)])))
    return world


def _is_true_after(world: World, remedy: Remedy, type_: str) -> bool:
    reports = dict(world.reports)
    for change in remedy:
        imagined = imagine_change(
            reports.get(change.adapter), change.adapter, change.state, change.generation, world.policy, world.now
        )
        assert imagined is not None
        reports[change.adapter] = imagined
    situation = read_situation(world.resource, reports, world.policy, world.status, world.now)
    return any(verdict.type == type_ and verdict.status == TRUE for verdict in judge(situation))


@settings(max_examples=60)
@given(small_worlds(), st.sampled_from(TYPES))
def test_a_remedy_helps_and_no_part_of_it_does(world, type_):  # type: ignore[no-untyped-def]
    situation = read_situation(world.resource, world.reports, world.policy, world.status, world.now)
    remedies = find_remedies(situation, world.reports, type_)
    for remedy in remedies:
        assert _is_true_after(world, remedy, type_)
        for size in range(len(remedy)):
            for part in combinations(remedy, size):
                assert not _is_true_after(world, part, type_)


@settings(max_examples=60)
@given(small_worlds())
def test_these_conditions_always_have_a_remedy(world):  # type: ignore[no-untyped-def]
    situation = read_situation(world.resource, world.reports, world.policy, world.status, world.now)
    for type_ in TYPES:
        assert find_remedies(situation, world.reports, type_), type_


@settings(max_examples=40)
@given(worlds())
def test_it_explains_the_status_that_aggregate_computes(world):  # type: ignore[no-untyped-def]
    inputs = (world.resource, world.reports, world.policy, world.status, world.now)
    status, told = aggregate(*inputs), explain(*inputs)
    assert told.phase == status.phase
    assert told.because, "a phase never comes from nothing"
    assert [(c.type, c.status, c.reason, c.message, c.since) for c in told.conditions] == [
        (c.type, c.status, c.reason, c.message, c.last_transition_time) for c in status.conditions
    ]
    for condition in told.conditions:
        if condition.terms is not None and not condition.terms.error:
            assert condition.terms.value is (condition.status == TRUE)
    assert render(told, world.now).startswith(f"cls-123 is {status.phase} for ")
