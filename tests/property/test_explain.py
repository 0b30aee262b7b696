"""Explain tells the story of `aggregate` and no other, and its remedies keep their promise when really sent."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import timedelta
from itertools import combinations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperfleet.aggregation.aggregate import aggregate
from hyperfleet.aggregation.explaining.explanation import explain
from hyperfleet.aggregation.explaining.explanation_text import render
from hyperfleet.aggregation.explaining.remedies import RemedySet, find_remedies
from hyperfleet.aggregation.explaining.trials import AdapterChange
from hyperfleet.aggregation.situation import read_situation
from hyperfleet.model.condition import FALSE, TRUE, ConditionStatus
from hyperfleet.model.status import AdapterState
from tests.conformance.timeline import load_policy
from tests.property.worlds import REPORTS, kinds, send, worlds
from tests.world import World, statuses

THREE = load_policy("""
requiredAdapters: [a, b]
optionalAdapters: [c]
policies: {staleThreshold: 10m}
clusterConditions:
  - {type: All, evaluate: {expr: 'all(requiredAdapters, {.state == "Completed"})'}}
  - {type: Two, evaluate: {expr: 'len(filter(allAdapters, {.available == "True"})) >= 2'}}
  - {type: Exactly, evaluate: {expr: 'count(allAdapters, {.state == "Running"}) == 1'}}
  - {type: Either, evaluate: {expr: 'adapters["a"].available == "True" || adapters["d"].available == "True"'}}
  - {type: First, evaluate: {expr: 'requiredAdapters[0].state == "Failed" && requiredAdapters[1].state != "Failed"'}}
  - {type: Later, evaluate: {expr: 'any(allAdapters, {.adapter > "a" && .state in ["Completed", "Running"]})'}}
  - {type: Same, evaluate: {expr: 'adapters["a"].state == adapters["b"].state && adapters["a"].applied != "True"'}}
  - {type: Unhealthy, polarity: Negative, evaluate: {expr: 'any(allAdapters, {.health == "False"})'}}
  - {type: Zone, mirror: {adapter: b, type: Zone}}
  - {type: Pressure, polarity: Negative, mirror: {adapter: b, type: Pressure}}
  - {type: Zones, evaluate: {expr: 'all(requiredAdapters, {.conditions["Zone"]?.status == "True"})'}}
  - {type: Healths, summary: {over: allAdapters, type: Health}}
  - {type: OfB, summary: {adapter: b, types: [Zone, Pressure], negative: [Pressure]}}
  - {type: Own, summary: {types: [Two, Either]}}
  - {type: Never, evaluate: {expr: 'any(allAdapters, {.state == "Completed" && .applied == "False"})'}}
  - {type: Data, evaluate: {expr: 'adapters["a"].data["region"] == "eu" && all(requiredAdapters, {.current})'}}
""")
HOPELESS = ("Never", "Data")
TYPES = ("Ready", "Available", *(rule.type for rule in THREE.rules if rule.type not in HOPELESS))
types = st.sampled_from(TYPES)
wishes = st.sampled_from([TRUE, FALSE])


@st.composite
def small_worlds(draw: st.DrawFn) -> World:
    """Draw a world of few adapters, of which some have reported, perhaps for an older generation."""
    world = World(THREE)
    for adapter in draw(st.permutations("abc")):
        if draw(st.integers(0, 3)):
            zone = draw(st.sampled_from([{}, {"Zone": "True"}, {"Zone": "False/NoZone", "Pressure": "True"}]))
            send(world, adapter, draw(kinds), extra=zone)
        if draw(st.integers(0, 9)) == 0:
            world.edit()
    world.pass_time(draw(st.sampled_from([timedelta(), timedelta(minutes=11)])))
    return world


def _help(world: World, type_: str, wanted: ConditionStatus) -> RemedySet:
    situation = read_situation(world.resource, world.reports, world.policy, world.status, world.now)
    return find_remedies(situation, world.reports, type_, wanted)


def _status_after(world: World, changes: Iterable[AdapterChange], type_: str) -> str:
    """Really send what the changes promise, in a world of its own, as bodies through the front door."""
    world = copy.copy(world)
    world.reports = dict(world.reports)
    for change in changes:
        stored = world.reports.get(change.adapter)
        kept = {c.type: c.status for c in stored.report.conditions} if stored else {}
        extra = {type_: status for type_, status in kept.items() if type_ not in ("Available", "Applied", "Health")}
        extra |= {condition.type: condition.status for condition in change.conditions}
        spoken = {"applied": "False"} if "nor applied" in str(change) else {}
        decision = send(world, change.adapter, change.state, generation=change.generation, extra=extra, **spoken)
        assert decision.outcome == "aggregated"
    return statuses(world.write().conditions)[type_]


@settings(max_examples=100)
@given(small_worlds(), types, wishes)
def test_a_remedy_that_is_sent_helps_and_no_part_of_it_does(world, type_, wanted):  # type: ignore[no-untyped-def]
    found = _help(world, type_, wanted)
    assert found.is_minimal
    for remedy in found.sets:
        assert _status_after(world, remedy, type_) == wanted
        for size in range(len(remedy)):
            for part in combinations(remedy, size):
                assert _status_after(world, part, type_) != wanted


@settings(max_examples=10)
@given(small_worlds(), st.sampled_from(HOPELESS))
def test_where_nothing_is_found_nothing_helps(world, type_):  # type: ignore[no-untyped-def]
    assert _help(world, type_, TRUE) == RemedySet(TRUE)
    states: list[AdapterState | None] = [None, "Completed", "Running", "Pending", "Failed", "Unhealthy"]
    for chosen in product(states, repeat=3):
        changes = [AdapterChange(a, s, world.resource.generation) for a, s in zip("abc", chosen, strict=True) if s]
        assert _status_after(world, changes, type_) != TRUE


MANY = [f"n{number:02}" for number in range(12)]


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from([None, *sorted(REPORTS)]), min_size=12, max_size=12),
    st.sets(st.integers(0, 12), min_size=1, max_size=3),
)
def test_of_many_adapters_no_more_are_asked_for_than_are_needed(kinds, counts):  # type: ignore[no-untyped-def]
    policy = load_policy(f"""
requiredAdapters: [{", ".join(MANY)}]
clusterConditions:
  - {{type: Some, evaluate: {{expr: 'count(requiredAdapters, {{.available == "True"}}) in {sorted(counts)}'}}}}
""")
    world = World(policy)
    for adapter, kind in zip(MANY, kinds, strict=True):
        if kind is not None:
            send(world, adapter, kind)
    available = sum(kind in ("Completed", "UnhealthyButAvailable") for kind in kinds)
    found = _help(world, "Some", TRUE)
    assert found.is_minimal
    needed = min((count - available for count in counts if count >= available), default=None)
    assert {len(remedy) for remedy in found.sets} == {available - max(counts) if needed is None else needed}
    assert _status_after(world, found.sets[0], "Some") == TRUE


@settings(max_examples=60)
@given(small_worlds())
def test_these_conditions_always_have_a_remedy(world):  # type: ignore[no-untyped-def]
    for type_ in TYPES:
        assert _help(world, type_, TRUE).sets, type_


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
            said = condition.raw or condition
            assert condition.terms.value is (said.status == TRUE)
    assert render(told, world.now).startswith(f"cls-123 is {status.phase} for ")
