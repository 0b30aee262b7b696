"""Find the objects of a file in its clusters. What cannot be read is a failure, never absent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from hyperfleet.adapter.config import ManagedObject, TrackedObject
from hyperfleet.adapter.discovery import ByName, Lookup, best_first, render_lookup
from hyperfleet.adapter.objects import FailureReason, ObjectFailure
from hyperfleet.errors import AccessError, KindUnknown, KubernetesError, ObjectInvalid, ObjectNotFound
from hyperfleet.kubernetes.port import KubernetesObject, ObjectClient, ObjectKind, ObjectRef

Clusters = Callable[[str], ObjectClient]  # by the name of a context; empty: the cluster of the adapter


class ObjectFailed(Exception):  # noqa: N818 - internal: step 3 returns the failure
    """Something failed with one object."""

    def __init__(self, name: str, reason: FailureReason, message: object) -> None:
        """Name the object, and say what failed."""
        self.failure = ObjectFailure(object=name, reason=reason, message=f"{name}: {message}")
        super().__init__(self.failure.message)


class ObjectFinder:
    """Looks for the objects of one event; `variables` are those that templates see at that time."""

    def __init__(self, clusters: Clusters, now: datetime) -> None:
        """Hold what is the same for all objects."""
        self._clusters: Final = clusters
        self._now: Final = now

    async def find(self, item: ManagedObject, variables: Mapping[str, Any]) -> tuple[KubernetesObject, ...]:
        """Return everything that an object's discovery finds, the best first."""
        client = self.client(item, variables)
        try:
            return await _fetch(client, self.lookup(item, variables))
        except KubernetesError as error:
            raise ObjectFailed(item.name, _reading_reason(error), error) from error

    async def find_tracked(self, tracked: TrackedObject, variables: Mapping[str, Any]) -> KubernetesObject | None:
        """Return an object of others, if it is there."""
        client, lookup = self._open(tracked.name, ""), self.lookup(tracked, variables)
        try:
            found = await _fetch(client, lookup)
        except KindUnknown:
            return None  # its definition may come later; nothing of ours depends on it being there
        except KubernetesError as error:
            raise ObjectFailed(tracked.name, _reading_reason(error), error) from error
        return found[0] if found else None

    def lookup(self, item: ManagedObject | TrackedObject, variables: Mapping[str, Any]) -> Lookup:
        """Return what an object's discovery looks for."""
        kind = ObjectKind(item.api_version, item.kind)
        lookup, fault = render_lookup(item.discovery, kind, variables, self._now)
        if lookup is None:
            raise ObjectFailed(item.name, "AdapterError", fault)
        return lookup

    def client(self, item: ManagedObject, variables: Mapping[str, Any]) -> ObjectClient:
        """Return the client of the cluster that an object is in."""
        if item.context is None:
            return self._open(item.name, "")
        context, fault = item.context.render(variables, self._now)
        if fault is not None:
            raise ObjectFailed(item.name, "AdapterError", f"the context: {fault.message}")
        return self._open(item.name, context.strip())

    def _open(self, name: str, context: str) -> ObjectClient:
        try:
            return self._clusters(context)
        except (AccessError, KubernetesError) as error:
            raise ObjectFailed(name, "KubernetesAPIFailure", error) from error


async def find_one(client: ObjectClient, ref: ObjectRef) -> KubernetesObject | None:
    """Return an object, if it is there."""
    try:
        return await client.get(ref)
    except ObjectNotFound:
        return None


async def _fetch(client: ObjectClient, lookup: Lookup) -> tuple[KubernetesObject, ...]:
    if isinstance(lookup, ByName):
        found = await find_one(client, lookup.ref)
        return () if found is None else (found,)
    return best_first((await client.list(lookup.selection)).items)


def _reading_reason(error: KubernetesError) -> FailureReason:
    return "ResourceCreationFailed" if isinstance(error, ObjectInvalid | KindUnknown) else "KubernetesAPIFailure"
