"""The wire shapes of answers about the fleet: summaries, adapters, the policy, health. `wire` has those of resources.

Handlers encode these types and `openapi` describes the same types, so the two cannot differ.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from hyperfleet.api.problems import FaultBody
from hyperfleet.model.event import EventType
from hyperfleet.ports import CauseKind

# Stored answers are sent as they are; with `fields`, only parts of them, and always the id.
RESOURCE_OR_PARTS: Final[dict[str, Any]] = {
    "anyOf": [
        {"$ref": "#/components/schemas/ResourceAnswer"},
        {"title": "Masked", "type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
    ]
}

Count = Annotated[int, Meta(ge=0)]
Time = Annotated[datetime, Meta(tz=True)]


class ResourceList(Struct, frozen=True, rename="camel"):
    """One page of resources."""

    type: Annotated[str, Meta(description="The kind and `List`: `ClusterList`.")]
    href: str
    items: tuple[Annotated[Raw, Meta(extra_json_schema=RESOURCE_OR_PARTS)], ...]
    continue_: Annotated[
        str | UnsetType, Meta(description="Send it as `continue` for the next page; absent on the last page.")
    ] = field(default=UNSET, name="continue")
    page: Annotated[Count | UnsetType, Meta(description="The number of the page, if requested by number.")] = UNSET
    size: Annotated[Count | UnsetType, Meta(description="The size of a page.")] = UNSET
    total: Annotated[Count | UnsetType, Meta(description="The number of matching resources on all pages.")] = UNSET


class WaitAnswer(Struct, frozen=True, rename="camel"):
    """The result of a successful wait."""

    outcome: Annotated[Literal["met"], Meta(description="The wait condition is met.")]
    revision: Annotated[int | UnsetType, Meta(description="The revision of the version that met it.")] = UNSET
    resource: Annotated[
        Raw | UnsetType,
        Meta(
            description="That version; there may be a newer one. Absent: the resource is gone, as was waited for.",
            extra_json_schema={"$ref": "#/components/schemas/ResourceAnswer"},
        ),
    ] = UNSET


class TrendPointBody(Struct, frozen=True, rename="camel"):
    """The counts of resources at one moment."""

    at: Time
    total: Count
    groups: Annotated[tuple[dict[str, str | int | None], ...], Meta(description="As in the summary.")]


class SummaryBody(Struct, frozen=True, rename="camel"):
    """Counts of resources in groups."""

    group_by: Annotated[tuple[str, ...], Meta(description="What the resources are grouped by, as requested.")]
    total: Annotated[
        Count, Meta(description="The number of matching resources; each counts once, even if it is in several groups.")
    ]
    groups: Annotated[
        tuple[dict[str, str | int | None], ...],
        Meta(
            description="The largest group first: one value for each of `groupBy` (null: the resources without one) "
            "and `count`."
        ),
    ]
    at: Annotated[Time | UnsetType, Meta(description="The time of these counts; absent: now.")] = UNSET
    trend: Annotated[
        tuple[TrendPointBody, ...] | UnsetType,
        Meta(description="If requested: the oldest point first; the last point is the summary itself."),
    ] = UNSET


class ReportCountsBody(Struct, frozen=True, rename="camel"):
    """Counts of the accepted reports of an adapter, by outcome."""

    aggregated: Annotated[Count, Meta(description="Stored and aggregated into a new status.")]
    stored: Annotated[Count, Meta(description="Stored only, because they have `Available=Unknown`.")]
    replayed: Annotated[Count, Meta(description="Exact repetitions; nothing changed.")]


class LostReportBody(Struct, frozen=True, rename="camel"):
    """A report of an adapter that was not stored."""

    cause: str
    resource: Annotated[str, Meta(description="The id of its resource.")]
    time: Time


class AdapterSummaryBody(Struct, frozen=True, rename="camel"):
    """One adapter over all resources."""

    name: str
    reports: ReportCountsBody
    discards: Annotated[
        dict[str, Count], Meta(description="Reports that were answered and counted, but not stored, by cause.")
    ]
    rejected: Annotated[dict[str, Count], Meta(description="Reports that were answered with an error, by code.")]
    blocks: Annotated[
        dict[str, Count],
        Meta(description="The number of resources of each kind that wait for this adapter to become Ready."),
    ]
    last_seen: Annotated[
        Time | UnsetType, Meta(description="When it last reported; absent: never, resources only wait for it.")
    ] = UNSET
    clock_skew_seconds: Annotated[
        float | UnsetType, Meta(description="How far its clock was ahead of the server's at its last report.")
    ] = UNSET
    last_discard: Annotated[
        LostReportBody | UnsetType, Meta(description="The last report that was not stored, if that was a discard.")
    ] = UNSET
    last_refusal: Annotated[
        LostReportBody | UnsetType, Meta(description="The last report that was not stored, if that was an error.")
    ] = UNSET


class AdapterList(Struct, frozen=True, rename="camel"):
    """Every adapter that has reported or is waited for, by name."""

    items: tuple[AdapterSummaryBody, ...]


class BlockedResourceBody(Struct, frozen=True, rename="camel"):
    """A resource that is not Ready because an adapter has not done its part."""

    id: str
    name: str
    phase: str
    href: str


class AdapterDetail(AdapterSummaryBody, frozen=True, rename="camel", kw_only=True):
    """One adapter and the resources that wait for it."""

    blocked: Annotated[
        tuple[BlockedResourceBody, ...],
        Meta(description="The first 100, worst first; the list filter `blockedBy` finds all."),
    ]


class HistoryCause(Struct, frozen=True, rename="camel"):
    """Why the status was computed."""

    kind: CauseKind
    ref: Annotated[
        str | UnsetType,
        Meta(description="The id of the report, the name of the retired adapter, or the id of the child."),
    ] = UNSET


class HistoryEntryBody(Struct, frozen=True, rename="camel"):
    """One transition of the phase or of a condition."""

    position: Annotated[int, Meta(ge=1, description="The revision of the resource after it.")]
    time: Time
    subject: Annotated[str, Meta(description="`phase`, or the type of a condition.")]
    from_: Annotated[str | None, Meta(description="null: it did not exist before.")] = field(name="from")
    to: Annotated[str | None, Meta(description="null: it no longer exists.")]
    reason: str
    message: str
    cause: HistoryCause
    policy: Annotated[str, Meta(description="The version of the policy that it was computed with.")]
    duration: Annotated[
        str | UnsetType,
        Meta(description="How long the previous state lasted: `1h30m`; absent if there was none or it is unknown."),
    ] = UNSET


class HistoryPage(Struct, frozen=True, rename="camel"):
    """One page of a resource's history, the newest first."""

    href: str
    items: tuple[HistoryEntryBody, ...]
    continue_: Annotated[
        str | UnsetType, Meta(description="Send it as `continue` for the next page; absent on the last page.")
    ] = field(default=UNSET, name="continue")


