"""What the lint may say «never» of: which rules look at nothing but what is tried, and how much is tried at most.

Findings as authors see them are rows of `tests/conformance/policy-problems.yaml`.
"""

from __future__ import annotations

import pytest

from hyperfleet.aggregation.linting.footprint import footprint_of
from hyperfleet.aggregation.linting.lint import lint
from tests.conformance.timeline import load_policy

POLICY = """
requiredAdapters: [a, b, c]
optionalAdapters: [d]
clusterConditions: [{type: Tested, evaluate: {expr: '%s'}}]
phases: {ready: {requiredConditions: [{type: Ready, status: "True"}]}}
"""

SETTLED = [
    'adapters["a"].state == "Running" and not adapters["b"].current',
    'all(requiredAdapters, {.available == "True" && .observedGeneration == currentGeneration})',
    "any(requiredAdapters, currentGeneration > #.observedGeneration)",
    'none(optionalAdapters, .state in ["Failed", "Unhealthy"]) ? adapters["a"].reported : adapters["d"].reported',
    'let bad = filter(requiredAdapters, .health == "False"); len(bad) > 1 && all(bad, .applied == "True")',
    'len(filter(requiredAdapters, {.state == "Completed"})) >= len(requiredAdapters) * 0.75',
    'count(requiredAdapters, .state == "Failed") == 2 || one(requiredAdapters, .state == "Failed")',
]
BEYOND = [
    'adapters["a"].reason == "QuotaExceeded"',
    'any(requiredAdapters, .message startsWith "no")',
    'adapters["a"].data["x"] == 1',
    'adapters["a"].conditions["X"].status == "True"',
    'adapters["a"].lastUpdated.Year() > 2030',
    'adapters["a"].stale',
    'olderThan(adapters["a"], "7m")',
    "currentGeneration > 5",
    'adapters["a"].observedGeneration > 2',
    'adapters["a"].observedGeneration == adapters["b"].observedGeneration',
    "let g = currentGeneration; all(requiredAdapters, .observedGeneration == g)",
    'requiredAdapters[0].state == "Failed"',
    'first(requiredAdapters).state == "Failed"',
    'any(requiredAdapters, .adapter == "a" && .state == "Failed")',
    'adapters["a"] == adapters["b"]',
    'filter(requiredAdapters, .state == "Failed") == requiredAdapters',
    'let bad = filter(requiredAdapters, .state == "Failed"); bad == requiredAdapters',
    'adapters[adapters["a"].reason].state == "Failed"',
    '"a" in map(requiredAdapters, .adapter)',
]


@pytest.mark.parametrize("expression", SETTLED)
def test_trying_states_settles_a_rule_about_them(expression: str) -> None:
    assert footprint_of(load_policy(POLICY % expression), [("Tested", None)]).is_closed


@pytest.mark.parametrize("expression", BEYOND)
def test_trying_states_settles_nothing_else(expression: str) -> None:
    policy = load_policy(POLICY % expression)
    assert not footprint_of(policy, [("Tested", None)]).is_closed
    read = ["ReadsLastUpdated"] if "lastUpdated" in expression else []
    assert [finding.code for finding in lint(policy)] == read


@pytest.mark.parametrize("expression", SETTLED)
def test_a_rule_that_can_be_either_is_fine(expression: str) -> None:
    assert lint(load_policy(POLICY % expression)) == ()


@pytest.mark.parametrize("expression", [text for text in SETTLED if not text.startswith("let")])
def test_a_rule_that_cannot_be_true_is_found(expression: str) -> None:
    """The same rules, made impossible."""
    found = lint(load_policy(POLICY % f"1 > 2 && ({expression})"))
    assert [finding.code for finding in found] == ["ConstantCondition"]


def test_a_footprint_is_what_a_rule_looks_at() -> None:
    text = 'adapters["b"].state == "Failed" || any(optionalAdapters, .health == "False")'
    found = footprint_of(load_policy(POLICY % text), [("Tested", None)])
    assert (found.adapters, found.lists) == (frozenset({"b"}), frozenset({"optionalAdapters"}))
    assert not found.counts
    assert found.fields == {"state", "health", "reported"}


def test_where_there_is_too_much_to_try_nothing_is_said() -> None:
    """Ten adapters in seven states each are more than can be tried, so that even this is not said to be impossible."""
    both = [f'adapters["a{number}"].state == "Failed"' for number in range(10)]
    text = " && ".join([*both, 'adapters["a0"].state == "Completed"'])
    names = ", ".join(f"a{number}" for number in range(10))
    few, many = POLICY % text, (POLICY % text).replace("[a, b, c]", f"[{names}]")
    assert [finding.code for finding in lint(load_policy(many))] == []
    assert {finding.code for finding in lint(load_policy(few))} == {"UnconfiguredAdapter"}
