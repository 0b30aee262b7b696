"""Step 3, what is decided: what to do with each object of a file, given what was found in the cluster. Pure.

Objects are applied in the order of the file and deleted in reverse. Gates fail closed: an expression that cannot be
evaluated neither creates nor deletes. While the resource is being deleted nothing is applied: an object whose delete
gate is closed is held. `object_step` executes the plans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.adapter.config import AdapterConfig, ManagedObject, StatusBuild
from hyperfleet.adapter.expressions import Expression, evaluate_alone, is_matched
from hyperfleet.adapter.manifests import MANAGED_BY, generation_of, labels_of
from hyperfleet.adapter.subject import Subject
from hyperfleet.cel import CelEnvironment
from hyperfleet.kubernetes.port import KubernetesObject, ObjectRef

ObjectOperation: TypeAlias = Literal[
    "create",  # it was not there
    "update",  # it changed, whether the manifest did or someone else
    "unchanged",
    "recreate",
    "keep",  # a newer generation applied it
    "skip",  # its create gate is closed
    "hold",  # nothing may be done with it now
    "delete",  # it is confirmed gone
    "deleting",  # it was asked to go, and is still there
    "absent",  # it was to be deleted, and was not there
    "fail",
]
FailureReason: TypeAlias = Literal["ResourceCreationFailed", "KubernetesAPIFailure", "ResourceFailure", "AdapterError"]

NOT_CREATED = "lifecycle.create.when condition evaluated to false"  # as the Go adapter writes it


class ObjectFailure(Struct, frozen=True, kw_only=True):
    """Something failed with one object."""

    object: str
    reason: FailureReason
    message: str


class ObjectOutcome(Struct, frozen=True, kw_only=True):
    """What was done with one object of the file, and why."""

    name: str
    operation: ObjectOperation
    reason: str = ""
    refs: tuple[ObjectRef, ...] = ()
    manifest: KubernetesObject | None = None  # what was applied, for a trace


class ObjectsResult(Struct, frozen=True, kw_only=True):
    """What step 3 came to. `resources` and `external` are for expressions."""

    outcomes: tuple[ObjectOutcome, ...] = ()
    failures: tuple[ObjectFailure, ...] = ()
    resources: Mapping[str, KubernetesObject] = {}
    external: Mapping[str, KubernetesObject] = {}
    is_all_gone: bool = False  # every object that goes with the resource was looked for and not found

    def redacted(self, redact: Callable[[str], str]) -> ObjectsResult:
        """Return the same without secrets in reasons and messages: those are logged."""
        return replace(
            self,
            outcomes=tuple(replace(each, reason=redact(each.reason)) for each in self.outcomes),
            failures=tuple(replace(each, message=redact(each.message)) for each in self.failures),
        )

    @property
    def has_created(self) -> bool:
        """Tell whether an object was made that was not there."""
        return any(each.operation in ("create", "recreate") for each in self.outcomes)

    @property
    def skip_reason(self) -> str:
        """Return why the first skipped object was skipped; empty: none was."""
        return next((f"{each.name}: {each.reason}" for each in self.outcomes if each.operation == "skip"), "")


class ObjectRules(Struct, frozen=True, kw_only=True):
    """What holds for all objects of one event."""

    adapter: str
    subject: Subject
    environment: CelEnvironment
    now: datetime
    deletes_by_default: bool  # objects without a delete gate go with the resource

    @classmethod
    def of(cls, config: AdapterConfig, subject: Subject, now: datetime) -> ObjectRules:
        """Return the rules of an adapter.

        The contract's block has no gates, so its objects go with the resource. A Go file without a delete gate means
        that an object stays.
        """
        return cls(
            adapter=config.name,
            subject=subject,
            environment=config.environment,
            now=now,
            deletes_by_default=any(isinstance(each.build, StatusBuild) for each in config.payloads),
        )

    def goes_with_resource(self, item: ManagedObject) -> bool:
        """Tell whether an object must be gone before the resource is finalized."""
        return item.delete_when is not None or self.deletes_by_default


# ── plans ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class ApplyPlan(Struct, frozen=True):
    """Apply the manifest."""


class DeletePlan(Struct, frozen=True):
    """Delete everything that was found."""


class RestPlan(Struct, frozen=True):
    """Do nothing, and say why."""

    operation: Literal["skip", "hold"]
    reason: str


class FaultPlan(Struct, frozen=True):
    """Do nothing, because it is not known what to do."""

    message: str


ObjectPlan: TypeAlias = ApplyPlan | DeletePlan | RestPlan | FaultPlan


def plan_object(
    item: ManagedObject, found: tuple[KubernetesObject, ...], rules: ObjectRules, variables: Mapping[str, Any]
) -> ObjectPlan:
    """Decide what to do with one object. `variables` has `resources` as they are now."""
    deletion = _plan_deletion(item, rules, variables)
    if deletion is not None:
        return deletion
    if not found and item.create_when is not None:
        gate = _ask(item.create_when, rules, variables)
        if gate.failure:
            return FaultPlan(f"lifecycle.create.when: {gate.failure}")
        if not gate.is_open:
            return RestPlan("skip", NOT_CREATED)
    return ApplyPlan()


def _plan_deletion(item: ManagedObject, rules: ObjectRules, variables: Mapping[str, Any]) -> ObjectPlan | None:
    """Return a plan if the object is to go or to be held; None: it may be applied."""
    is_deleting = rules.subject.is_deleting
    if item.delete_when is None:
        if not is_deleting:
            return None
        return DeletePlan() if rules.deletes_by_default else RestPlan("hold", "it has no lifecycle.delete.when")
    gate = _ask(item.delete_when, rules, variables)
    if gate.failure:
        return FaultPlan(f"lifecycle.delete.when: {gate.failure}")
    if gate.is_open:
        return DeletePlan()
    return (
        RestPlan("hold", "the resource is being deleted, and lifecycle.delete.when is false") if is_deleting else None
    )


class _Gate(NamedTuple):
    is_open: bool
    failure: str = ""


def _ask(expression: Expression, rules: ObjectRules, variables: Mapping[str, Any]) -> _Gate:
    outcome = evaluate_alone(expression, rules.environment, variables, rules.now)
    return _Gate(False, outcome.failure) if outcome.failure else _Gate(is_matched(outcome.value))


# ── writes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class ServerSideApply(Struct, frozen=True):
    """Apply: creates, changes, repairs, or does nothing, whatever is needed."""

    reason: str


class Recreation(Struct, frozen=True):
    """Delete the live object, wait until it is gone, and create it."""

    reason: str
    uid: str


class NoWrite(Struct, frozen=True):
    """Leave the live object as it is."""

    operation: Literal["keep", "hold"]
    reason: str


ObjectWrite: TypeAlias = ServerSideApply | Recreation | NoWrite


def plan_write(
    manifest: KubernetesObject, live: KubernetesObject | None, adapter: str, *, recreates: bool
) -> ObjectWrite:
    """Decide how to bring a live object to its manifest."""
    if live is None:
        return ServerSideApply("resource not found")
    wanted, present = generation_of(manifest), generation_of(live)
    is_ours = labels_of(live).get(MANAGED_BY, adapter) == labels_of(manifest).get(MANAGED_BY, adapter)
    if is_ours and present > wanted:
        return NoWrite("keep", f"generation {present} is newer than {wanted}")
    if (live.get("metadata") or {}).get("deletionTimestamp"):
        return NoWrite("hold", "it is being deleted")
    change = f"generation changed {present}->{wanted}"
    if recreates and present != wanted:
        return Recreation(f"{change}, recreateOnChange=true", str(live["metadata"].get("uid", "")))
    return ServerSideApply(f"generation {wanted} unchanged" if present == wanted else change)
