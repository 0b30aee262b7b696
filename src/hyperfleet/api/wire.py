"""The wire shapes of resources and their statuses. Wire names are defined here and, for requests, in `*_bodies`.

`present` is called in every write: its result is stored and is what every GET answers. So it must be cheap and depend
only on the record and the kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict, replace

from hyperfleet.aggregation import BodyProblem
from hyperfleet.api.problems import ProblemDocumentBody
from hyperfleet.documents.durations import format_duration
from hyperfleet.model.condition import Condition, ConditionStatus
from hyperfleet.model.event import PHASE_SUBJECT
from hyperfleet.model.kind import CLUSTER, NODE_POOL, Kind, Kinds
from hyperfleet.model.phase import Phase
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import AdapterState, AdapterSummary, Flapping, RawResult, Status
from hyperfleet.ports import Record
from hyperfleet.services.results import Reported, ReportResult

BASE: Final = "/api/hyperfleet/v1"
ALIASES: Final = ("/v1", "/api/v1")  # the documents use all three
KINDS: Final = Kinds()

Time = Annotated[datetime, Meta(tz=True)]
Generation = Annotated[int, Meta(ge=1)]


# ── a resource ───────────────────────────────────────────────────────────────────────────────────────────────────────


class RawAnswer(Struct, frozen=True, rename="camel"):
    """What a damped rule says now, if it differs from the published status."""

    status: ConditionStatus
    since: Time


class FlappingAnswer(Struct, frozen=True, rename="camel"):
    """The mark of a condition or phase that is flapping. For a damped condition, the moves of its rule count."""

    transitions: Annotated[int, Meta(description="The number of moves, from the first one that counts.")]
    window: Annotated[str, Meta(description="The window of the policy in which moves are counted.")]
    since: Annotated[Time, Meta(description="When flapping was detected.")]


class ConditionAnswer(Struct, frozen=True, rename="camel", gc=False):
    """A computed condition."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    observed_generation: int
    last_transition_time: Time | None
    raw: RawAnswer | UnsetType = UNSET
    flapping: Annotated[FlappingAnswer | UnsetType, Meta(description="Set while the condition is flapping.")] = UNSET


class AdapterAnswer(Struct, frozen=True, rename="camel", gc=False):
    """A summary of one adapter that has reported."""

    name: str
    available: ConditionStatus
    observed_generation: int
    state: AdapterState
    state_since: Annotated[Time, Meta(description="When it entered this state.")]
    stale: Annotated[bool, Meta(description="It has not been heard from for longer than the policy allows.")]


class StatusAnswer(Struct, frozen=True, rename="camel", gc=False):
    """The status of a resource, computed from all reports."""

    phase: Phase
    phase_description: str
    phase_since: Time
    conditions: tuple[ConditionAnswer, ...]
    adapters: tuple[AdapterAnswer, ...]
    last_updated: Annotated[Time, Meta(description="When any part of the status last changed.")]
    phase_flapping: Annotated[FlappingAnswer | UnsetType, Meta(description="Set while the phase is flapping.")] = UNSET


class MetadataAnswer(Struct, frozen=True, rename="camel"):
    """Metadata of a resource."""

    created_at: Time
    updated_at: Annotated[
        Time,
        Meta(description="The time of the last edit of spec or labels, or of the creation. Reports do not change it."),
    ]
    labels: Mapping[str, str]
    created_by: str | UnsetType = UNSET
    tenant: Annotated[str | UnsetType, Meta(description="The tenant that owns it, if there are tenants.")] = UNSET
    deletion_timestamp: Time | UnsetType = UNSET
    cluster_id: Annotated[str | UnsetType, Meta(description="The cluster that it belongs to.")] = UNSET
    parent_id: Annotated[str | UnsetType, Meta(description="The parent, if that is not a cluster.")] = UNSET


