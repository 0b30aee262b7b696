"""Read the stored reports of a resource as views of its adapters.

There is a view for every required adapter, even before it has reported; then for each optional adapter that reported;
then for each adapter that the policy does not list.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from hyperfleet.aggregation.adapters import Adapters, AdapterView
from hyperfleet.aggregation.policy import Policy
from hyperfleet.model.condition import FALSE, TRUE, UNKNOWN, Condition, ConditionStatus
from hyperfleet.model.report import APPLIED, AVAILABLE, HEALTH, Report, StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import AdapterState


def observe(resource: Resource, reports: Mapping[str, StoredReport], policy: Policy, now: datetime) -> Adapters:
    """Read the stored reports, by adapter name, against the policy and the time."""
    view = _Viewer(resource, policy, now).view
    required = tuple([view(name, reports.get(name)) for name in policy.required])
    optional = _reported([view(name, reports[name]) for name in policy.optional if name in reports])
    unlisted_names = reports.keys() - {*policy.required, *policy.optional}
    unlisted = _reported([view(name, reports[name]) for name in sorted(unlisted_names)]) if unlisted_names else ()
    fresh = [view for view in unlisted if not view.is_stale]
    by_name = {view.adapter: view for view in (*required, *optional, *unlisted)}
    return Adapters(required, optional, unlisted, (*required, *optional, *fresh), by_name)


def _reported(views: list[AdapterView]) -> tuple[AdapterView, ...]:
    return tuple([view for view in views if view.is_reported])


class _Viewer:
    """Makes views; holds what is the same for all adapters of a resource."""

    __slots__ = ("_deleting", "_generation", "_generation_time", "_now", "_policy")

    def __init__(self, resource: Resource, policy: Policy, now: datetime) -> None:
        self._generation = resource.generation
        self._generation_time = resource.generation_time
        self._deleting = resource.is_deleting
        self._policy = policy
        self._now = now

    def view(self, name: str, stored: StoredReport | None) -> AdapterView:
        if stored is None:
            return AdapterView(name)
        available, applied, health = _required_conditions(stored.report)
        if available is None or available.status == UNKNOWN:
            return AdapterView(name, last_unknown=stored.last_unknown)
        stale_at = self._stale_at(stored)
        return AdapterView(
            name,
            available.status,
            applied,
            health,
            available.reason,
            available.message,
            stored.report.observed_generation,
            stored.effective_time,
            stored.last_heard,
            True,
            stored.report.observed_generation == self._generation,
            stale_at is not None and stale_at <= self._now,
            stale_at,
            None,
            self._state(stored.report.observed_generation, available, applied, health),
            stored.report,
        )

    def _stale_at(self, stored: StoredReport) -> datetime | None:
        """Return when the adapter counts as stale. A new generation gives every adapter new time."""
        if self._policy.stale_after is None or self._deleting:
            return None
        return max(stored.last_heard, self._generation_time) + self._policy.stale_after

    def _state(
        self, generation: int, available: Condition, applied: ConditionStatus, health: ConditionStatus
    ) -> AdapterState:
        """Classify an adapter that reported True or False; the first match decides."""
        reason = available.reason
        if health == FALSE:
            return "Unhealthy"
        if generation < self._generation:
            return "Outdated"
        if available.status == TRUE:
            return "Completed"
        if reason in self._policy.waiting_reasons or (not reason and applied != TRUE):
            return "Pending"
        if reason in self._policy.in_progress_reasons or not reason:
            return "Running"
        return "Failed"


def _required_conditions(report: Report) -> tuple[Condition | None, ConditionStatus, ConditionStatus]:
    """Pick the three required conditions in one pass."""
    available: Condition | None = None
    applied: ConditionStatus = UNKNOWN
    health: ConditionStatus = UNKNOWN
    for condition in report.conditions:
        if condition.type == AVAILABLE:
            available = condition
        elif condition.type == APPLIED:
            applied = condition.status
        elif condition.type == HEALTH:
            health = condition.status
    return available, applied, health
