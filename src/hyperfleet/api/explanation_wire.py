"""How explanations look on the wire."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from hyperfleet.aggregation import StatusExplanation
from hyperfleet.aggregation.explaining.explanation import (
    AdapterExplanation,
    ConditionExplanation,
    ExplainedTerm,
    FlappingExplanation,
)
from hyperfleet.aggregation.explaining.remedies import RemedySet
from hyperfleet.aggregation.explaining.trials import AdapterChange
from hyperfleet.api.wire import FlappingAnswer, RawAnswer, Time
from hyperfleet.documents.durations import format_duration
from hyperfleet.model.condition import ConditionStatus
from hyperfleet.model.phase import Phase
from hyperfleet.model.status import AdapterState
from hyperfleet.services.explanations import Evidence


class TermAnswer(Struct, frozen=True, rename="camel"):
    """A part of an expression and what it came to."""

    text: str
    value: Annotated[Any, Meta(description="What it came to; absent if it failed or was skipped.")] = UNSET
    error: str | UnsetType = UNSET
    skipped: Annotated[bool | UnsetType, Meta(description="The parts before it had already decided.")] = UNSET
    parts: tuple[TermAnswer, ...] | UnsetType = UNSET


class ExplainedAdapterBody(Struct, frozen=True, rename="camel"):
    """What one adapter contributes."""

    name: str
    state: AdapterState
    available: ConditionStatus
    reason: str
    message: str
    observed_generation: int
    required: bool
    stale: Annotated[bool, Meta(description="It has been silent for too long.")]
    missing: Annotated[bool, Meta(description="It has not reported at all for longer than the policy allows.")]
    last_heard: Annotated[Time | UnsetType, Meta(description="Absent: it has not reported.")] = UNSET
    since: Annotated[Time | UnsetType, Meta(description="Since when it has been in this state.")] = UNSET


class RemedyReportBody(Struct, frozen=True, rename="camel"):
    """A report that would help."""

    adapter: str
    state: AdapterState
    generation: int
    conditions: Annotated[
        dict[str, ConditionStatus] | UnsetType, Meta(description="Those beside Available, Applied and Health.")
    ] = UNSET


class RemediesAnswer(Struct, frozen=True, rename="camel"):
    """The smallest sets of reports that would make a condition good."""

    wanted: ConditionStatus
    sets: Annotated[
        tuple[tuple[RemedyReportBody, ...], ...],
        Meta(description="Each would do. An empty one: nothing need change, it waits out its damping."),
    ]
    exhaustive: Annotated[bool, Meta(description="If false, the search was cut short: there may be other sets.")]
    minimal: Annotated[bool, Meta(description="If false, some part of a set may do, too.")]


class ExplainedMove(Struct, frozen=True, rename="camel"):
    """One move of something that flaps."""

    time: Time
    to: Annotated[str, Meta(description="A status, or a phase; of a damped condition what its rule said.")]


class ExplainedFlappingBody(FlappingAnswer, frozen=True, rename="camel"):
    """How something moves that moves too often."""

    moves: Annotated[tuple[ExplainedMove, ...], Meta(description="The last ones that still count, the oldest first.")]


class ExplainedConditionBody(Struct, frozen=True, rename="camel"):
    """Why a condition has its status."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    culprits: Annotated[tuple[ExplainedAdapterBody, ...], Meta(description="The adapters that made it so.")]
    since: Time | UnsetType = UNSET
    rule: Annotated[
        str | UnsetType, Meta(description="The rule as written; Available and Ready have none in the policy.")
    ] = UNSET
    terms: TermAnswer | UnsetType = UNSET
    raw: Annotated[RawAnswer | UnsetType, Meta(description="What a damped rule says now, if it differs.")] = UNSET
    remedies: Annotated[RemediesAnswer | UnsetType, Meta(description="What would make it good; absent: it is.")] = UNSET
    flapping: Annotated[ExplainedFlappingBody | UnsetType, Meta(description="It moves too often.")] = UNSET


class ExplanationAnswer(Struct, frozen=True, rename="camel"):
    """Why a resource has its status."""

    id: str
    generation: int
    phase: Phase
    phase_since: Time
    because: Annotated[tuple[str, ...], Meta(description="What decided the phase.")]
    conditions: tuple[ExplainedConditionBody, ...]
    adapters: tuple[ExplainedAdapterBody, ...]
    policy: Annotated[str, Meta(description="The version of the policy that this is explained with.")]
    current: Annotated[
        bool,
        Meta(
            description="If false, the policy has changed since the status was computed, and this tells how it will "
            "be when it is computed anew."
        ),
    ]
    next_deadline: Annotated[
        Time | UnsetType, Meta(description="When time alone will next change something; absent: never.")
    ] = UNSET
    phase_flapping: Annotated[ExplainedFlappingBody | UnsetType, Meta(description="The phase moves too often.")] = UNSET


def present_explanation(told: StatusExplanation, evidence: Evidence) -> ExplanationAnswer:
    """Make the answer."""
    return ExplanationAnswer(
        told.resource_id,
        told.generation,
        told.phase,
        told.phase_since,
        told.because,
        tuple(_present_condition(condition) for condition in told.conditions),
        _present_adapters(told.adapters),
        str(evidence.policy_version),
        evidence.is_current,
        _or_unset(told.next_deadline),
        _present_flapping(told.phase_flapping) if told.phase_flapping else UNSET,
    )


def _present_condition(told: ConditionExplanation) -> ExplainedConditionBody:
    raw = told.raw
    return ExplainedConditionBody(
        told.type,
        told.status,
        told.reason,
        told.message,
        _present_adapters(told.culprits),
        _or_unset(told.since),
        told.rule or UNSET,
        _present_term(told.terms) if told.terms else UNSET,
        RawAnswer(raw.status, raw.since) if raw is not None and raw.status != told.status else UNSET,
        _present_remedies(told.remedies) if told.remedies else UNSET,
        _present_flapping(told.flapping) if told.flapping else UNSET,
    )


def _present_flapping(told: FlappingExplanation) -> ExplainedFlappingBody:
    mark = told.mark
    moves = tuple(ExplainedMove(flip.time, flip.after) for flip in told.recent)
    return ExplainedFlappingBody(mark.transitions, format_duration(mark.window), mark.since, moves)


def _present_term(term: ExplainedTerm) -> TermAnswer:
    return TermAnswer(
        term.text,
        UNSET if term.error or term.is_skipped else term.value,
        term.error or UNSET,
        term.is_skipped or UNSET,
        tuple(_present_term(part) for part in term.parts) or UNSET,
    )


def _present_adapters(told: Iterable[AdapterExplanation]) -> tuple[ExplainedAdapterBody, ...]:
    return tuple(
        ExplainedAdapterBody(
            each.name,
            each.state,
            each.available,
            each.reason,
            each.message,
            each.observed_generation,
            each.is_required,
            each.is_stale,
            each.is_missing,
            _or_unset(each.last_heard),
            _or_unset(each.since),
        )
        for each in told
    )


def _present_remedies(told: RemedySet) -> RemediesAnswer:
    sets = tuple(tuple(_present_change(change) for change in remedy) for remedy in told.sets)
    return RemediesAnswer(told.wanted, sets, told.is_exhaustive, told.is_minimal)


def _present_change(change: AdapterChange) -> RemedyReportBody:
    further = {condition.type: condition.status for condition in change.conditions}
    return RemedyReportBody(change.adapter, change.state, change.generation, further or UNSET)


def _or_unset(instant: datetime | None) -> datetime | UnsetType:
    return UNSET if instant is None else instant
