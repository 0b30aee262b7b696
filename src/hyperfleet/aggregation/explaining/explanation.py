"""Explain a status: the tree from phase to condition to rule to expression terms to adapters, and what would help.

Pure. It takes the same inputs and steps as `aggregate`, so the two cannot disagree. `explanation_text.render` formats
it for a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from hyperfleet.aggregation.adapters import AdapterView
from hyperfleet.aggregation.aggregate import judge, settle
from hyperfleet.aggregation.availability import READY
from hyperfleet.aggregation.explaining.remedies import RemedySet, find_remedies, open_trial_budget
from hyperfleet.aggregation.phase import PhaseInputs, decide_phase, evidence_for
from hyperfleet.aggregation.policy import ExprRule, MirrorRule, Policy, Rule, SummaryRule
from hyperfleet.aggregation.situation import Child, Situation, read_situation
from hyperfleet.aggregation.verdict import Verdict
from hyperfleet.aggregation.vocabulary import ADAPTER, CONDITION
from hyperfleet.expr import STEPS, ExprExplanation, open_budget
from hyperfleet.expr.explain import ExplainedRound
from hyperfleet.expr.types import Array, Map
from hyperfleet.model.condition import FALSE, TRUE, Condition, ConditionStatus
from hyperfleet.model.event import PHASE_SUBJECT
from hyperfleet.model.phase import Phase
from hyperfleet.model.report import AVAILABLE, StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import AdapterState, Flapping, Flips, RawResult, Status

_MAX_TERM_STEPS: Final = 4 * STEPS  # for the terms of all rules; a recorded step takes longer and costs more


class ExplainedTerm(Struct, frozen=True):
    """A part of an expression and its value."""

    text: str
    value: Any = None
    error: str = ""
    is_skipped: bool = False  # not evaluated: the parts before it decided
    parts: tuple[ExplainedTerm, ...] = ()


class AdapterExplanation(Struct, frozen=True):
    """What one adapter contributes."""

    name: str
    state: AdapterState
    available: ConditionStatus
    reason: str
    message: str
    observed_generation: int
    generation: int
    last_heard: datetime | None
    since: datetime | None
    is_required: bool
    is_stale: bool
    is_missing: bool  # has not reported within the time that the policy allows


class FlappingExplanation(Struct, frozen=True):
    """The moves of a subject that is flapping."""

    mark: Flapping
    recent: Flips  # the last moves that still count


class ConditionExplanation(Struct, frozen=True):
    """Why a condition has its status."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    since: datetime | None
    rule: str  # the expression as written, or what is merged or copied; empty for Available and Ready
    terms: ExplainedTerm | None
    culprits: tuple[AdapterExplanation, ...]
    raw: RawResult | None  # the result of a damped rule, which may not be published yet
    remedies: RemedySet | None  # minimal sets of reports that would make it good; None: it is good
    flapping: FlappingExplanation | None = None  # of a damped rule: of its raw result


class StatusExplanation(Struct, frozen=True):
    """Why a resource has its status."""

    resource_id: str
    generation: int
    phase: Phase
    phase_since: datetime
    because: tuple[str, ...]
    conditions: tuple[ConditionExplanation, ...]
    adapters: tuple[AdapterExplanation, ...]
    next_deadline: datetime | None
    phase_flapping: FlappingExplanation | None = None


def explain(
    resource: Resource,
    reports: Mapping[str, StoredReport],
    policy: Policy,
    previous: Status | None,
    now: datetime,
    *,
    children: Iterable[Child] = (),
    only: str | None = None,
) -> StatusExplanation:
    """Explain the status that `aggregate` computes from the same inputs; `only` one condition, if given."""
    types = (AVAILABLE, READY, *(rule.type for rule in policy.rules))
    if only not in (None, *types):
        raise ValueError(f"there is no condition {only!r} to explain; there are {', '.join(types)}")
    situation = read_situation(resource, reports, policy, previous, now, children)
    publisher = judge(situation)
    inputs = PhaseInputs(situation, publisher.published)
    status = settle(situation, publisher, decide_phase(inputs))
    verdicts = [published.verdict for published in publisher.published]
    explainer = _Explainer(situation, status, reports)
    return StatusExplanation(
        resource.id,
        resource.generation,
        status.phase,
        status.phase_since,
        tuple(evidence_for(status.phase, inputs)),
        tuple(explainer.condition(verdict) for verdict in verdicts if only in (None, verdict.type)),
        tuple(explainer.adapter(view) for view in situation.by_name.values()),
        status.next_deadline,
        explainer.flapping(PHASE_SUBJECT),
    )