class MovedSubjectBody(Struct, frozen=True, rename="camel"):
    """One transition of the phase or of a condition, among those of one change."""

    subject: Annotated[str, Meta(description="`phase`, or the type of a condition.")]
    from_: Annotated[str | None, Meta(description="null: it did not exist before.")] = field(name="from")
    to: Annotated[str | None, Meta(description="null: it no longer exists.")]
    reason: str
    message: str
    duration: Annotated[
        str | UnsetType,
        Meta(description="How long the previous state lasted: `1h30m`; absent if there was none or it is unknown."),
    ] = UNSET


class ResourceTransitionsBody(Struct, frozen=True, rename="camel", kw_only=True):
    """One change of one resource, with its transitions."""

    position: Annotated[
        int, Meta(ge=1, description="Its position in the order of all changes; the revision of the resource.")
    ]
    time: Time
    event: Annotated[EventType, Meta(description="What happened.")]
    kind: str
    id: str
    name: Annotated[
        str | UnsetType, Meta(description="Absent if the resource is gone and its name is no longer kept.")
    ] = UNSET
    href: str
    tenant: Annotated[str | UnsetType, Meta(description="The tenant that owns it, if there are tenants.")] = UNSET
    generation: int
    phase: Annotated[str | None, Meta(description="After the change; null if the resource was removed.")]
    cause: HistoryCause
    policy: Annotated[str, Meta(description="The version of the policy that it was computed with.")]
    transitions: Annotated[
        tuple[MovedSubjectBody, ...], Meta(description="At least one: those that match the filters.")
    ]


