"""Commands that create, edit and delete resources. Each is one write, which also updates the status."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from hyperfleet.aggregation import BodyProblem
from hyperfleet.model.json_value import is_same
from hyperfleet.model.kind import Kind
from hyperfleet.model.resource import Resource
from hyperfleet.ports import IdempotencyRecord, NameKey, Record, StatusCause
from hyperfleet.services.callers import Caller
from hyperfleet.services.commands import Wants
from hyperfleet.services.results import Preconditions, Refusal, ResourceEdit, Target, Written, not_found
from hyperfleet.services.tenancy import Ownership, Tenancy
from hyperfleet.services.workspace import Workspace

CheckSpec = Callable[[str, Mapping[str, Any]], tuple[BodyProblem, ...]]  # (kind, spec) → violations of its schema

MAX_SPEC: Final = 1024 * 1024  # bytes, as for a request body; patches could add up to more
MAX_LABELS: Final = 64  # each is an index entry


class Create(Struct, frozen=True):
    """Add a resource."""

    kind: Kind
    id: str
    name: str
    spec: Mapping[str, Any]
    labels: Mapping[str, str]
    caller: Caller
    check_spec: CheckSpec
    parent_id: str | None = None
    key: str = ""  # the idempotency key, with its caller and path
    digest: str = ""  # of the request with that key
    tenancy: Tenancy = Tenancy()

    @property
    def wants(self) -> Wants:
        """Load the parent, the owner of the name, and the answer to an earlier request with the same key."""
        keys = (self.key,) if self.key else ()
        if self.parent_id:
            return Wants(ids=(self.parent_id,), names=(self._name_in(""),), keys=keys)
        ownership = self.tenancy.assign(self.labels, self.caller)
        return Wants(names=(self._name_in(ownership.tenant),) if isinstance(ownership, Ownership) else (), keys=keys)

    def apply(self, workspace: Workspace) -> Written | Refusal:
        """Add it, unless the same request was already done or it must be refused."""
        earlier = workspace.idempotency_record(self.key) if self.key else None
        if earlier is not None:
            return self._repeat(earlier, workspace)
        ownership = self._find_owner(workspace)
        if isinstance(ownership, Refusal):
            return ownership
        refusal = self._check(ownership, workspace)
        if refusal is not None:
            return refusal
        now = workspace.now
        resource = Resource(
            id=self.id,
            kind=self.kind.name,
            name=self.name,
            generation=1,
            generation_time=now,
            created_time=now,
            spec=self.spec,
            labels=ownership.labels,
            tenant=ownership.tenant,
            parent_id=self.parent_id,
            created_by=self.caller.name,
        )
        record = workspace.insert(resource, StatusCause("created"))
        if self.key:
            workspace.add_idempotency_record(IdempotencyRecord(self.key, self.digest, self.id, record.answer, now))
        return Written(record)

    def _find_owner(self, workspace: Workspace) -> Ownership | Refusal:
        """Return the tenant of the new resource."""
        if self.parent_id is None:
            return self.tenancy.assign(self.labels, self.caller)
        parent = workspace.get(self.parent_id)
        if parent is None or parent.resource.kind != self.kind.parent:
            return _no_parent(self.kind, self.parent_id)
        if not self.caller.scope.admits(parent.resource.tenant):
            return _no_parent(self.kind, self.parent_id)
        if parent.resource.is_deleting:
            return Refusal("ParentBeingDeleted", f"{self.parent_id} is being deleted; nothing can be added to it")
        return self.tenancy.inherit(parent.resource, self.labels)

    def _check(self, ownership: Ownership, workspace: Workspace) -> Refusal | None:
        errors = self.check_spec(self.kind.name, self.spec)
        if errors:
            return Refusal("InvalidSpec", f"the spec does not fit the schema of a {self.kind.name}", errors)
        if len(ownership.labels) > MAX_LABELS:
            return _too_many_labels(ownership.labels)
        owner = workspace.owner_of(self._name_in("" if self.parent_id else ownership.tenant))
        if owner is not None:
            problem = BodyProblem("/name", "NameTaken", f"{self.name} is the name of {owner}")
            return Refusal("NameTaken", f"there is already a {self.kind.name} named {self.name}", (problem,))
        return None

    def _repeat(self, earlier: IdempotencyRecord, workspace: Workspace) -> Written | Refusal:
        if earlier.digest != self.digest:
            return Refusal("IdempotencyKeyReused", "this Idempotency-Key was already used for another request")
        resource = Resource(earlier.resource_id, self.kind.name, self.name, 1, earlier.time, earlier.time)
        status = workspace.blank_status(resource)
        return Written(Record(resource, status, answer=earlier.answer), is_repeated=True)

    def _name_in(self, tenant: str) -> NameKey:
        return NameKey(tenant, self.kind.name, self.parent_id or "", self.name)


class Edit(Struct, frozen=True):
    """Change the spec or the labels of a resource; its generation rises if and only if one of them differs."""

    target: Target
    change: ResourceEdit
    caller: Caller
    check_spec: CheckSpec
    preconditions: Preconditions = Preconditions()
    tenancy: Tenancy = Tenancy()

    @property
    def wants(self) -> Wants:
        """Load the resource."""
        return Wants(ids=(self.target.id,))

    def apply(self, workspace: Workspace) -> Written | Refusal:
        """Make the change, or refuse it."""
        record = workspace.find(self.target, self.caller)
        if record is None:
            return not_found(self.target)
        refusal = _check_preconditions(record, self.preconditions)
        if refusal is not None:
            return refusal
        before, change = record.resource, self.change
        spec = _changed(before.spec, change.spec, is_merge=change.is_merge)
        changed = _changed(before.labels, change.labels, is_merge=change.is_merge)
        labels = self.tenancy.keep(before.labels, changed, change.labels)
        if isinstance(labels, Refusal):
            return labels
        if is_same(spec, before.spec) and labels == before.labels:
            return Written(record)
        if before.is_deleting:
            return Refusal("BeingDeleted", f"{before.id} is being deleted; its spec and labels can no longer change")
        refusal = self._check(spec, labels)
        if refusal is not None:
            return refusal
        now = workspace.time_for(record)
        after = replace(
            before, spec=spec, labels=labels, generation=before.generation + 1, generation_time=now, updated_time=now
        )
        return Written(workspace.edit(record, after, StatusCause("spec"), "SpecChanged"))

    def _check(self, spec: Mapping[str, Any], labels: Mapping[str, Any]) -> Refusal | None:
        errors = self.check_spec(self.target.kind.name, spec)
        if errors:
            return Refusal("InvalidSpec", f"the spec does not fit the schema of a {self.target.kind.name}", errors)
        size = len(msgspec.json.encode(spec))
        if size > MAX_SPEC:
            message = f"the spec would have {size} bytes; at most {MAX_SPEC} are allowed"
            return Refusal("InvalidSpec", message, (BodyProblem("/spec", "TooLarge", message),))
        return _too_many_labels(labels) if len(labels) > MAX_LABELS else None


class Delete(Struct, frozen=True):
    """Request the deletion of a resource and its children. Repeated, it changes nothing."""

    target: Target
    caller: Caller
    preconditions: Preconditions = Preconditions()

    @property
    def wants(self) -> Wants:
        """Load the resource and its children."""
        return Wants(ids=(self.target.id,), families=(self.target.id,))

    def apply(self, workspace: Workspace) -> Written | Refusal:
        """Mark it and its children as deleting; what needs no cleanup is removed at once."""
        record = workspace.find(self.target, self.caller)
        if record is None:
            return not_found(self.target)
        refusal = _check_preconditions(record, self.preconditions)
        if refusal is not None:
            return refusal
        if record.resource.is_deleting:
            return Written(record)
        for child in workspace.children_of(record.resource.id):
            if not child.resource.is_deleting:
                _mark(child, workspace)
        marked = _mark(workspace.get(self.target.id) or record, workspace)  # its children may have changed it
        return Written(marked, is_gone=workspace.is_removed(self.target.id))


class ForceDelete(Struct, frozen=True):
    """Remove a resource that is being deleted, and its children, without waiting for adapters."""

    target: Target
    reason: str
    caller: Caller

    @property
    def wants(self) -> Wants:
        """Load the resource and its children."""
        return Wants(ids=(self.target.id,), families=(self.target.id,))

    def apply(self, workspace: Workspace) -> Written | Refusal:
        """Remove it; history keeps the caller and the reason."""
        record = workspace.find(self.target, self.caller)
        if record is None:
            return not_found(self.target)
        if not record.resource.is_deleting:
            return Refusal("NotBeingDeleted", f"{self.target.id} is not being deleted; DELETE it first")
        who = f" by {self.caller.name}" if self.caller.name else ""
        message = f"forced{who}: {self.reason}"
        for child in workspace.children_of(record.resource.id):
            workspace.remove(child, StatusCause("deletion"), "ForceDeleted", message, updates_parent=False)
        gone = workspace.remove(record, StatusCause("deletion"), "ForceDeleted", message)
        return Written(gone, is_gone=True)


def _mark(record: Record, workspace: Workspace) -> Record:
    before, now = record.resource, workspace.time_for(record)
    after = replace(before, generation=before.generation + 1, generation_time=now, deletion_time=now)
    return workspace.edit(record, after, StatusCause("deletion"), "DeletionRequested")


def _check_preconditions(record: Record, preconditions: Preconditions) -> Refusal | None:
    if preconditions.is_absent:
        return Refusal(
            "PreconditionFailed", f"{record.resource.id} exists, and If-None-Match: * requires that it does not"
        )
    if preconditions.revisions is not None and record.revision not in preconditions.revisions:
        return Refusal("PreconditionFailed", f"{record.resource.id} has changed; read it again and retry")
    wanted, actual = preconditions.generation, record.resource.generation
    if wanted is not None and wanted != actual:
        problem = BodyProblem("/generation", "GenerationConflict", f"made from generation {wanted}, it is at {actual}")
        return Refusal("GenerationConflict", f"{record.resource.id} is at generation {actual}", (problem,))
    return None


def _changed(
    before: Mapping[str, Any], wanted: Mapping[str, Any] | UnsetType | None, *, is_merge: bool
) -> Mapping[str, Any]:
    if wanted is UNSET:
        return before
    if wanted is None:
        return {}
    return merge_patch(before, wanted) if is_merge else wanted


def merge_patch(target: object, patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a JSON merge patch (RFC 7396): objects merge, null deletes, everything else replaces."""
    merged: dict[str, Any] = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            merged[key] = merge_patch(merged.get(key), value)
        else:
            merged[key] = value
    return merged


def _too_many_labels(labels: Mapping[str, Any]) -> Refusal:
    message = f"{len(labels)} labels; at most {MAX_LABELS} are allowed"
    return Refusal("InvalidLabels", message, (BodyProblem("/labels", "TooMany", message),))


def _no_parent(kind: Kind, parent_id: str) -> Refusal:
    return Refusal("NotFound", f"there is no {kind.parent} {parent_id}")
