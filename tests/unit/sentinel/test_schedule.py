"""When a resource wants a look: its states, the pauses between looks, and what starts them again."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from hyperfleet.aggregation import load_policies
from hyperfleet.aggregation.policy import Policy
from hyperfleet.sentinel.rules import BUILT_IN_RULES, Backoff, Rule, RuleSet
from hyperfleet.sentinel.schedule import (
    NO_LOOKS,
    LookedAt,
    LookHistory,
    after_look,
    due_rules,
    next_look,
    pause,
    resync_age,
    states_of,
)
from tests.world import START, World, make_report

POLICY = """
requiredAdapters: [validation, dns]
optionalAdapters: [audit]
clusterConditions:
  - type: Done
    evaluate: {expr: 'all(requiredAdapters, {.state == "Completed"})'}
phases:
  ready: {requiredConditions: [{type: Done, status: "True"}]}
policies: {staleThreshold: 9m, staleAction: degraded, maxRetries: 2, retryInterval: 45s}
"""
EXACT = RuleSet([replace(rule, backoff=Backoff(2.0, timedelta(minutes=10), 0.0)) for rule in BUILT_IN_RULES])
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def make_policy(text: str = POLICY) -> Policy:
    return load_policies(text).policies[0]


def make_world() -> World:
    return World(make_policy())


def look_at(world: World, history: LookHistory = NO_LOOKS) -> LookedAt:
    return LookedAt(world.resource, world.status, world.policy, world.reports, history)


def complete(world: World, generation: int = 1) -> None:
    for adapter in world.policy.required:
        world.report(make_report(adapter, "True", generation=generation))


def phase_of(world: World) -> str:
    return world.status.phase


def states(world: World) -> dict[str, datetime]:
    return dict(states_of(look_at(world)))


# ── states ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_resource() -> None:
    world = make_world()
    assert states(world) == {"new": START, "any": START}
    world.pass_time(MINUTE)
    world.report(make_report("audit", "True"))
    assert states(world) == {"new": START, "any": START}, "an optional adapter does not count"


def test_some_adapters_have_not_reported_on_the_generation() -> None:
    world = make_world()
    world.pass_time(MINUTE)
    world.report(make_report("dns", "True"))
    assert states(world) == {"outdated": START, "any": START}, "validation is missing"
    world.report(make_report("validation", "True"))
    world.pass_time(MINUTE)
    world.edit()
    assert states(world) == {"outdated": START + 2 * MINUTE, "any": START}, "both are behind"


def test_not_ready_counts_from_when_it_stopped_being_ready() -> None:
    world = make_world()
    complete(world)
    world.pass_time(MINUTE)
    world.report(make_report("dns", "False/JobRunning"))
    world.pass_time(MINUTE)
    world.report(make_report("validation", "False/Waiting"))
    assert phase_of(world) == "Provisioning"
    world.pass_time(MINUTE)
    world.report(make_report("dns", "False/Waiting"))
    assert phase_of(world) == "Pending", "the phase moved"
    assert states(world) == {"notReady": START + MINUTE, "any": START}


def test_failed_has_a_state_of_its_own() -> None:
    world = make_world()
    complete(world)
    world.pass_time(MINUTE)
    world.report(make_report("dns", "False/Broken"))
    assert states(world) == {"failed": START + MINUTE, "any": START}


def test_ready() -> None:
    world = make_world()
    world.pass_time(MINUTE)
    complete(world)
    assert states(world) == {"ready": START + MINUTE, "any": START}


def test_stale_counts_from_when_the_adapter_became_stale() -> None:
    world = make_world()
    complete(world)
    world.pass_time(8 * MINUTE)
    world.report(make_report("validation", "True"))
    world.pass_time(4 * MINUTE)
    assert states(world)["stale"] == START + 9 * MINUTE
    assert states_of(replace(look_at(world), reports={}))[1][0] == "stale", "without reports it is dated by the phase"
    world.pass_time(6 * MINUTE)
    assert states(world)["stale"] == START + 17 * MINUTE, "a second one is news"


def test_deleting_is_nothing_else() -> None:
    world = make_world()
    complete(world)
    world.pass_time(20 * MINUTE)
    world.delete()
    assert states(world) == {"deleting": START + 20 * MINUTE, "any": START}


def test_without_required_adapters_it_is_never_looked_at() -> None:
    world = World(make_policy("optionalAdapters: [audit]\n"))
    assert states(world) == {}
    assert next_look(look_at(world), EXACT, START) == (None, None, NO_LOOKS)
    assert due_rules(look_at(world), EXACT, START + timedelta(days=9)) == ()


# ── the next look ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("attempts", "retries", "state", "after", "expected", "because"),
    [
        (0, 0, "new", 30, 30, "the first look comes after the age"),
        (1, 0, "new", 30, 60, "then it doubles"),
        (4, 0, "new", 30, 480, "and doubles"),
        (5, 0, "new", 30, 600, "up to the maximum"),
        (10_000, 0, "new", 30, 600, "for ever"),
        (0, 0, "stale", 0, 0, "at once"),
        (1, 0, "stale", 0, 20, "and then as if it were 10s"),
        (3, 0, "notReady", 3600, 3600, "an age beyond the maximum stays"),
        (0, 0, "failed", None, 45, "the retry interval of the policy"),
        (9, 1, "failed", None, 45, "other looks are no retries"),
        (9, 2, "failed", None, 180, "after maxRetries, the resync age"),
        (9, 9, "ready", None, 180, "a third of the staleThreshold"),
    ],
)
def test_pauses(attempts: int, retries: int, state: str, after: int | None, expected: int, because: str) -> None:
    rule = Rule("r", state, None if after is None else timedelta(seconds=after))  # type: ignore[arg-type]
    history = LookHistory(START, attempts, retries)
    assert pause(rule, make_policy(), history, 0.0) == timedelta(seconds=expected), because
    assert pause(rule, make_policy(), history, 1.0) == timedelta(seconds=expected) * 0.9, "jitter only shortens"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("policies: {staleThreshold: 3m}", MINUTE),
        ("policies: {staleThreshold: 24h}", 30 * MINUTE),
        ("name: without", 30 * MINUTE),
    ],
)
def test_the_resync_age(text: str, expected: timedelta) -> None:
    assert resync_age(make_policy(text)) == expected


def test_a_retry_interval_need_not_be_given() -> None:
    policy = make_policy("policies: {maxRetries: 1}")
    failed = Rule("failed", "failed", None)
    assert pause(failed, policy, NO_LOOKS, 0.0) == 30 * SECOND
    assert pause(failed, policy, LookHistory(START, 1, 1), 0.0) == 30 * MINUTE


def test_the_looks_at_a_new_resource() -> None:
    world = make_world()
    looked_at, times = look_at(world), []
    for _ in range(7):
        at, rule, history = next_look(looked_at, EXACT, START)
        assert at is not None
        assert rule is not None
        assert rule.name == "new"
        assert [each.rule.name for each in due_rules(looked_at, EXACT, at)] == ["new"]
        assert due_rules(looked_at, EXACT, at - SECOND) == ()
        times.append((at - START) // SECOND)
        looked_at = after_look(replace(looked_at, history=history), rule, at)
    assert times == [30, 90, 210, 450, 930, 1530, 2130]


def test_a_failed_resource_is_retried_as_the_policy_says() -> None:
    world = make_world()
    complete(world)
    world.report(make_report("dns", "False/Broken"))
    history, times = NO_LOOKS, []
    for _ in range(4):
        at, rule, _ = next_look(look_at(world, history), EXACT, world.now)
        assert at is not None
        assert rule is not None
        times.append(at - START)
        world.run_until(at)
        history = after_look(look_at(world, history), rule, at).history
        world.report(make_report("dns", "False/JobRunning"))  # it tries, and fails
        world.report(make_report("dns", "False/Broken"))
        world.report(make_report("validation", "True"))
    assert times == [45 * SECOND, 90 * SECOND, 270 * SECOND, 450 * SECOND], "two retries, then the resync age"
    assert history.retries == 4


def test_success_forgets_the_attempts() -> None:
    world = make_world()
    complete(world)
    world.pass_time(MINUTE)
    history = LookHistory(START + MINUTE, 7, 2)
    planned = next_look(look_at(world, history), EXACT, world.now)
    assert planned.history == LookHistory(START + MINUTE, 0, 0)
    assert planned.at == START + 4 * MINUTE
    world.report(make_report("dns", "False/Broken"))
    planned = next_look(look_at(world, planned.history), EXACT, world.now)
    assert planned.at == START + MINUTE + 45 * SECOND


def test_a_new_generation_forgets_the_attempts() -> None:
    world = make_world()
    world.pass_time(MINUTE)
    world.edit()
    planned = next_look(look_at(world, LookHistory(START + 30 * SECOND, 7, 2)), EXACT, world.now)
    assert planned == (START + 90 * SECOND, EXACT.get("new"), LookHistory(START + 30 * SECOND, 0, 0))


def test_a_write_does_not_postpone_a_look() -> None:
    world = make_world()
    complete(world)
    world.report(make_report("dns", "False/JobRunning"))
    first = next_look(look_at(world), EXACT, world.now).at
    for message in "abcdefgh":
        world.pass_time(5 * SECOND)
        world.report(make_report("dns", f"False/JobRunning/{message}"))
        assert next_look(look_at(world), EXACT, world.now).at == first


def test_a_look_does_not_cause_the_next_one() -> None:
    """An adapter that reports something new on every look is not asked more often than every ten seconds."""
    world = make_world()
    complete(world)
    world.run_until(START + 9 * MINUTE)
    looked_at = look_at(world)
    rule = EXACT.get("stale")
    assert rule is not None
    assert next_look(looked_at, EXACT, world.now)[:2] == (world.now, rule)
    history = after_look(looked_at, rule, world.now).history
    world.report(make_report("dns", "True//again"))
    assert "stale" in states(world)
    assert next_look(look_at(world, history), EXACT, world.now).at == world.now + 20 * SECOND
    impatient = RuleSet([Rule("impatient", "any", SECOND, Backoff(1.0, SECOND, 0.0))])
    assert next_look(look_at(world, history), impatient, world.now).at == world.now + 10 * SECOND


def test_the_earliest_rule_wins_and_of_equals_the_first() -> None:
    world = make_world()
    own = [Rule("late", "any", 2 * MINUTE), Rule("one", "new", MINUTE), Rule("two", "new", MINUTE)]
    rules = RuleSet([replace(rule, backoff=Backoff(1.0, MINUTE, 0.0)) for rule in own])
    assert next_look(look_at(world), rules, START).rule == rules.get("one")
    due = due_rules(look_at(world), rules, START + 5 * MINUTE)
    assert [each.rule.name for each in due] == ["one", "two", "late"]
    assert due[2].since == START


def test_what_is_overdue_is_due_now() -> None:
    world = make_world()
    now = START + timedelta(days=1)
    assert next_look(look_at(world), EXACT, now).at == now


def test_a_declined_rule_is_tried_again_after_its_pause() -> None:
    world = make_world()
    rules = RuleSet([Rule("own", "any", MINUTE, Backoff(1.0, MINUTE, 0.0)), *EXACT.rules])
    now = START + 5 * SECOND
    assert next_look(look_at(world), rules, now, frozenset({"new"}))[0] == now + 30 * SECOND
    assert next_look(look_at(world), rules, START + 2 * MINUTE, frozenset({"own", "new"}))[0] == START + 150 * SECOND
    at_once = RuleSet([Rule("own", "any", timedelta())])
    assert next_look(look_at(world), at_once, START, frozenset({"own"})).at == START + 10 * SECOND
