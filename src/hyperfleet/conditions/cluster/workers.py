"""`WorkersAvailable`: what the MachineDeployments and MachinePools say.

Stand-alone MachineSets and Machines do not take part: nothing says how many of them may be missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.conditions.cluster.rollup import not_listed, reporting, roll_up
from hyperfleet.conditions.cluster.vocabulary import AVAILABLE, WORKERS_AVAILABLE
from hyperfleet.model.condition import TRUE, Condition

if TYPE_CHECKING:
    from hyperfleet.conditions.cluster.scope import ClusterView


def workers_available(view: ClusterView) -> Condition:
    """Decide `WorkersAvailable`."""
    descendants = view.scope.descendants
    if descendants is None:
        return not_listed(view, WORKERS_AVAILABLE)
    groups = [*reporting(descendants.machine_pools, AVAILABLE), *descendants.machine_deployments]
    if not groups:
        return Condition(WORKERS_AVAILABLE, TRUE, "NoWorkers")
    return roll_up(WORKERS_AVAILABLE, AVAILABLE, groups)
