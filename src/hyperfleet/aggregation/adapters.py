"""How rules and built-in conditions see the adapters of one resource.

`observe` turns stored reports into views: one for every required adapter, also before it has reported, then for
the optional ones that reported, then for adapters that the policy does not list while they are fresh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from hyperfleet.aggregation.policy import Policy
from hyperfleet.model.condition import FALSE, TRUE, UNKNOWN, Condition, ConditionStatus
from hyperfleet.model.report import APPLIED, AVAILABLE, HEALTH, Report, StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import AdapterState

NEVER: Final = datetime.min.replace(tzinfo=UTC)

AWAITED_STATES: Final[frozenset[AdapterState]] = frozenset({"Unreported", "Outdated", "Pending", "Running"})


class AdapterView(Struct, frozen=True):
    """What one adapter says of the resource, read against the resource's generation and the time."""

    adapter: str
    available: ConditionStatus = UNKNOWN
    applied: ConditionStatus = UNKNOWN
    health: ConditionStatus = UNKNOWN
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_updated: datetime = NEVER
    last_heard: datetime = NEVER
    is_reported: bool = False
    is_current: bool = False
    is_stale: bool = False
    stale_at: datetime | None = None
    last_unknown: datetime | None = None
    state: AdapterState = "Unreported"
    report: Report | None = None

    @property
    def is_awaited(self) -> bool:
        """Tell whether the adapter has yet to say how it went."""
        return self.state in AWAITED_STATES


class Adapters(Struct, frozen=True):
    """The adapters of one resource, in policy order."""

    required: tuple[AdapterView, ...]
    optional: tuple[AdapterView, ...]  # those that reported
    unlisted: tuple[AdapterView, ...]  # reported but not in the policy, by name
    all: tuple[AdapterView, ...]  # without unlisted ones that are stale: who was retired cannot degrade for ever
    by_name: Mapping[str, AdapterView]  # every view; a rule may name an adapter that the policy does not list

    @property
    def reported(self) -> list[AdapterView]:
        """Return the adapters that have said True or False, listed or not, stale or not."""
        return [view for view in self.by_name.values() if view.is_reported]


def observe(resource: Resource, reports: Mapping[str, StoredReport], policy: Policy, now: datetime) -> Adapters:
    """Read the stored reports, by adapter name, against the policy and the time."""
    view = _Viewer(resource, policy, now).view
    required = tuple([view(name, reports.get(name)) for name in policy.required])
    optional = _reported([view(name, reports[name]) for name in policy.optional if name in reports])
    strangers = reports.keys() - {*policy.required, *policy.optional}
    unlisted = _reported([view(name, reports[name]) for name in sorted(strangers)]) if strangers else ()
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
        available, applied, health = _verdicts(stored.report)
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


def _verdicts(report: Report) -> tuple[Condition | None, ConditionStatus, ConditionStatus]:
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


def names_of(views: Sequence[AdapterView]) -> str:
    """List adapters for a message."""
    return ", ".join([view.adapter for view in views])


def tell_reason(view: AdapterView, generation: int) -> str:
    """Say in one sentence what an adapter has to say, or that it has said nothing yet."""
    if not view.is_reported:
        return f"{view.adapter} has not reported yet"
    if view.state == "Outdated":
        return f"{view.adapter} has not reported for generation {generation}"
    return view.message or view.reason


def entry_of(view: AdapterView, with_conditions: bool = True) -> dict[str, Any]:
    """Return a view as the record that expressions see."""
    report = view.report
    conditions = report.conditions if report and with_conditions else ()
    return {
        "adapter": view.adapter,
        "available": view.available,
        "applied": view.applied,
        "health": view.health,
        "observedGeneration": view.observed_generation,
        "lastUpdated": view.last_updated,
        "reason": view.reason,
        "message": view.message,
        "conditions": {c.type: _condition_entry(c) for c in conditions} if conditions else {},
        "data": report.data if report else {},
        "reported": view.is_reported,
        "current": view.is_current,
        "stale": view.is_stale,
        "state": view.state,
    }


def _condition_entry(condition: Condition) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": condition.last_transition_time or NEVER,
    }
