"""The wire shapes of explanations."""

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
    """A part of an expression and its value."""

    text: str
    value: Annotated[Any, Meta(description="Its value; absent if it failed or was skipped.")] = UNSET
    error: str | UnsetType = UNSET
    skipped: Annotated[bool | UnsetType, Meta(description="Not evaluated: earlier parts had already decided.")] = UNSET
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
    stale: Annotated[bool, Meta(description="It has not been heard from for longer than the policy allows.")]
    missing: Annotated[bool, Meta(description="It has not reported at all for longer than the policy allows.")]
    last_heard: Annotated[Time | UnsetType, Meta(description="When it last reported; absent: never.")] = UNSET
    since: Annotated[Time | UnsetType, Meta(description="When it entered this state.")] = UNSET


class RemedyReportBody(Struct, frozen=True, rename="camel"):
    """A report that is part of a remedy."""

    adapter: str
    state: AdapterState
    generation: int
    conditions: Annotated[
        dict[str, ConditionStatus] | UnsetType, Meta(description="Conditions other than Available, Applied and Health.")
    ] = UNSET


class RemediesAnswer(Struct, frozen=True, rename="camel"):
    """The smallest sets of reports that would make a condition good."""

    wanted: ConditionStatus
    sets: Annotated[
        tuple[tuple[RemedyReportBody, ...], ...],
        Meta(
            description="Each is enough. An empty set: no report is needed, the condition only waits for its damping."
        ),
    ]
    exhaustive: Annotated[bool, Meta(description="If false, the search was cut short and there may be other sets.")]
    minimal: Annotated[bool, Meta(description="If false, a part of a set may be enough.")]


class ExplainedMove(Struct, frozen=True, rename="camel"):
    """One move of something that flaps."""

    time: Time
    to: Annotated[str, Meta(description="A status or a phase; for a damped condition, what its rule said.")]


class ExplainedFlappingBody(FlappingAnswer, frozen=True, rename="camel"):
    """The recent moves of a condition or phase that is flapping."""

    moves: Annotated[tuple[ExplainedMove, ...], Meta(description="The most recent ones that count, oldest first.")]


class ExplainedConditionBody(Struct, frozen=True, rename="camel"):
    """Why a condition has its status."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    culprits: Annotated[tuple[ExplainedAdapterBody, ...], Meta(description="The adapters responsible for it.")]
    since: Time | UnsetType = UNSET
    rule: Annotated[
        str | UnsetType,
        Meta(description="The rule as written; absent for Available and Ready, which have none in the policy."),
    ] = UNSET
    terms: TermAnswer | UnsetType = UNSET
    raw: Annotated[RawAnswer | UnsetType, Meta(description="What a damped rule says now, if different.")] = UNSET
    remedies: Annotated[RemediesAnswer | UnsetType, Meta(description="What would make it good; absent if it is.")] = (
        UNSET
    )
    flapping: Annotated[ExplainedFlappingBody | UnsetType, Meta(description="Set while the condition is flapping.")] = (
        UNSET
    )


class ExplanationAnswer(Struct, frozen=True, rename="camel"):
    """Why a resource has its status."""

    id: str
    generation: int
    phase: Phase
    phase_since: Time
    because: Annotated[tuple[str, ...], Meta(description="What decided the phase.")]
    conditions: tuple[ExplainedConditionBody, ...]
    adapters: tuple[ExplainedAdapterBody, ...]
    policy: Annotated[str, Meta(description="The version of the policy used for the explanation.")]
    current: Annotated[
        bool,
        Meta(
            description="If false, the policy has changed since the status was computed; this explains the status "
            "after the recomputation."
        ),
    ]
    next_deadline: Annotated[
        Time | UnsetType, Meta(description="When the passing of time will next change something; absent: never.")
    ] = UNSET
    phase_flapping: Annotated[
        ExplainedFlappingBody | UnsetType, Meta(description="Set while the phase is flapping.")
    ] = UNSET


def present_explanation(explained: StatusExplanation, evidence: Evidence) -> ExplanationAnswer:
    """Make the answer."""
    return ExplanationAnswer(
        explained.resource_id,
        explained.generation,
        explained.phase,
        explained.phase_since,
        explained.because,
        tuple(_present_condition(condition) for condition in explained.conditions),
        _present_adapters(explained.adapters),
        str(evidence.policy_version),
        evidence.is_current,
        _or_unset(explained.next_deadline),
        _present_flapping(explained.phase_flapping) if explained.phase_flapping else UNSET,
    )


def _present_condition(explained: ConditionExplanation) -> ExplainedConditionBody:
    raw = explained.raw
    return ExplainedConditionBody(
        explained.type,
        explained.status,
        explained.reason,
        explained.message,
        _present_adapters(explained.culprits),
        _or_unset(explained.since),
        explained.rule or UNSET,
        _present_term(explained.terms) if explained.terms else UNSET,
        RawAnswer(raw.status, raw.since) if raw is not None and raw.status != explained.status else UNSET,
        _present_remedies(explained.remedies) if explained.remedies else UNSET,
        _present_flapping(explained.flapping) if explained.flapping else UNSET,
    )


def _present_flapping(explained: FlappingExplanation) -> ExplainedFlappingBody:
    mark = explained.mark
    moves = tuple(ExplainedMove(flip.time, flip.after) for flip in explained.recent)
    return ExplainedFlappingBody(mark.transitions, format_duration(mark.window), mark.since, moves)


def _present_term(term: ExplainedTerm) -> TermAnswer:
    return TermAnswer(
        term.text,
        UNSET if term.error or term.is_skipped else term.value,
        term.error or UNSET,
        term.is_skipped or UNSET,
        tuple(_present_term(part) for part in term.parts) or UNSET,
    )


def _present_adapters(explained: Iterable[AdapterExplanation]) -> tuple[ExplainedAdapterBody, ...]:
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
        for each in explained
    )


def _present_remedies(explained: RemedySet) -> RemediesAnswer:
    sets = tuple(tuple(_present_change(change) for change in remedy) for remedy in explained.sets)
    return RemediesAnswer(explained.wanted, sets, explained.is_exhaustive, explained.is_minimal)


def _present_change(change: AdapterChange) -> RemedyReportBody:
    further = {condition.type: condition.status for condition in change.conditions}
    return RemedyReportBody(change.adapter, change.state, change.generation, further or UNSET)


def _or_unset(instant: datetime | None) -> datetime | UnsetType:
    return UNSET if instant is None else instant
