"""Reading the objects of a cluster, dictionaries from the Kubernetes API or a dump, into scope values.

Tolerant: a field of another shape counts as absent, except where the contract makes a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from hyperfleet.conditions.cluster.scope import (
    AvailabilityGate,
    ClusterObject,
    ControlPlaneEndpoint,
    Machine,
    MachineGroup,
    Provider,
    Reference,
    Replicas,
    VersionCount,
)
from hyperfleet.conditions.cluster.versions import is_same_release
from hyperfleet.conditions.unstructured import Object, dig, read_conditions, read_moment, read_source

Contract = Literal["v1beta1", "v1beta2"]

CLUSTER_NAME_LABEL: Final = "cluster.x-k8s.io/cluster-name"
POOL_LABEL: Final = "cluster.x-k8s.io/pool-name"
PAUSED_ANNOTATION: Final = "cluster.x-k8s.io/paused"
_GROUP: Final = "cluster.x-k8s.io"

_INITIALIZED: Final[dict[Contract, tuple[str, ...]]] = {
    "v1beta1": ("status", "initialized"),
    "v1beta2": ("status", "initialization", "controlPlaneInitialized"),
}


def read_cluster(obj: Object) -> ClusterObject:
    """Read a Cluster."""
    spec, metadata = dig(obj, "spec"), dig(obj, "metadata")
    initialization = dig(obj, "status", "initialization")
    return ClusterObject(
        name=_text(dig(metadata, "name")),
        namespace=_text(dig(metadata, "namespace")),
        generation=read_number(dig(metadata, "generation")) or 0,
        is_deleting=bool(dig(metadata, "deletionTimestamp")),
        is_paused=dig(spec, "paused") is True,
        has_paused_annotation=_has_key(dig(metadata, "annotations"), PAUSED_ANNOTATION),
        has_topology=bool(dig(spec, "topology")),
        infrastructure_ref=_reference(dig(spec, "infrastructureRef")),
        control_plane_ref=_reference(dig(spec, "controlPlaneRef")),
        control_plane_endpoint=_endpoint(dig(spec, "controlPlaneEndpoint")),
        infrastructure_provisioned=dig(initialization, "infrastructureProvisioned") is True,
        control_plane_initialized=dig(initialization, "controlPlaneInitialized") is True,
        availability_gates=read_gates(dig(spec, "availabilityGates")),
    )


def read_gates(entries: object) -> tuple[AvailabilityGate, ...] | None:
    """Read `spec.availabilityGates` of a Cluster or of its class; None when there is no list."""
    if not isinstance(entries, list):
        return None
    return tuple(
        AvailabilityGate(
            condition_type=_text(dig(entry, "conditionType")),
            polarity="Negative" if dig(entry, "polarity") == "Negative" else "Positive",
        )
        for entry in entries
    )


def read_provider(obj: Object, contract: Contract = "v1beta2") -> Provider:
    """Read an infrastructure or control plane object by the contract its definition declares."""
    source = read_source(obj)
    return Provider(
        kind=source.kind,
        name=source.name,
        namespace=source.namespace,
        reading=read_conditions(obj),
        initialized=_flag(dig(obj, *_INITIALIZED[contract])),
        replicas=_replicas(obj, contract),
        unavailable=read_number(dig(obj, "status", "unavailableReplicas")) if contract == "v1beta1" else None,
    )


def read_machine(obj: Object) -> Machine:
    """Read a Machine."""
    source = read_source(obj)
    metadata = dig(obj, "metadata")
    return Machine(
        name=source.name,
        namespace=source.namespace,
        is_control_plane_machine=source.is_control_plane_machine,
        conditions=source.conditions,
        created=read_moment(dig(metadata, "creationTimestamp")),
        has_node_ref=bool(dig(obj, "status", "nodeRef")),
        is_pool_member=_has_key(dig(metadata, "labels"), POOL_LABEL),
        is_owned_by_cluster=_is_owned_by_cluster(obj),
        version=_machine_version(obj),
    )


def read_machine_group(obj: Object) -> MachineGroup:
    """Read a MachineDeployment, MachineSet or MachinePool."""
    source = read_source(obj)
    return MachineGroup(
        kind=source.kind,
        name=source.name,
        namespace=source.namespace,
        conditions=source.conditions,
        replicas=_replicas(obj, "v1beta2"),
        is_owned_by_cluster=_is_owned_by_cluster(obj),
    )


def _machine_version(obj: Object) -> str:
    """Return the version that runs: that of the kubelet when it is another release than the spec asks for."""
    wanted = _text(dig(obj, "spec", "version"))
    running = _text(dig(obj, "status", "nodeInfo", "kubeletVersion"))
    return wanted if not running or is_same_release(running, wanted) else running


def _replicas(obj: Object, contract: Contract) -> Replicas:
    """Read the counters; the older contract has another name for one of them, and lacks another."""
    status = dig(obj, "status")
    is_older = contract == "v1beta1"
    return Replicas(
        desired=read_number(dig(obj, "spec", "replicas")),
        current=read_number(dig(status, "replicas")),
        ready=read_number(dig(status, "readyReplicas")),
        available=None if is_older else read_number(dig(status, "availableReplicas")),
        up_to_date=read_number(dig(status, "updatedReplicas" if is_older else "upToDateReplicas")),
        versions=read_versions(dig(status, "versions")),
    )


def read_versions(entries: object) -> tuple[VersionCount, ...] | None:
    """Read a list of versions with their numbers of machines; None when there is no list."""
    if not isinstance(entries, list):
        return None
    return tuple(
        VersionCount(_text(dig(entry, "version")), read_number(dig(entry, "replicas")) or 0) for entry in entries
    )


def _reference(value: object) -> Reference:
    return Reference(
        kind=_text(dig(value, "kind")),
        name=_text(dig(value, "name")),
        api_group=_text(dig(value, "apiGroup")) or _text(dig(value, "apiVersion")).rpartition("/")[0],
    )


def _endpoint(value: object) -> ControlPlaneEndpoint:
    return ControlPlaneEndpoint(_text(dig(value, "host")), read_number(dig(value, "port")) or 0)


def _is_owned_by_cluster(obj: Object) -> bool:
    """Compare group, kind and name of the owners with the cluster named by the object's label."""
    owners = dig(obj, "metadata", "ownerReferences")
    name = dig(obj, "metadata", "labels", CLUSTER_NAME_LABEL)
    return isinstance(owners, list) and any(
        dig(owner, "kind") == "Cluster"
        and dig(owner, "name") == name
        and _text(dig(owner, "apiVersion")).rpartition("/")[0] == _GROUP
        for owner in owners
    )


def _has_key(value: object, key: str) -> bool:
    return isinstance(value, Mapping) and key in value


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def read_number(value: object) -> int | None:
    """Read a whole number; None when there is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _flag(value: object) -> bool | None:
    """Read a flag: absent is false, and None means that it is there but is no boolean."""
    if value is None:
        return False
    return value if isinstance(value, bool) else None
