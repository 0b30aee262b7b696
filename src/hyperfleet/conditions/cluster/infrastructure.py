"""`InfrastructureReady`: what the infrastructure provider says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.conditions.cluster.provided import ProvidedPart, decide
from hyperfleet.conditions.cluster.vocabulary import INFRASTRUCTURE_READY, READY
from hyperfleet.model.condition import TRUE, Condition

if TYPE_CHECKING:
    from hyperfleet.conditions.cluster.scope import ClusterView


def infrastructure_ready(view: ClusterView) -> Condition:
    """Decide `InfrastructureReady`; a Cluster that asks for no infrastructure lacks none."""
    cluster = view.cluster
    if not cluster.infrastructure_ref.is_defined and not cluster.has_topology:
        return Condition(INFRASTRUCTURE_READY, TRUE, READY)
    part = ProvidedPart(
        target=INFRASTRUCTURE_READY,
        source_type=READY,
        not_reason="NotReady",
        was_provided=cluster.infrastructure_provisioned,
        flag_field="status.initialization.provisioned",
        reference=cluster.infrastructure_ref,
        object=view.scope.infrastructure,
    )
    return decide(part, cluster)
