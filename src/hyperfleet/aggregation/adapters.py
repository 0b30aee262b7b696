"""The adapters of one resource, as rules and built-in conditions see them.

These are values only: `observation` makes them from stored reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from hyperfleet.model.condition import UNKNOWN, Condition, ConditionStatus
from hyperfleet.model.report import HEALTH, Report
from hyperfleet.model.status import AdapterState

NEVER: Final = datetime.min.replace(tzinfo=UTC)

AWAITED_STATES: Final[frozenset[AdapterState]] = frozenset({"Unreported", "Outdated", "Pending", "Running"})


class AdapterView(Struct, frozen=True):
    """One adapter's report, read against the resource's generation and the time."""

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
        """Tell whether the adapter has not reported a result yet."""
        return self.state in AWAITED_STATES

    @property
    def why(self) -> tuple[str, str]:
        """Return reason and message of the condition behind the state: Health if Unhealthy, otherwise Available."""
        if self.state != "Unhealthy":
            return self.reason, self.message
        health = self.report.condition(HEALTH) if self.report else None
        return (health.reason, health.message) if health else ("", "")


class Adapters(Struct, frozen=True):
    """The adapters of one resource, in policy order."""

    required: tuple[AdapterView, ...]
    optional: tuple[AdapterView, ...]  # those that reported
    unlisted: tuple[AdapterView, ...]  # reported but not in the policy, by name
    all: tuple[AdapterView, ...]  # without stale unlisted ones: a retired adapter must not degrade a resource for ever
    by_name: Mapping[str, AdapterView]  # every view; a rule may name an adapter that the policy does not list

    @property
    def reported(self) -> list[AdapterView]:
        """Return the adapters that have reported True or False, listed or not, stale or not."""
        return [view for view in self.by_name.values() if view.is_reported]

    def view(self, name: str) -> AdapterView:
        """Return the view of an adapter by name; one that is not known has not reported."""
        return self.by_name.get(name) or AdapterView(name)

    def in_order(self, views: Iterable[AdapterView]) -> tuple[AdapterView, ...]:
        """Return some views, each once, in policy order; unknown adapters last, by name."""
        wanted = {view.adapter: view for view in views}
        known = [view for name, view in self.by_name.items() if name in wanted]
        unknown = [wanted[name] for name in sorted(wanted.keys() - self.by_name.keys())]
        return (*known, *unknown)


def names_of(views: Sequence[AdapterView]) -> str:
    """List adapters for a message."""
    return ", ".join([view.adapter for view in views])


def describe_reason(view: AdapterView, generation: int) -> str:
    """Return an adapter's message or reason, or that it has not reported yet."""
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