class _Explainer:
    """Explains the parts of one status."""

    def __init__(self, situation: Situation, status: Status, reports: Mapping[str, StoredReport]) -> None:
        self._situation = situation
        self._reports = reports
        self._published: dict[str, Condition] = {c.type: c for c in status.conditions}
        self._status = status
        self._since = {summary.name: summary.state_since for summary in status.adapters}
        self._rules = {rule.type: rule for rule in situation.policy.rules}
        self._term_budget = open_budget(steps=_MAX_TERM_STEPS)
        self._trial_budget = open_trial_budget()

    def condition(self, verdict: Verdict) -> ConditionExplanation:
        published, rule = self._published[verdict.type], self._rules.get(verdict.type)
        return ConditionExplanation(
            published.type,
            published.status,
            published.reason,
            published.message,
            published.last_transition_time,
            describe_rule(rule) if rule else "",
            self._terms(rule) if rule else None,
            tuple(self.adapter(view) for view in verdict.culprits),
            self._status.raw.get(verdict.type),
            self._remedies(published, rule),
            self.flapping(verdict.type),
        )

    def flapping(self, subject: str) -> FlappingExplanation | None:
        mark = self._status.flapping.get(subject)
        return FlappingExplanation(mark, self._status.memory.flips[subject]) if mark else None

    def _remedies(self, published: Condition, rule: Rule | None) -> RemedySet | None:
        good: ConditionStatus = FALSE if rule and rule.polarity == "Negative" else TRUE
        if published.status == good:
            return None
        return find_remedies(self._situation, self._reports, published.type, good, self._trial_budget)

    def _terms(self, rule: Rule) -> ExplainedTerm | None:
        if not isinstance(rule.by, ExprRule):
            return None
        return _term(rule.by.program.explain(self._situation.values, self._term_budget))

    def adapter(self, view: AdapterView) -> AdapterExplanation:
        situation = self._situation
        reason, message = view.why
        missing_at = situation.missing_at.get(view.adapter)
        return AdapterExplanation(
            view.adapter,
            view.state,
            view.available,
            reason,
            message,
            view.observed_generation,
            situation.resource.generation,
            view.last_heard if view.is_reported else None,
            self._since.get(view.adapter),
            view.adapter in situation.policy.required,
            view.is_stale,
            missing_at is not None and missing_at <= situation.now,
        )


def describe_rule(rule: Rule) -> str:
    """Return the expression as written, or what is merged or copied."""
    match rule.by:
        case ExprRule(source=source):
            return source
        case MirrorRule(adapter=adapter, type=type_):
            return f"mirror of {type_} of {adapter}"
        case SummaryRule(types=types, over=over, adapter=adapter):
            return f"summary of {', '.join(types)} of {over or adapter or 'the resource'}"


def _term(tree: ExprExplanation) -> ExplainedTerm:
    return ExplainedTerm(tree.text, tree.value, tree.error, tree.skipped, tuple(_parts(tree)))


def _parts(tree: ExprExplanation) -> Iterator[ExplainedTerm]:
    """Yield the parts of a term; whole adapters are replaced by their own parts."""
    for part in tree.children:
        if _is_adapters(part) and not part.error:
            yield from _parts(part)
        else:
            yield _term(part)
    yield from (_element(element) for element in tree.elements)
    if tree.omitted:
        yield ExplainedTerm(f"… and {tree.omitted} more", is_skipped=True)


def _is_adapters(tree: ExprExplanation) -> bool:
    """Tell whether a term's value is adapters or their conditions: these are explained elsewhere, one by one."""
    match tree.node.type:
        case Array(element=held) | Map(value=held):
            return held in (ADAPTER, CONDITION)
        case held:
            return held in (ADAPTER, CONDITION)


def _element(element: ExplainedRound) -> ExplainedTerm:
    """Explain one round of a predicate; an adapter is shown by its name."""
    name = element.item.get("adapter", "") if isinstance(element.item, dict) else ""
    body = _term(element.body)
    return ExplainedTerm(
        f"{name or f'[{element.index}]'}: {body.text}", body.value, body.error, body.is_skipped, body.parts
    )
