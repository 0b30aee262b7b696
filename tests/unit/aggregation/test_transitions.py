"""The entries of a resource's history: one for each move of the phase and of a condition's status, and no more."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hyperfleet.aggregation.loading.policy_loader import load_policies
from hyperfleet.aggregation.transitions import transitions_between
from hyperfleet.model.condition import Condition
from hyperfleet.model.event import Transition
from hyperfleet.model.status import Status
from tests.world import START, World, make_report

POLICY = """
requiredAdapters: [dns]
clusterConditions:
  - type: DNSConfigured
    evaluate: {expr: 'adapters["dns"].available == "True"'}
    templates:
      true: {reason: Configured, message: All records are there}
      false: {reason: NotConfigured, message: "{{.AdapterFailureMessage}}"}
phases: {ready: {requiredConditions: [{type: DNSConfigured, status: "True"}]}}
policies: {staleThreshold: 10m, staleAction: degraded}
"""


def make_world() -> World:
    return World(load_policies(POLICY).policies[0])


def moves(before: Status | None, after: Status) -> list[tuple[str, str | None, str | None]]:
    """Return subject, before and after of every transition, in order."""
    return [(t.subject, t.before, t.after) for t in transitions_between(before, after)]


def test_the_first_status_moves_everything_from_nothing() -> None:
    world = make_world()
    assert moves(None, world.status) == [
        ("phase", None, "Pending"),
        ("Available", None, "False"),
        ("Ready", None, "False"),
        ("DNSConfigured", None, "False"),
    ]


def test_a_report_moves_what_it_moves() -> None:
    world = make_world()
    before = world.status
    world.pass_time(timedelta(minutes=1))
    world.report(make_report("dns", "True/Done"))
    found = transitions_between(before, world.status)
    assert [(t.subject, t.before, t.after) for t in found] == [
        ("phase", "Pending", "Ready"),
        ("Available", "False", "True"),
        ("Ready", "False", "True"),
        ("DNSConfigured", "False", "True"),
    ]
    assert {t.time for t in found} == {START + timedelta(minutes=1)}
    assert found[3] == Transition(
        "DNSConfigured", "False", "True", START + timedelta(minutes=1), "Configured", "All records are there"
    )


def test_another_reason_or_message_is_no_transition() -> None:
    world = make_world()
    world.report(make_report("dns", "False/JobFailed/No zone"))
    before = world.status
    world.pass_time(timedelta(minutes=1))
    world.report(make_report("dns", "False/QuotaExceeded/No quota"))
    assert before.conditions != world.status.conditions
    assert moves(before, world.status) == []


def test_the_same_again_is_no_transition() -> None:
    """docs/semantics.md §2, Replay: no transition, no history entry."""
    world = make_world()
    report = make_report("dns", "True/Done", observedTime=START.isoformat())
    world.report(report)
    before = world.status
    world.pass_time(timedelta(minutes=1))
    world.report(report)
    assert moves(before, world.status) == []


def test_time_alone_makes_transitions_too() -> None:
    world = make_world()
    world.report(make_report("dns", "True/Done"))
    before = world.status
    world.pass_time(timedelta(minutes=10))
    found = transitions_between(before, world.status)
    assert [(t.subject, t.before, t.after) for t in found] == [
        ("phase", "Ready", "Degraded"),
        ("Ready", "True", "False"),
    ]
    assert {t.time for t in found} == {START + timedelta(minutes=10)}


def test_a_condition_that_a_new_policy_does_not_have_goes() -> None:
    world = make_world()
    world.report(make_report("dns", "True/Done"))
    before = world.status
    world.pass_time(timedelta(minutes=1))
    world.use_policy(load_policies("requiredAdapters: [dns]\n").policies[0])
    found = transitions_between(before, world.status)
    assert [(t.subject, t.before, t.after) for t in found] == [
        ("phase", "Ready", "Provisioning"),
        ("DNSConfigured", "True", None),
    ]
    assert found[1].time == START + timedelta(minutes=1)


def test_a_condition_that_comes_with_a_new_policy() -> None:
    world = World(load_policies("requiredAdapters: [dns]\n").policies[0])
    before = world.status
    world.use_policy(load_policies(POLICY).policies[0])
    assert moves(before, world.status) == [("DNSConfigured", None, "False")]


def test_the_history_of_a_status_is_its_conditions() -> None:
    """Whoever adds up all transitions knows every status and since when."""
    world = make_world()
    seen: dict[str, tuple[str | None, object]] = {}
    before: Status | None = None
    for minute, available in enumerate(["False/JobRunning", "True/Done", "False/JobFailed", "True/Done", "True/Again"]):
        for transition in transitions_between(before, world.status):
            seen[transition.subject] = (transition.after, transition.time)
        before = world.status
        world.run_until(START + timedelta(minutes=minute + 1))
        world.report(make_report("dns", available))
    for transition in transitions_between(before, world.status):
        seen[transition.subject] = (transition.after, transition.time)
    assert seen == {
        "phase": (world.status.phase, world.status.phase_since),
        **{c.type: (c.status, c.last_transition_time) for c in world.status.conditions},
    }


def test_a_status_without_transition_times_was_never_stored() -> None:
    world = make_world()
    untimed = replace(world.status, conditions=(Condition("Ready", "True"),))
    with pytest.raises(ValueError, match="Ready of a stored status has no transition time"):
        transitions_between(None, untimed)
