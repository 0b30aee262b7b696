"""Rules in YAML: what they mean, and every problem with its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

import pytest

from docs import generate
from hyperfleet.aggregation import load_policies
from hyperfleet.sentinel.rule_file import load_rules, sentinel_schema
from hyperfleet.sentinel.rules import BUILT_IN_RULES, Backoff, Rule, RuleSet
from hyperfleet.sentinel.warnings import find_warnings


def load_good(text: str) -> RuleSet:
    loaded = load_rules(text)
    assert loaded.problems == ()
    assert loaded.rules is not None
    return loaded.rules


def test_a_rule_of_your_own() -> None:
    rules = load_good("""
rules:
  - name: gold
    state: any
    where: {labelSelector: "tier=gold", phase: "Failed,Degraded"}
    when: resource.spec.?tier.orValue("") == "gold" && age > duration("5m")
    after: 5m
    backoff: {factor: 3, max: 1h, jitter: 0.5}
""")
    assert rules.rules[0] == Rule(
        "gold",
        "any",
        timedelta(minutes=5),
        Backoff(3.0, timedelta(hours=1), 0.5),
        {"labelSelector": "tier=gold", "phase": "Failed,Degraded"},
        'resource.spec.?tier.orValue("") == "gold" && age > duration("5m")',
    )
    assert rules.rules[1:] == BUILT_IN_RULES


def test_ages_are_a_shorthand() -> None:
    rules = load_good("ages: {new: 5s, notReady: 7m, ready: 10m}\n")
    ages = {rule.name: rule.after for rule in rules.rules}
    built_in = {rule.name: rule.after for rule in BUILT_IN_RULES}
    changed = {
        "new": timedelta(seconds=5), "not-ready": timedelta(minutes=7), "resync": timedelta(minutes=10)
    }  # fmt: skip
    assert ages == built_in | changed


def test_a_built_in_rule_is_replaced_by_its_name() -> None:
    rules = load_good("ages: {ready: 1h}\nrules: [{name: resync, state: ready, after: policy}]\n")
    assert rules.get("resync") == Rule("resync", "ready", None)
    assert len(rules.rules) == len(BUILT_IN_RULES)


def test_only_rules_of_your_own() -> None:
    rules = load_good("builtIn: false\nrules: [{name: failed, state: failed}, {name: lost, state: new}]\n")
    assert rules.rules == (Rule("failed", "failed", None), Rule("lost", "new", timedelta(seconds=30)))


@pytest.mark.parametrize(
    ("text", "place", "message", "because"),
    [
        ("rule: []", (1, 1), 'unknown key "rule", did you mean "rules"?', "a typo"),
        ("ages: {new: 5}", (1, 13), "expected a duration such as 10m, found the number 5", "a unit is missing"),
        ("rules: [{name: a}]", (1, 9), 'the key "state" is missing', "it is needed"),
        ("rules: [{name: Big, state: new}]", (1, 16), "expected a name of small letters", "names are reasons"),
        ("rules: [{name: a, state: an}]", (1, 26), "expected one of", "an unknown state"),
        ("rules: [{name: a, state: any}]", (1, 9), "a rule for any state needs after", "there is no default"),
        (
            "rules: [{name: a, state: new, after: policy}]",
            (1, 38),
            "a policy has no age for the state new",
            "of two only",
        ),
        ("rules: [{name: a, state: new, after: 5d}]", (1, 38), "a duration has no unit for days", "hours are meant"),
        ("rules: [{name: a, state: ready, after: 5s}]", (1, 40), "must be at least 10s", "the whole fleet"),
        ("rules: [{name: a, state: new}, {name: a, state: new}]", (1, 39), "there is already a rule a", "a name twice"),
        (
            "rules: [{name: a, state: new, after: 1h, backoff: {max: 1m}}]",
            (1, 57),
            "must not be shorter than after",
            "it would shrink",
        ),
        ("rules: [{name: a, state: new, backoff: {factor: 0.5}}]", (1, 49), "expected at least 1", "it would shrink"),
        ("rules: [{name: a, state: new, backoff: {jitter: 1}}]", (1, 49), "expected at most 0.9", "a pause of nothing"),
        (
            "rules: [{name: a, state: new, when: age}]",
            (1, 37),
            "the result must be bool, and is duration",
            "no condition",
        ),
        ("rules: [{name: a, state: new, when: ''}]", (1, 38), "the expression is empty", "no condition"),
        ("rules: [{name: a, state: new, when: foo > 1}]", (1, 37), "undeclared reference to 'foo'", "unknown name"),
        ("rules: [{name: a, state: new, where: {bad: x}}]", (1, 44), "unknown parameter bad", "the server knows them"),
        (
            "rules: [" + ", ".join(f"{{name: a{i}, state: new}}" for i in range(51)) + "]",
            (1, 8),
            "51 rules; at most 50",
            "every write compares them",
        ),
        ("", (1, 1), "the document is empty", "nothing"),
        ("[]", (1, 1), "expected a mapping", "something else"),
    ],
)
def test_problems_have_a_place(text: str, place: tuple[int, int], message: str, because: str) -> None:
    def check_where(where: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        return [(key, f"unknown parameter {key}") for key in where]

    loaded = load_rules(text, "s.yaml", check_where)
    assert loaded.rules is None
    (problem,) = loaded.problems
    assert (problem.place.line, problem.place.column) == place, because
    assert problem.message.startswith(message), because


def test_all_problems_at_once() -> None:
    loaded = load_rules("""\
