"""The conditions that simulated adapters report, in the shape of the adapter contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hyperfleet.model.condition import FALSE, TRUE, Condition, ConditionStatus
from hyperfleet.model.report import APPLIED, AVAILABLE, FINALIZED, HEALTH
from hyperfleet.simulator.adapters import StatusText

HEALTHY: Final = StatusText("NoErrors", "Adapter is healthy")
PROBE_FAILED: Final = StatusText("ProbeFailed", "The health probe timed out after 3s")
BLOCKED: Final = StatusText("DependencyViolation", "The network has dependencies and cannot be deleted")
CLEANED_UP: Final = StatusText("CleanedUp", "Nothing is left of it")

_LAUNCHED: Final = StatusText("JobLaunched", "Job created successfully")
_NOT_STARTED: Final = StatusText("NotStarted", "Nothing is applied yet")

Conditions = tuple[Condition, ...]


def waiting(names: tuple[str, ...], what: str) -> Conditions:
    """Return the conditions of an adapter that waits for other adapters."""
    text = StatusText("PreconditionsNotMet", f"Waiting for {' and '.join(names)} to {what}")
    return _conditions(FALSE, text, applied=(FALSE, _NOT_STARTED))


def running(message: str) -> Conditions:
    """Return the conditions of an adapter at work."""
    return _conditions(FALSE, StatusText("JobRunning", message))


def done(text: StatusText, details: tuple[str, ...] = ()) -> Conditions:
    """Return the conditions of an adapter that has finished."""
    return (*_conditions(TRUE, text), *(Condition(type_, TRUE, text.reason) for type_ in details))


def failed(text: StatusText, details: tuple[str, ...] = ()) -> Conditions:
    """Return the conditions of an adapter whose work has failed."""
    return (*_conditions(FALSE, text), *(Condition(type_, FALSE, text.reason) for type_ in details))


def unhealthy(available: StatusText, health: StatusText) -> Conditions:
    """Return the conditions of an adapter that has finished, but is unhealthy itself."""
    return _conditions(TRUE, available, health=(FALSE, health))


def cleaned_up() -> Conditions:
    """Return the conditions of an adapter with nothing left to clean up."""
    available = StatusText("", CLEANED_UP.message)  # no reason: it has not failed, there is nothing left to fail
    conditions = _conditions(FALSE, available, applied=(FALSE, CLEANED_UP))
    return (*conditions, Condition(FINALIZED, TRUE, CLEANED_UP.reason, CLEANED_UP.message))


def is_final(conditions: Conditions) -> bool:
    """Return whether a report says that nothing is left to clean up."""
    return any(condition.type == FINALIZED and condition.status == TRUE for condition in conditions)


def fill(text: StatusText, names: Mapping[str, str]) -> StatusText:
    """Fill the names of a cluster into a text."""
    return StatusText(text.reason, text.message.format_map(names))


def _conditions(
    available: ConditionStatus,
    text: StatusText,
    applied: tuple[ConditionStatus, StatusText] = (TRUE, _LAUNCHED),
    health: tuple[ConditionStatus, StatusText] = (TRUE, HEALTHY),
) -> Conditions:
    parts = ((AVAILABLE, (available, text)), (APPLIED, applied), (HEALTH, health))
    return tuple(Condition(type_, status, each.reason, each.message) for type_, (status, each) in parts)
