"""The constants of a Cluster's status: condition types, reasons and fixed texts, as on the wire.

Some reasons have longer names in the documentation of Cluster API; those are accepted as aliases and never written.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from hyperfleet.model.condition import UNKNOWN, Condition

AVAILABLE: Final = "Available"
REMOTE_CONNECTION_PROBE: Final = "RemoteConnectionProbe"
INFRASTRUCTURE_READY: Final = "InfrastructureReady"
CONTROL_PLANE_INITIALIZED: Final = "ControlPlaneInitialized"
CONTROL_PLANE_AVAILABLE: Final = "ControlPlaneAvailable"
CONTROL_PLANE_MACHINES_READY: Final = "ControlPlaneMachinesReady"
CONTROL_PLANE_MACHINES_UP_TO_DATE: Final = "ControlPlaneMachinesUpToDate"
WORKERS_AVAILABLE: Final = "WorkersAvailable"
WORKER_MACHINES_READY: Final = "WorkerMachinesReady"
WORKER_MACHINES_UP_TO_DATE: Final = "WorkerMachinesUpToDate"
ROLLING_OUT: Final = "RollingOut"
SCALING_UP: Final = "ScalingUp"
SCALING_DOWN: Final = "ScalingDown"
REMEDIATING: Final = "Remediating"
DELETING: Final = "Deleting"
PAUSED: Final = "Paused"
TOPOLOGY_RECONCILED: Final = "TopologyReconciled"  # written by the topology controller

# The types `compute_status` writes: pass them as `owned` to `apply_patch`.
OWNED_TYPES: Final = frozenset(
    {
        PAUSED,
        INFRASTRUCTURE_READY,
        CONTROL_PLANE_AVAILABLE,
        CONTROL_PLANE_INITIALIZED,
        CONTROL_PLANE_MACHINES_READY,
        CONTROL_PLANE_MACHINES_UP_TO_DATE,
        WORKERS_AVAILABLE,
        WORKER_MACHINES_READY,
        WORKER_MACHINES_UP_TO_DATE,
        REMOTE_CONNECTION_PROBE,
        ROLLING_OUT,
        SCALING_UP,
        SCALING_DOWN,
        REMEDIATING,
        DELETING,
        AVAILABLE,
    }
)

# Conditions of the objects a Cluster is made of.
READY: Final = "Ready"
UP_TO_DATE: Final = "UpToDate"
HEALTH_CHECK_SUCCEEDED: Final = "HealthCheckSucceeded"
OWNER_REMEDIATED: Final = "OwnerRemediated"

INTERNAL_ERROR: Final = "InternalError"
INVALID_CONDITION_REPORTED: Final = "InvalidConditionReported"
OBJECT_DELETED: Final = "ObjectDeleted"
OBJECT_DOES_NOT_EXIST: Final = "ObjectDoesNotExist"
RECONCILE_FAILED: Final = "ReconcileFailed"
CLUSTER_CLASS_NOT_RECONCILED: Final = "ClusterClassNotReconciled"

CHECK_LOGS: Final = "Please check controller logs for errors"
AWAITING_TOPOLOGY: Final = "Waiting for cluster topology to be reconciled"

_ALIASES: Final = {
    "InfrastructureDoesNotExist": OBJECT_DOES_NOT_EXIST,
    "ControlPlaneDoesNotExist": OBJECT_DOES_NOT_EXIST,
    "InfrastructureDeleted": OBJECT_DELETED,
    "ControlPlaneDeleted": OBJECT_DELETED,
    "TopologyReconcileFailed": RECONCILE_FAILED,
    "AvailableInternalError": INTERNAL_ERROR,
}


def use_wire_reason(condition: Condition) -> Condition:
    """Replace a reason that is only an alias by the one that goes over the wire."""
    return replace(condition, reason=_ALIASES.get(condition.reason, condition.reason))


def internal_error(type_: str) -> Condition:
    """Make the condition for a state that could not be determined."""
    return Condition(type_, UNKNOWN, INTERNAL_ERROR, CHECK_LOGS)
