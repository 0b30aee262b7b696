"""The status of a Cluster, computed from the objects it consists of.

A tour, in the order a newcomer meets it:

    scope           what is looked at: the Cluster, its providers' objects, its descendants, the connection
    objects         reads Kubernetes objects into these values
    stored          reads the previous status, and writes the computed one
    status          every decision, in order, on one screen
    availability    `Available`, and the availability gates (gates)
    infrastructure, control_plane    what providers say (provided: the table both share)
    workers, machines, operations    what machines say (rollup: how they are aggregated)
    remediation, deletion, connection, paused, topology    one condition each
    phase, counters, versions        the rest of the status
    vocabulary      condition types, reasons and fixed texts

`compute_status` makes all decisions in order. Each is also a function of its own from a `ClusterView` to a `Condition`,
for an operator that owns only some of the conditions.
"""

from hyperfleet.conditions.cluster.availability import available
from hyperfleet.conditions.cluster.connection import remote_connection_probe
from hyperfleet.conditions.cluster.control_plane import control_plane_available, control_plane_initialized
from hyperfleet.conditions.cluster.counters import count_control_plane, count_workers
from hyperfleet.conditions.cluster.deletion import deleting
from hyperfleet.conditions.cluster.gates import gates_in_force, lint_gates
from hyperfleet.conditions.cluster.infrastructure import infrastructure_ready
from hyperfleet.conditions.cluster.machines import (
    control_plane_machines_ready,
    control_plane_machines_up_to_date,
    worker_machines_ready,
    worker_machines_up_to_date,
)
from hyperfleet.conditions.cluster.objects import (
    read_cluster,
    read_gates,
    read_machine,
    read_machine_group,
    read_provider,
)
from hyperfleet.conditions.cluster.operations import rolling_out, scaling_down, scaling_up
from hyperfleet.conditions.cluster.paused import paused, paused_object
from hyperfleet.conditions.cluster.phase import capt_phase, core_phase
from hyperfleet.conditions.cluster.remediation import remediating
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
from hyperfleet.conditions.cluster.stored import read_status, write_status
from hyperfleet.conditions.cluster.topology import Topology, Upgrade, WorkerUpgrade, topology_reconciled
from hyperfleet.conditions.cluster.vocabulary import OWNED_TYPES, use_wire_reason
from hyperfleet.conditions.cluster.workers import workers_available

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
    "control_plane_available",
    "control_plane_initialized",
    "control_plane_machines_ready",
    "control_plane_machines_up_to_date",
    "core_phase",
    "count_control_plane",
    "count_workers",
    "deleting",
    "gates_in_force",
    "infrastructure_ready",
    "lint_gates",
    "paused",
    "paused_object",
    "read_cluster",
    "read_gates",
    "read_machine",
    "read_machine_group",
    "read_provider",
    "read_status",
    "remediating",
    "remote_connection_probe",
    "rolling_out",
    "scaling_down",
    "scaling_up",
    "topology_reconciled",
    "use_wire_reason",
    "worker_machines_ready",
    "worker_machines_up_to_date",
    "workers_available",
    "write_status",
]
