"""The data of events as they travel. JSON Schemas and the AsyncAPI document are generated from these types."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

RelayReason = Literal["Created", "SpecChanged", "DeletionRequested", "Removed", "AdapterChanged", "Requested", "Gap"]

ResourceId = Annotated[str, Meta(description="The id of the resource")]
KindName = Annotated[str, Meta(description="Its kind: Cluster, NodePool, or one that the settings add")]
Href = Annotated[str, Meta(description="Its path in the API: read it there")]
Generation = Annotated[int, Meta(description="Its generation at the time of the event; never act on an older one")]


class Reference(Struct, frozen=True):
    """The resource that owns it: the cluster of a node pool."""

    id: Annotated[str, Meta(description="The id of the owner")]
    kind: Annotated[str, Meta(description="The kind of the owner")]
    href: Annotated[str, Meta(description="The path of the owner in the API")]


class ClusterEvent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Look at a resource again. It carries identity, never state: readers fetch that."""

    id: ResourceId
    kind: KindName
    href: Href
    generation: Generation
    owner_references: Reference | UnsetType = UNSET
    reason: Annotated[
        str,
        Meta(
            description="Created, SpecChanged, DeletionRequested, Removed, AdapterChanged, Requested, or the name of a "
            "sentinel's rule"
        ),
    ]
    adapter: Annotated[
        str | UnsetType, Meta(description="The adapter whose state changed. That adapter itself ignores the event")
    ] = UNSET


class GapEvent(Struct, frozen=True, kw_only=True):
    """Events were lost: the relay was away for longer than the log is kept for it. Look at everything."""

    reason: Literal["Gap"] = "Gap"
    after: Annotated[int, Meta(description="The last position before the lost ones")]
    upto: Annotated[int, Meta(description="The last position that was lost")]


class TransitionData(Struct, frozen=True, kw_only=True, rename={"before": "from", "after": "to"}):
    """One transition of the phase or of a condition."""

    subject: Annotated[str, Meta(description="phase, or a condition type")]
    before: Annotated[str | None, Meta(description="The value before; null: there was none")]
    after: Annotated[str | None, Meta(description="The value from now on; null: there is none any more")]
    reason: Annotated[str, Meta(description="The reason of the condition")] = ""
    message: Annotated[str, Meta(description="The message of the condition")] = ""
    since: Annotated[datetime | None, Meta(description="When the state before began, if that is known")] = None


class CauseData(Struct, frozen=True):
    """Why the status was computed."""

    kind: Annotated[str, Meta(description="A report, a deadline, a new policy, …; as in the history")]
    ref: Annotated[
        str, Meta(description="The id of the report, the retired adapter, or the child that changed; may be empty")
    ] = ""


class StatusEvent(Struct, frozen=True, kw_only=True):
    """The status of a resource changed: every transition of one write."""

    id: ResourceId
    kind: KindName
    href: Href
    generation: Generation
    owner_references: Reference | UnsetType = UNSET
    phase: Annotated[str | None, Meta(description="The phase from now on; null: the resource was removed")]
    transitions: Annotated[
        tuple[TransitionData, ...], Meta(description="Every transition of the phase and of conditions")
    ]
    cause: CauseData
