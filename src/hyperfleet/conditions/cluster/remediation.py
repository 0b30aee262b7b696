"""`Remediating`: machines that failed a health check are about to be replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from hyperfleet.conditions.cluster.rollup import not_listed, roll_up
from hyperfleet.conditions.cluster.vocabulary import OWNER_REMEDIATED, REMEDIATING
from hyperfleet.conditions.message import name_objects
from hyperfleet.model.condition import FALSE, TRUE, Condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hyperfleet.conditions.cluster.scope import ClusterView, Machine


def remediating(view: ClusterView) -> Condition:
    """Decide `Remediating`."""
    descendants = view.scope.descendants
    if descendants is None:
        return not_listed(view, REMEDIATING)
    unhealthy = descendants.unhealthy_machines
    awaiting = [machine for machine in unhealthy if machine.awaits_remediation]
    if not awaiting:
        return Condition(REMEDIATING, FALSE, "NotRemediating", _left_alone(unhealthy))
    progress = roll_up(REMEDIATING, OWNER_REMEDIATED, awaiting)
    return replace(progress, status=TRUE, reason=REMEDIATING)


def _left_alone(unhealthy: Sequence[Machine]) -> str:
    """List the unhealthy machines that will not be replaced."""
    if not unhealthy:
        return ""
    names = sorted(machine.name for machine in unhealthy)
    verb = "is" if len(names) == 1 else "are"
    return f"{name_objects('Machine', names)} {verb} not healthy (not to be remediated)"
