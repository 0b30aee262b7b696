"""Reports that nobody sent: what an adapter would report if it were in a given state.

Used to try out what a policy makes of it: by `enumeration` (lint, diagram) and by `remedies` (what would help?).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from hyperfleet.aggregation.policy import Policy
from hyperfleet.model.condition import FALSE, TRUE, Condition, ConditionStatus
from hyperfleet.model.report import APPLIED, AVAILABLE, HEALTH, REQUIRED_CONDITIONS, Report, StoredReport
from hyperfleet.model.status import AdapterState

# Available, Applied and Health of an adapter in each state in which it has reported.
_VERDICTS: Final[Mapping[AdapterState, tuple[ConditionStatus, ConditionStatus, ConditionStatus]]] = {
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
    available, applied, health = _VERDICTS[state]
    conditions = (
        Condition(AVAILABLE, available, _reason(state, policy), last_transition_time=now),
        Condition(APPLIED, applied, last_transition_time=now),
        Condition(HEALTH, health, last_transition_time=now),
    )
    return StoredReport(Report(adapter, observed, conditions, now), now, now)


def imagine_change(
    stored: StoredReport | None,
    adapter: str,
    state: AdapterState,
    generation: int,
    policy: Policy,
    now: datetime,
) -> StoredReport | None:
    """Make the report an adapter would send next to be in a state, keeping what else it reported."""
    imagined = imagine_report(adapter, state, generation, policy, now)
    if stored is None or imagined is None:
        return imagined
    extra_status = _VERDICTS[state][0]
    extras = tuple(
        Condition(extra.type, extra_status, extra.reason, extra.message, generation, now)
        for extra in stored.report.conditions
        if extra.type not in REQUIRED_CONDITIONS
    )
    report = imagined.report
    kept = Report(
        adapter,
        report.observed_generation,
        report.conditions + extras,
        now,
        stored.report.data,
        stored.report.metadata,
    )
    return StoredReport(kept, now, now)


def _reason(state: AdapterState, policy: Policy) -> str:
    """Return a reason that this policy reads as the state."""
    if state == "Pending":
        return min(policy.waiting_reasons, default="")
    if state == "Running":
        return min(policy.in_progress_reasons, default="")
    return _FAILURE_REASON if state in ("Failed", "Unhealthy") else "Completed"