class ResourceAnswer(Struct, frozen=True, rename="camel"):
    """A cluster, a node pool or a resource of another kind."""

    id: str
    type: Annotated[str, Meta(description="The kind.")]
    href: str
    name: str
    generation: Generation
    spec: Mapping[str, Any]
    metadata: MetadataAnswer
    status: StatusAnswer


RESOURCE_KEYS: Final = tuple([each.encode_name for each in msgspec.structs.fields(ResourceAnswer)])

_encode: Final = msgspec.json.Encoder().encode


def present(record: Record, kinds: Kinds = KINDS) -> bytes:
    """Write the stored answer of a resource."""
    resource = record.resource
    kind = kinds.get(resource.kind)
    if kind is None:
        raise ValueError(f"{resource.id} is a {resource.kind}, which is not a known kind")
    answer = ResourceAnswer(
        resource.id,
        kind.name,
        href_of(kind, resource.id, resource.parent_id, kinds),
        resource.name,
        resource.generation,
        resource.spec,
        _present_metadata(kind, resource),
        _present_status(record.status),
    )
    return _encode(answer)


def path_of(kind: Kind, kinds: Kinds, parent: str = "{parent_id}") -> str:
    """Return the path of the resources of a kind, below the base path: `/clusters/{parent_id}/nodepools`."""
    above = kinds.get(kind.parent) if kind.parent else None
    return f"/{above.plural}/{parent}/{kind.plural}" if above else f"/{kind.plural}"


def href_of(kind: Kind, id_: str, parent_id: str | None, kinds: Kinds = KINDS) -> str:
    """Return the canonical path of a resource."""
    return f"{BASE}{path_of(kind, kinds, parent_id or '')}/{id_}"


def _present_metadata(kind: Kind, resource: Resource) -> MetadataAnswer:
    parent_id = resource.parent_id or UNSET
    is_below_cluster = kind.parent == CLUSTER.name
    return MetadataAnswer(
        resource.created_time,
        resource.updated_time or resource.created_time,
        resource.labels,
        resource.created_by or UNSET,
        resource.tenant or UNSET,
        resource.deletion_time or UNSET,
        parent_id if is_below_cluster else UNSET,
        UNSET if is_below_cluster else parent_id,
    )


def _present_status(status: Status) -> StatusAnswer:
    answer = StatusAnswer(
        status.phase,
        status.phase_description,
        status.phase_since,
        tuple([_present_condition(condition, status.raw.get(condition.type)) for condition in status.conditions]),
        tuple([_present_adapter(adapter) for adapter in status.adapters]),
        status.last_updated,
    )
    return _with_marks(answer, status.flapping) if status.flapping else answer


def _with_marks(answer: StatusAnswer, flapping: Mapping[str, Flapping]) -> StatusAnswer:
    """Add the marks of flapping, which few statuses have."""
    marks = {
        subject: FlappingAnswer(mark.transitions, format_duration(mark.window), mark.since)
        for subject, mark in flapping.items()
    }
    conditions = [replace(each, flapping=marks.get(each.type, UNSET)) for each in answer.conditions]
    return replace(answer, conditions=tuple(conditions), phase_flapping=marks.get(PHASE_SUBJECT, UNSET))


def _present_condition(condition: Condition, raw: RawResult | None) -> ConditionAnswer:
    differs = raw is not None and raw.status != condition.status
    return ConditionAnswer(
        condition.type,
        condition.status,
        condition.reason,
        condition.message,
        condition.observed_generation,
        condition.last_transition_time,
        RawAnswer(raw.status, raw.since) if raw is not None and differs else UNSET,
    )


def _present_adapter(adapter: AdapterSummary) -> AdapterAnswer:
    return AdapterAnswer(
        adapter.name,
        adapter.available,
        adapter.observed_generation,
        adapter.state,
        adapter.state_since,
        adapter.stale,
    )


