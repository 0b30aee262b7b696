"""What the status of a Cluster is computed from, as immutable values.

A caller that watches the objects builds a `ClusterScope`. The condition functions read it through a `ClusterView`,
which adds the time and the conditions decided so far. Nothing here decides anything beyond naming a state.
"""

from datetime import datetime, timedelta
from enum import Enum
from typing import Literal

from msgspec import Struct

from hyperfleet.conditions.cluster.vocabulary import HEALTH_CHECK_SUCCEEDED, OWNER_REMEDIATED
from hyperfleet.conditions.lookup import is_false
from hyperfleet.conditions.source import Source
from hyperfleet.conditions.unstructured import ParsedConditions
from hyperfleet.model.condition import Condition


class Reference(Struct, frozen=True, kw_only=True):
    """A reference to a provider object, as written in the Cluster's spec."""

    kind: str = ""
    name: str = ""
    api_group: str = ""

    @property
    def is_defined(self) -> bool:
        """A reference counts as soon as any part of it is given."""
        return bool(self.kind or self.name or self.api_group)


class ControlPlaneEndpoint(Struct, frozen=True):
    """Where the API server of the cluster answers."""

    host: str = ""
    port: int = 0

    @property
    def is_valid(self) -> bool:
        """An endpoint can be used when it has both parts."""
        return self.host != "" and self.port != 0


class AvailabilityGate(Struct, frozen=True, kw_only=True):
    """An availability gate: one more condition that the Cluster's `Available` depends on."""

    condition_type: str
    polarity: Literal["Positive", "Negative"] = "Positive"


class ClusterObject(Struct, frozen=True, kw_only=True):
    """The Cluster itself: its spec and the facts about it that only ever become true."""

    name: str = ""
    namespace: str = ""
    generation: int = 1
    is_deleting: bool = False
    is_paused: bool = False  # spec.paused
    has_paused_annotation: bool = False
    has_topology: bool = False
    infrastructure_ref: Reference = Reference()
    control_plane_ref: Reference = Reference()
    control_plane_endpoint: ControlPlaneEndpoint = ControlPlaneEndpoint()
    infrastructure_provisioned: bool = False  # status.initialization, never reset
    control_plane_initialized: bool = False
    availability_gates: tuple[AvailabilityGate, ...] | None = None  # None: not given, so those of the class count

    @property
    def awaits_topology(self) -> bool:
        """The topology controller has not yet named both provider objects."""
        return self.has_topology and not (self.infrastructure_ref.is_defined and self.control_plane_ref.is_defined)


class VersionCount(Struct, frozen=True):
    """How many machines run a version."""

    version: str
    replicas: int


class Replicas(Struct, frozen=True, kw_only=True):
    """Counters of machines; None is "not known", which is not zero."""

    desired: int | None = None
    current: int | None = None
    ready: int | None = None
    available: int | None = None
    up_to_date: int | None = None
    versions: tuple[VersionCount, ...] | None = None


class Absence(Enum):
    """Why there is no provider object to look at."""

    NOT_FOUND = "NotFound"  # we looked: there is none
    UNREAD = "Unread"  # we could not look


class Provider(Struct, frozen=True, kw_only=True):
    """A provider's object (infrastructure or control plane) as far as its contract goes."""

    kind: str
    name: str = ""
    namespace: str = ""
    reading: ParsedConditions = ParsedConditions()
    initialized: bool | None = False  # None: the field is there but is no boolean
    replicas: Replicas = Replicas()
    unavailable: int | None = None  # contract v1beta1, which has no number of available replicas


class Machine(Source, frozen=True, kw_only=True):
    """One machine of the cluster."""

    kind: str = "Machine"
    created: datetime | None = None
    has_node_ref: bool = False
    is_pool_member: bool = False  # made by a MachinePool, which represents it in conditions and counters
    is_owned_by_cluster: bool = False
    version: str = ""

    @property
    def is_unhealthy(self) -> bool:
        """A health check failed."""
        return is_false(self.conditions, HEALTH_CHECK_SUCCEEDED)

    @property
    def awaits_remediation(self) -> bool:
        """A health check failed and the owner has not dealt with it."""
        return self.is_unhealthy and is_false(self.conditions, OWNER_REMEDIATED)


class MachineGroup(Source, frozen=True, kw_only=True):
    """A MachineDeployment, MachineSet or MachinePool."""

    replicas: Replicas = Replicas()
    is_owned_by_cluster: bool = False


class Descendants(Struct, frozen=True, kw_only=True):
    """Everything that carries the cluster's label."""

    machine_deployments: tuple[MachineGroup, ...] = ()
    machine_sets: tuple[MachineGroup, ...] = ()
    machine_pools: tuple[MachineGroup, ...] = ()
    machines: tuple[Machine, ...] = ()

    @property
    def control_plane_machines(self) -> tuple[Machine, ...]:
        """The machines the API servers run on."""
        return tuple(machine for machine in self.machines if machine.is_control_plane_machine)

    @property
    def all_worker_machines(self) -> tuple[Machine, ...]:
        """All other machines, those of pools too: a deletion waits for every one of them."""
        return tuple(machine for machine in self.machines if not machine.is_control_plane_machine)

    @property
    def worker_machines(self) -> tuple[Machine, ...]:
        """The worker machines that conditions and counters look at: without those of pools."""
        return tuple(machine for machine in self.all_worker_machines if not machine.is_pool_member)

    @property
    def unhealthy_machines(self) -> tuple[Machine, ...]:
        """The machines that failed a health check."""
        return tuple(m for m in self.machines if m.is_unhealthy and not m.is_pool_member)

    @property
    def stand_alone_machine_sets(self) -> tuple[MachineGroup, ...]:
        """The MachineSets without a MachineDeployment."""
        return tuple(group for group in self.machine_sets if group.is_owned_by_cluster)


class Probe(Struct, frozen=True, kw_only=True):
    """What is known of the connection to the cluster."""

    last_success: datetime | None = None
    consecutive_failures: int = 0
    grace: timedelta = timedelta(seconds=50)  # how long an established connection may be silent


class ClusterScope(Struct, frozen=True, kw_only=True):
    """Everything one computation of a Cluster's status looks at."""

    cluster: ClusterObject = ClusterObject()
    infrastructure: Provider | Absence = Absence.UNREAD
    control_plane: Provider | Absence = Absence.UNREAD
    descendants: Descendants | None = None  # None: they could not be listed
    probe: Probe = Probe()
    class_gates: tuple[AvailabilityGate, ...] | None = None  # of the ClusterClass, if one was loaded
    awaits_delete_hook: bool = False
    deletion_failed: bool = False


class ClusterView(Struct, frozen=True):
    """A scope at one moment, together with the conditions decided so far."""

    scope: ClusterScope
    conditions: tuple[Condition, ...]
    now: datetime

    @property
    def cluster(self) -> ClusterObject:
        """The Cluster itself."""
        return self.scope.cluster
