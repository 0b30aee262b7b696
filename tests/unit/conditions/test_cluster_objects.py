"""Reading Kubernetes objects into the values of a scope."""

from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import pytest

from hyperfleet.conditions.cluster import (
    AvailabilityGate,
    ClusterObject,
    ControlPlaneEndpoint,
    Machine,
    MachineGroup,
    Provider,
    Reference,
    Replicas,
    VersionCount,
    read_cluster,
    read_gates,
    read_machine,
    read_machine_group,
    read_provider,
)
from hyperfleet.conditions.cluster.versions import merge_versions
from hyperfleet.conditions.unstructured import ParsedConditions
from hyperfleet.model.condition import Condition

OWNED = {
    "name": "x",
    "namespace": "ns",
    "labels": {"cluster.x-k8s.io/cluster-name": "c1"},
    "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "Other", "name": "o"},
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c1"},
    ],
}


def test_a_cluster() -> None:
    obj = {
        "kind": "Cluster",
        "metadata": {
            "name": "c1",
            "namespace": "ns",
            "generation": 3,
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"cluster.x-k8s.io/paused": ""},
        },
        "spec": {
            "paused": True,
            "topology": {"version": "v1.33.0"},
            "infrastructureRef": {"apiGroup": "infra.example.com", "kind": "Infra", "name": "i"},
            "controlPlaneRef": {"apiVersion": "cp.example.com/v1", "kind": "Plane", "name": "p"},
            "controlPlaneEndpoint": {"host": "h", "port": 6443},
            "availabilityGates": [{"conditionType": "A"}, {"conditionType": "B", "polarity": "Negative"}],
        },
        "status": {"initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True}},
    }
    assert read_cluster(obj) == ClusterObject(
        name="c1",
        namespace="ns",
        generation=3,
        is_deleting=True,
        is_paused=True,
        has_paused_annotation=True,
        has_topology=True,
        infrastructure_ref=Reference(kind="Infra", name="i", api_group="infra.example.com"),
        control_plane_ref=Reference(kind="Plane", name="p", api_group="cp.example.com"),
        control_plane_endpoint=ControlPlaneEndpoint("h", 6443),
        infrastructure_provisioned=True,
        control_plane_initialized=True,
        availability_gates=(
            AvailabilityGate(condition_type="A"),
            AvailabilityGate(condition_type="B", polarity="Negative"),
        ),
    )


def test_an_empty_cluster() -> None:
    assert read_cluster({"spec": {"topology": {}}}) == ClusterObject(generation=0)


def test_the_core_group_has_no_name() -> None:
    """The group of `apiVersion: v1` is empty; v1 is its version."""
    cluster = read_cluster({"spec": {"infrastructureRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "i"}}})
    assert cluster.infrastructure_ref == Reference(kind="ConfigMap", name="i", api_group="")


def test_a_cluster_that_nobody_deleted() -> None:
    assert read_cluster({"metadata": {"name": "c1"}}) == ClusterObject(name="c1", generation=0)


@pytest.mark.parametrize(("entries", "gates"), [(None, None), ({}, None), ([], ())])
def test_no_list_of_gates_is_not_an_empty_one(entries: object, gates: object) -> None:
    assert read_gates(entries) == gates


def test_a_provider() -> None:
    obj: dict[str, Any] = {
        "kind": "Plane",
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"replicas": 3},
        "status": {
            "initialization": {"controlPlaneInitialized": True},
            "conditions": [{"type": "Available", "status": "True", "reason": "Ok"}],
            "replicas": 4,
            "readyReplicas": 2,
            "availableReplicas": 1,
            "upToDateReplicas": True,
            "versions": [{"version": "v1.33.0", "replicas": 2}, {"version": "v1.34.0"}],
        },
    }
    assert read_provider(obj) == Provider(
        kind="Plane",
        name="p",
        namespace="ns",
        reading=ParsedConditions((Condition("Available", "True", "Ok"),)),
        initialized=True,
        replicas=Replicas(
            desired=3,
            current=4,
            ready=2,
            available=1,
            versions=(VersionCount("v1.33.0", 2), VersionCount("v1.34.0", 0)),
        ),
    )
    older = read_provider({**obj, "status": {**obj["status"], "unavailableReplicas": 2}}, "v1beta1")
    assert older.initialized is False
    assert (older.unavailable, older.replicas.available) == (2, None)


def test_a_machine() -> None:
    obj = {
        "kind": "Machine",
        "metadata": {
            **OWNED,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "cluster.x-k8s.io/cluster-name": "c1",
                "cluster.x-k8s.io/control-plane": "",
                "cluster.x-k8s.io/pool-name": "p",
            },
        },
        "spec": {"version": "v1.33.0"},
        "status": {"nodeRef": {"name": "n"}, "conditions": [{"type": "Ready", "status": "True", "reason": "Ok"}]},
    }
    assert read_machine(obj) == Machine(
        name="x",
        namespace="ns",
        is_control_plane_machine=True,
        conditions=(Condition("Ready", "True", "Ok"),),
        created=datetime(2026, 1, 1, tzinfo=UTC),
        has_node_ref=True,
        is_pool_member=True,
        is_owned_by_cluster=True,
        version="v1.33.0",
    )
    assert read_machine({"kind": "Machine"}) == Machine()
    assert not read_machine({"kind": "Machine", "status": {"phase": "Pending"}}).has_node_ref


def test_a_machine_group() -> None:
    obj = {"kind": "MachineSet", "metadata": OWNED, "spec": {"replicas": 2}}
    assert read_machine_group(obj) == MachineGroup(
        kind="MachineSet", name="x", namespace="ns", replicas=Replicas(desired=2), is_owned_by_cluster=True
    )


def test_the_counters_of_a_machine_group_are_those_of_the_newer_contract() -> None:
    status = {
        "conditions": [{"type": "Available", "status": "True", "reason": "Ok"}],
        "availableReplicas": 1,
        "upToDateReplicas": 1,
        "unavailableReplicas": 0,
        "updatedReplicas": 2,
    }
    group = read_machine_group({"kind": "MachineSet", "spec": {"replicas": 2}, "status": status})
    assert group.replicas == Replicas(desired=2, available=1, up_to_date=1)
    assert group.conditions == (Condition("Available", "True", "Ok"),)


@pytest.mark.parametrize(
    "owner",
    [
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c2"},
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "name": "c1"},
        {"apiVersion": "example.com/v1", "kind": "Cluster", "name": "c1"},
    ],
)
def test_owned_by_something_else(owner: dict[str, str]) -> None:
    obj = {"kind": "MachineSet", "metadata": {**OWNED, "ownerReferences": [owner]}}
    assert not read_machine_group(obj).is_owned_by_cluster


