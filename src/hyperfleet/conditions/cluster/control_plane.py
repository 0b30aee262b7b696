"""`ControlPlaneAvailable` and `ControlPlaneInitialized`: a provider's object or stand-alone machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.conditions.cluster.provided import ProvidedPart, decide
from hyperfleet.conditions.cluster.rollup import not_listed, roll_up
from hyperfleet.conditions.cluster.scope import Absence, Provider
from hyperfleet.conditions.cluster.vocabulary import (
    AVAILABLE,
    AWAITING_TOPOLOGY,
    CONTROL_PLANE_AVAILABLE,
    CONTROL_PLANE_INITIALIZED,
    OBJECT_DOES_NOT_EXIST,
    internal_error,
)
from hyperfleet.conditions.lookup import get
from hyperfleet.model.condition import FALSE, TRUE, UNKNOWN, Condition

if TYPE_CHECKING:
    from hyperfleet.conditions.cluster.scope import ClusterView

_AWAITING_FIRST_NODE = "Waiting for the first control plane machine to have status.nodeRef set"


def control_plane_available(view: ClusterView) -> Condition:
    """Decide `ControlPlaneAvailable`."""
    cluster = view.cluster
    if not cluster.control_plane_ref.is_defined and not cluster.has_topology:
        return _machines_available(view)
    part = ProvidedPart(
        target=CONTROL_PLANE_AVAILABLE,
        source_type=AVAILABLE,
        not_reason="NotAvailable",
        was_provided=cluster.control_plane_initialized,
        flag_field="status.initialization.controlPlaneInitialized",
        reference=cluster.control_plane_ref,
        object=view.scope.control_plane,
    )
    return decide(part, cluster)


def _machines_available(view: ClusterView) -> Condition:
    """Use stand-alone control plane machines, as there is no provider's object."""
    descendants = view.scope.descendants
    if descendants is None:
        return not_listed(view, CONTROL_PLANE_AVAILABLE)
    if not descendants.control_plane_machines:
        return Condition(CONTROL_PLANE_AVAILABLE, FALSE, "NotAvailable", _AWAITING_FIRST_NODE)
    return roll_up(CONTROL_PLANE_AVAILABLE, AVAILABLE, descendants.control_plane_machines)


def control_plane_initialized(view: ClusterView) -> Condition:
    """Decide `ControlPlaneInitialized`; once True it stays True."""
    previous = get(view.conditions, CONTROL_PLANE_INITIALIZED)
    if previous is not None and previous.status == TRUE:
        return previous
    if view.cluster.control_plane_ref.is_defined:
        return _initialized_by_provider(view)
    if view.cluster.has_topology:
        message = "" if view.cluster.is_deleting else AWAITING_TOPOLOGY
        return Condition(CONTROL_PLANE_INITIALIZED, UNKNOWN, OBJECT_DOES_NOT_EXIST, message)
    return _initialized_by_machines(view)


def _initialized_by_provider(view: ClusterView) -> Condition:
    provider = view.scope.control_plane
    if provider is Absence.NOT_FOUND:
        message = f"{view.cluster.control_plane_ref.kind} does not exist"
        return Condition(CONTROL_PLANE_INITIALIZED, UNKNOWN, OBJECT_DOES_NOT_EXIST, message)
    if not isinstance(provider, Provider) or provider.initialized is None:
        return internal_error(CONTROL_PLANE_INITIALIZED)
    return _initialized(provider.initialized, "Control plane not yet initialized")


def _initialized_by_machines(view: ClusterView) -> Condition:
    descendants = view.scope.descendants
    if descendants is None:
        return internal_error(CONTROL_PLANE_INITIALIZED)
    has_node = any(machine.has_node_ref for machine in descendants.control_plane_machines)
    return _initialized(has_node, _AWAITING_FIRST_NODE)


def _initialized(is_initialized: bool, message: str) -> Condition:
    if is_initialized:
        return Condition(CONTROL_PLANE_INITIALIZED, TRUE, "Initialized")
    return Condition(CONTROL_PLANE_INITIALIZED, FALSE, "NotInitialized", message)