ages: {new: 1x}
rules:
  - {name: UP, state: new, after: 5d}
  - name: a
    state: any
    when: |
      resource.a
        && foo
""")
    assert [(each.place.line, each.place.column) for each in loaded.problems] == [
        (1, 13), (3, 12), (3, 35), (4, 5), (8, 12),
    ]  # fmt: skip


def test_the_schema_describes_every_key() -> None:
    schema = sentinel_schema()
    assert schema["$id"] == "urn:hyperfleet:schema:sentinel"
    assert set(schema["$defs"]["SentinelDocument"]["properties"]) == {"ages", "builtIn", "rules"}
    assert "notReady" in schema["$defs"]["AgesDocument"]["properties"]


def test_the_schema_is_current() -> None:
    assert generate.SENTINEL_SCHEMA.read_text() == generate.sentinel_schema_text(), "run `make docs`"


STALE = "requiredAdapters: [dns]\npolicies: {staleThreshold: 30m}\n"


@pytest.mark.parametrize(
    ("policy", "rules", "warnings", "because"),
    [
        (STALE, "ages: {new: 1h}", 0, "the built-in rule follows the policy"),
        (STALE, "ages: {ready: 10m}", 0, "a third"),
        (STALE, "ages: {ready: 11m}", 1, "too rarely"),
        (STALE, "builtIn: false", 1, "never"),
        (STALE, "builtIn: false\nrules: [{name: a, state: any, after: 5m}]", 0, "any includes settled ones"),
        (STALE, "builtIn: false\nrules: [{name: a, state: any, after: 5m, when: 'age > age'}]", 1, "some only"),
        (STALE, "builtIn: false\nrules: [{name: a, state: ready, where: {phase: Ready}}]", 1, "some only"),
        (STALE.replace("30m", "20s"), "ages: {new: 1h}", 1, "nothing is looked at more often than every 10s"),
        ("requiredAdapters: [dns]\n", "builtIn: false", 0, "nothing goes stale"),
        (STALE.replace("required", "optional"), "builtIn: false", 0, "nothing is required"),
    ],
)
def test_rules_that_let_adapters_go_stale_are_warned_of(policy: str, rules: str, warnings: int, because: str) -> None:
    found = find_warnings(load_good(rules), load_policies(policy).policies)
    assert len(found) == warnings, because
    assert all("cluster" in each for each in found), "the policy is named"