# ── reports ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class ReportedCondition(Struct, frozen=True, rename="camel"):
    """A condition that an adapter reported; the server sets its time."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    last_transition_time: Time | None


class AdapterStatus(Struct, frozen=True, rename="camel"):
    """The last report of one adapter."""

    adapter: str
    observed_generation: Generation
    conditions: tuple[ReportedCondition, ...]
    last_updated: Annotated[
        Time,
        Meta(description="When the adapter observed this: by its clock, or the time of receipt if that is earlier."),
    ]
    id: Annotated[str, Meta(description="Identifies this report in the history of the resource.")]
    data: Mapping[str, Any] | UnsetType = UNSET
    metadata: Mapping[str, Any] | UnsetType = UNSET


class StatusObject(Struct, frozen=True, rename="camel", kw_only=True):
    """The last report of every adapter on one resource."""

    id: str
    type: Annotated[str, Meta(description="`clusterStatus` or `nodePoolStatus`.")]
    href: str
    cluster_id: str | UnsetType = UNSET
    node_pool_id: str | UnsetType = UNSET
    resource_id: Annotated[str | UnsetType, Meta(description="The id, for other kinds.")] = UNSET
    generation: Annotated[Generation | UnsetType, Meta(description="The requested generation, if any.")] = UNSET
    adapter_statuses: tuple[AdapterStatus, ...]
    last_updated: Time


class Note(Struct, frozen=True, rename="camel"):
    """A warning about a valid report."""

    pointer: str
    code: str
    message: str


class OutcomeAnswer(Struct, frozen=True, rename="camel", kw_only=True, gc=False):
    """The outcome of one report."""

    adapter: str
    outcome: Annotated[str, Meta(description="`aggregated`, `stored` or `discarded`.")]
    reason: Annotated[str | UnsetType, Meta(description="Why it was discarded.")] = UNSET
    report_id: Annotated[str | UnsetType, Meta(description="Identifies it in the history of the resource.")] = UNSET
    stored_report_id: Annotated[
        str | UnsetType, Meta(description="If it was discarded: the report that is kept instead.")
    ] = UNSET
    replayed: Annotated[bool | UnsetType, Meta(description="The same report had been accepted before.")] = UNSET
    notes: tuple[Note, ...] | UnsetType = UNSET


class ReportAnswerBody(StatusObject, frozen=True, rename="camel", kw_only=True):
    """The outcomes of the reports of one request, and the last report of every adapter."""

    phase: Phase
    outcomes: tuple[OutcomeAnswer, ...]
    outcome: Annotated[str | UnsetType, Meta(description="The outcome, if there was one report.")] = UNSET
    reason: str | UnsetType = UNSET
    removed: Annotated[bool | UnsetType, Meta(description="The report completed the removal of the resource.")] = UNSET


class BriefReportAnswer(Struct, frozen=True, rename="camel", kw_only=True):
    """The outcomes of the reports of one request: the answer to a single report and to `Prefer: return=minimal`."""

    phase: Phase
    outcomes: tuple[OutcomeAnswer, ...]
    outcome: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    removed: bool | UnsetType = UNSET


def status_id_of(resource_id: str, generation: int | None = None) -> str:
    """Return the id of the status object of a resource, or of one generation of it."""
    return f"status-{resource_id}" if generation is None else f"status-{resource_id}-gen{generation}"


def status_object(
    resource: Resource, reports: Iterable[StoredReport], generation: int | None = None, kinds: Kinds = KINDS
) -> StatusObject:
    """Build the status object from at least one report."""
    return StatusObject(**_status_fields(resource, reports, generation, kinds))


def _status_fields(
    resource: Resource, reports: Iterable[StoredReport], generation: int | None, kinds: Kinds
) -> dict[str, Any]:
    kind = kinds.get(resource.kind) or CLUSTER
    reports = sorted(reports, key=lambda stored: stored.report.adapter)
    href = f"{href_of(kind, resource.id, resource.parent_id, kinds)}/statuses"
    id_ = status_id_of(resource.id, generation)
    return {
        "id": id_,
        "type": f"{kind.name[0].lower()}{kind.name[1:]}Status",
        "href": href if generation is None else f"{href}/{id_}",
        "generation": UNSET if generation is None else generation,
        "adapter_statuses": tuple([adapter_status(stored) for stored in reports]),
        "last_updated": max(stored.effective_time for stored in reports),
        **_identify(kind, resource),
    }


def _identify(kind: Kind, resource: Resource) -> dict[str, str]:
    """Return the ids of a resource by kind: `clusterId`, also for children of a cluster, and `nodePoolId`."""
    own = {CLUSTER.name: "cluster_id", NODE_POOL.name: "node_pool_id"}.get(kind.name, "resource_id")
    above = {"cluster_id": resource.parent_id} if kind.parent == CLUSTER.name and resource.parent_id else {}
    return {**above, own: resource.id}


def adapter_status(stored: StoredReport) -> AdapterStatus:
    """Build the entry of one adapter in a status object."""
    report = stored.report
    return AdapterStatus(
        report.adapter,
        report.observed_generation,
        tuple(
            [
                ReportedCondition(each.type, each.status, each.reason, each.message, each.last_transition_time)
                for each in report.conditions
            ]
        ),
        stored.effective_time,
        stored.id,
        report.data or UNSET,
        report.metadata or UNSET,
    )


def outcome_of(verdict: ReportResult, notes: Sequence[BodyProblem]) -> OutcomeAnswer:
    """Write the outcome of one report."""
    shown = tuple([Note(note.pointer, note.code, note.message) for note in notes]) if notes else ()
    is_discard = verdict.outcome == "discarded"
    return OutcomeAnswer(
        adapter=verdict.adapter,
        outcome=verdict.outcome,
        reason=verdict.cause or UNSET,
        report_id=UNSET if is_discard else verdict.report_id or UNSET,
        stored_report_id=verdict.report_id or UNSET if is_discard else UNSET,
        replayed=verdict.is_replay or UNSET,
        notes=shown or UNSET,
    )


def report_answer(reported: Reported, outcomes: tuple[OutcomeAnswer, ...], kinds: Kinds = KINDS) -> ReportAnswerBody:
    """Build the answer to a request with reports."""
    record = reported.record
    if record is None:
        raise ValueError("a heartbeat has no record: it is answered with its outcome only")
    status = _status_fields(record.resource, record.reports.values(), None, kinds)
    return ReportAnswerBody(**status, **asdict(brief_report_answer(reported, outcomes)))


def brief_report_answer(reported: Reported, outcomes: tuple[OutcomeAnswer, ...]) -> BriefReportAnswer:
    """Build the short answer to a request with reports."""
    is_single = len(outcomes) == 1
    return BriefReportAnswer(
        phase=reported.phase,
        outcomes=outcomes,
        outcome=outcomes[0].outcome if is_single else UNSET,
        reason=outcomes[0].reason if is_single else UNSET,
        removed=reported.is_gone or UNSET,
    )


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class BatchResultBody(Struct, frozen=True, rename="camel", kw_only=True):
    """The result of one item of a batch: its outcome and the phase or, if it was refused, a problem."""

    index: Annotated[int, Meta(description="Its index in the batch, from 0.")]
    status: Annotated[int, Meta(description="The HTTP status that it would have had alone.")]
    adapter: str | UnsetType = UNSET
    outcome: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    report_id: str | UnsetType = UNSET
    stored_report_id: str | UnsetType = UNSET
    replayed: bool | UnsetType = UNSET
    notes: tuple[Note, ...] | UnsetType = UNSET
    phase: Phase | UnsetType = UNSET
    problem: ProblemDocumentBody | UnsetType = UNSET


class BatchAnswer(Struct, frozen=True, rename="camel"):
    """The results of a batch."""

    results: tuple[BatchResultBody, ...]
    accepted: Annotated[int, Meta(description="The number of accepted reports, including discarded ones.")]
    refused: int
