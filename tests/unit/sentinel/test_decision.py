"""Decisions: the first due rule whose condition is true, and the reasons against the others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hyperfleet.aggregation import load_policies
from hyperfleet.sentinel.decision import Declined, Trigger, decide, triggers_of
from hyperfleet.sentinel.rules import Rule, RuleSet
from hyperfleet.sentinel.schedule import LookedAt, LookHistory, due_rules
from tests.world import START, World

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RESOURCE = {"id": "cls-1", "spec": {"tier": "gold", "size": 3}, "labels": None, "status": {"phase": "Failed"}}


def trigger(when: str, rule: str = "own") -> Trigger:
    return Trigger(rule, "failed", timedelta(minutes=7), 2, when)


@pytest.mark.parametrize(
    ("when", "objection", "because"),
    [
        ("", "", "no condition"),
        ('resource.spec.?tier.orValue("") == "gold" && age > duration("5m")', "", "true"),
        ('state == "failed" && attempts == 2 && now > timestamp("2025-01-01T00:00:00Z")', "", "all variables"),
        ("resource.?labels.?a.orValue(1) == 1", "", "null is as absent"),
        ("resource.spec.size > 3", "its condition is false", "false"),
        ("resource.spec.nope > 3", 'its condition failed: Key not found in map : "nope"', "it cannot be evaluated"),
        ("resource.spec.size", "its condition failed: the result must be bool, and is int", "not a boolean"),
        ("foo", "its condition does not compile: undeclared reference to 'foo'", "a server of another version"),
    ],
)
def test_conditions(when: str, objection: str, because: str) -> None:
    decision = decide(RESOURCE, [trigger(when)], NOW)
    if objection:
        assert decision == (None, f"own: {objection}", (Declined("own", objection),)), because
    else:
        assert decision == ("own", "failed for 7m, looked at 2 times", ()), because


def test_the_first_true_rule_is_chosen() -> None:
    triggers = [trigger("false", "one"), trigger("1 / 0 == 1", "two"), trigger("", "three"), trigger("", "four")]
    assert decide(RESOURCE, triggers, NOW) == (
        "three",
        "failed for 7m, looked at 2 times",
        (Declined("one", "its condition is false"), Declined("two", "its condition failed: divide by zero")),
    )


def test_nothing_is_due() -> None:
    assert decide(RESOURCE, [], NOW) == (None, "no rule is due", ())


def test_triggers_are_made_of_due_rules() -> None:
    world = World(load_policies("requiredAdapters: [dns]\n").policies[0])
    rules = RuleSet([Rule("lost", "new", timedelta(minutes=1), when="age > duration('1m')")])
    looked_at = LookedAt(world.resource, world.status, world.policy, history=LookHistory(START, 3))
    now = START + timedelta(hours=1)
    triggers = triggers_of(looked_at, due_rules(looked_at, rules, now), now)
    assert triggers == (Trigger("lost", "new", timedelta(hours=1), 3, "age > duration('1m')"),)
    assert decide({}, triggers, now).why == "new for 1h, looked at 3 times"
