"""`TopologyReconciled`: has everything the topology asks for been written to the objects of the cluster?

The topology controller writes this condition, not `compute_status`: it must be in the list before `Available`
is decided. The message shows an upgrade in progress step by step.
"""

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from hyperfleet.conditions.cluster.paused import pause_causes
from hyperfleet.conditions.cluster.scope import ClusterObject
from hyperfleet.conditions.cluster.vocabulary import (
    CLUSTER_CLASS_NOT_RECONCILED,
    RECONCILE_FAILED,
    TOPOLOGY_RECONCILED,
)
from hyperfleet.conditions.message import name_objects
from hyperfleet.model.condition import FALSE, TRUE, Condition

# How the original's message names the annotation; for one kind with its prefix, for the other without.
_DEFER_ANNOTATIONS: Final = {
    "MachineDeployment": "defer-upgrade",
    "MachinePool": "topology.cluster.x-k8s.io/defer-upgrade",
}
_RECONCILED: Final = Condition(TOPOLOGY_RECONCILED, TRUE, "ReconcileSucceeded")


class WorkerUpgrade(Struct, frozen=True, kw_only=True):
    """Where the machine groups of one kind stand in an upgrade; a name may be in several lists."""

    kind: Literal["MachineDeployment", "MachinePool"]
    plan: tuple[str, ...] = ()  # versions still to come
    upgrading: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    deferred: frozenset[str] = frozenset()  # held back by an annotation
    uncreated: frozenset[str] = frozenset()  # created only when the control plane is done

    @property
    def is_going_on(self) -> bool:
        """Some group is touched by the upgrade."""
        return bool(self.upgrading or self.pending or self.deferred or self.uncreated)

    @property
    def now_deferred(self) -> frozenset[str]:
        """Being upgraded counts more than being deferred."""
        return self.deferred - self.upgrading

    @property
    def now_pending(self) -> frozenset[str]:
        """Pending is what is neither under way nor held back."""
        return self.pending - self.upgrading - self.deferred


class Upgrade(Struct, frozen=True, kw_only=True):
    """Where an upgrade of the cluster stands."""

    version: str = ""  # the step under way
    control_plane_kind: str = ""
    control_plane_plan: tuple[str, ...] = ()
    is_control_plane_upgrading: bool = False
    machine_deployments: WorkerUpgrade = WorkerUpgrade(kind="MachineDeployment")
    machine_pools: WorkerUpgrade = WorkerUpgrade(kind="MachinePool")
    awaits_after_hook: bool = False

    @property
    def is_going_on(self) -> bool:
        """Anything at all says that the cluster is between two versions."""
        return (
            self.is_control_plane_upgrading
            or bool(self.control_plane_plan)
            or self.machine_deployments.is_going_on
            or self.machine_pools.is_going_on
            or self.awaits_after_hook
        )


class Topology(Struct, frozen=True, kw_only=True):
    """What the topology controller knows at the end of a reconcile."""

    version: str = ""  # what the Cluster asks for
    reconcile_error: str = ""
    class_generation: int = 0
    class_observed_generation: int = 0
    blocking_hooks: tuple[str, ...] = ()  # "<hook>: <its message>"
    upgrade: Upgrade = Upgrade()


def topology_reconciled(cluster: ClusterObject, topology: Topology) -> Condition:
    """Decide `TopologyReconciled`; the first row that fits wins."""
    causes = pause_causes(cluster, "Cluster", has_annotation=cluster.has_paused_annotation)
    if causes:
        return _not_reconciled("Paused", causes)
    if topology.reconcile_error:
        return _not_reconciled(RECONCILE_FAILED, topology.reconcile_error)
    if cluster.is_deleting:
        blocked = f". {_blocking(topology, 'delete')}" if topology.blocking_hooks else ""
        return _not_reconciled("Deleting", f"Cluster is deleting{blocked}")
    if topology.class_generation != topology.class_observed_generation:
        return _not_reconciled(CLUSTER_CLASS_NOT_RECONCILED, _class_not_reconciled(topology))
    if not (cluster.infrastructure_ref.is_defined or cluster.control_plane_ref.is_defined):
        return _creating(topology)
    if topology.upgrade.is_going_on:
        return _not_reconciled(_upgrade_reason(topology), "\n  * ".join(_upgrade_lines(topology)))
    return _RECONCILED


def _not_reconciled(reason: str, message: str) -> Condition:
    return Condition(TOPOLOGY_RECONCILED, FALSE, reason, message)


def _class_not_reconciled(topology: Topology) -> str:
    return (
        "ClusterClass not reconciled. If this condition persists, look at the ClusterClass: "
        f"its generation is {topology.class_generation}, "
        f"but its status.observedGeneration is {topology.class_observed_generation}"
    )


def _creating(topology: Topology) -> Condition:
    if topology.blocking_hooks:
        return _not_reconciled("ClusterCreating", _blocking(topology, "Cluster topology creation"))
    return _RECONCILED


def _blocking(topology: Topology, what: str) -> str:
    return f"Following hooks are blocking {what}: {'; '.join(topology.blocking_hooks)}"


def _upgrade_reason(topology: Topology) -> str:
    """Name a deferral only when nothing else holds the upgrade up."""
    upgrade = topology.upgrade
    if topology.blocking_hooks or upgrade.is_control_plane_upgrading:
        return "ClusterUpgrading"
    for group in (upgrade.machine_deployments, upgrade.machine_pools):
        if group.now_deferred and not group.upgrading and not group.now_pending:
            return f"{group.kind}sUpgradeDeferred"
    return "ClusterUpgrading"


def _upgrade_lines(topology: Topology) -> Iterator[str]:
    upgrade = topology.upgrade
    yield f"Cluster is upgrading to {topology.version}"
    if topology.blocking_hooks:
        yield _blocking(topology, "upgrade")
    if upgrade.is_control_plane_upgrading:
        yield f"{upgrade.control_plane_kind} {_under_way(upgrade.version, upgrade.control_plane_plan)}"
    elif upgrade.control_plane_plan:
        yield f"{upgrade.control_plane_kind} {_to_come(upgrade.control_plane_plan)}"
    yield from _worker_lines(upgrade.machine_deployments, upgrade.version)
    yield from _worker_lines(upgrade.machine_pools, upgrade.version)


def _worker_lines(group: WorkerUpgrade, version: str) -> Iterator[str]:
    annotations = f"{_DEFER_ANNOTATIONS[group.kind]} or hold-upgrade-sequence annotations"
    stages = (
        (group.upgrading, _under_way(version, group.plan)),
        (group.now_pending if group.plan else (), _to_come(group.plan)),
        (group.now_deferred, f"upgrade to version {version} deferred using {annotations}"),
        (group.uncreated, "creation deferred while control plane upgrade is in progress"),
    )
    for names, what in stages:
        if names:
            yield f"{name_objects(group.kind, sorted(names))} {what}"


def _under_way(version: str, plan: tuple[str, ...]) -> str:
    rest = [later for later in plan if later != version]
    return f"upgrading to version {version}" + (f" ({', '.join(rest)} pending)" if rest else "")


def _to_come(plan: tuple[str, ...]) -> str:
    return f"pending upgrade to version {', '.join(plan)}"
