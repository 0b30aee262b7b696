"""The status of a Cluster, on one screen.

For the operator, where it owns a Cluster's status, and for tools that explain one. Nothing is stored here:
the result is a value, to be stored with `patch` and `OWNED_TYPES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.conditions.cluster.availability import available
from hyperfleet.conditions.cluster.connection import remote_connection_probe
from hyperfleet.conditions.cluster.control_plane import control_plane_available, control_plane_initialized
from hyperfleet.conditions.cluster.counters import count_control_plane, count_workers
from hyperfleet.conditions.cluster.deletion import deleting
from hyperfleet.conditions.cluster.infrastructure import infrastructure_ready
from hyperfleet.conditions.cluster.machines import (
    control_plane_machines_ready,
    control_plane_machines_up_to_date,
    worker_machines_ready,
    worker_machines_up_to_date,
)
from hyperfleet.conditions.cluster.operations import rolling_out, scaling_down, scaling_up
from hyperfleet.conditions.cluster.paused import paused
from hyperfleet.conditions.cluster.phase import core_phase
from hyperfleet.conditions.cluster.remediation import remediating
from hyperfleet.conditions.cluster.scope import ClusterView, Replicas
from hyperfleet.conditions.cluster.vocabulary import PAUSED
from hyperfleet.conditions.cluster.workers import workers_available
from hyperfleet.conditions.lookup import is_true
from hyperfleet.conditions.transition import set_condition
from hyperfleet.model.condition import Condition

if TYPE_CHECKING:
    from datetime import datetime

    from hyperfleet.conditions.cluster.scope import ClusterScope

Decision = Callable[[ClusterView], Condition]

# In this order: each sees those before it, and Available, which summarizes them, comes last.
_DECISIONS: Final[tuple[Decision, ...]] = (
    remote_connection_probe,
    infrastructure_ready,
    control_plane_available,
    control_plane_initialized,
    workers_available,
    control_plane_machines_ready,
    worker_machines_ready,
    control_plane_machines_up_to_date,
    worker_machines_up_to_date,
    rolling_out,
    scaling_up,
    scaling_down,
    remediating,
    deleting,
    available,
)


class ClusterStatus(Struct, frozen=True, kw_only=True):
    """The part of a Cluster's status that is computed from everything else."""

    phase: str = ""
    control_plane: Replicas = Replicas()
    workers: Replicas = Replicas()
    conditions: tuple[Condition, ...] = ()


def compute_status(scope: ClusterScope, previous: ClusterStatus, now: datetime) -> ClusterStatus:
    """Compute the status of a Cluster; while it is paused only `Paused` is touched."""
    view = _decide(ClusterView(scope, previous.conditions, now), lambda view: paused(view.cluster))
    if is_true(view.conditions, PAUSED):
        return replace(previous, conditions=view.conditions)
    for decision in _DECISIONS:
        view = _decide(view, decision)
    return ClusterStatus(
        phase=core_phase(scope.cluster, previous.phase),
        control_plane=count_control_plane(scope, previous.control_plane),
        workers=count_workers(scope.descendants, previous.workers),
        conditions=view.conditions,
    )


def _decide(view: ClusterView, decision: Decision) -> ClusterView:
    """Make one decision and record it, so that the next one sees it."""
    conditions = set_condition(view.conditions, decision(view), now=view.now, generation=view.cluster.generation)
    return replace(view, conditions=conditions)
