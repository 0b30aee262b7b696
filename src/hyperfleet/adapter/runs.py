"""What happened with one event so far: the value that goes from step to step. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from hyperfleet.adapter.objects import FailureReason, ObjectsResult
from hyperfleet.adapter.secrets import Secrets
from hyperfleet.adapter.subject import Subject

Phase: TypeAlias = Literal["param_extraction", "preconditions", "resources", "post_actions"]  # the Go adapter's names


class RunFailure(Struct, frozen=True, kw_only=True):
    """The first thing that failed. `reason` is of the contract; `error_reason` is the Go adapter's word for it."""

    reason: FailureReason
    phase: Phase
    step: str  # the param, precondition, object, payload or action
    message: str
    error_reason: str = ""


class PreviousReport(Struct, frozen=True):
    """What the API has of this adapter on this resource."""

    exists: bool = False
    was_available: bool = False  # it has said Available=True before, as far as its last report tells


class Run(Struct, frozen=True, kw_only=True):
    """The state of one event. `not_met` is why preconditions are not met; empty: they are, or were not reached."""

    subject: Subject
    variables: Mapping[str, Any]
    secrets: Secrets
    not_met: str = ""
    failure: RunFailure | None = None
    objects: ObjectsResult = ObjectsResult()
    previous: PreviousReport = PreviousReport()

    @property
    def skip_reason(self) -> str:
        """Return why objects were not applied; empty: they were."""
        if self.not_met or (self.failure is not None and self.failure.phase == "preconditions"):
            return self.not_met or (self.failure.message if self.failure else "")
        return self.objects.skip_reason

    @property
    def is_finalized(self) -> bool:
        """Tell whether the resource is being deleted and everything that goes with it is confirmed gone."""
        return self.subject.is_deleting and self.objects.is_all_gone and not self.failure and not self.not_met

    def expression_variables(self) -> dict[str, Any]:
        """Return the variables of payloads and actions: those so far, the objects, and how the run went."""
        return {
            **self.variables,
            "resources": self.objects.resources,
            "externalResources": self.objects.external,
            "adapter": {**self.variables.get("adapter", {}), **self._execution()},
        }

    def _execution(self) -> dict[str, Any]:
        failure = self.failure
        return {
            "executionStatus": "failed" if failure else "success",
            "resourcesSkipped": bool(self.skip_reason),
            "skipReason": self.skip_reason,
            "errorReason": failure.error_reason if failure else "",
            "errorMessage": failure.message if failure else "",
            "executionError": _describe(failure) if failure else None,
            "resourceErrors": {
                each.object: {"phase": "resources", "step": each.object, "message": each.message}
                for each in self.objects.failures
            },
        }


def _describe(failure: RunFailure) -> dict[str, str]:
    return {"phase": failure.phase, "step": failure.step, "message": failure.message}


def object_failure(objects: ObjectsResult) -> RunFailure | None:
    """Return the first failure of step 3; with several the message names them all."""
    if not objects.failures:
        return None
    first = objects.failures[0]
    return RunFailure(
        reason=first.reason,
        phase="resources",
        step=first.object,
        message="; ".join(each.message for each in objects.failures),
        error_reason="ResourceFailed",
    )
