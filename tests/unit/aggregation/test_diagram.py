"""The reachable phases of a policy and their diagram, as golden text to check against docs/semantics.md §5.

An edit never leads out of Degraded: Health=False counts at any generation until the adapter reports again.
"""

from __future__ import annotations

import pytest

from hyperfleet.aggregation.linting.diagram import draw_phases, phase_moves, reachable_phases
from hyperfleet.aggregation.linting.enumeration import Enumeration, enumerate_states
from hyperfleet.aggregation.loading.policy_loader import load_policies
from tests.conformance.timeline import POLICY_FILES

ONE_ADAPTER = """
requiredAdapters: [dns]
phases: {ready: {requiredConditions: [{type: Ready, status: "True"}]}}
"""

ONE_ADAPTER_DIAGRAM = """\
stateDiagram-v2
    [*] --> Pending
    Degraded --> Failed: fails
    Degraded --> Pending: waits
    Degraded --> Provisioning: starts
    Degraded --> Ready: completes
    Failed --> Degraded: gets unhealthy
    Failed --> Pending: waits, edit
    Failed --> Provisioning: starts
    Failed --> Ready: completes
    Pending --> Degraded: gets unhealthy
    Pending --> Failed: fails
    Pending --> Provisioning: starts
    Pending --> Ready: completes
    Provisioning --> Degraded: gets unhealthy
    Provisioning --> Failed: fails
    Provisioning --> Pending: waits, edit
    Provisioning --> Ready: completes
    Ready --> Degraded: gets unhealthy
    Ready --> Failed: fails
    Ready --> Pending: waits, edit
    Ready --> Provisioning: starts
    Degraded --> Deleting: delete
    Failed --> Deleting: delete
    Ready --> Deleting: delete
    Provisioning --> Deleting: delete
    Pending --> Deleting: delete
    Deleting --> [*]: all finalized
"""

# An optional adapter at work keeps the guide's cluster Provisioning, so its end may lead back to Pending.
GUIDE_DIAGRAM = """\
stateDiagram-v2
    %% a sample: 4333 of 16464 combinations of adapter states were tried
    [*] --> Pending
    Degraded --> Failed: waits, starts, completes, fails
    Degraded --> Pending: waits, completes, fails
    Degraded --> Provisioning: waits, starts, completes, fails
    Degraded --> Ready: waits, starts, completes, fails
    Failed --> Degraded: gets unhealthy
    Failed --> Pending: waits, edit
    Failed --> Provisioning: waits, starts, completes
    Failed --> Ready: completes
    Pending --> Degraded: gets unhealthy, goes stale
    Pending --> Failed: fails, times out
    Pending --> Provisioning: starts, completes
    Provisioning --> Degraded: gets unhealthy, goes stale
    Provisioning --> Failed: fails, times out
    Provisioning --> Pending: waits, completes, fails, edit
    Provisioning --> Ready: completes
    Ready --> Degraded: gets unhealthy, goes stale
    Ready --> Failed: fails
    Ready --> Pending: edit
    Ready --> Provisioning: waits, starts
    Degraded --> Deleting: delete
    Failed --> Deleting: delete
    Ready --> Deleting: delete
    Provisioning --> Deleting: delete
    Pending --> Deleting: delete
    Deleting --> [*]: all finalized
"""

# The default policy counts required adapters only, so an optional one at work leaves the cluster Pending.
DEFAULT_DIAGRAM = """\
stateDiagram-v2
    [*] --> Pending
    Degraded --> Failed: waits, starts, completes, fails
    Degraded --> Pending: waits, starts, completes, fails
    Degraded --> Provisioning: waits, starts, completes, fails
    Degraded --> Ready: waits, starts, completes, fails
    Failed --> Degraded: gets unhealthy
    Failed --> Pending: waits, edit
    Failed --> Provisioning: waits, starts, completes
    Failed --> Ready: completes
    Pending --> Degraded: gets unhealthy, goes stale
    Pending --> Failed: fails, times out
    Pending --> Provisioning: starts, completes
    Provisioning --> Degraded: gets unhealthy, goes stale
    Provisioning --> Failed: fails, times out
    Provisioning --> Pending: waits, edit
    Provisioning --> Ready: completes
    Ready --> Degraded: gets unhealthy, goes stale
    Ready --> Failed: fails
    Ready --> Pending: edit
    Ready --> Provisioning: waits, starts
    Degraded --> Deleting: delete
    Failed --> Deleting: delete
    Ready --> Deleting: delete
    Provisioning --> Deleting: delete
    Pending --> Deleting: delete
    Deleting --> [*]: all finalized
"""

