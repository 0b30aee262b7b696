"""A sandbox for trying policies: an example resource, and which of its adapters are interchangeable.

Used by `enumeration` and `possibilities`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec.structs import replace

from hyperfleet.aggregation.aggregate import aggregate
from hyperfleet.aggregation.linting.footprint import Footprint
from hyperfleet.aggregation.policy import ExprRule, Policy, Rule, SummaryRule
from hyperfleet.expr import STEPS, Budget, open_budget, steps_left
from hyperfleet.expr.nodes import walk
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Status

GENERATION: Final = 2  # so that an older one exists
NOW: Final = datetime(2025, 1, 1, tzinfo=UTC)
# The budget, in adapters and rules evaluated: half a second to a second.
WORK: Final = 65_000
STEPS_PER_WORK: Final = 32  # steps of expressions that take as long; what a rule costs shows only when it runs

Group = tuple[str, ...]
RESOURCE: Final = Resource("cls-example", "Cluster", "example", GENERATION, NOW, NOW)


def group_adapters(policy: Policy, footprint: Footprint) -> tuple[Group, ...]:
    """Return the adapters that matter, in groups of interchangeable ones: no rule names them."""
    named = [name for name in policy.named_adapters if name in footprint.adapters]
    required = [name for name in policy.required if name not in named]
    optional = [name for name in policy.optional if name not in named]
    lists = footprint.lists
    groups = [
        *((name,) for name in named),
        tuple(required) if lists & {"requiredAdapters", "allAdapters"} else (),
        tuple(optional) if lists & {"optionalAdapters", "allAdapters"} else (),
    ]
    return tuple(group for group in groups if group)


def restrict(policy: Policy, footprint: Footprint, groups: tuple[Group, ...]) -> Policy:
    """Return a policy with only what matters, without effects of time."""
    types = {"Available", "Ready", *(rule.type for rule in footprint.rules)}
    members = {name for group in groups for name in group}
    return replace(
        policy,
        required=tuple(name for name in policy.required if name in members),
        optional=tuple(name for name in policy.optional if name in members),
        rules=tuple(map(_undamped, footprint.rules)),
        phases={
            phase: rule
            for phase, rule in policy.phases.items()
            if types.issuperset(type_ for type_, _ in rule.required_conditions)
        },
        stale_after=None,
        missing_after=None,
    )


def _undamped(rule: Rule) -> Rule:
    return replace(rule, go_bad_after=timedelta(), go_good_after=timedelta())


def work_of(footprint: Footprint, groups: tuple[Group, ...]) -> int:
    """Return the work of one trial, so that large policies get fewer trials instead of more time."""
    adapters = sum(map(len, groups))
    return adapters + 1 + sum(_work_of_rule(rule, adapters) for rule in footprint.rules)


def _work_of_rule(rule: Rule, adapters: int) -> int:
    match rule.by:
        case ExprRule(program=program):
            return 1 + sum(1 for _ in walk(program.tree)) // 10
        case SummaryRule(over=None):
            return 5
        case SummaryRule():
            return adapters
    return 1


class TrialCost:
    """Counts the work of expressions in trials."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._before = 0
        self._budget = open_budget()

    def open(self) -> Budget:
        """Return a full budget for the next trial."""
        self._before = self._steps
        self._budget = open_budget()
        return self._budget

    @property
    def _steps(self) -> int:
        return self._before + STEPS - steps_left(self._budget)

    @property
    def work(self) -> int:
        """Return the work so far."""
        return self._steps // STEPS_PER_WORK


def evaluate(policy: Policy, reports: Mapping[str, StoredReport | None], cost: TrialCost) -> Status:
    """Return the status for some reports; None: the adapter has not reported."""
    stored = {name: report for name, report in reports.items() if report is not None}
    return aggregate(RESOURCE, stored, policy, None, NOW, budget=cost.open())


def evaluate_later(
    policy: Policy, reports: Mapping[str, StoredReport | None], before: Status, after: timedelta, cost: TrialCost
) -> Status:
    """Return the status after a time without reports."""
    stored = {name: report for name, report in reports.items() if report is not None}
    return aggregate(RESOURCE, stored, policy, before, NOW + after, budget=cost.open())
