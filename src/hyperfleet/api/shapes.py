"""How answers about the fleet look: summaries, adapters, the policy, health. `wire` has the shapes of resources.

The handlers encode these, and `openapi` describes the very same types, so that the two cannot tell different stories.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from hyperfleet.api.problems import FaultBody
from hyperfleet.model.event import EventType
from hyperfleet.ports import CauseKind

# Stored answers are sent unread; `fields` leaves only parts of them, and always the id.
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
        str | UnsetType, Meta(description="Send it as `continue` for the next page; absent: this was the last one.")
    ] = field(default=UNSET, name="continue")
    page: Annotated[Count | UnsetType, Meta(description="If one was asked for by number.")] = UNSET
    size: Annotated[Count | UnsetType, Meta(description="How many there are on a page.")] = UNSET
    total: Annotated[Count | UnsetType, Meta(description="How many fit the filters, on all pages.")] = UNSET


class WaitAnswer(Struct, frozen=True, rename="camel"):
    """How a wait ended that was not in vain."""

    outcome: Annotated[Literal["met"], Meta(description="What was waited for holds.")]
    revision: Annotated[int | UnsetType, Meta(description="The position of the version of which it holds.")] = UNSET
    resource: Annotated[
        Raw | UnsetType,
        Meta(
            description="That version; it may have been replaced since. Absent: it is gone, as was waited for.",
            extra_json_schema={"$ref": "#/components/schemas/ResourceAnswer"},
        ),
    ] = UNSET


class TrendPointBody(Struct, frozen=True, rename="camel"):
    """How many resources there were of each sort at one moment."""

    at: Time
    total: Count
    groups: Annotated[tuple[dict[str, str | int | None], ...], Meta(description="As in the summary.")]


class SummaryBody(Struct, frozen=True, rename="camel"):
    """How many resources there are of each sort."""

    group_by: Annotated[tuple[str, ...], Meta(description="What they are grouped by, as it was asked for.")]
    total: Annotated[
        Count, Meta(description="How many resources fit the filters; each counts once, however many groups it is in.")
    ]
    groups: Annotated[
        tuple[dict[str, str | int | None], ...],
        Meta(
            description="The largest group first: one value for each of `groupBy` (null: the resources without one) "
            "and `count`."
        ),
    ]
    at: Annotated[Time | UnsetType, Meta(description="Of which moment this is; absent: of now.")] = UNSET
    trend: Annotated[
        tuple[TrendPointBody, ...] | UnsetType,
        Meta(description="If one was asked for: the oldest point first, the last one is the summary itself."),
    ] = UNSET


class ReportCountsBody(Struct, frozen=True, rename="camel"):
    """How many reports of an adapter were taken in, by what became of them."""

    aggregated: Annotated[Count, Meta(description="Stored, and the status computed anew with them.")]
    stored: Annotated[Count, Meta(description="Stored only: they said `Available=Unknown`.")]
    replayed: Annotated[Count, Meta(description="Sent again, word for word; nothing changed.")]


class LostReportBody(Struct, frozen=True, rename="camel"):
    """A report of an adapter that was not stored."""

    cause: str
    resource: Annotated[str, Meta(description="The id of the resource it was about.")]
    time: Time


class AdapterSummaryBody(Struct, frozen=True, rename="camel"):
    """What is known of one adapter over all resources."""

    name: str
    reports: ReportCountsBody
    discards: Annotated[dict[str, Count], Meta(description="Reports answered, counted and not stored, by cause.")]
    rejected: Annotated[dict[str, Count], Meta(description="Reports answered with an error, by its code.")]
    blocks: Annotated[
        dict[str, Count], Meta(description="How many resources of each kind wait for this adapter to become Ready.")
    ]
    last_seen: Annotated[
        Time | UnsetType, Meta(description="When it was last heard of; absent: never, it is only waited for.")
    ] = UNSET
    clock_skew_seconds: Annotated[
        float | UnsetType, Meta(description="By how much its clock was ahead of ours in its last report.")
    ] = UNSET
    last_discard: Annotated[
        LostReportBody | UnsetType, Meta(description="The last report that was not stored, if it was discarded.")
    ] = UNSET
    last_refusal: Annotated[
        LostReportBody | UnsetType, Meta(description="The last report that was not stored, if it was an error.")
    ] = UNSET


class AdapterList(Struct, frozen=True, rename="camel"):
    """Every adapter that was ever heard of or is waited for, by name."""

    items: tuple[AdapterSummaryBody, ...]


class BlockedResourceBody(Struct, frozen=True, rename="camel"):
    """A resource that is not Ready because an adapter has not done its part."""

    id: str
    name: str
    phase: str
    href: str


class AdapterDetail(AdapterSummaryBody, frozen=True, rename="camel", kw_only=True):
    """One adapter, and which resources wait for it."""

    blocked: Annotated[
        tuple[BlockedResourceBody, ...],
        Meta(description="The first 100 of them, worst first; the list filter `blockedBy` gives all."),
    ]


class HistoryCause(Struct, frozen=True, rename="camel"):
    """Why the status was computed when something moved."""

    kind: CauseKind
    ref: Annotated[
        str | UnsetType, Meta(description="The id of the report, the adapter that was retired, or the child's id.")
    ] = UNSET


class HistoryEntryBody(Struct, frozen=True, rename="camel"):
    """One move of the phase or of a condition's status."""

    position: Annotated[int, Meta(ge=1, description="The revision of the resource that it made.")]
    time: Time
    subject: Annotated[str, Meta(description="`phase`, or the type of a condition.")]
    from_: Annotated[str | None, Meta(description="null: it was not there before.")] = field(name="from")
    to: Annotated[str | None, Meta(description="null: it is no longer there.")]
    reason: str
    message: str
    cause: HistoryCause
    policy: Annotated[str, Meta(description="The version of the policy that it was computed with.")]
    duration: Annotated[
        str | UnsetType,
        Meta(description="How long the state before it had lasted: `1h30m`; absent if there was none that we know of."),
    ] = UNSET


