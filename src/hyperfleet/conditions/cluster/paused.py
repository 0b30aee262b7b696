"""`Paused`: controllers must not change this object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.conditions.cluster.vocabulary import PAUSED
from hyperfleet.model.condition import FALSE, TRUE, Condition

if TYPE_CHECKING:
    from hyperfleet.conditions.cluster.scope import ClusterObject


def paused(cluster: ClusterObject) -> Condition:
    """Decide `Paused` of the Cluster itself."""
    return paused_object(cluster, "Cluster", has_annotation=cluster.has_paused_annotation)


def paused_object(cluster: ClusterObject, kind: str, *, has_annotation: bool) -> Condition:
    """Decide `Paused` of an object that belongs to a Cluster."""
    causes = pause_causes(cluster, kind, has_annotation=has_annotation)
    if causes:
        return Condition(PAUSED, TRUE, "Paused", causes)
    return Condition(PAUSED, FALSE, "NotPaused")


def pause_causes(cluster: ClusterObject, kind: str, *, has_annotation: bool) -> str:
    """Describe what pauses an object: the Cluster's spec, its own annotation, or both."""
    causes = (
        (cluster.is_paused, "Cluster spec.paused is set to true"),
        (has_annotation, f"{kind} has the cluster.x-k8s.io/paused annotation"),
    )
    return ", ".join(text for holds, text in causes if holds)
