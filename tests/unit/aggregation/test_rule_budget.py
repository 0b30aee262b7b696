"""The rules of a policy share one budget: the work for a status is bounded, however many rules there are."""

from __future__ import annotations

import re

from hyperfleet.aggregation.aggregate import aggregate
from hyperfleet.aggregation.explaining.explanation import explain
from hyperfleet.aggregation.explaining.remedies import find_remedies
from hyperfleet.aggregation.linting.enumeration import enumerate_states
from hyperfleet.aggregation.linting.sandbox import STEPS_PER_WORK, WORK
from hyperfleet.aggregation.policy import Policy
from hyperfleet.aggregation.situation import read_situation
from hyperfleet.expr import STEPS, open_budget, steps_left
from hyperfleet.model.status import Status
from tests.conformance.timeline import load_policy
from tests.world import World, make_report

EXPENSIVE = "count(1..300, count(1..100, # > 0) == 100) == 300"
# False, and each part that could be blamed is expensive: looking for the culprits costs as much again.
BLAMED = " and ".join(
    ['any(requiredAdapters, .state == "None")', *[f"(any(requiredAdapters, .stale) or {EXPENSIVE})"] * 3]
)


def policy_of(*expressions: str) -> Policy:
    rules = "".join(f"  - {{type: R{place}, evaluate: {{expr: '{each}'}}}}\n" for place, each in enumerate(expressions))
    phases = "phases: {ready: {requiredConditions: [{type: R0, status: 'True'}]}}\n"
    return load_policy(f"requiredAdapters: [validation, dns]\nclusterConditions:\n{rules}{phases}")


def compute(world: World, policy: Policy) -> tuple[Status, int]:
    """Return a status, and the steps that it took."""
    budget = open_budget()
    status = aggregate(world.resource, world.reports, policy, None, world.now, budget=budget)
    return status, STEPS - steps_left(budget)


def test_many_expensive_rules_cost_no_more_than_one_budget() -> None:
    for expression in (EXPENSIVE, BLAMED):
        policy = policy_of(*[expression] * 20, 'all(requiredAdapters, .state == "Unreported")')
        status, steps = compute(World(policy), policy)
        assert STEPS // 2 < steps <= STEPS
        assert status.conditions[-1].status == "True", "a rule that costs nothing is not affected"


def test_a_rule_that_others_left_too_little_for_says_so() -> None:
    policy = policy_of(*[EXPENSIVE] * 5)
    status, _ = compute(World(policy), policy)
    by_type = {condition.type: condition for condition in status.conditions}
    assert [by_type[f"R{place}"].status for place in range(5)] == ["True", "True", "True", "Unknown", "Unknown"]
    last = by_type["R4"]
    assert last.reason == "ExpressionError"
    assert last.message.startswith("iteration budget exceeded (1:")
    assert re.search(r"The rules of a policy share 100,000 steps; those before this one used 100,000\.$", last.message)


def test_a_rule_that_cannot_be_paid_for_leaves_the_budget_to_others() -> None:
    policy = policy_of("len(1..100000000) > 0", "count(1..99999, count(1..99999, # > 0) > 0) > 0", EXPENSIVE)
    status, _ = compute(World(policy), policy)
    assert [condition.status for condition in status.conditions[-3:]] == ["Unknown", "Unknown", "True"]


def test_a_rule_that_is_not_a_truth_value_at_run_time_is_unknown() -> None:
    policy = policy_of('any(requiredAdapters, .reported) and adapters["dns"].data.zones')
    world = World(policy)
    assert world.status.conditions[-1].status == "False"
    world.report(make_report("dns", "True", data={"zones": ["a"]}))
    found = world.status.conditions[-1]
    assert (found.status, found.reason) == ("Unknown", "ExpressionError")
    assert found.message.startswith("invalid operation: bool([]interface {})")


def test_remedies_of_expensive_rules_are_searched_within_a_budget() -> None:
    policy = policy_of(f'{EXPENSIVE} and all(requiredAdapters, .state == "None")')
    world = World(policy)
    situation = read_situation(world.resource, world.reports, policy, None, world.now)
    budget = open_budget(steps=5 * STEPS)
    found = find_remedies(situation, world.reports, "R0", "True", budget)
    assert found.sets == ()
    assert not found.is_exhaustive
    assert 0 <= steps_left(budget) < 2 * STEPS


def test_an_explanation_of_many_expensive_rules_ends() -> None:
    policy = policy_of(*[EXPENSIVE] * 60)
    world = World(policy)
    explained = explain(world.resource, world.reports, policy, None, world.now)
    errors = [condition.terms.error for condition in explained.conditions if condition.terms]
    assert errors.count("iteration budget exceeded") > 50


def test_linting_expensive_rules_is_a_sample() -> None:
    policy = policy_of(*[f'{EXPENSIVE} and adapters["dns"].state == "Completed"'] * 2)
    found = enumerate_states(policy)
    assert not found.is_complete
    assert 1 <= len(found.results) <= WORK * STEPS_PER_WORK // 30_000 + 1
