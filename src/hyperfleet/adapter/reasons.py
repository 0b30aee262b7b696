"""The reasons and messages of the contract's six patterns, for every condition on every path. Pure.

They are used where a file gives none, and where it cannot: when something failed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hyperfleet.adapter.runs import Run
from hyperfleet.model.report import APPLIED, AVAILABLE, FINALIZED, HEALTH

IN_PROGRESS: Final = "WorkloadInProgress"
NOT_MET: Final = "PostconditionsNotMet"
_WAITS: Final = "PreconditionsNotMet"


class ConditionTexts(NamedTuple):
    """A reason and a message."""

    reason: str
    message: str


def texts_for(type_: str, status: str, run: Run) -> ConditionTexts:
    """Return the reason and the message of a condition that has a status."""
    if type_ == FINALIZED:
        return _finalized(status, run)
    if run.failure is not None and status == "False":
        return _failed(type_, run)
    if run.not_met:
        return _not_met(type_, run)
    return _worked(type_, status, run)


def _failed(type_: str, run: Run) -> ConditionTexts:
    """Pattern 6 and its relatives: the reason tells what failed, the same for all three."""
    failure = run.failure
    assert failure is not None  # noqa: S101 - the caller looked
    if type_ == AVAILABLE:
        return ConditionTexts(failure.reason, f"The adapter cannot complete its work: {failure.message}")
    return ConditionTexts(failure.reason, failure.message)


def _not_met(type_: str, run: Run) -> ConditionTexts:
    """Pattern 1."""
    match type_:
        case "Applied":
            return ConditionTexts(_WAITS, f"Dependencies not satisfied: {run.not_met}")
        case "Health":
            return ConditionTexts("NoErrors", "Adapter is healthy, waiting for dependencies")
    return ConditionTexts(_WAITS, "Cannot proceed until dependencies are satisfied")


def _worked(type_: str, status: str, run: Run) -> ConditionTexts:
    """Patterns 2 to 5."""
    is_true = status == "True"
    if type_ == APPLIED:
        return _applied(is_true, run)
    if type_ == AVAILABLE:
        return ConditionTexts("PostconditionsMet", "Workload completed successfully") if is_true else waiting_for(run)
    if type_ == HEALTH:
        healthy = "NoErrors" if run.objects.has_created else "AllChecksPass"
        if is_true:
            return ConditionTexts(healthy, "Adapter is healthy")
        return ConditionTexts("ResourceFailure", "Resource failures detected")
    return ConditionTexts(f"{type_}{status}", f"{type_} is {status}")


def _applied(is_true: bool, run: Run) -> ConditionTexts:
    if is_true and run.objects.has_created:
        return ConditionTexts("ResourcesCreated", "All Kubernetes resources created successfully")
    if is_true:
        return ConditionTexts("ResourcesExist", "Resources are applied")
    if run.subject.is_deleting:
        return ConditionTexts("ResourcesDeleted", "The resource is being deleted")
    if run.skip_reason:
        return ConditionTexts(_WAITS, f"Not applied: {run.skip_reason}")
    return ConditionTexts("ResourcesNotReady", "Resources are not applied completely yet")


def waiting_for(run: Run) -> ConditionTexts:
    """Return what Available=False means while nothing failed: not yet, or no longer."""
    if run.subject.is_deleting:
        return ConditionTexts(NOT_MET, "The resource is being deleted")
    if run.previous.was_available:
        return ConditionTexts(NOT_MET, "Postconditions are no longer satisfied")
    return ConditionTexts(IN_PROGRESS, "Resources are applied, the workload is in progress")


def _finalized(status: str, run: Run) -> ConditionTexts:
    if status == "True":
        return ConditionTexts("CleanupConfirmed", "Every object is confirmed gone")
    if not run.subject.is_deleting:
        return ConditionTexts("NotDeleting", "The resource is not being deleted")
    if run.failure is not None:
        return ConditionTexts(run.failure.reason, run.failure.message)
    if run.not_met:
        return ConditionTexts(_WAITS, run.not_met)
    return ConditionTexts("ObjectsRemain", f"Still there: {_name_remaining(run)}")


def _name_remaining(run: Run) -> str:
    waiting = [each.name for each in run.objects.outcomes if each.operation in ("deleting", "hold")]
    return ", ".join(waiting) or "objects that were not looked for"
