"""A cluster in memory: the port `ObjectClient` without any server, for dry runs, the demo and tests.

It behaves as an API server does for one client, and passes the same contract tests. It differs in this: manifests are
not checked against a schema, and defaults are not filled in (`ownership`); dependents of a deleted object, and all
objects of a deleted namespace, are deleted at once, as controllers would do. Unless it is strict, every kind is served
and every namespace exists.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final, Literal

from msgspec import Struct, structs

from hyperfleet.backends.kubernetes.built_in_kinds import BUILT_IN, DEFINITION, guess_plural, read_definition
from hyperfleet.backends.kubernetes.dry_run_watch import ChangeLog, Matcher, ObjectChange
from hyperfleet.backends.kubernetes.ownership import Owners, merge
from hyperfleet.backends.kubernetes.paths import object_path
from hyperfleet.errors import KindUnknown, KubernetesError, ObjectConflict, ObjectNotFound
from hyperfleet.kubernetes.port import (
    WATCH_SECONDS,
    KubernetesObject,
    ObjectKind,
    ObjectList,
    ObjectRef,
    Propagation,
    Selection,
    ServedKind,
    WatchEvent,
)

Verb = Literal["get", "list", "apply", "apply-status", "delete"]
_NAMESPACE: Final = ObjectKind("v1", "Namespace")
_PRELOADED: Final = "hyperfleet-preloaded"  # the manager of the fields of objects that were given at the start
# Set by the API server; a manager cannot own them.
_SERVERS_METADATA: Final = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "generation", "managedFields"}
    | {"creationTimestamp", "deletionTimestamp"}
)


class Operation(Struct, frozen=True, kw_only=True):
    """One call of a client, for the trace of a dry run."""

    verb: Verb
    kind: ObjectKind
    namespace: str | None = None
    name: str = ""
    outcome: str  # created, updated, unchanged, deleted, deleting, found, or the code of an error
    error: str = ""
    result: KubernetesObject | None = None  # the object after the operation


class _Stored(Struct, frozen=True):
    content: KubernetesObject
    owners: Owners


class DryRunCluster:
    """Reads and writes objects in memory."""

    def __init__(
        self,
        *,
        is_strict: bool = False,
        record: Callable[[Operation], None] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Make an empty cluster; `record` is given every operation."""
        self._objects: Final[dict[ObjectRef, _Stored]] = {}
        self._preloaded: Final[dict[ObjectRef, KubernetesObject]] = {}
        self._log: Final = ChangeLog()
        self._is_strict: Final = is_strict
        self._record: Final = record or (lambda operation: None)
        self._now: Final = now

    def preload(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Add objects that exist from the start. They keep these fields, also their status, whatever is applied."""
        for each in objects:
            manifest = copy.deepcopy(dict(each))
            ref = self._locate(ObjectRef.of(manifest))
            self._preloaded[ref] = manifest
            self._overlay(ref)

    async def discover(self, kind: ObjectKind) -> ServedKind:
        """Return how a kind is served."""
        if served := self._find_kind(kind):
            return served
        if self._is_strict:
            raise KindUnknown(f"the dry run does not serve {kind}", status=404)
        return ServedKind(kind, guess_plural(kind.kind), is_namespaced=True, has_status=True)

    async def get(self, ref: ObjectRef) -> KubernetesObject:
        """Return an object."""
        with _Recording(self._record, "get", ref) as operation:
            found = self._find(await self._resolve(ref))
            return operation.end("found", found.content)

    async def list(self, selection: Selection) -> ObjectList:
        """Return all selected objects."""
        await self.discover(selection.kind)
        matcher = Matcher(selection)
        items = [stored.content for ref, stored in sorted(self._objects.items()) if matcher.matches(stored.content)]
        operation = Operation(verb="list", kind=selection.kind, namespace=selection.namespace, outcome="found")
        self._record(operation)
        return ObjectList(copy.deepcopy(items), str(self._log.version))

    async def apply(self, manifest: KubernetesObject, *, manager: str, force: bool = False) -> KubernetesObject:
        """Create an object, or give a manager's fields their new values."""
        with _Recording(self._record, "apply", ObjectRef.of(manifest)) as operation:
            ref = await self._resolve(ObjectRef.of(manifest))
            served = await self.discover(ref.kind)
            metadata = manifest.get("metadata", {})
            existing = self._objects.get(ref)
            self._check_preconditions(ref, metadata, existing)
            fields = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
            fields["metadata"] = {key: value for key, value in metadata.items() if key not in _SERVERS_METADATA}
            if served.has_status:
                fields.pop("status", None)
            return operation.end(*self._merge(ref, fields, manager, force))

    async def apply_status(self, manifest: KubernetesObject, *, manager: str, force: bool = False) -> KubernetesObject:
        """Give the fields of the status that a manager owns their new values."""
        with _Recording(self._record, "apply-status", ObjectRef.of(manifest)) as operation:
            ref = await self._resolve(ObjectRef.of(manifest))
            existing = self._find(ref)
            self._check_preconditions(ref, manifest.get("metadata", {}), existing)
            # Apart from the other fields: an apply without the status must not remove it.
            return operation.end(*self._merge(ref, {"status": manifest.get("status", {})}, f"{manager}/status", force))

    async def delete(self, ref: ObjectRef, *, propagation: Propagation = "Background", uid: str | None = None) -> None:
        """Delete an object; with finalizers it is only marked."""
        with _Recording(self._record, "delete", ref) as operation:
            place = await self._resolve(ref)
            found = self._find(place)
            if uid and found.content["metadata"]["uid"] != uid:
                raise ObjectConflict(f"{ref} has another uid than {uid}", status=409)
            operation.end(self._delete(place, found, propagation), found.content)

    @asynccontextmanager
    async def watch(
        self, selection: Selection, version: str, *, seconds: int = WATCH_SECONDS
    ) -> AsyncGenerator[AsyncIterator[WatchEvent], None]:
        """Yield the changes since a version; at the end a bookmark."""
        await self.discover(selection.kind)
        yield self._log.follow(Matcher(selection), version, seconds)

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def forget_changes(self) -> None:
        """Let watches from older versions fail, as an API server does after some minutes."""
        self._log.forget()

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _find_kind(self, kind: ObjectKind) -> ServedKind | None:
        if kind in BUILT_IN:
            return BUILT_IN[kind]
        definitions = (stored.content for ref, stored in self._objects.items() if ref.kind == DEFINITION)
        return next((found[kind] for each in definitions if kind in (found := read_definition(each))), None)

    async def _resolve(self, ref: ObjectRef) -> ObjectRef:
        """Return where an object is; check its names as an API server does."""
        served = await self.discover(ref.kind)
        place = self._locate(ref)
        object_path(
            structs.replace(served, is_namespaced=bool(served.is_namespaced and self._find_kind(ref.kind))), place
        )
        return place

    def _locate(self, ref: ObjectRef) -> ObjectRef:
        """Leave the namespace out where there is none; of a kind that nobody defined, what is there decides."""
        served = self._find_kind(ref.kind)
        everywhere = structs.replace(ref, namespace="")
        is_outside = not served.is_namespaced if served else ref not in self._objects and everywhere in self._objects
        return everywhere if is_outside else ref

    def _find(self, ref: ObjectRef) -> _Stored:
        if ref not in self._objects:
            raise ObjectNotFound(f"{ref} not found", status=404)
        return self._objects[ref]

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _check_preconditions(self, ref: ObjectRef, metadata: Mapping[str, Any], existing: _Stored | None) -> None:
        wanted = {key: metadata[key] for key in ("uid", "resourceVersion") if metadata.get(key)}
        found = existing.content["metadata"] if existing else {}
        if any(found.get(key) != value for key, value in wanted.items()):
            raise ObjectConflict(f"{ref} is not the object of the manifest: its uid or version differs", status=409)
        namespace = ObjectRef(_NAMESPACE, "", ref.namespace)
        if existing is None and self._is_strict and ref.namespace and namespace not in self._objects:
            raise ObjectNotFound(f'namespaces "{ref.namespace}" not found', status=404)

    def _merge(self, ref: ObjectRef, fields: dict[str, Any], manager: str, force: bool) -> tuple[str, KubernetesObject]:
        """Merge fields into an object; return the outcome and the object."""
        existing = self._objects.get(ref)
        before = existing.content if existing else {}
        merged = merge(before, existing.owners if existing else {}, manager, fields, force)
        if merged.conflicts:
            fields_of = ", ".join(f'conflict with "{other}": .{path}' for path, other in merged.conflicts.items())
            raise ObjectConflict(f"apply failed with {len(merged.conflicts)} conflicts: {fields_of}", status=409)
        if existing and merged.fields == before:
            self._objects[ref] = _Stored(before, merged.owners)
            return "unchanged", before
        self._store(ref, merged.fields, merged.owners)
        if ref in self._preloaded and manager != _PRELOADED:
            self._overlay(ref)
        stored = self._objects.get(ref)  # None: its last finalizer was removed
        return ("updated" if existing else "created"), stored.content if stored else merged.fields

    def _overlay(self, ref: ObjectRef) -> None:
        """Give a preloaded object the fields that it was preloaded with."""
        manifest = self._preloaded[ref]
        metadata = {key: each for key, each in manifest.get("metadata", {}).items() if key not in _SERVERS_METADATA}
        fields = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
        self._merge(ref, {**fields, "metadata": metadata}, _PRELOADED, force=True)
        stored = self._objects[ref]
        owners = {manager: paths for manager, paths in stored.owners.items() if manager != _PRELOADED}
        self._objects[ref] = _Stored(stored.content, owners)  # no conflict with what was there before

    def _store(self, ref: ObjectRef, content: KubernetesObject, owners: Owners) -> None:
        """Keep a changed object with a new version; remove it if it is being deleted and nothing holds it."""
        existing = self._objects.get(ref)
        before = existing.content if existing else None
        version = self._log.version + 1
        known = before["metadata"] if before else {"uid": _make_uid(version), "creationTimestamp": self._timestamp()}
        metadata = {**content.get("metadata", {}), **{key: known[key] for key in ("uid", "creationTimestamp")}}
        metadata |= {"name": ref.name, "resourceVersion": str(version)}
        metadata |= {"namespace": ref.namespace} if ref.namespace else {}
        if "spec" in content:
            metadata["generation"] = _next_generation(before, content)
        after = {"apiVersion": ref.kind.api_version, "kind": ref.kind.kind, **content, "metadata": metadata}
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            del self._objects[ref]
            self._log.append(ObjectChange(before, None, after))
            return
        self._objects[ref] = _Stored(after, owners)
        self._log.append(ObjectChange(before, after, after))

    def _delete(self, ref: ObjectRef, found: _Stored, propagation: Propagation) -> str:
        metadata = found.content["metadata"]
        if metadata.get("finalizers") and "deletionTimestamp" in metadata:
            return "deleting"
        self._preloaded.pop(ref, None)
        marked = {**metadata, "deletionTimestamp": self._timestamp()}
        self._store(ref, {**found.content, "metadata": marked}, found.owners)
        if ref in self._objects:
            return "deleting"
        for other, stored in list(self._objects.items()):
            is_inside = ref.kind == _NAMESPACE and other.namespace == ref.name
            if other in self._objects and (
                is_inside or (propagation != "Orphan" and _is_owned(stored, metadata["uid"]))
            ):
                self._delete(other, stored, propagation)
        return "deleted"

    def _timestamp(self) -> str:
        return self._now().strftime("%Y-%m-%dT%H:%M:%SZ")


class _Recording:
    """Records one operation, however it ends."""

    def __init__(self, record: Callable[[Operation], None], verb: Verb, ref: ObjectRef) -> None:
        self._record = record
        self._operation = Operation(verb=verb, kind=ref.kind, namespace=ref.namespace, name=ref.name, outcome="")

    def __enter__(self) -> _Recording:
        return self

    def end(self, outcome: str, result: KubernetesObject) -> KubernetesObject:
        """Record the outcome; return a copy of the object, which the caller may change."""
        self._record(structs.replace(self._operation, outcome=outcome, result=copy.deepcopy(result)))
        return copy.deepcopy(result)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, KubernetesError):
            self._record(structs.replace(self._operation, outcome=error.code, error=str(error)))


def _make_uid(number: int) -> str:
    """Make a uid that is the same in every run: traces are compared."""
    return f"{number:08d}-0000-4000-8000-000000000000"


def _next_generation(before: KubernetesObject | None, after: KubernetesObject) -> int:
    if before is None:
        return 1
    generation = int(before["metadata"].get("generation", 1))
    return generation + (before.get("spec") != after.get("spec"))


def _is_owned(stored: _Stored, uid: str) -> bool:
    return any(owner.get("uid") == uid for owner in stored.content["metadata"].get("ownerReferences") or ())
