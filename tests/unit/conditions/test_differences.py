"""Where we differ from the original: one test for each row of the table in docs/conditions.md.

The name of the test is the first column of the table; tests/unit/test_docs_conditions.py holds the two together.
"""

from datetime import UTC, datetime, timedelta, timezone
from itertools import permutations

import pytest
from msgspec.structs import replace

from hyperfleet.conditions import (
    Aggregation,
    Source,
    Strategy,
    SummaryOptions,
    aggregate,
    get,
    read_conditions,
    set_condition,
    summarize,
)
from hyperfleet.conditions.cluster import (
    Absence,
    ClusterObject,
    ClusterScope,
    ClusterStatus,
    Descendants,
    Machine,
    MachineGroup,
    Probe,
    Provider,
    Reference,
    Replicas,
    Topology,
    Upgrade,
    VersionCount,
    compute_status,
    read_provider,
    topology_reconciled,
)
from hyperfleet.conditions.lint import lint
from hyperfleet.errors import MergeError
from hyperfleet.model.condition import MAX_MESSAGE, Condition

NOW = datetime(2026, 8, 21, 12, 0, tzinfo=UTC)
REFERENCED = ClusterObject(
    infrastructure_ref=Reference(kind="Infra"), control_plane_ref=Reference(kind="ControlPlane"), generation=2
)


def decided(scope: ClusterScope, type_: str, previous: tuple[Condition, ...] = ()) -> Condition:
    condition = get(compute_status(scope, ClusterStatus(conditions=previous), NOW).conditions, type_)
    assert condition
    return condition


def ready(name: str, message: str, reason: str = "Reason") -> Source:
    return Source(kind="Machine", name=name, conditions=(Condition("Ready", "False", reason, message),))


def summary_message(message: str) -> str:
    source = Source(kind="Cluster", conditions=(Condition("A", "False", "R", message),))
    return summarize(source, SummaryOptions(target="T", types=("A",))).message


def test_wrong_types_are_errors() -> None:
    obj = {"kind": "Infra", "status": {"conditions": [{"type": "Ready", "status": True}]}}
    with pytest.raises(MergeError, match="status for the Ready condition must be a string"):
        read_conditions(obj).get("Ready")


def test_one_bad_condition_does_not_hide_the_others() -> None:
    entries = [{"type": "Other", "status": "Maybe"}, {"type": "Ready", "status": "True", "reason": "Ok"}]
    infrastructure = read_provider({"kind": "Infra", "status": {"conditions": entries}})
    scope = ClusterScope(cluster=REFERENCED, infrastructure=infrastructure)
    assert decided(scope, "InfrastructureReady").status == "True"


def test_an_asterisk_is_no_bullet() -> None:
    assert summary_message("limit is 2 * 3 units") == "* A: limit is 2 * 3 units"


def test_a_count_stays_on_its_level() -> None:
    nested = summary_message("* Machine a: x\nAnd 2 Machines with other issues")
    assert nested == "* A:\n  * Machine a: x\n  * And 2 Machines with other issues"


def test_blank_lines_are_dropped() -> None:
    assert summary_message("one\n\ntwo\n") == "* A:\n  * one\n  * two"
    assert summary_message("one\n") == "* A: one"
    assert summary_message("\n") == "* A: R"


def test_an_empty_message_shows_the_reason() -> None:
    aggregated = aggregate([ready("m1", "", "NodeGone")], Aggregation(source_type="Ready"))
    assert aggregated.message == "* Machine m1: NodeGone"


def test_the_order_of_objects_does_not_matter() -> None:
    machines = [ready("a", "x"), ready("b", "y"), ready("c", "x"), ready("d", "y")]
    messages = {aggregate(order, Aggregation(source_type="Ready")).message for order in permutations(machines)}
    assert messages == {"* Machines a, c: x\n* Machines b, d: y"}


def test_long_messages_are_cut() -> None:
    aggregated = aggregate([ready("m1", "x" * 40_000)], Aggregation(source_type="Ready"))
    stored = set_condition((), Condition("A", "False", "R", "x" * 40_000), now=NOW)
    summarized = Condition("A", "False", "R", summary_message("x" * 40_000), 0, NOW)
    for condition in (aggregated, *stored, summarized):
        assert len(condition.message) == MAX_MESSAGE
        assert condition.message.endswith("... (cut at 32768 characters)")
    assert lint((*stored, replace(summarized, type="B")), now=NOW, generation=0) == ()


