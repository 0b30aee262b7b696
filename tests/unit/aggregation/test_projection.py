"""Which adapters are all the same to an expression: when in doubt, none."""

from __future__ import annotations

import pytest

from hyperfleet.aggregation.explaining.projection import Projection, find_projection
from hyperfleet.aggregation.policy import ExprRule
from hyperfleet.aggregation.situation import read_situation
from tests.conformance.timeline import load_policy
from tests.world import World, make_report


def projection_of(expression: str) -> Projection | None:
    policy = load_policy(f"""
requiredAdapters: [a, b]
clusterConditions: [{{type: X, evaluate: {{expr: '{expression}'}}}}]
""")
    by = policy.rules[0].by
    assert isinstance(by, ExprRule)
    return find_projection(by.program.tree)


@pytest.mark.parametrize(
    "expression",
    [
        'all(requiredAdapters, {.state == "Completed"})',
        'len(filter(requiredAdapters, {.available == "True" && !.stale})) / len(allAdapters) >= 0.75',
        'count(allAdapters, {.state in ["Failed", "Unhealthy"]}) in [1, 2]',
        'let bad = filter(requiredAdapters, {.health != "True"}); len(bad) == 0 || none(bad, {.current})',
        'adapters["a"].current ? any(optionalAdapters, {.observedGeneration < currentGeneration}) : true',
        'all(requiredAdapters, {.conditions["Zone"]?.status == "True"})',
    ],
)
def test_who_only_counts_ignores_identity(expression: str) -> None:
    assert projection_of(expression) is not None


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param('any(requiredAdapters, {.adapter == "a"})', id="a name"),
        pytest.param('requiredAdapters[0].state == "Failed"', id="a place"),
        pytest.param('first(requiredAdapters).state == "Failed"', id="another place"),
        pytest.param("any(values(adapters), {.current})", id="the whole map"),
        pytest.param("requiredAdapters == allAdapters", id="whole lists"),
        pytest.param('all(requiredAdapters, {# == adapters["a"]})', id="whole adapters"),
        pytest.param('any(requiredAdapters, {.reason == "Boom"})', id="a reason"),
        pytest.param('any(requiredAdapters, {.message contains "x"})', id="a message"),
        pytest.param("any(requiredAdapters, {.data.n == 1})", id="data"),
        pytest.param('any(requiredAdapters, {olderThan(#, "5m")})', id="time"),
        pytest.param("any(requiredAdapters, {.available == .applied})", id="two texts compared"),
        pytest.param('any(requiredAdapters, {.state startsWith "Un"})', id="a part of a text"),
        pytest.param('any(map(requiredAdapters, .state), {# == "Failed"})', id="another builtin"),
        pytest.param("any(requiredAdapters, {len(.conditions) > 3})", id="conditions as a whole"),
        pytest.param('adapters[currentGeneration > 1 ? "a" : "b"].current', id="a computed name"),
    ],
)
def test_who_may_tell_adapters_apart_is_not(expression: str) -> None:
    assert projection_of(expression) is None


def test_two_look_alike_when_the_expression_sees_no_difference() -> None:
    project = projection_of('all(requiredAdapters, {.state == "Completed" && .conditions["Zone"]?.status == "True"})')
    assert project is not None
    world = World(load_policy("requiredAdapters: [a, b, c, d]"))
    world.report(make_report("a", "False/Boom/x"))
    world.report(make_report("b", "False/JobRunning", applied="False", extra={"Load": "True"}))
    world.report(make_report("c", "True"))
    world.report(make_report("d", "True", extra={"Zone": "True"}))
    views = read_situation(world.resource, world.reports, world.policy, world.status, world.now).by_name
    assert project(views["a"]) == project(views["b"]), "any state but Completed is like another"
    assert len({project(view) for view in views.values()}) == 3