class HistoryPage(Struct, frozen=True, rename="camel"):
    """One page of a resource's history, the newest first."""

    href: str
    items: tuple[HistoryEntryBody, ...]
    continue_: Annotated[
        str | UnsetType, Meta(description="Send it as `continue` for the next page; absent: this was the last one.")
    ] = field(default=UNSET, name="continue")


class MovedSubjectBody(Struct, frozen=True, rename="camel"):
    """One move of the phase or of a condition's status, among those that one change made."""

    subject: Annotated[str, Meta(description="`phase`, or the type of a condition.")]
    from_: Annotated[str | None, Meta(description="null: it was not there before.")] = field(name="from")
    to: Annotated[str | None, Meta(description="null: it is no longer there.")]
    reason: str
    message: str
    duration: Annotated[
        str | UnsetType,
        Meta(description="How long the state before it had lasted: `1h30m`; absent if there was none that we know of."),
    ] = UNSET


class ResourceTransitionsBody(Struct, frozen=True, rename="camel", kw_only=True):
    """One change of one resource, with the transitions that it made."""

    position: Annotated[int, Meta(ge=1, description="Its place in the order of all changes; the resource's revision.")]
    time: Time
    event: Annotated[EventType, Meta(description="What happened.")]
    kind: str
    id: str
    name: Annotated[str | UnsetType, Meta(description="Absent if the resource is gone and its name forgotten.")] = UNSET
    href: str
    tenant: Annotated[str | UnsetType, Meta(description="Whose it is, where there are tenants.")] = UNSET
    generation: int
    phase: Annotated[str | None, Meta(description="After the change; null: the resource was removed.")]
    cause: HistoryCause
    policy: Annotated[str, Meta(description="The version of the policy that it was computed with.")]
    transitions: Annotated[
        tuple[MovedSubjectBody, ...], Meta(description="Those that the filters leave, at least one.")
    ]