def test_times_are_in_utc() -> None:
    local = (NOW - timedelta(hours=1)).astimezone(timezone(timedelta(hours=2)))
    probe = decided(ClusterScope(probe=Probe(last_success=local)), "RemoteConnectionProbe")
    assert probe.message.endswith("probe last succeeded at 2026-08-21T11:00:00Z")


def test_the_right_argument() -> None:
    scope = ClusterScope(cluster=REFERENCED, control_plane=Absence.NOT_FOUND, infrastructure=Provider(kind="Infra"))
    initialized = decided(scope, "ControlPlaneInitialized")
    assert (initialized.reason, initialized.message) == ("ObjectDoesNotExist", "ControlPlane does not exist")


def test_no_infrastructure_is_no_issue() -> None:
    assert decided(ClusterScope(), "InfrastructureReady") == Condition(
        "InfrastructureReady", "True", "Ready", "", 1, NOW
    )


def test_stand_alone_machines_make_a_control_plane() -> None:
    machine = Machine(name="m", is_control_plane_machine=True, conditions=(Condition("Available", "True"),))
    scope = ClusterScope(descendants=Descendants(machines=(machine,)), probe=Probe(last_success=NOW))
    assert decided(scope, "ControlPlaneAvailable").status == "True"
    assert decided(scope, "Available").status == "True"


def test_awaiting_a_topology_is_no_internal_error() -> None:
    status = compute_status(ClusterScope(cluster=ClusterObject(has_topology=True)), ClusterStatus(), NOW)
    assert all(condition.reason != "InternalError" for condition in status.conditions)


def test_machine_pools_that_report_take_part() -> None:
    unwell = Condition("Available", "False", "NotAvailable", "no nodes")
    pools = (
        MachineGroup(kind="MachinePool", name="silent"),
        MachineGroup(kind="MachinePool", name="p1", conditions=(unwell,)),
    )
    workers = decided(ClusterScope(descendants=Descendants(machine_pools=pools)), "WorkersAvailable")
    assert (workers.status, workers.message) == ("False", "* MachinePool p1: no nodes")


def test_what_stays_is_still_observed() -> None:
    before = Condition("ControlPlaneInitialized", "True", "Initialized", "", 1, NOW - timedelta(days=1))
    after = decided(ClusterScope(cluster=REFERENCED), "ControlPlaneInitialized", (before,))
    assert after == replace(before, observed_generation=2)


def test_unpausing_needs_no_second_round() -> None:
    paused = (Condition("Paused", "True", "Paused", "", 1, NOW),)
    assert decided(ClusterScope(), "Deleting", paused).status == "False"


def test_the_class_that_is_behind_is_told_by_its_numbers() -> None:
    behind = topology_reconciled(REFERENCED, Topology(class_generation=3, class_observed_generation=2))
    assert behind.message.startswith("ClusterClass not reconciled. If this condition persists")
    assert behind.message.endswith("its generation is 3, but its status.observedGeneration is 2")


def test_impossible_arguments_cannot_be_given() -> None:
    assert Strategy().priority_of(Condition("A", "False")) == 0
    assert Aggregation(source_type="A").negative == ()


def test_versions_of_a_wrong_type_are_absent() -> None:
    scope = ClusterScope(
        cluster=REFERENCED,
        control_plane=read_provider({"kind": "ControlPlane", "status": {"versions": "v1.33.0"}}),
    )
    previous = ClusterStatus(control_plane=Replicas(desired=3, versions=(VersionCount("v1.32.0", 3),)))
    assert compute_status(scope, previous, NOW).control_plane == Replicas(desired=3)


def test_a_plan_means_that_an_upgrade_is_pending() -> None:
    upgrade = Upgrade(control_plane_kind="ControlPlane", control_plane_plan=("v1.33.0",))
    pending = topology_reconciled(REFERENCED, Topology(version="v1.33.0", upgrade=upgrade))
    assert pending.reason == "ClusterUpgrading"
    assert pending.message.endswith("* ControlPlane pending upgrade to version v1.33.0")