# docs/semantics.md §5: silence degrades a resource to which nothing worse has happened. An adapter that has not
# reported at all is missing in the end. Degraded and Failed stay as they are: no adapter reports.
SILENCE = {
    ("Pending", "Degraded"): "goes stale",
    ("Provisioning", "Degraded"): "goes stale",
    ("Ready", "Degraded"): "goes stale",
    ("Pending", "Failed"): "times out",
    ("Provisioning", "Failed"): "times out",
}

# Without a ready phase a completed adapter is still Provisioning (docs/semantics.md §5, "none given: never").
NEVER_READY_PHASES = ("Deleting", "Degraded", "Failed", "Provisioning", "Pending")


def enumerated(text: str) -> Enumeration:
    return enumerate_states(load_policies(text).policies[0])


@pytest.fixture(scope="module")
def guide() -> Enumeration:
    """The guide's policy is tried once: it has more combinations than are tried, and takes most of a second."""
    return enumerated(POLICY_FILES["guide"].read_text())


@pytest.fixture(scope="module")
def default() -> Enumeration:
    return enumerated(POLICY_FILES["default"].read_text())


def test_one_adapter() -> None:
    assert draw_phases(enumerated(ONE_ADAPTER)) == ONE_ADAPTER_DIAGRAM


def test_the_guides_policy(guide: Enumeration) -> None:
    assert draw_phases(guide) == GUIDE_DIAGRAM


def test_the_default_policy(default: Enumeration) -> None:
    assert draw_phases(default) == DEFAULT_DIAGRAM


def test_every_phase_can_be_reached(guide: Enumeration, default: Enumeration) -> None:
    everything = ("Deleting", "Degraded", "Failed", "Ready", "Provisioning", "Pending")
    assert reachable_phases(guide) == reachable_phases(default) == everything


def test_a_phase_that_cannot_be_reached_is_not_drawn() -> None:
    tried = enumerated("requiredAdapters: [dns]\n")
    assert reachable_phases(tried) == NEVER_READY_PHASES
    assert "Ready" not in draw_phases(tried)


def test_without_required_adapters_it_is_always_ready() -> None:
    """docs/semantics.md §4: with no required adapters the phase is Ready, whatever the policy says."""
    tried = enumerated("optionalAdapters: [monitoring]\n")
    assert reachable_phases(tried) == ("Deleting", "Ready")
    assert phase_moves(tried) == {}


def test_the_moves_of_the_guide_are_there(guide: Enumeration) -> None:
    """Guide, "Phase Transitions": every arrow of its drawing."""
    arrows = {
        ("Pending", "Provisioning"),
        ("Provisioning", "Ready"),
        ("Pending", "Failed"),
        ("Provisioning", "Failed"),
        ("Ready", "Degraded"),
        ("Failed", "Provisioning"),
        ("Degraded", "Ready"),
    }
    assert arrows <= phase_moves(guide).keys()


def test_an_edit_makes_nobody_report() -> None:
    """docs/semantics.md §3: who has not reported is Unreported at any generation, so an edit moves nobody else."""
    tried = enumerated("""
requiredAdapters: [dns]
clusterConditions: [{type: Seen, evaluate: {expr: 'any(requiredAdapters, {.reported})'}}]
phases: {degraded: {requiredConditions: [{type: Seen, status: "True"}]}}
""")
    reports = ("waits", "starts", "completes", "fails", "gets unhealthy")
    assert phase_moves(tried) == {("Pending", "Degraded"): reports}


def test_silence_moves_a_cluster(guide: Enumeration, default: Enumeration) -> None:
    for enumeration in (guide, default):
        moves = phase_moves(enumeration)
        silent = {move: causes[-1] for move, causes in moves.items() if {"goes stale", "times out"} & {*causes}}
        assert silent == SILENCE


def test_staleness_that_only_marks_ends_ready_all_the_same() -> None:
    """docs/semantics.md §4 and §5: Ready needs fresh adapters; with `staleAction: none` nothing is degraded by it."""
    moves = phase_moves(enumerated(ONE_ADAPTER + "policies: {staleThreshold: 5m, staleAction: none}\n"))
    assert [move for move, causes in moves.items() if "goes stale" in causes] == [("Ready", "Provisioning")]
