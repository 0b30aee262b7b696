"""`Available`: whether the cluster works. A summary of the other conditions and of the availability gates.

Two exceptions to the usual priorities: parts that are gone while the Cluster is being deleted are not an issue, nor is
a topology that is only unfinished (an upgrade, a hook).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hyperfleet.conditions.cluster.gates import gates_in_force
from hyperfleet.conditions.cluster.vocabulary import (
    AVAILABLE,
    CLUSTER_CLASS_NOT_RECONCILED,
    CONTROL_PLANE_AVAILABLE,
    DELETING,
    INFRASTRUCTURE_READY,
    OBJECT_DELETED,
    OBJECT_DOES_NOT_EXIST,
    RECONCILE_FAILED,
    REMOTE_CONNECTION_PROBE,
    TOPOLOGY_RECONCILED,
    WORKERS_AVAILABLE,
    internal_error,
    use_wire_reason,
)
from hyperfleet.conditions.merge import Strategy, choose_reason
from hyperfleet.conditions.priority import Priority, PriorityOf, by_polarity
from hyperfleet.conditions.source import Source
from hyperfleet.conditions.summary import SummaryOptions, summarize
from hyperfleet.errors import MergeError
from hyperfleet.model.condition import FALSE, Condition

if TYPE_CHECKING:
    from hyperfleet.conditions.cluster.scope import AvailabilityGate, ClusterView

_SUMMARIZED: Final = (
    DELETING,
    REMOTE_CONNECTION_PROBE,
    INFRASTRUCTURE_READY,
    CONTROL_PLANE_AVAILABLE,
    WORKERS_AVAILABLE,
    TOPOLOGY_RECONCILED,
)
_REASON_OF: Final = choose_reason("NotAvailable", "AvailableUnknown", "Available")


def available(view: ClusterView) -> Condition:
    """Decide `Available` from the conditions decided before it."""
    cluster = Source(kind="Cluster", conditions=tuple(use_wire_reason(c) for c in view.conditions))
    try:
        return summarize(cluster, _summary(view))
    except MergeError:  # only a gate named Available gets here; `lint_gates` reports it
        return internal_error(AVAILABLE)


def _summary(view: ClusterView) -> SummaryOptions:
    gates = gates_in_force(view.scope)
    return SummaryOptions(
        target=AVAILABLE,
        types=(*_SUMMARIZED, *(gate.condition_type for gate in gates)),
        ignore_if_missing=() if view.cluster.has_topology else (TOPOLOGY_RECONCILED,),
        strategy=Strategy(priority_of=_priority_of(view, gates), reason_of=_REASON_OF),
    )


def _priority_of(view: ClusterView, gates: tuple[AvailabilityGate, ...]) -> PriorityOf:
    negative_gates = (gate.condition_type for gate in gates if gate.polarity == "Negative")
    by_default = by_polarity((DELETING, *negative_gates))
    is_deleting = view.cluster.is_deleting

    def priority_of(condition: Condition) -> Priority:
        if _is_harmless_topology(condition) or (is_deleting and _is_expected_loss(condition)):
            return Priority.INFO
        return by_default(condition)

    return priority_of


def _is_expected_loss(condition: Condition) -> bool:
    """A part of the cluster is gone, which is the point of a deletion."""
    return condition.type in (INFRASTRUCTURE_READY, CONTROL_PLANE_AVAILABLE) and condition.reason in (
        OBJECT_DELETED,
        OBJECT_DOES_NOT_EXIST,
    )


def _is_harmless_topology(condition: Condition) -> bool:
    """The topology is not done, but nothing has failed."""
    return (
        condition.type == TOPOLOGY_RECONCILED
        and condition.status == FALSE
        and condition.reason not in (RECONCILE_FAILED, CLUSTER_CLASS_NOT_RECONCILED)
    )