def test_versions_sort_by_precedence_with_the_build_last() -> None:
    expected = [
        "v1.2.9",
        "v1.10.0-alpha",
        "v1.10.0-alpha.1",
        "v1.10.0-alpha.beta",
        "v1.10.0-rc.2",
        "v1.10.0-rc.10",
        "1.10.0",
        "v1.10.0",
        "v1.10.0+2",
        "v1.10.0+010",
        "v1.10.0+10",
        "v1.10.0+build",
        "v1.10.0+build.2",
        "v1.10.0+build.10",
        "v1.11",
        "v1.011.1",
        "v2",
        "v2.0.1-0",
        "v2.0.1",
        "2.0.1-00",
        "99999999999999999999.0.0",
        "V3.0.0",
        "latest",
        "v1.10.0+",
        "v1.11-rc.1",
        "v٣.0.0",
    ]
    counts = [VersionCount(version, 1) for version in reversed(expected)]
    assert [count.version for count in merge_versions(counts)] == expected


def test_versions_are_added_up() -> None:
    counts = [VersionCount("a", 1), VersionCount("v1.0.0", 1), VersionCount("", 5), VersionCount("a", 2)]
    assert merge_versions(counts) == (VersionCount("v1.0.0", 1), VersionCount("a", 3))


def test_builds_that_are_words_stay_in_the_order_of_arrival() -> None:
    for arrival in permutations(("v1.0.0+abc", "v1.0.0+1b", "v1.0.0+1a")):
        merged = merge_versions([VersionCount("v2.0.0", 1), *(VersionCount(text, 1) for text in arrival)])
        assert [count.version for count in merged] == [*arrival, "v2.0.0"]


def test_a_version_of_any_length_is_read_in_no_time() -> None:
    long = "1." + "0" * 100_000
    assert merge_versions([VersionCount(long, 1), VersionCount("v1.0.0", 1)])[0].version == "v1.0.0"


@pytest.mark.parametrize(
    ("wanted", "running", "counted", "because"),
    [
        ("v1.33.0", "", "v1.33.0", "no node yet"),
        ("v1.33.0", "v1.32.5", "v1.32.5", "an upgrade in place has not reached it"),
        ("v1.33.0+k0s.0", "v1.33.0+k0s", "v1.33.0+k0s.0", "the same release, built otherwise"),
        ("v1.33.0", "v1.33.0-rc.1", "v1.33.0-rc.1", "a pre-release is another release"),
        ("", "v1.33.0", "v1.33.0", "nothing was asked for"),
        ("main", "main", "main", "no versions, but the same"),
        ("main", "v1.33.0", "v1.33.0", "no version, and not the same"),
    ],
)
def test_the_version_of_a_machine_is_the_one_that_runs(wanted: str, running: str, counted: str, because: str) -> None:
    obj = {"kind": "Machine", "spec": {"version": wanted}, "status": {"nodeInfo": {"kubeletVersion": running}}}
    assert read_machine(obj).version == counted, because
