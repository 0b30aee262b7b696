"""The replica counters of a Cluster's status.

A counter that is not known is None, never 0; and what could not be read leaves the previous value alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from hyperfleet.conditions.cluster.scope import ClusterScope, Descendants, Machine, Provider, Replicas
from hyperfleet.conditions.cluster.versions import count_versions, merge_versions
from hyperfleet.conditions.cluster.vocabulary import AVAILABLE, READY, UP_TO_DATE
from hyperfleet.conditions.lookup import is_true

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def count_control_plane(scope: ClusterScope, previous: Replicas) -> Replicas:
    """Count the control plane: by its provider's object, or else its machines."""
    cluster = scope.cluster
    if cluster.control_plane_ref.is_defined or cluster.has_topology:
        if isinstance(scope.control_plane, Provider):
            return _carry_over(scope.control_plane, previous)
        return Replicas()
    if scope.descendants is None:
        return previous
    return count_machines(scope.descendants.control_plane_machines)


def count_workers(descendants: Descendants | None, previous: Replicas) -> Replicas:
    """Count the workers: what belongs to the Cluster directly, so that nothing counts twice."""
    if descendants is None:
        return previous
    groups = (
        *descendants.machine_pools,
        *descendants.machine_deployments,
        *descendants.stand_alone_machine_sets,
    )
    machines = [machine for machine in descendants.worker_machines if machine.is_owned_by_cluster]
    return add_up([*(group.replicas for group in groups), count_machines(machines)])


def count_machines(machines: Sequence[Machine]) -> Replicas:
    """Count stand-alone machines. A counter that would be 0 stays unset, as Cluster API leaves it."""
    return Replicas(
        desired=len(machines) or None,
        current=len(machines) or None,
        ready=_count_true(machines, READY),
        available=_count_true(machines, AVAILABLE),
        up_to_date=_count_true(machines, UP_TO_DATE),
        versions=count_versions(machines) or None,
    )


def _count_true(machines: Iterable[Machine], type_: str) -> int | None:
    return sum(is_true(machine.conditions, type_) for machine in machines) or None


def add_up(parts: Sequence[Replicas]) -> Replicas:
    """Add counters; a sum stays None until some part knows its number."""
    return Replicas(
        desired=_sum(part.desired for part in parts),
        current=_sum(part.current for part in parts),
        ready=_sum(part.ready for part in parts),
        available=_sum(part.available for part in parts),
        up_to_date=_sum(part.up_to_date for part in parts),
        versions=merge_versions(count for part in parts for count in part.versions or ()) or None,
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _carry_over(provider: Provider, previous: Replicas) -> Replicas:
    """Take what is reported and keep the previous number of what is not; versions are not kept."""
    reported = provider.replicas
    known = {field: number for field, number in asdict(reported).items() if number is not None}
    counted = replace(previous, **{**known, "versions": reported.versions})
    if provider.unavailable is None or counted.desired is None:
        return counted
    return replace(counted, available=max(counted.desired - provider.unavailable, 0))
