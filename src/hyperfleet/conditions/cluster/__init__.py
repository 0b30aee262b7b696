"""The status of a Cluster, computed from the objects it consists of.

A tour, in the order a newcomer meets it:

    scope           what is looked at: the Cluster, its providers' objects, its descendants, the connection
    objects         reads Kubernetes objects into these values
    status          every decision, in order, on one screen
    availability    `Available`, and the availability gates (gates)
    infrastructure, control_plane    what providers say (provided: the table both share)
    workers, machines, operations    what machines say (rollup: how they are aggregated)
    remediation, deletion, connection, paused, topology    one condition each
    phase, counters, versions        the rest of the status
    vocabulary      condition types, reasons and fixed texts
"""

from hyperfleet.conditions.cluster.availability import available
from hyperfleet.conditions.cluster.gates import gates_in_force, lint_gates
from hyperfleet.conditions.cluster.objects import (
    read_cluster,
    read_gates,
    read_machine,
    read_machine_group,
    read_provider,
)
from hyperfleet.conditions.cluster.paused import paused, paused_object
from hyperfleet.conditions.cluster.phase import capt_phase, core_phase
from hyperfleet.conditions.cluster.scope import (
    Absence,
    AvailabilityGate,
    ClusterObject,
    ClusterScope,
    ClusterView,
    ControlPlaneEndpoint,
    Descendants,
    Machine,
    MachineGroup,
    Probe,
    Provider,
    Reference,
    Replicas,
    VersionCount,
)
from hyperfleet.conditions.cluster.status import ClusterStatus, compute_status
from hyperfleet.conditions.cluster.topology import Topology, Upgrade, WorkerUpgrade, topology_reconciled
from hyperfleet.conditions.cluster.vocabulary import OWNED_TYPES, use_wire_reason

__all__ = [
    "OWNED_TYPES",
    "Absence",
    "AvailabilityGate",
    "ClusterObject",
    "ClusterScope",
    "ClusterStatus",
    "ClusterView",
    "ControlPlaneEndpoint",
    "Descendants",
    "Machine",
    "MachineGroup",
    "Probe",
    "Provider",
    "Reference",
    "Replicas",
    "Topology",
    "Upgrade",
    "VersionCount",
    "WorkerUpgrade",
    "available",
    "capt_phase",
    "compute_status",
    "core_phase",
    "gates_in_force",
    "lint_gates",
    "paused",
    "paused_object",
    "read_cluster",
    "read_gates",
    "read_machine",
    "read_machine_group",
    "read_provider",
    "topology_reconciled",
    "use_wire_reason",
]
