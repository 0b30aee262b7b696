"""`RollingOut`, `ScalingUp` and `ScalingDown`: something is going on, so True is the state to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.conditions.cluster.rollup import not_listed, reporting, roll_up_negative
from hyperfleet.conditions.cluster.scope import Absence, Provider
from hyperfleet.conditions.cluster.vocabulary import ROLLING_OUT, SCALING_DOWN, SCALING_UP, internal_error
from hyperfleet.conditions.lookup import has
from hyperfleet.conditions.source import Source
from hyperfleet.model.condition import FALSE, Condition

if TYPE_CHECKING:
    from hyperfleet.conditions.cluster.scope import ClusterView, Descendants


def rolling_out(view: ClusterView) -> Condition:
    """Decide `RollingOut`."""
    return _decide(view, ROLLING_OUT)


def scaling_up(view: ClusterView) -> Condition:
    """Decide `ScalingUp`."""
    return _decide(view, SCALING_UP)


def scaling_down(view: ClusterView) -> Condition:
    """Decide `ScalingDown`."""
    return _decide(view, SCALING_DOWN)


def _decide(view: ClusterView, type_: str) -> Condition:
    scope = view.scope
    if scope.descendants is None:
        return not_listed(view, type_)
    if scope.cluster.control_plane_ref.is_defined and scope.control_plane is Absence.UNREAD:
        return internal_error(type_)
    sources = [*_control_plane(scope.control_plane, type_), *_machine_groups(scope.descendants, type_)]
    if not sources:
        return Condition(type_, FALSE, f"Not{type_}")
    return roll_up_negative(type_, sources)


def _control_plane(provider: Provider | Absence, type_: str) -> list[Source]:
    """Return the control plane if it reports the type: providers need not, so silence means nothing."""
    if not isinstance(provider, Provider) or not has(provider.reading.conditions, type_):
        return []
    return [
        Source(
            kind=provider.kind,
            name=provider.name,
            namespace=provider.namespace,
            conditions=provider.reading.conditions,
        )
    ]


def _machine_groups(descendants: Descendants, type_: str) -> list[Source]:
    groups: list[Source] = [*reporting(descendants.machine_pools, type_), *descendants.machine_deployments]
    if type_ != ROLLING_OUT:  # a MachineSet never rolls out: it has one template only
        groups += descendants.stand_alone_machine_sets
    return groups
