"""The four conditions that roll up Machines: ready and up to date, of control plane and workers."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from hyperfleet.conditions.cluster.rollup import not_listed, roll_up
from hyperfleet.conditions.cluster.vocabulary import (
    CONTROL_PLANE_MACHINES_READY,
    CONTROL_PLANE_MACHINES_UP_TO_DATE,
    READY,
    UP_TO_DATE,
    WORKER_MACHINES_READY,
    WORKER_MACHINES_UP_TO_DATE,
)
from hyperfleet.conditions.lookup import has
from hyperfleet.model.condition import TRUE, Condition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hyperfleet.conditions.cluster.scope import ClusterView, Machine

# A new machine gets its UpToDate condition a moment after it was made; until then that is not missing.
_NEW: Final = timedelta(seconds=10)


def control_plane_machines_ready(view: ClusterView) -> Condition:
    """Decide `ControlPlaneMachinesReady`."""
    return _roll_up(view, CONTROL_PLANE_MACHINES_READY, READY, _control_plane_machines(view))


def worker_machines_ready(view: ClusterView) -> Condition:
    """Decide `WorkerMachinesReady`."""
    return _roll_up(view, WORKER_MACHINES_READY, READY, _worker_machines(view))


def control_plane_machines_up_to_date(view: ClusterView) -> Condition:
    """Decide `ControlPlaneMachinesUpToDate`."""
    machines = _settled(view, _control_plane_machines(view))
    return _roll_up(view, CONTROL_PLANE_MACHINES_UP_TO_DATE, UP_TO_DATE, machines)


def worker_machines_up_to_date(view: ClusterView) -> Condition:
    """Decide `WorkerMachinesUpToDate`."""
    machines = _settled(view, _worker_machines(view))
    return _roll_up(view, WORKER_MACHINES_UP_TO_DATE, UP_TO_DATE, machines)


def _control_plane_machines(view: ClusterView) -> tuple[Machine, ...]:
    descendants = view.scope.descendants
    return descendants.control_plane_machines if descendants else ()


def _worker_machines(view: ClusterView) -> tuple[Machine, ...]:
    descendants = view.scope.descendants
    return descendants.worker_machines if descendants else ()


def _settled(view: ClusterView, machines: Iterable[Machine]) -> tuple[Machine, ...]:
    return tuple(m for m in machines if has(m.conditions, UP_TO_DATE) or not _is_new(view, m))


def _is_new(view: ClusterView, machine: Machine) -> bool:
    return machine.created is not None and view.now - machine.created <= _NEW


def _roll_up(view: ClusterView, target: str, source_type: str, machines: tuple[Machine, ...]) -> Condition:
    if view.scope.descendants is None:
        return not_listed(view, target)
    if not machines:
        return Condition(target, TRUE, "NoReplicas")
    return roll_up(target, source_type, machines)