class TransitionPage(Struct, frozen=True, rename="camel"):
    """One page of changes over the whole fleet."""

    href: str
    items: tuple[ResourceTransitionsBody, ...]
    position: Annotated[
        int, Meta(ge=0, description="How far the log was read: `after` this position comes what happens next.")
    ]
    continue_: Annotated[
        str | UnsetType,
        Meta(
            description="Send it as `continue` for the next page, also if this one is short; absent: it was the last."
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
    share: Annotated[float, Meta(gt=0.5, le=1, description="Which part of them has it.")]


class CauseGrowth(Struct, frozen=True, rename="camel"):
    """How many of the failures began lately."""

    last_hour: Count
    last_24h: Count = field(name="last24h")


class SharedCauseBody(Struct, frozen=True, rename="camel"):
    """Failures that look as if they had one cause: same adapter, same reason, same words."""

    adapter: str
    reason: Annotated[
        str, Meta(description="The adapter's own; `Stale` and `Missing` are ours, for those that are silent.")
    ]
    message: Annotated[str, Meta(description="With placeholders for what differs: `<n>`, `<id>`, `<name>`, `<ip>`, …")]
    example: Annotated[str, Meta(description="The newest message as it came.")]
    count: Annotated[int, Meta(ge=1, description="How many resources.")]
    kinds: Annotated[dict[str, Count], Meta(description="How many of each kind.")]
    resources: Annotated[tuple[AffectedResourceBody, ...], Meta(description="The first 20, the oldest failure first.")]
    shared_labels: Annotated[dict[str, str], Meta(description="The labels that all of them have.")]
    mostly_shared_labels: Annotated[tuple[MostlyShared, ...], Meta(description="Up to 20, the most shared first.")]
    since: Annotated[Time, Meta(description="When the first of them began.")]
    newest: Annotated[Time, Meta(description="When the last of them began.")]
    growth: CauseGrowth


class SharedCauses(Struct, frozen=True, rename="camel"):
    """What fails, grouped by cause."""

    items: Annotated[tuple[SharedCauseBody, ...], Meta(description="Those with the most resources first.")]
    total: Annotated[Count, Meta(description="How many causes there are, shown or not.")]
    examined: Annotated[Count, Meta(description="How many resources were looked at: those that may have a failure.")]
    complete: Annotated[
        bool, Meta(description="If false, there were too many: only the first, the worst, were looked at.")
    ]


class Recomputing(Struct, frozen=True, rename="camel"):
    """How far the fleet is from being computed under the policy in force."""

    remaining: Annotated[Count, Meta(description="Resources whose status is still that of an earlier policy.")]


class PolicyFault(FaultBody, frozen=True, rename="camel", kw_only=True):
    """One problem of a policy file."""

    line: Annotated[int, Meta(ge=0, description="In the file, from 1.")]
    column: Annotated[int, Meta(ge=0, description="In the line, from 1.")]


PolicySource = Annotated[
    Literal["file", "api", "built-in"], Meta(description="How it came into force: from a file, or through the API.")
]
PolicyAuthor = Annotated[
    str | UnsetType,
    Meta(
        description="Who put it in force; absent if a server did at its start, or to callers who see some tenants only."
    ),
]
PolicyRestored = Annotated[
    int | UnsetType, Meta(description="The version that it restores, if it came from a rollback.")
]


class PolicyInForce(Struct, frozen=True, rename="camel"):
    """The policy every status is computed with."""

    version: Annotated[int, Meta(ge=1, description="Rises whenever another policy is put in force.")]
    digest: Annotated[str, Meta(description="Names what the policy says; comments and layout do not matter.")]
    source: PolicySource
    file: Annotated[str, Meta(description="Where it was read; empty if it came through the API.")]
    activated_at: Time
    text: Annotated[str, Meta(description="The YAML or JSON as it was given.")]
    recomputation: Recomputing
    warnings: Annotated[
        tuple[PolicyFault, ...] | UnsetType,
        Meta(description="What is likely wrong with it although it loads; absent while that is still being found out."),
    ] = UNSET
    by: PolicyAuthor = UNSET
    restores: PolicyRestored = UNSET


class PolicyCheckBody(Struct, frozen=True, rename="camel"):
    """What a `PUT` with `dryRun=true` found: the policy compiles. Nothing was changed."""

    dry_run: bool
    digest: str
    changes: Annotated[bool, Meta(description="Whether it says something else than the policy in force.")]
    in_force: Annotated[int, Meta(ge=1, description="The version that is in force.")]
    warnings: Annotated[
        tuple[PolicyFault, ...] | UnsetType,
        Meta(description="What is likely wrong with it although it compiles; absent if that takes too long to find."),
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
        str | UnsetType, Meta(description="Send it as `continue` for the next page; absent: this was the last one.")
    ] = field(default=UNSET, name="continue")


class PolicyVersionAnswer(Struct, frozen=True, rename="camel"):
    """A version of the policy with its text."""

    version: Annotated[int, Meta(ge=1)]
    digest: str
    source: PolicySource
    file: str
    activated_at: Time
    in_force: bool
    text: Annotated[str, Meta(description="The YAML or JSON as it was given.")]
    by: PolicyAuthor = UNSET
    restores: PolicyRestored = UNSET


class LivenessBody(Struct, frozen=True, rename="camel"):
    """The process answers."""

    status: Literal["alive"] = "alive"


class Unreadiness(Struct, frozen=True, rename="camel"):
    """One thing that keeps this server from doing its work."""

    check: Literal["store", "queue", "policy"]
    message: str


class ReadinessBody(Struct, frozen=True, rename="camel"):
    """Whether this server can take reads and writes now."""

    status: Literal["ready", "notReady"]
    reasons: Annotated[tuple[Unreadiness, ...], Meta(description="Empty when ready.")] = ()


class CatalogueEntry(Struct, frozen=True, rename="camel"):
    """What a problem's code means and what to do about it."""

    code: str
    type: Annotated[str, Meta(description="The address of this entry; problem documents carry it.")]
    status: Annotated[int, Meta(ge=400, le=599, description="The HTTP status it comes with.")]
    title: str
    remedy: Annotated[str, Meta(description="What to do about it.")]


class Catalogue(Struct, frozen=True, rename="camel"):
    """Every code a problem document can have."""

    items: tuple[CatalogueEntry, ...]