class TransitionPage(Struct, frozen=True, rename="camel"):
    """One page of changes over the whole fleet."""

    href: str
    items: tuple[ResourceTransitionsBody, ...]
    position: Annotated[int, Meta(ge=0, description="How far the log was read; continue with `after` this position.")]
    continue_: Annotated[
        str | UnsetType,
        Meta(
            description="Send it as `continue` for the next page, also if this one is short; absent on the last page."
        ),
    ] = field(default=UNSET, name="continue")


class AffectedResourceBody(Struct, frozen=True, rename="camel"):
    """A resource for which an adapter fails."""

    id: str
    name: str
    kind: str
    href: str
    since: Time


class MostlyShared(Struct, frozen=True, rename="camel"):
    """A label that more than half of the resources have, but not all."""

    key: str
    value: str
    share: Annotated[float, Meta(gt=0.5, le=1, description="The share of the resources that have it.")]


class CauseGrowth(Struct, frozen=True, rename="camel"):
    """The number of failures that began recently."""

    last_hour: Count
    last_24h: Count = field(name="last24h")


class SharedCauseBody(Struct, frozen=True, rename="camel"):
    """Failures that likely have one cause: same adapter, same reason, similar message."""

    adapter: str
    reason: Annotated[
        str,
        Meta(description="The reason of the adapter; `Stale` and `Missing` are ours, for adapters that do not report."),
    ]
    message: Annotated[
        str, Meta(description="With placeholders for parts that differ: `<n>`, `<id>`, `<name>`, `<ip>`, …")
    ]
    example: Annotated[str, Meta(description="The newest message, unchanged.")]
    count: Annotated[int, Meta(ge=1, description="The number of resources.")]
    kinds: Annotated[dict[str, Count], Meta(description="The number of resources of each kind.")]
    resources: Annotated[tuple[AffectedResourceBody, ...], Meta(description="The first 20, oldest failure first.")]
    shared_labels: Annotated[dict[str, str], Meta(description="Labels that all of them have.")]
    mostly_shared_labels: Annotated[tuple[MostlyShared, ...], Meta(description="Up to 20, the most frequent first.")]
    since: Annotated[Time, Meta(description="When the oldest failure began.")]
    newest: Annotated[Time, Meta(description="When the newest failure began.")]
    growth: CauseGrowth


class SharedCauses(Struct, frozen=True, rename="camel"):
    """Failures grouped by cause."""

    items: Annotated[tuple[SharedCauseBody, ...], Meta(description="The causes with the most resources first.")]
    total: Annotated[Count, Meta(description="The number of causes, shown or not.")]
    examined: Annotated[
        Count, Meta(description="The number of resources that were read: those that may have a failure.")
    ]
    complete: Annotated[bool, Meta(description="If false, there were too many resources: only the worst were read.")]


class Recomputing(Struct, frozen=True, rename="camel"):
    """The progress of the recomputation under the policy in force."""

    remaining: Annotated[Count, Meta(description="Resources whose status was computed with an earlier policy.")]


class PolicyFault(FaultBody, frozen=True, rename="camel", kw_only=True):
    """One problem of a policy file."""

    line: Annotated[int, Meta(ge=0, description="The line in the file, from 1.")]
    column: Annotated[int, Meta(ge=0, description="The column, from 1.")]


