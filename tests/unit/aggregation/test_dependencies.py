"""What a condition depends on: nobody too few, who could help, and nobody too many, who only costs time."""

from __future__ import annotations

import pytest

from hyperfleet.aggregation.explaining.dependencies import Dependencies, find_dependencies
from hyperfleet.aggregation.situation import read_situation
from tests.conformance.timeline import load_policy
from tests.world import World, make_report

POLICY = """
requiredAdapters: [a, b]
optionalAdapters: [c, d]
clusterConditions:
  - {type: Required, evaluate: {expr: 'any(requiredAdapters, {.available == "True"})'}}
  - {type: Optional, evaluate: {expr: 'any(optionalAdapters, {.available == "True"})'}}
  - {type: Everybody, evaluate: {expr: 'any(allAdapters, {.available == "True"})'}}
  - {type: Named, evaluate: {expr: 'adapters["x"].available == "True" && adapters["b"].available == "True"'}}
  - {type: NamedOrList, evaluate: {expr: 'adapters["x"].current || any(optionalAdapters, {.current})'}}
  - {type: Nobody, evaluate: {expr: 'currentGeneration == 1'}}
  - {type: Anybody, evaluate: {expr: 'any(["a", "c"], {adapters[#].available == "True"})'}}
  - {type: NamedOrAnybody, evaluate: {expr: 'adapters["d"].current || len(adapters) > 1'}}
  - {type: Conditions, evaluate: {expr: 'adapters["a"].conditions["Zone"].status == "True"'}}
  - {type: Copied, mirror: {adapter: c, type: Zone}}
  - {type: CopiedVerdict, mirror: {adapter: c, type: Health}}
  - {type: OfOne, summary: {adapter: d, types: [Zone, Health, Throttled], negative: [Throttled]}}
  - {type: OfRequired, summary: {over: requiredAdapters, type: Zone}}
  - {type: OfOptional, summary: {over: optionalAdapters, type: Health}}
  - {type: OfAll, summary: {over: allAdapters, type: Health}}
  - {type: OfPools, summary: {over: nodePools, type: Ready}}
  - {type: OfOthers, summary: {types: [Ready, OfOne, Named]}}
  - {type: OfTwo, summary: {types: [Ready, OfRequired]}}
  - {type: First, evaluate: {expr: 'requiredAdapters[0].available == "True"'}}
  - {type: OfFirst, summary: {types: [Ready, First]}}
"""
EVERYBODY = ("a", "b", "stranger", "c", "d", "x")


def make_world() -> World:
    world = World(load_policy(POLICY))
    world.report(make_report("stranger", "True"))
    return world


def find(type_: str, world: World | None = None) -> Dependencies:
    world = world or make_world()
    situation = read_situation(world.resource, world.reports, world.policy, world.status, world.now)
    return find_dependencies(type_, situation)


@pytest.mark.parametrize(
    ("type_", "adapters", "named"),
    [
        ("Available", ("a", "b"), set()),
        ("Ready", ("a", "b"), set()),
        ("Required", ("a", "b"), set()),
        ("Optional", ("c", "d"), set()),
        ("Everybody", EVERYBODY, set()),
        ("Named", ("x", "b"), {"x", "b"}),
        ("NamedOrList", ("x", "c", "d"), {"x"}),
        ("Nobody", (), set()),
        ("Anybody", EVERYBODY, set()),
        ("NamedOrAnybody", ("d", "a", "b", "stranger", "c", "x"), {"d"}),
        ("Conditions", ("a",), {"a"}),
        ("Copied", ("c",), {"c"}),
        ("OfOne", ("d",), {"d"}),
        ("OfRequired", ("a", "b"), set()),
        ("OfOptional", ("c", "d"), set()),
        ("OfAll", EVERYBODY, set()),
        ("OfPools", (), set()),
        ("OfOthers", ("a", "b", "d", "x"), {"d", "x", "b"}),
    ],
)
def test_adapters(type_: str, adapters: tuple[str, ...], named: set[str]) -> None:
    found = find(type_)
    assert (found.adapters, set(found.named)) == (adapters, named)


@pytest.mark.parametrize(
    ("type_", "conditions"),
    [
        ("Ready", {}),
        ("Named", {}),
        ("Conditions", {"Zone": "True"}),
        ("Copied", {"Zone": "True"}),
        ("CopiedVerdict", {}),
        ("OfOne", {"Zone": "True", "Throttled": "False"}),
        ("OfRequired", {"Zone": "True"}),
        ("OfOthers", {"Zone": "True", "Throttled": "False"}),
    ],
)
def test_conditions_beside_those_of_every_report(type_: str, conditions: dict[str, str]) -> None:
    assert find(type_).conditions == conditions


def test_while_deleting_ready_depends_on_nobody() -> None:
    world = make_world()
    world.delete()
    assert find("Ready", world).adapters == ()
    assert find("Available", world).adapters == ("a", "b")


@pytest.mark.parametrize(
    ("type_", "sent", "alike"),
    [
        ("Available", {"a": "True", "b": "True/Other"}, True),
        ("Available", {"a": "False", "b": "True"}, False),
        ("Available", {"a": "False"}, False),
        ("Ready", {"a": "False/JobFailed"}, True),
        ("Ready", {"a": "True"}, False),
        ("OfRequired", {"a": "True", "b": "False"}, True),
        ("OfTwo", {"a": "True", "b": "False"}, False),
        ("OfTwo", {"a": "False/JobFailed", "b": "False"}, True),
    ],
)
def test_adapters_that_look_alike(type_: str, sent: dict[str, str], alike: bool) -> None:
    world = make_world()
    for adapter, available in sent.items():
        world.report(make_report(adapter, available))
    situation = read_situation(world.resource, world.reports, world.policy, world.status, world.now)
    project = find(type_, world).projection
    assert project is not None
    assert (project(situation.adapters.view("a")) == project(situation.adapters.view("b"))) is alike


def test_a_summary_over_many_looks_at_its_condition() -> None:
    world = make_world()
    world.report(make_report("a", "True", extra={"Zone": "True"}))
    world.report(make_report("b", "True", extra={"Zone": "False"}))
    situation = read_situation(world.resource, world.reports, world.policy, world.status, world.now)
    project = find("OfRequired", world).projection
    assert project is not None
    assert (project(situation.adapters.view("a")), project(situation.adapters.view("b"))) == ("True", "False")


@pytest.mark.parametrize("type_", ["First", "OfFirst"])
def test_a_rule_that_may_tell_any_two_apart(type_: str) -> None:
    assert find(type_).projection is None
