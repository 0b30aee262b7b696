"""The phase of a Cluster: one word for people. Programs decide by conditions.

There are two: `core_phase` is Cluster API's, used wherever its core controller runs; `capt_phase` is that of the CAPT
design, for Clusters whose status our operator owns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hyperfleet.conditions.cluster.vocabulary import AVAILABLE, CONTROL_PLANE_AVAILABLE, INFRASTRUCTURE_READY
from hyperfleet.conditions.lookup import is_true

if TYPE_CHECKING:
    from hyperfleet.conditions.cluster.scope import ClusterObject
    from hyperfleet.model.condition import Condition

PENDING: Final = "Pending"
PROVISIONING: Final = "Provisioning"
PROVISIONED: Final = "Provisioned"
RUNNING: Final = "Running"
DELETING: Final = "Deleting"


def core_phase(cluster: ClusterObject, stored: str) -> str:
    """Return the phase as Cluster API's core controller sees it; the last rule that holds wins."""
    is_referenced = cluster.infrastructure_ref.is_defined or cluster.control_plane_ref.is_defined
    is_provisioned = cluster.infrastructure_provisioned and cluster.control_plane_endpoint.is_valid
    rules = (
        (cluster.is_deleting, DELETING),
        (is_provisioned, PROVISIONED),
        (is_referenced, PROVISIONING),
        (stored == "", PENDING),
    )
    return next((phase for holds, phase in rules if holds), stored)


def capt_phase(cluster: ClusterObject, conditions: tuple[Condition, ...]) -> str:
    """Return the phase as the CAPT design wants it: it needs the control plane, and ends with Running."""
    is_provisioned = is_true(conditions, INFRASTRUCTURE_READY) and is_true(conditions, CONTROL_PLANE_AVAILABLE)
    rules = (
        (cluster.is_deleting, DELETING),
        (is_provisioned and is_true(conditions, AVAILABLE), RUNNING),
        (is_provisioned, PROVISIONED),
    )
    return next((phase for holds, phase in rules if holds), PROVISIONING)