PolicySource = Annotated[
    Literal["file", "api", "built-in"], Meta(description="How it was put in force: from a file or through the API.")
]
PolicyAuthor = Annotated[
    str | UnsetType,
    Meta(
        description="Who put it in force; absent for a server at its start, and for callers who see only some tenants."
    ),
]
PolicyRestored = Annotated[int | UnsetType, Meta(description="The restored version, if it is a rollback.")]


class PolicyInForce(Struct, frozen=True, rename="camel"):
    """The policy that every status is computed with."""

    version: Annotated[int, Meta(ge=1, description="Increases whenever another policy is put in force.")]
    digest: Annotated[str, Meta(description="Identifies the content of the policy, without comments and layout.")]
    source: PolicySource
    file: Annotated[str, Meta(description="The file; empty if it came through the API.")]
    activated_at: Time
    text: Annotated[str, Meta(description="The YAML or JSON as given.")]
    recomputation: Recomputing
    warnings: Annotated[
        tuple[PolicyFault, ...] | UnsetType,
        Meta(description="Lint warnings; absent while the lint still runs."),
    ] = UNSET
    by: PolicyAuthor = UNSET
    restores: PolicyRestored = UNSET


class PolicyCheckBody(Struct, frozen=True, rename="camel"):
    """The result of a `PUT` with `dryRun=true`: the policy compiles. Nothing was changed."""

    dry_run: bool
    digest: str
    changes: Annotated[bool, Meta(description="Whether it differs from the policy in force.")]
    in_force: Annotated[int, Meta(ge=1, description="The version in force.")]
    warnings: Annotated[
        tuple[PolicyFault, ...] | UnsetType,
        Meta(description="Lint warnings; absent if the lint takes too long."),
    ] = UNSET


class PolicyVersionEntry(Struct, frozen=True, rename="camel"):
    """A version of the policy, without its text."""

    version: Annotated[int, Meta(ge=1)]
    digest: str
    source: PolicySource
    file: str
    activated_at: Time
    in_force: bool
    by: PolicyAuthor = UNSET
    restores: PolicyRestored = UNSET


class PolicyVersionList(Struct, frozen=True, rename="camel"):
    """One page of the versions of the policy, the newest first."""

    items: tuple[PolicyVersionEntry, ...]
    continue_: Annotated[
        str | UnsetType, Meta(description="Send it as `continue` for the next page; absent on the last page.")
    ] = field(default=UNSET, name="continue")


class PolicyVersionAnswer(Struct, frozen=True, rename="camel"):
    """A version of the policy with its text."""

    version: Annotated[int, Meta(ge=1)]
    digest: str
    source: PolicySource
    file: str
    activated_at: Time
    in_force: bool
    text: Annotated[str, Meta(description="The YAML or JSON as given.")]
    by: PolicyAuthor = UNSET
    restores: PolicyRestored = UNSET


class LivenessBody(Struct, frozen=True, rename="camel"):
    """The process answers."""

    status: Literal["alive"] = "alive"


class Unreadiness(Struct, frozen=True, rename="camel"):
    """One reason why this server is not ready, or one warning."""

    check: Literal["store", "queue", "policy", "events", "sentinel"]
    message: str


class ReadinessBody(Struct, frozen=True, rename="camel"):
    """Whether this server can take reads and writes now."""

    status: Literal["ready", "notReady"]
    reasons: Annotated[tuple[Unreadiness, ...], Meta(description="Empty when ready.")] = ()
    warnings: Annotated[
        tuple[Unreadiness, ...] | UnsetType,
        Meta(description="What needs attention, though reads and writes work: events that cannot be published."),
    ] = UNSET


class CatalogueEntry(Struct, frozen=True, rename="camel"):
    """The meaning of a problem code and what to do about it."""

    code: str
    type: Annotated[str, Meta(description="The path of this entry; the `type` of problem documents.")]
    status: Annotated[int, Meta(ge=400, le=599, description="The HTTP status.")]
    title: str
    remedy: Annotated[str, Meta(description="What to do about it.")]


class Catalogue(Struct, frozen=True, rename="camel"):
    """Every code of problem documents."""

    items: tuple[CatalogueEntry, ...]
