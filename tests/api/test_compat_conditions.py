"""The dialect's conditions, row by row of the reference's tables: pure, from records that the real core made."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec import UNSET

from hyperfleet.aggregation import load_policies
from hyperfleet.api.compat.conditions import ResourceCondition, conditions_of, type_of
from hyperfleet.ports import Record
from tests.world import START, World, make_report

MINUTE = timedelta(minutes=1)
POLICY = "requiredAdapters: [dns, validation]"
RULES = """
requiredAdapters: [dns, validation]
clusterConditions:
  - {type: Zoned, evaluate: {expr: 'adapters["dns"].available == "True"'}}
  - {type: Checked, mirror: {adapter: validation, type: Checked}}
"""


def make_world(policy: str = POLICY) -> World:
    world = World(load_policies(policy).policies[0])
    world.pass_time(MINUTE)
    return world


def say(world: World, *reports: str, generation: int = 1) -> None:
    """Let adapters report a minute after each other; `dns=False/Reason/message`, `dns=True+Finalized`."""
    for text in reports:
        adapter, _, available = text.partition("=")
        available, _, extra = available.partition("+")
        more = {"extra": {extra: "True"}} if extra else {}
        world.report(make_report(adapter, available, generation=generation, **more))
        world.pass_time(MINUTE)


def shown(world: World) -> dict[str, ResourceCondition]:
    return {each.type: each for each in conditions_of(Record(world.resource, world.status, world.reports))}


# ── Reconciled ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("reports", "status", "reason", "message"),
    [
        ([], "False", "ReconciledMissingAdapters", "Available=True: [dns, validation]. Currently reporting: []"),
        (
            ["dns=True"],
            "False",
            "ReconciledMissingAdapters",
            "Available=True: [validation]. Currently reporting: [dns]",
        ),
        (
            ["dns=False", "validation=True"],
            "False",
            "ReconciledMissingAdapters",
            "Available=True: [dns]. Currently reporting: [dns, validation]",
        ),
        (["dns=Unknown"], "False", "ReconciledMissingAdapters", "[dns, validation]. Currently reporting: []"),
        (["dns=True", "validation=True"], "True", "ReconciledAll", "Available=True or Finalized=True"),
        (["dns=True", "validation=True", "other=False"], "True", "ReconciledAll", "at the current generation"),
    ],
)
def test_reconciled(reports: list[str], status: str, reason: str, message: str) -> None:
    world = make_world()
    say(world, *reports)
    condition = shown(world)["Reconciled"]
    assert (condition.status, condition.reason, condition.observed_generation) == (status, reason, 1)
    assert message in str(condition.message)


def test_reconciled_follows_the_generation_at_once() -> None:
    world = make_world()
    say(world, "dns=True", "validation=True")
    world.edit()
    condition = shown(world)["Reconciled"]
    assert (condition.status, condition.observed_generation) == ("False", 2)
    assert "Currently reporting: [dns, validation]" in str(condition.message), "at any generation"
    assert condition.last_updated_time == condition.last_transition_time == world.now, "the time of the edit"


def test_reconciled_is_as_old_as_the_oldest_report_it_rests_on() -> None:
    world = make_world()
    assert shown(world)["Reconciled"].last_updated_time == START
    say(world, "dns=True")
    assert shown(world)["Reconciled"].last_updated_time == START + MINUTE
    say(world, "validation=True")
    condition = shown(world)["Reconciled"]
    assert condition.last_updated_time == START + MINUTE
    assert condition.last_transition_time == START + 2 * MINUTE, "when it happened, not the oldest report"
    say(world, "dns=True")
    condition = shown(world)["Reconciled"]
    assert condition.last_updated_time == START + 2 * MINUTE
    assert condition.last_transition_time == START + 2 * MINUTE, "a heartbeat is no transition"
    assert condition.created_time == START


def test_silence_does_not_end_reconciled() -> None:
    world = make_world(f"{POLICY}\npolicies: {{staleThreshold: 10m, staleAction: degraded}}\n")
    say(world, "dns=True", "validation=True")
    world.pass_time(60 * MINUTE)
    ready = world.status.condition("Ready")
    assert ready is not None
    assert ready.reason == "AdaptersStale"
    condition = shown(world)["Reconciled"]
    assert (condition.status, condition.last_transition_time) == ("True", START + 2 * MINUTE)
    assert condition.last_updated_time == START + MINUTE, "by which the sentinel knows"


@pytest.mark.parametrize(
    ("reports", "reason", "message"),
    [
        ([], "ReconciledMissingAdapters", "Finalized=True: [dns, validation]. Currently reporting: [dns, validation]"),
        (["dns=True+Finalized"], "ReconciledMissingAdapters", "Finalized=True: [validation]."),
        (["dns=True", "validation=True"], "ReconciledMissingAdapters", "Finalized=True: [dns, validation]."),
        (["dns=Unknown+Finalized"], "ReconciledMissingAdapters", "Finalized=True: [validation]."),
        (["dns=True+Finalized", "validation=False+Finalized"], "ReconciledWaitingForChildren", "child resources"),
    ],
)
def test_reconciled_while_deleting(reports: list[str], reason: str, message: str) -> None:
    world = make_world()
    say(world, "dns=True", "validation=True")
    world.delete()
    say(world, *reports, generation=2)
    condition = shown(world)["Reconciled"]
    assert (condition.status, condition.reason, condition.observed_generation) == ("False", reason, 2)
    assert message in str(condition.message)


# ── LastKnownReconciled ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("first", "second", "status", "reason", "generation"),
    [
        ([], [], "False", "AdaptersMissingReports", 1),
        (["dns=True"], [], "False", "AdaptersMissingReports", 1),
        (["dns=True", "validation=Unknown"], [], "False", "AdaptersMissingReports", 1),
        (["dns=True", "validation=False"], [], "False", "AdapterReportedNotAvailable", 1),
        (["dns=True", "validation=True"], [], "True", "AllAdaptersReconciled", 1),
        (["dns=True", "validation=True"], ["dns=True"], "True", "AllAdaptersReconciled", 1),
        (["dns=True", "validation=True"], ["dns=False"], "True", "AllAdaptersReconciled", 1),
        (["dns=True", "validation=True"], ["dns=True", "validation=True"], "True", "AllAdaptersReconciled", 2),
        (["dns=True", "validation=False"], ["dns=True"], "False", "AdapterReportedNotAvailable", 2),
        # The original stays True for ever here; stickiness ends when everybody has reported at the new generation.
        (["dns=True", "validation=True"], ["dns=False", "validation=True"], "False", "AdapterReportedNotAvailable", 2),
    ],
)
def test_last_known_reconciled(first: list[str], second: list[str], status: str, reason: str, generation: int) -> None:
    world = make_world()
    say(world, *first)
    if second:
        world.edit()
        say(world, *second, generation=2)
    condition = shown(world)["LastKnownReconciled"]
    assert (condition.status, condition.reason, condition.observed_generation) == (status, reason, generation)
    assert condition.message


@pytest.mark.parametrize(
    ("steps", "status", "reason", "generation"),
    [
        # Never True together: not True in the original either, whatever Available says.
        (["1 dns=True", "2 validation=True"], "False", "AdaptersNotAtSameGeneration", 2),
        (["1 dns=True", "2 validation=True", "3 dns=True"], "False", "AdaptersNotAtSameGeneration", 3),
        (["1 dns=True", "2 validation=True", "2 validation=False"], "False", "AdapterReportedNotAvailable", 2),
        (["1 dns=True", "2 validation=True", "2 dns=True"], "True", "AllAdaptersReconciled", 2),
        # True together, then an outage: True at different generations does not end it.
        (
            ["1 dns=True", "1 validation=True", "1 dns=False", "2 dns=True"],
            "False",
            "AdaptersNotAtSameGeneration",
            2,
        ),
        (
            ["1 dns=True", "1 validation=True", "1 dns=False", "2 dns=True", "2 validation=True"],
            "True",
            "AllAdaptersReconciled",
            2,
        ),
        # True together, then a roll-out: it stays, also if the roll-out goes wrong on the way.
        (["1 dns=True", "1 validation=True", "2 dns=True", "3 dns=False"], "True", "AllAdaptersReconciled", 1),
        (
            ["1 dns=True", "1 validation=True", "2 dns=True", "1 validation=False"],
            "False",
            "AdapterReportedNotAvailable",
            2,
        ),
    ],
)
def test_last_known_reconciled_at_mixed_generations(
    steps: list[str], status: str, reason: str, generation: int
) -> None:
    world = make_world()
    for step in steps:
        at, _, report = step.partition(" ")
        while world.resource.generation < int(at):
            world.edit()
        say(world, report, generation=int(at))
    condition = shown(world)["LastKnownReconciled"]
    assert (condition.status, condition.reason, condition.observed_generation) == (status, reason, generation)


def test_what_was_never_true_has_never_moved() -> None:
    world = make_world()
    say(world, "dns=True")
    world.edit()
    say(world, "validation=True", generation=2)
    available = world.status.condition("Available")
    assert available is not None
    assert available.status == "True"
    assert shown(world)["LastKnownReconciled"].last_transition_time == START


def test_times_of_last_known_reconciled() -> None:
    world = make_world()
    assert shown(world)["LastKnownReconciled"].last_updated_time == START
    say(world, "dns=True", "validation=True")
    condition = shown(world)["LastKnownReconciled"]
    assert condition.last_updated_time == START + MINUTE, "the oldest report"
    assert condition.last_transition_time == START + 2 * MINUTE
    world.edit()
    say(world, "dns=True", generation=2)
    condition = shown(world)["LastKnownReconciled"]
    assert condition.last_updated_time == condition.last_transition_time == START + 2 * MINUTE, "kept from before"
    say(world, "validation=False", generation=2)
    condition = shown(world)["LastKnownReconciled"]
    assert condition.last_updated_time == START + 3 * MINUTE, "the oldest at that generation"
    assert condition.last_transition_time == START + 4 * MINUTE
    assert condition.created_time == START


# ── one adapter ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("adapter", "type_"),
    [
        ("dns", "DnsSuccessful"),
        ("my-adapter", "MyAdapterSuccessful"),
        ("cl--namespaceX", "ClNamespaceXSuccessful"),
        ("a.b_c", "A.b_cSuccessful"),
    ],
)
def test_types_of_adapters(adapter: str, type_: str) -> None:
    assert type_of(adapter) == type_


def test_one_adapter() -> None:
    world = make_world()
    say(world, "validation=False/JobRunning/Still checking", "dns=Unknown", "other=True")
    found = shown(world)
    assert list(found) == ["Reconciled", "LastKnownReconciled", "ValidationSuccessful"]
    condition = found["ValidationSuccessful"]
    assert (condition.status, condition.reason, condition.message) == ("False", "JobRunning", "Still checking")
    assert condition.last_updated_time == condition.last_transition_time == START + MINUTE
    say(world, "validation=False", "dns=True")
    found = shown(world)
    assert list(found)[2:] == ["DnsSuccessful", "ValidationSuccessful"], "in the order of the policy"
    condition = found["ValidationSuccessful"]
    assert (condition.reason, condition.message) == (UNSET, UNSET)
    assert condition.last_transition_time == START + MINUTE
    assert condition.last_updated_time == START + 4 * MINUTE
    assert condition.created_time == START
    world.edit()
    assert shown(world)["DnsSuccessful"].observed_generation == 1, "what it said, of what it saw"


# ── the rest ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_rules_follow_by_type_and_unknown_ones_are_left_out() -> None:
    world = make_world(RULES)
    assert list(shown(world)) == ["Reconciled", "LastKnownReconciled", "Zoned"]
    world.report(make_report("validation", "True", extra={"Checked": "True/Fine/All is well"}))
    found = shown(world)
    assert list(found)[-2:] == ["Checked", "Zoned"]
    assert (found["Checked"].reason, found["Checked"].status) == ("Fine", "True")
    assert found["Checked"].last_transition_time == world.now


def test_nobody_required_means_no_conditions() -> None:
    world = make_world("requiredAdapters: []")
    say(world, "dns=True")
    assert shown(world) == {}
