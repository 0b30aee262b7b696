"""The status of a Cluster as it is stored: read the previous one from a Cluster, write the computed one as JSON.

`write_status` gives the body of a merge patch: a counter that is unset is null, which removes the field. Fields of
others, such as `status.controlPlane.upgradePlan`, are not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from hyperfleet.conditions.cluster.objects import read_number, read_versions
from hyperfleet.conditions.cluster.scope import Replicas
from hyperfleet.conditions.cluster.status import ClusterStatus
from hyperfleet.conditions.unstructured import Object, dig, read_conditions
from hyperfleet.conditions.writer import write_conditions

if TYPE_CHECKING:
    from hyperfleet.conditions.writer import JsonObject

_COUNTERS: Final[Mapping[str, str]] = {
    "desired": "desiredReplicas",
    "current": "replicas",
    "ready": "readyReplicas",
    "available": "availableReplicas",
    "up_to_date": "upToDateReplicas",
}


def read_status(cluster: Object) -> ClusterStatus:
    """Read the previous status from a Cluster; raise when one of its conditions cannot be read."""
    status = dig(cluster, "status")
    phase = dig(status, "phase")
    return ClusterStatus(
        phase=phase if isinstance(phase, str) else "",
        control_plane=_read_replicas(dig(status, "controlPlane")),
        workers=_read_replicas(dig(status, "workers")),
        conditions=read_conditions(cluster).all(),
    )


def write_status(status: ClusterStatus) -> JsonObject:
    """Write a computed status as the `status` of a merge patch."""
    return {
        "phase": status.phase or None,
        "controlPlane": _write_replicas(status.control_plane),
        "workers": _write_replicas(status.workers),
        "conditions": write_conditions(status.conditions),
    }


def _read_replicas(value: object) -> Replicas:
    counters = {field: read_number(dig(value, name)) for field, name in _COUNTERS.items()}
    return Replicas(**counters, versions=read_versions(dig(value, "versions")))


def _write_replicas(replicas: Replicas) -> JsonObject:
    versions = replicas.versions and [
        {"version": each.version, "replicas": each.replicas} for each in replicas.versions
    ]
    return {**{name: getattr(replicas, field) for field, name in _COUNTERS.items()}, "versions": versions or None}
