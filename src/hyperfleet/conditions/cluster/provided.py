"""One table, two conditions: what a provider's object says about the part of the cluster it provides.

`InfrastructureReady` and `ControlPlaneAvailable` differ only in the texts of a `ProvidedPart`.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.conditions.cluster.scope import Absence, ClusterObject, Provider, Reference
from hyperfleet.conditions.cluster.vocabulary import (
    AWAITING_TOPOLOGY,
    INVALID_CONDITION_REPORTED,
    OBJECT_DELETED,
    OBJECT_DOES_NOT_EXIST,
    internal_error,
)
from hyperfleet.conditions.source import NO_REASON_REPORTED
from hyperfleet.errors import MergeError
from hyperfleet.model.condition import FALSE, TRUE, UNKNOWN, Condition


class ProvidedPart(Struct, frozen=True, kw_only=True):
    """A part of the cluster that a provider is responsible for."""

    target: str  # the condition of the Cluster
    source_type: str  # the condition of the provider's object; also the reason when all is well
    not_reason: str
    was_provided: bool  # the Cluster's own flag, which is never reset
    flag_field: str
    reference: Reference
    object: Provider | Absence


def decide(part: ProvidedPart, cluster: ClusterObject) -> Condition:
    """Decide the condition of a part; the first row that fits wins."""
    if not part.reference.is_defined:
        return _awaiting_topology(part, cluster)
    if isinstance(part.object, Provider):
        return _mirrored(part, part.object)
    if part.object is Absence.UNREAD:
        return internal_error(part.target)
    return _lost(part, cluster)


def _awaiting_topology(part: ProvidedPart, cluster: ClusterObject) -> Condition:
    message = "" if cluster.is_deleting else AWAITING_TOPOLOGY
    return Condition(part.target, FALSE, OBJECT_DOES_NOT_EXIST, message)


def _mirrored(part: ProvidedPart, provider: Provider) -> Condition:
    try:
        mirrored = provider.reading.mirror(part.source_type, target=part.target, fallback=_fallback(part))
    except MergeError as error:
        return Condition(part.target, UNKNOWN, INVALID_CONDITION_REPORTED, str(error))
    if mirrored.status == TRUE and mirrored.reason == NO_REASON_REPORTED:
        return replace(mirrored, reason=part.source_type)
    return mirrored


def _fallback(part: ProvidedPart) -> Condition:
    """For providers without the condition: the Cluster's own flag, which their contract does fill."""
    if part.was_provided:
        return Condition(part.target, TRUE, part.source_type)
    return Condition(part.target, FALSE, part.not_reason, f"{part.reference.kind} {part.flag_field} is false")


def _lost(part: ProvidedPart, cluster: ClusterObject) -> Condition:
    kind = part.reference.kind
    if not part.was_provided:
        return Condition(part.target, FALSE, OBJECT_DOES_NOT_EXIST, f"{kind} does not exist")
    while_needed = "" if cluster.is_deleting else " while the cluster still exists"
    return Condition(part.target, FALSE, OBJECT_DELETED, f"{kind} has been deleted{while_needed}")
