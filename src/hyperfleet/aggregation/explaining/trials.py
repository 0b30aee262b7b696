"""Trials: would a condition have the wanted status if some adapters reported something else?

`remedies` decides what to try. A trial is judged exactly as real reports are.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import timedelta
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.aggregation.adapters import AdapterView
from hyperfleet.aggregation.aggregate import judge
from hyperfleet.aggregation.availability import READY, judge_available, judge_ready
from hyperfleet.aggregation.explaining.dependencies import Dependencies
from hyperfleet.aggregation.hypothetical import ImaginedAdapter, imagine_adapter, imagine_change, imagine_situation
from hyperfleet.aggregation.merging import judge_mirror, judge_summary
from hyperfleet.aggregation.policy import ExprRule, MirrorRule, Rule
from hyperfleet.aggregation.situation import Situation
from hyperfleet.errors import ExprRuntimeError
from hyperfleet.expr import STEPS, Budget, steps_left
from hyperfleet.model.condition import FALSE, TRUE, UNKNOWN, Condition, ConditionStatus
from hyperfleet.model.report import AVAILABLE, StoredReport
from hyperfleet.model.status import AdapterState

# What an adapter is imagined to report: a state, and conditions beside the three that every report has.
Effect: TypeAlias = tuple[AdapterState, tuple[Condition, ...]]


class AdapterChange(Struct, frozen=True):
    """One adapter reporting one state for the current generation, healthy and applied unless it says otherwise."""

    adapter: str
    state: AdapterState
    generation: int
    conditions: tuple[Condition, ...] = ()  # further conditions that matter, besides Available, Applied and Health

    def __str__(self) -> str:
        """Describe the change in words."""
        further = "".join(f", {condition.type}={condition.status}" for condition in self.conditions)
        return f"{self.adapter} {_DESCRIPTIONS[self.state]}{further} at generation {self.generation}"


_DESCRIPTIONS: Final[Mapping[AdapterState, str]] = {
    "Completed": "Available=True",
    "Running": "Available=False and in progress",
    "Pending": "Available=False, waiting and not applied",
    "Failed": "Available=False and failed",
    "Unhealthy": "Health=False, neither available nor applied",
}

Remedy: TypeAlias = tuple[AdapterChange, ...]


class Trials:
    """Judges one condition as it would be after some changes."""

    def __init__(
        self,
        situation: Situation,
        reports: Mapping[str, StoredReport],
        type_: str,
        wanted: ConditionStatus,
        depends: Dependencies,
        budget: Budget,
    ) -> None:
        """Try for `wanted` of the condition `type_`; all trials pay from `budget`."""
        self.wanted = wanted
        self.depends = depends
        self._situation = replace(situation, budget=budget)
        self._reports = reports
        self._type = type_
        self._rules = {rule.type: rule for rule in situation.policy.rules}
        self._imagined: dict[AdapterChange, ImaginedAdapter] = {}

    def change(self, adapter: str, effect: Effect) -> AdapterChange:
        """Return what an adapter would report."""
        state, conditions = effect
        return AdapterChange(adapter, state, self._situation.resource.generation, conditions)

    def helps(self, remedy: Remedy) -> bool:
        """Tell whether the condition would have the wanted status."""
        after = imagine_situation(self._situation, [self._imagine(change) for change in remedy])
        return self._status(after) == self.wanted

    @property
    def is_exhausted(self) -> bool:
        """Tell whether what is left may not suffice for a trial."""
        return steps_left(self._situation.budget) < STEPS

    def current_projection(self, adapter: str) -> Hashable:
        """Return the projection of an adapter; those with equal ones are interchangeable."""
        return self._project(self._situation.adapters.view(adapter))

    def projection_after(self, change: AdapterChange) -> Hashable:
        """Return the projection of an adapter after a change."""
        return self._project(self._imagine(change).view)

    def _project(self, view: AdapterView) -> Hashable:
        policy, project = self._situation.policy, self.depends.projection
        if project is None or view.adapter in self.depends.named:
            return view.adapter, _full_projection(view, self.depends.conditions)
        if view.adapter in policy.required:
            return "required", project(view)
        if view.adapter in policy.optional:
            return "optional", view.is_reported, project(view)
        return "unlisted", view.is_reported and not view.is_stale, project(view)

    def _imagine(self, change: AdapterChange) -> ImaginedAdapter:
        imagined = self._imagined.get(change)
        if imagined is None:
            now, stored = self._situation.now, self._reports.get(change.adapter)
            further = [replace(condition, last_transition_time=now) for condition in change.conditions]
            report = imagine_change(stored, change.adapter, change.state, change.generation, further, now)
            imagined = self._imagined[change] = imagine_adapter(report, self._situation)
        return imagined

    def _status(self, situation: Situation) -> ConditionStatus | None:
        """Judge the condition alone, without its message where possible."""
        if self._type == AVAILABLE:
            return judge_available(situation).status
        if self._type == READY:
            return judge_ready(situation).status
        rule = self._rules.get(self._type)
        return _status_by(rule, situation) if rule else None


def _full_projection(view: AdapterView, conditions: Mapping[str, ConditionStatus]) -> Hashable:
    """Return everything that a change can affect."""
    statuses = tuple(view.report.status_of(type_) for type_ in conditions) if view.report else ()
    return view.state, view.available, view.applied, view.health, view.observed_generation, view.is_stale, statuses


def _status_by(rule: Rule, situation: Situation) -> ConditionStatus:
    match rule.by:
        case ExprRule(program=program):
            try:
                return TRUE if program.evaluate(situation.values, situation.budget) else FALSE
            except ExprRuntimeError:
                return UNKNOWN
        case MirrorRule() as mirror:
            return judge_mirror(mirror, situation).status
        case summary if summary.over or summary.adapter:
            return judge_summary(summary, situation, ()).status
    rules = situation.policy.rules
    before = [_undamped(other) for other in rules[: rules.index(rule)]]  # what a summary of the resource sees
    needed = replace(situation.policy, rules=(*before, rule))
    return judge(replace(situation, policy=needed)).published[-1].verdict.status


def _undamped(rule: Rule) -> Rule:
    return replace(rule, go_bad_after=timedelta(), go_good_after=timedelta())
