"""`Deleting`: the progress of the deletion of a Cluster.

Hooks go first, then all that depends on the control plane, then the control plane, then the infrastructure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hyperfleet.conditions.cluster.scope import Absence, Provider, Reference
from hyperfleet.conditions.cluster.vocabulary import CHECK_LOGS, DELETING, INTERNAL_ERROR
from hyperfleet.conditions.message import list_names
from hyperfleet.model.condition import FALSE, TRUE, Condition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hyperfleet.conditions.cluster.scope import ClusterScope, ClusterView, Descendants
    from hyperfleet.conditions.source import Source

_MAX_NAMES: Final = 5

_FAILED: Final = Condition(DELETING, TRUE, INTERNAL_ERROR, CHECK_LOGS)


def deleting(view: ClusterView) -> Condition:
    """Decide `Deleting`: the first thing that still has to go."""
    scope = view.scope
    if not scope.cluster.is_deleting:
        return Condition(DELETING, FALSE, "NotDeleting")
    if scope.awaits_delete_hook:
        return Condition(DELETING, TRUE, "WaitingForBeforeDeleteHook", "Waiting for BeforeClusterDelete hook")
    if scope.deletion_failed or scope.descendants is None:
        return _FAILED
    remaining = "\n".join(_remaining(scope, scope.descendants))
    if remaining:
        return Condition(DELETING, TRUE, "WaitingForWorkersDeletion", remaining)
    return (
        _wait_for(scope.control_plane, scope.cluster.control_plane_ref, "WaitingForControlPlaneDeletion")
        or _wait_for(scope.infrastructure, scope.cluster.infrastructure_ref, "WaitingForInfrastructureDeletion")
        or Condition(DELETING, TRUE, "DeletionCompleted", "Deletion completed")
    )


def _remaining(scope: ClusterScope, descendants: Descendants) -> Iterator[str]:
    """Yield a line for each group of descendants that is still there."""
    has_control_plane = scope.cluster.control_plane_ref.is_defined  # then it deletes its machines itself
    groups: tuple[tuple[str, Sequence[Source]], ...] = (
        ("Control plane Machines", () if has_control_plane else descendants.control_plane_machines),
        ("MachineDeployments", descendants.machine_deployments),
        ("MachineSets", descendants.machine_sets),
        ("MachinePools", descendants.machine_pools),
        ("Worker Machines", descendants.all_worker_machines),
    )
    for title, group in groups:
        if group:
            yield f"* {title}: {list_names(sorted(source.name for source in group), _MAX_NAMES)}"


def _wait_for(provider: Provider | Absence, reference: Reference, reason: str) -> Condition | None:
    """Wait for a provider's object, or report that it cannot be read; None when it is gone."""
    if not reference.is_defined or provider is Absence.NOT_FOUND:
        return None
    if provider is Absence.UNREAD:
        return _FAILED
    return Condition(DELETING, TRUE, reason, f"Waiting for {reference.kind} to be deleted")
