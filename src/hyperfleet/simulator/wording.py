"""What simulated adapters say: reports in the shape of the adapter contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hyperfleet.model.condition import FALSE, TRUE, Condition, ConditionStatus
from hyperfleet.model.report import APPLIED, AVAILABLE, FINALIZED, HEALTH
from hyperfleet.simulator.adapters import Word

WELL: Final = Word("NoErrors", "Adapter is healthy")
SHAKY: Final = Word("ProbeFailed", "The health probe timed out after 3s")
BLOCKED: Final = Word("DependencyViolation", "The network has dependencies and cannot be deleted")
CLEANED_UP: Final = Word("CleanedUp", "Nothing is left of it")

_LAUNCHED: Final = Word("JobLaunched", "Job created successfully")
_NOT_STARTED: Final = Word("NotStarted", "Nothing is applied yet")

Conditions = tuple[Condition, ...]


def say_waiting(names: tuple[str, ...], what: str) -> Conditions:
    """Say that others have to come first."""
    word = Word("PreconditionsNotMet", f"Waiting for {' and '.join(names)} to {what}")
    return _conditions(FALSE, word, applied=(FALSE, _NOT_STARTED))


def say_running(message: str) -> Conditions:
    """Say what is being done."""
    return _conditions(FALSE, Word("JobRunning", message))


def say_done(word: Word, details: tuple[str, ...] = ()) -> Conditions:
    """Say that all is as wanted."""
    return (*_conditions(TRUE, word), *(Condition(type_, TRUE, word.reason) for type_ in details))


def say_failed(word: Word, details: tuple[str, ...] = ()) -> Conditions:
    """Say what is wrong with the resource."""
    return (*_conditions(FALSE, word), *(Condition(type_, FALSE, word.reason) for type_ in details))


def say_sick(done: Word, illness: Word) -> Conditions:
    """Say that all was as wanted, and that the adapter itself is not well."""
    return _conditions(TRUE, done, health=(FALSE, illness))


def say_cleaned_up() -> Conditions:
    """Say that nothing is left to clean up."""
    available = Word("", CLEANED_UP.message)  # no reason: it has not failed, there is nothing left to fail
    said = _conditions(FALSE, available, applied=(FALSE, CLEANED_UP))
    return (*said, Condition(FINALIZED, TRUE, CLEANED_UP.reason, CLEANED_UP.message))


def is_final(conditions: Conditions) -> bool:
    """Tell whether a report says that nothing is left to clean up."""
    return any(condition.type == FINALIZED and condition.status == TRUE for condition in conditions)


def fill(word: Word, names: Mapping[str, str]) -> Word:
    """Put the names of a cluster into what is said of it."""
    return Word(word.reason, word.message.format_map(names))


def _conditions(
    available: ConditionStatus,
    word: Word,
    applied: tuple[ConditionStatus, Word] = (TRUE, _LAUNCHED),
    health: tuple[ConditionStatus, Word] = (TRUE, WELL),
) -> Conditions:
    said = ((AVAILABLE, (available, word)), (APPLIED, applied), (HEALTH, health))
    return tuple(Condition(type_, status, each.reason, each.message) for type_, (status, each) in said)
