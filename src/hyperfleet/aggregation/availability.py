"""`Available` and `Ready`: the two conditions that every resource has, whatever its policy.

Ready is strict: every required adapter is done with the current generation, and fresh.
Available is sticky: a roll-out of a new generation does not make a working resource unavailable.
"""

from __future__ import annotations

from typing import Final

from hyperfleet.aggregation.adapters import AdapterView, names_of
from hyperfleet.aggregation.situation import Situation
from hyperfleet.aggregation.verdict import Culprits, Verdict
from hyperfleet.model.condition import FALSE, TRUE
from hyperfleet.model.report import AVAILABLE

READY: Final = "Ready"
ALL_AVAILABLE: Final = "AllAdaptersAvailable"
ROLLING_OUT: Final = "RollOutInProgress"
# Available although the adapters were never all True at one generation since it was last False.
MIXED_GENERATIONS: Final = "MixedGenerations"

_NONE_REQUIRED: Final = "No adapters are required"
_SHOWN: Final = 3  # adapters explained in a message; more are only counted


def judge_available(situation: Situation) -> Verdict:
    """Decide `Available`; its observed generation is the last one at which all were True together."""
    required, previous = situation.adapters.required, situation.previous
    before = previous.condition(AVAILABLE) if previous else None
    good = before.observed_generation if before else 0  # G in docs/semantics.md §4
    if not required:
        return Verdict(AVAILABLE, TRUE, "NoRequiredAdapters", _NONE_REQUIRED, situation.resource.generation)
    silent = tuple([view for view in required if not view.is_reported])
    if silent:
        message = f"Not all required adapters have reported yet: {names_of(silent)}"
        return Verdict(AVAILABLE, FALSE, "AdaptersMissing", message, good, silent)
    failing = tuple([view for view in required if view.available != TRUE])
    generations = {view.observed_generation for view in required}
    if len(generations) == 1 and not failing:
        return _all_available(required, generations.pop())
    if len(generations) > 1 and _sticks(required, failing, good, before is not None and before.status == TRUE):
        was_together = good > 0 and before is not None and before.reason in (ALL_AVAILABLE, ROLLING_OUT)
        return _rolling_out(required, good, ROLLING_OUT if was_together else MIXED_GENERATIONS)
    message = _list([_describe_report(view, situation.resource.generation) for view in failing])
    return Verdict(AVAILABLE, FALSE, "AdaptersNotAvailable", message, good, failing)


def _sticks(required: Culprits, failing: Culprits, good: int, was_true: bool) -> bool:
    """Tell whether mixed generations are available: all True and none older than G, or True before and no outage."""
    if not failing and all(view.observed_generation >= good for view in required):
        return True
    return was_true and all(view.observed_generation > good for view in failing)


def _all_available(required: Culprits, generation: int) -> Verdict:
    message = f"All {len(required)} required adapters are available at generation {generation}"
    return Verdict(AVAILABLE, TRUE, ALL_AVAILABLE, message, generation)


def _rolling_out(required: Culprits, good: int, reason: str) -> Verdict:
    newest = max(view.observed_generation for view in required)
    behind = tuple(view for view in required if view.observed_generation < newest or view.available != TRUE)
    message = f"Generation {newest} is being rolled out; still to come: {names_of(behind)}"
    return Verdict(AVAILABLE, TRUE, reason, message, good, behind)


def judge_ready(situation: Situation) -> Verdict:
    """Decide `Ready`: every required adapter is True at the current generation and not stale."""
    required, generation = situation.adapters.required, situation.resource.generation
    if situation.resource.is_deleting:
        return Verdict(READY, FALSE, "Deleting", "The resource is being deleted", generation)
    if not required:
        return Verdict(READY, TRUE, "NoRequiredAdapters", _NONE_REQUIRED, generation)
    blockers = tuple([view for view in required if view.available != TRUE or not view.is_current or view.is_stale])
    if not blockers:
        message = f"All {len(required)} required adapters completed generation {generation}"
        return Verdict(READY, TRUE, "AllAdaptersReady", message, generation)
    listed = _list([_describe_blocker(view, generation) for view in blockers])
    message = f"{len(blockers)} of {len(required)} required adapters not ready: {listed}"
    return Verdict(READY, FALSE, _worst_reason(blockers), message, generation, blockers)


# Why an adapter keeps a resource from being ready, worst first; the worst one is the reason of the condition.
_REASONS: Final = ("AdaptersFailed", "AdaptersStale", "AdaptersMissing", "AdaptersOutdated", "AdaptersInProgress")


def _worst_reason(blockers: Culprits) -> str:
    return min([_reason_of(view) for view in blockers], key=_REASONS.index)


def _reason_of(view: AdapterView) -> str:
    if not view.is_reported:
        return "AdaptersMissing"
    if _has_failed(view):
        return "AdaptersFailed"
    if not view.is_current:  # also if it is stale besides
        return "AdaptersOutdated"
    return "AdaptersStale" if view.is_stale else "AdaptersInProgress"


def _has_failed(view: AdapterView) -> bool:
    """Tell whether an adapter is Failed, or unhealthy without being available."""
    return view.available != TRUE and not view.is_awaited


def _list(described: list[str]) -> str:
    listed = "; ".join(described[:_SHOWN])
    return listed if len(described) <= _SHOWN else f"{listed}; and {len(described) - _SHOWN} more"


def _describe_blocker(view: AdapterView, generation: int) -> str:
    if _reason_of(view) == "AdaptersStale":
        return f"{view.adapter} has not been heard from since {view.last_heard:%Y-%m-%dT%H:%M:%SZ}"
    return _describe_report(view, generation)


def _describe_report(view: AdapterView, generation: int) -> str:
    if not view.is_reported:
        return f"{view.adapter} has not reported yet"
    if not view.is_current and not _has_failed(view):
        return f"{view.adapter} has not reported for generation {generation}"
    reason, message = view.why
    return f"{view.adapter}: {message or reason}"
