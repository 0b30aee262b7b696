"""Hypothetical reports: what an adapter would report if it were in a given state.

Used to try a policy on them: by `enumeration` (lint, diagram) and by `remedies`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.aggregation.adapters import Adapters, AdapterView, entry_of
from hyperfleet.aggregation.environment import AdaptersByName, RuleClock
from hyperfleet.aggregation.observation import observe
from hyperfleet.aggregation.policy import Policy
from hyperfleet.aggregation.situation import Situation
from hyperfleet.aggregation.vocabulary import ADAPTERS_BY_NAME, OLDER_THAN
from hyperfleet.model.condition import FALSE, TRUE, Condition, ConditionStatus
from hyperfleet.model.report import APPLIED, AVAILABLE, HEALTH, Report, StoredReport
from hyperfleet.model.status import AdapterState

# Available, Applied and Health of an adapter in each state in which it has reported.
_STATUSES: Final[Mapping[AdapterState, tuple[ConditionStatus, ConditionStatus, ConditionStatus]]] = {
    "Outdated": (TRUE, TRUE, TRUE),
    "Completed": (TRUE, TRUE, TRUE),
    "Pending": (FALSE, FALSE, TRUE),
    "Running": (FALSE, TRUE, TRUE),
    "Failed": (FALSE, TRUE, TRUE),
    "Unhealthy": (FALSE, FALSE, FALSE),
}
_FAILURE_REASON: Final = "HypotheticalFailure"


def imagine_report(
    adapter: str, state: AdapterState, generation: int, policy: Policy, now: datetime
) -> StoredReport | None:
    """Make a report that puts an adapter into a state; None for one that has not reported."""
    if state == "Unreported":
        return None
    observed = generation - 1 if state == "Outdated" else generation
    return StoredReport(Report(adapter, observed, _conditions(state, _reason(state, policy), now), now), now, now)


def imagine_change(
    stored: StoredReport | None,
    adapter: str,
    state: AdapterState,
    generation: int,
    further: Iterable[Condition],
    now: datetime,
) -> StoredReport:
    """Make the report that would put an adapter into a state, with `further` conditions besides the required ones.

    Everything else it reported stays. It has no reason where the state needs none, so that a rule that tests for a
    certain reason is not satisfied by chance.
    """
    reason = _FAILURE_REASON if state in ("Failed", "Unhealthy") else ""
    conditions = {condition.type: condition for condition in stored.report.conditions} if stored else {}
    conditions |= {c.type: c for c in (*_conditions(state, reason, now), *further)}
    data, metadata = (stored.report.data, stored.report.metadata) if stored else ({}, {})
    return StoredReport(Report(adapter, generation, tuple(conditions.values()), now, data, metadata), now, now)


def _conditions(state: AdapterState, reason: str, now: datetime) -> tuple[Condition, Condition, Condition]:
    available, applied, health = _STATUSES[state]
    return (
        Condition(AVAILABLE, available, reason, last_transition_time=now),
        Condition(APPLIED, applied, last_transition_time=now),
        Condition(HEALTH, health, last_transition_time=now),
    )


def _reason(state: AdapterState, policy: Policy) -> str:
    """Return a reason that this policy reads as the state."""
    if state == "Pending":
        return min(policy.waiting_reasons, default="")
    if state == "Running":
        return min(policy.in_progress_reasons, default="")
    return _FAILURE_REASON if state in ("Failed", "Unhealthy") else "Completed"


class ImaginedAdapter(Struct, frozen=True):
    """An adapter after a hypothetical report, as conditions and as expressions see it."""

    view: AdapterView
    entry: dict[str, Any]


def imagine_adapter(stored: StoredReport, situation: Situation) -> ImaginedAdapter:
    """Read one imagined report as `observe` reads the real ones."""
    policy, name = situation.policy, stored.report.adapter
    alone = replace(policy, required=(name,), optional=())
    view = observe(situation.resource, {name: stored}, alone, situation.now).by_name[name]
    return ImaginedAdapter(view, entry_of(view, policy.reads_conditions))


def imagine_situation(before: Situation, changed: Iterable[ImaginedAdapter]) -> Situation:
    """Return a situation with some adapters changed, as far as conditions depend on it.

    The other adapters are reused, which is many times faster than reading everything again.
    """
    changed = list(changed)
    views = {**before.by_name, **{one.view.adapter: one.view for one in changed}}
    adapters = _arrange_views(before.policy, views)
    clock = RuleClock(views, before.now)
    values = _arrange_values(before, adapters, {one.view.adapter: one.entry for one in changed}, clock)
    return replace(before, adapters=adapters, clock=clock, values=values)


def _arrange_views(policy: Policy, views: Mapping[str, AdapterView]) -> Adapters:
    required, optional, unlisted = _in_lists(policy, views)
    fresh = tuple(view for view in unlisted if not view.is_stale)
    return Adapters(required, optional, unlisted, (*required, *optional, *fresh), views)


def _arrange_values(
    before: Situation, adapters: Adapters, changed: Mapping[str, dict[str, Any]], clock: RuleClock
) -> Mapping[str, object]:
    known = before.values[ADAPTERS_BY_NAME]
    entries = AdaptersByName(known if isinstance(known, dict) else {})
    entries.update(changed)
    required, optional, _ = _in_lists(before.policy, entries)
    return {
        **before.values,
        "requiredAdapters": list(required),
        "optionalAdapters": list(optional),
        "allAdapters": [entries[view.adapter] for view in adapters.all],
        ADAPTERS_BY_NAME: entries,
        OLDER_THAN: clock.older_than,
    }


_Adapter = TypeVar("_Adapter")
_Members = tuple[_Adapter, ...]


def _in_lists(
    policy: Policy, by_name: Mapping[str, _Adapter]
) -> tuple[_Members[_Adapter], _Members[_Adapter], _Members[_Adapter]]:
    """Return the required, the optional and the unlisted adapters, each in its order."""
    unlisted = by_name.keys() - {*policy.required, *policy.optional}
    return (
        tuple([by_name[name] for name in policy.required]),
        tuple([by_name[name] for name in policy.optional if name in by_name]),
        tuple([by_name[name] for name in sorted(unlisted)]),
    )
