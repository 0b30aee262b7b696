"""Step 3, what is done: find the objects of a file, apply and delete them as `objects` decides.

Thin: it reads and writes through the object client, retries conflicts, and waits no longer than its limits. Failures
are values. Applying stops at the first failure; deleting continues, so that one stuck object does not keep the others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from hyperfleet.adapter.config import AdapterConfig, ManagedObject
from hyperfleet.adapter.discovery import ByName, best_first, find_nested
from hyperfleet.adapter.manifests import generation_of, mark_manifest, place_manifest, render_manifest
from hyperfleet.adapter.object_finding import Clusters, ObjectFailed, ObjectFinder, find_one
from hyperfleet.adapter.objects import (
    ApplyPlan,
    DeletePlan,
    FaultPlan,
    NoWrite,
    ObjectFailure,
    ObjectOperation,
    ObjectOutcome,
    ObjectRules,
    ObjectsResult,
    Recreation,
    RestPlan,
    plan_object,
    plan_write,
)
from hyperfleet.errors import (
    KubernetesError,
    KubernetesUnreachable,
    ObjectConflict,
    ObjectNotFound,
)
from hyperfleet.kubernetes.port import KubernetesObject, ObjectClient, ObjectRef


class WriteLimits(Struct, frozen=True, kw_only=True):
    """How long writes are retried and waited for."""

    attempts: int = 5  # of a write that conflicts; each conflict means that another writer got through
    pause: float = 0.1  # seconds between two attempts, and between two looks at an object that goes
    recreation: float = 30.0  # seconds that an object may take to go; a finalizer must not hold a worker for longer


class ObjectStep:
    """Brings the objects of one event to what the file says. Use it once."""

    def __init__(
        self,
        config: AdapterConfig,
        rules: ObjectRules,
        variables: Mapping[str, Any],
        clusters: Clusters,
        sleep: Callable[[float], Awaitable[None]],
        limits: WriteLimits = WriteLimits(),  # noqa: B008 - immutable
    ) -> None:
        """Hold what an event needs; nothing is read yet."""
        self._config: Final = config
        self._rules: Final = rules
        self._variables: Final = dict(variables)
        self._finder: Final = ObjectFinder(clusters, rules.now)
        self._sleep: Final = sleep
        self._limits: Final = limits
        self._manager: Final = f"hyperfleet-{config.name}"[:128]  # the API takes no more
        self._found: Final[dict[str, tuple[KubernetesObject, ...]]] = {}
        self._tracked: Final[dict[str, KubernetesObject]] = {}
        self._outcomes: Final[dict[str, ObjectOutcome]] = {}
        self._failures: Final[list[ObjectFailure]] = []

    async def run(self) -> ObjectsResult:
        """Look at everything, apply in order, then delete in reverse."""
        try:
            await self._look()
            await self._apply_all()
        except ObjectFailed as failed:
            self._fail(failed.failure)
        else:
            await self._delete_all()
            await self._track_again()
        return self._result()

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _look(self) -> None:
        for item in self._config.resources:
            self._found[item.name] = await self._finder.find(item, self._seen())
        for tracked in self._config.tracked:
            found = await self._finder.find_tracked(tracked, self._seen())
            if found is not None:
                self._tracked[tracked.name] = found

    async def _track_again(self) -> None:
        """Look at tracked objects after writes: what was applied may have made one of them."""
        if not any(each.operation in ("create", "recreate", "update", "delete") for each in self._outcomes.values()):
            return
        for tracked in self._config.tracked:
            try:
                found = await self._finder.find_tracked(tracked, self._seen())
            except ObjectFailed as failed:
                self._failures.append(failed.failure)
                return
            if found is not None:
                self._tracked[tracked.name] = found
            else:
                self._tracked.pop(tracked.name, None)

    # ── applying ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _apply_all(self) -> None:
        for item in self._config.resources:
            match self._plan(item):
                case ApplyPlan():
                    await self._apply(item)
                case RestPlan() as rest:
                    self._note(item, rest.operation, rest.reason)
                case FaultPlan() as fault if not self._rules.subject.is_deleting:
                    raise ObjectFailed(item.name, "AdapterError", fault.message)
                case _:
                    pass  # deletions come later, in reverse
            self._find_inside(item)

    def _plan(self, item: ManagedObject) -> ApplyPlan | DeletePlan | RestPlan | FaultPlan:
        return plan_object(item, self._found[item.name], self._rules, self._seen())

    async def _apply(self, item: ManagedObject) -> None:
        client = self._finder.client(item, self._seen())
        manifest = self._render(item)
        for attempt in range(1, self._limits.attempts + 1):
            try:
                await self._write(item, client, manifest)
                return
            except ObjectConflict as error:  # it changed between the look and the write: look again
                if attempt == self._limits.attempts:
                    message = f"still in conflict after {attempt} attempts: {error}"
                    raise ObjectFailed(item.name, "ResourceCreationFailed", message) from error
                await self._sleep(self._limits.pause * attempt)
            except KubernetesUnreachable as error:
                raise ObjectFailed(item.name, "KubernetesAPIFailure", error) from error
            except KubernetesError as error:
                raise ObjectFailed(item.name, "ResourceCreationFailed", error) from error

    def _render(self, item: ManagedObject) -> KubernetesObject:
        manifest, fault = render_manifest(item, self._seen(), self._rules.now)
        if fault:
            raise ObjectFailed(item.name, "AdapterError", fault)
        lookup = self._finder.lookup(item, self._seen())
        if isinstance(lookup, ByName):
            return place_manifest(manifest, lookup.ref.namespace, lookup.ref.name)
        return place_manifest(manifest, lookup.selection.namespace or "", "")

    async def _write(self, item: ManagedObject, client: ObjectClient, rendered: KubernetesObject) -> None:
        live = await find_one(client, ObjectRef.of(rendered))
        manifest = mark_manifest(rendered, self._rules.adapter, self._rules.subject, live)
        plan = plan_write(manifest, live, self._rules.adapter, recreates=item.recreate_on_change)
        if isinstance(plan, NoWrite):
            self._note(item, plan.operation, plan.reason, (live,) if live else ())
            return
        if isinstance(plan, Recreation):
            await self._remove(item, client, ObjectRef.of(manifest), plan.uid)
        applied = await client.apply(manifest, manager=self._manager, force=True)
        self._keep(item, applied)
        operation = "recreate" if isinstance(plan, Recreation) else _compare(live, applied)
        self._note(item, operation, _reason(operation, plan.reason, live, manifest), (applied,), manifest)

    async def _remove(self, item: ManagedObject, client: ObjectClient, ref: ObjectRef, uid: str) -> None:
        """Delete an object and wait until it is gone, but not for ever."""
        try:
            await client.delete(ref, propagation=item.propagation, uid=uid or None)
        except ObjectNotFound:
            return
        for _ in range(max(1, int(self._limits.recreation / self._limits.pause))):
            if await find_one(client, ref) is None:
                return
            await self._sleep(self._limits.pause)
        message = f"{ref} is still there {self._limits.recreation:g}s after its deletion; has it a finalizer?"
        raise ObjectFailed(item.name, "ResourceFailure", message)

    # ── deleting ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _delete_all(self) -> None:
        """Delete in reverse order, and again as long as something went: that may open the gate of another."""
        waiting = [item for item in reversed(self._config.resources) if not self._is_applied(item)]
        has_progress = True
        while has_progress and waiting:
            has_progress = False
            for item in list(waiting):
                if await self._delete_if_planned(item):
                    waiting.remove(item)
                    has_progress = has_progress or not self._found[item.name]

    async def _delete_if_planned(self, item: ManagedObject) -> bool:
        """Delete what was found of an object if its gate is open; return whether that was decided."""
        match self._plan(item):
            case DeletePlan():
                try:
                    await self._delete(item)
                except ObjectFailed as failed:
                    self._fail(failed.failure)
                return True
            case FaultPlan() as fault:
                self._fail(
                    ObjectFailure(object=item.name, reason="AdapterError", message=f"{item.name}: {fault.message}")
                )
                return True
        return False

    async def _delete(self, item: ManagedObject) -> None:
        """Delete every match in one pass, then look again: only what is not found is gone."""
        client, before = self._finder.client(item, self._seen()), self._found[item.name]
        if not before:
            self._note(item, "absent", "resource already deleted or never existed")
            return
        for each in before:
            await self._delete_one(item, client, each)
        self._found[item.name] = left = await self._finder.find(item, self._seen())
        if left:
            self._note(item, "deleting", f"{len(left)} of {len(before)} still there", left)
        else:
            self._note(
                item, "delete", "lifecycle.delete.when" if item.delete_when else "the resource is deleted", before
            )

    async def _delete_one(self, item: ManagedObject, client: ObjectClient, found: KubernetesObject) -> None:
        if found["metadata"].get("deletionTimestamp"):
            return  # asked already; its finalizers are for others to remove
        try:
            await client.delete(ObjectRef.of(found), propagation=item.propagation, uid=found["metadata"].get("uid"))
        except (ObjectNotFound, ObjectConflict):
            return  # gone, or replaced by another object with its name, which the next look finds
        except KubernetesUnreachable as error:
            raise ObjectFailed(item.name, "KubernetesAPIFailure", error) from error
        except KubernetesError as error:
            raise ObjectFailed(item.name, "ResourceFailure", error) from error

    def _is_applied(self, item: ManagedObject) -> bool:
        outcome = self._outcomes.get(item.name)
        return outcome is not None and (outcome.operation != "hold" or not self._rules.subject.is_deleting)

    # ── what came of it ──────────────────────────────────────────────────────────────────────────────────────────

    def _seen(self) -> dict[str, Any]:
        return {**self._variables, "resources": self._resources(), "externalResources": self._external()}

    def _resources(self) -> dict[str, KubernetesObject]:
        managed = {name: found[0] for name, found in self._found.items() if found}
        return {**self._tracked, **managed}

    def _external(self) -> dict[str, KubernetesObject]:
        """Return tracked objects outside the namespaces in which the adapter has objects."""
        places = {str(_metadata(found).get("namespace") or "") for each in self._found.values() for found in each}
        places |= {
            str(_metadata(found).get("name"))
            for each in self._found.values()
            for found in each
            if found.get("kind") == "Namespace"
        }
        return {
            name: found
            for name, found in self._tracked.items()
            if (_metadata(found).get("namespace") or "") not in places
        }

    def _find_inside(self, item: ManagedObject) -> None:
        for nested in item.nested:
            if not self._found[item.name]:
                continue
            found, fault = find_nested(nested, self._found[item.name][0], self._variables, self._rules.now)
            taken = nested.name in self._resources()
            if fault or taken:
                message = fault or f"resources.{nested.name} is there already"
                raise ObjectFailed(item.name, "AdapterError", f"{nested.name}: {message}")
            if found is not None:
                self._tracked[nested.name] = found

    def _keep(self, item: ManagedObject, applied: KubernetesObject) -> None:
        ref = ObjectRef.of(applied)
        others = [each for each in self._found[item.name] if ObjectRef.of(each) != ref]
        self._found[item.name] = best_first([applied, *others])

    def _note(
        self,
        item: ManagedObject,
        operation: ObjectOperation,
        reason: str,
        objects: tuple[KubernetesObject, ...] = (),
        manifest: KubernetesObject | None = None,
    ) -> None:
        refs = tuple(ObjectRef.of(each) for each in objects)
        outcome = ObjectOutcome(name=item.name, operation=operation, reason=reason, refs=refs, manifest=manifest)
        self._outcomes[item.name] = outcome

    def _fail(self, failure: ObjectFailure) -> None:
        self._failures.append(failure)
        self._outcomes[failure.object] = ObjectOutcome(
            name=failure.object, operation="fail", reason=failure.message.removeprefix(f"{failure.object}: ")
        )

    def _result(self) -> ObjectsResult:
        going = [item.name for item in self._config.resources if self._rules.goes_with_resource(item)]
        order = [item.name for item in self._config.resources]
        return ObjectsResult(
            outcomes=tuple(self._outcomes[name] for name in order if name in self._outcomes),
            failures=tuple(self._failures),
            resources=self._resources(),
            external=self._external(),
            is_all_gone=not self._failures and all(name in self._found and not self._found[name] for name in going),
        )


def _compare(live: KubernetesObject | None, applied: KubernetesObject) -> ObjectOperation:
    if live is None:
        return "create"
    same = _metadata(live).get("resourceVersion") == _metadata(applied).get("resourceVersion")
    return "unchanged" if same else "update"


def _reason(operation: ObjectOperation, reason: str, live: KubernetesObject | None, manifest: KubernetesObject) -> str:
    """Say why; an object that changed without a new generation had been changed by someone else."""
    is_repair = operation == "update" and live is not None and generation_of(live) == generation_of(manifest)
    return f"generation {generation_of(manifest)} unchanged, the live object was repaired" if is_repair else reason


def _metadata(found: Mapping[str, Any]) -> Mapping[str, Any]:
    return found.get("metadata") or {}
