"""The status of a Cluster as a whole: order, times, generations, ownership."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from hyperfleet.conditions import apply_patch, diff, get, is_true, set_condition
from hyperfleet.conditions.cluster import (
    OWNED_TYPES,
    Absence,
    ClusterObject,
    ClusterScope,
    ClusterStatus,
    ControlPlaneEndpoint,
    Descendants,
    Probe,
    Provider,
    Reference,
    Topology,
    Upgrade,
    WorkerUpgrade,
    capt_phase,
    compute_status,
    paused_object,
    topology_reconciled,
    use_wire_reason,
)
from hyperfleet.conditions.unstructured import ParsedConditions
from hyperfleet.model.condition import Condition

NOW = datetime(2026, 8, 21, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
LONG_AGO = NOW - timedelta(days=30)

SCOPE = ClusterScope(
    cluster=ClusterObject(
        generation=4,
        infrastructure_ref=Reference(kind="DockerCluster"),
        control_plane_ref=Reference(kind="KubeadmControlPlane"),
        control_plane_endpoint=ControlPlaneEndpoint("example.com", 6443),
        infrastructure_provisioned=True,
        control_plane_initialized=True,
    ),
    infrastructure=Provider(kind="DockerCluster"),
    control_plane=Provider(kind="KubeadmControlPlane", initialized=True),
    descendants=Descendants(),
    probe=Probe(last_success=NOW),
)
HEALTHY = compute_status(SCOPE, ClusterStatus(), NOW)


def test_every_owned_type_is_written_in_the_order_people_read() -> None:
    types = [condition.type for condition in HEALTHY.conditions]
    assert set(types) == OWNED_TYPES
    assert types == [
        "Available",
        "RemoteConnectionProbe",
        "InfrastructureReady",
        "ControlPlaneInitialized",
        "ControlPlaneAvailable",
        "WorkersAvailable",
        "RollingOut",
        "Remediating",
        "ScalingDown",
        "ScalingUp",
        "ControlPlaneMachinesReady",
        "WorkerMachinesReady",
        "ControlPlaneMachinesUpToDate",
        "WorkerMachinesUpToDate",
        "Paused",
        "Deleting",
    ]
    assert all(condition.last_transition_time == NOW for condition in HEALTHY.conditions)
    assert all(condition.observed_generation == 4 for condition in HEALTHY.conditions)


def test_the_same_again_is_the_very_same() -> None:
    again = compute_status(SCOPE, HEALTHY, NOW + timedelta(seconds=30))
    assert again == HEALTHY
    assert again.conditions is HEALTHY.conditions


def test_only_what_changed_gets_a_new_time() -> None:
    broken = compute_status(replace(SCOPE, infrastructure=Absence.NOT_FOUND), HEALTHY, NOW + timedelta(seconds=20))
    moved = {c.type for c in broken.conditions if c.last_transition_time != NOW}
    assert moved == {"Available", "InfrastructureReady"}


def test_a_mirrored_condition_brings_its_own_time() -> None:
    reading = ParsedConditions((Condition("Ready", "False", "Broken", "no", 9, LONG_AGO),))
    scope = replace(SCOPE, infrastructure=Provider(kind="DockerCluster", reading=reading))
    mirrored = get(compute_status(scope, HEALTHY, NOW).conditions, "InfrastructureReady")
    assert mirrored == Condition("InfrastructureReady", "False", "Broken", "no", 4, LONG_AGO)


def test_foreign_conditions_are_left_alone() -> None:
    foreign = Condition("example.com/Backup", "False", "Never", "", 1, LONG_AGO)
    previous = replace(HEALTHY, conditions=(*HEALTHY.conditions, foreign))
    assert get(compute_status(SCOPE, previous, LATER).conditions, foreign.type) == foreign


def test_unpausing_goes_on_at_once() -> None:
    paused = compute_status(replace(SCOPE, cluster=replace(SCOPE.cluster, is_paused=True)), ClusterStatus(), NOW)
    assert [condition.type for condition in paused.conditions] == ["Paused"]
    assert paused.phase == ""
    resumed = compute_status(SCOPE, paused, NOW)
    assert is_true(resumed.conditions, "Available")


def test_the_result_is_stored_with_a_patch_of_the_owned_types() -> None:
    written_by_others = set_condition(HEALTHY.conditions, Condition("TopologyReconciled", "True", "Ok"), now=NOW)
    broken = compute_status(replace(SCOPE, control_plane=Absence.NOT_FOUND), HEALTHY, LATER)
    patch = diff(HEALTHY.conditions, broken.conditions)
    stored = apply_patch(written_by_others, patch, now=LATER, owned=OWNED_TYPES)
    assert get(stored, "Available") == get(broken.conditions, "Available")
    assert is_true(stored, "TopologyReconciled")


@pytest.mark.parametrize(
    ("true", "is_deleting", "phase"),
    [
        ([], False, "Provisioning"),
        (["InfrastructureReady"], False, "Provisioning"),
        (["ControlPlaneAvailable"], False, "Provisioning"),
        (["Available"], False, "Provisioning"),
        (["InfrastructureReady", "ControlPlaneAvailable"], False, "Provisioned"),
        (["InfrastructureReady", "ControlPlaneAvailable", "Available"], False, "Running"),
        (["InfrastructureReady", "ControlPlaneAvailable", "Available"], True, "Deleting"),
    ],
)
def test_the_phases_of_the_capt_design(true: list[str], is_deleting: bool, phase: str) -> None:
    conditions = tuple(Condition(type_, "True") for type_ in true)
    assert capt_phase(ClusterObject(is_deleting=is_deleting), conditions) == phase


@pytest.mark.parametrize(
    ("alias", "reason"),
    [
        ("InfrastructureDoesNotExist", "ObjectDoesNotExist"),
        ("ControlPlaneDoesNotExist", "ObjectDoesNotExist"),
        ("InfrastructureDeleted", "ObjectDeleted"),
        ("ControlPlaneDeleted", "ObjectDeleted"),
        ("TopologyReconcileFailed", "ReconcileFailed"),
        ("AvailableInternalError", "InternalError"),
        ("AnythingElse", "AnythingElse"),
    ],
)
def test_aliases_of_reasons(alias: str, reason: str) -> None:
    assert use_wire_reason(Condition("T", "False", alias, "m")) == Condition("T", "False", reason, "m")


def test_an_alias_is_never_shown() -> None:
    previous = replace(HEALTHY, conditions=(Condition("TopologyReconciled", "False", "TopologyReconcileFailed"),))
    status = compute_status(SCOPE, previous, NOW)
    available = get(status.conditions, "Available")
    assert available
    assert available.message == "* TopologyReconciled: ReconcileFailed"


def test_paused_of_an_object_of_another_kind() -> None:
    assert paused_object(ClusterObject(is_paused=True), "MachineDeployment", has_annotation=True) == Condition(
        "Paused",
        "True",
        "Paused",
        "Cluster spec.paused is set to true, MachineDeployment has the cluster.x-k8s.io/paused annotation",
    )
    assert paused_object(ClusterObject(has_paused_annotation=True), "Machine", has_annotation=False).status == "False"


@pytest.mark.parametrize(
    ("upgrade", "reason"),
    [
        (WorkerUpgrade(kind="MachineDeployment", deferred=frozenset("a")), "MachineDeploymentsUpgradeDeferred"),
        (
            WorkerUpgrade(kind="MachineDeployment", deferred=frozenset("a"), upgrading=frozenset("b")),
            "ClusterUpgrading",
        ),
        (
            WorkerUpgrade(kind="MachineDeployment", deferred=frozenset("a"), pending=frozenset("ab")),
            "ClusterUpgrading",
        ),
        (
            WorkerUpgrade(kind="MachineDeployment", deferred=frozenset("a"), pending=frozenset("a")),
            "MachineDeploymentsUpgradeDeferred",
        ),
        (WorkerUpgrade(kind="MachineDeployment", uncreated=frozenset("a")), "ClusterUpgrading"),
        (WorkerUpgrade(kind="MachineDeployment", pending=frozenset("a")), "ClusterUpgrading"),
        (WorkerUpgrade(kind="MachineDeployment"), "ReconcileSucceeded"),
    ],
)
def test_a_deferral_is_the_reason_only_when_nothing_else_holds_the_upgrade_up(
    upgrade: WorkerUpgrade, reason: str
) -> None:
    topology = Topology(upgrade=Upgrade(machine_deployments=upgrade))
    assert topology_reconciled(SCOPE.cluster, topology).reason == reason


def test_a_deferral_while_the_control_plane_is_upgrading() -> None:
    deferred = WorkerUpgrade(kind="MachineDeployment", deferred=frozenset("a"))
    topology = Topology(upgrade=Upgrade(is_control_plane_upgrading=True, machine_deployments=deferred))
    assert topology_reconciled(SCOPE.cluster, topology).reason == "ClusterUpgrading"
