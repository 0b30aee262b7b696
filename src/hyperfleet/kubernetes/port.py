"""The port of Kubernetes clusters, and the values that cross it: kinds, references, events of a watch.

An object is a plain mapping, as JSON has it, without `metadata.managedFields`: those are half of many objects, and
nothing of ours reads them. The adapter framework and the operator use this port; backends implement it. One client is
one cluster.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal, Protocol, Self

from msgspec import Struct

KubernetesObject = dict[str, Any]
Propagation = Literal["Background", "Foreground", "Orphan"]
EventType = Literal["added", "modified", "deleted", "bookmark"]

# A server ends a watch after this time, and the watcher resumes. So a watch that hangs unnoticed ends, too.
WATCH_SECONDS: Final = 290


class ObjectKind(Struct, frozen=True, order=True):
    """A kind of objects, as a manifest names it."""

    api_version: str  # v1, apps/v1
    kind: str

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Self:
        """Return the kind of an object."""
        return cls(str(manifest.get("apiVersion", "")), str(manifest.get("kind", "")))

    def __str__(self) -> str:
        """Write it as people do: Deployment (apps/v1)."""
        return f"{self.kind} ({self.api_version})"


class ServedKind(Struct, frozen=True):
    """How an API serves a kind."""

    kind: ObjectKind
    plural: str
    is_namespaced: bool
    has_status: bool  # the status is written by `apply_status` only


class ObjectRef(Struct, frozen=True, order=True):
    """Names one object of a cluster. The namespace of an object that is in none is empty."""

    kind: ObjectKind
    namespace: str
    name: str

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Self:
        """Return the reference of an object."""
        metadata = manifest.get("metadata") or {}
        return cls(ObjectKind.of(manifest), str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))

    def __str__(self) -> str:
        """Write it as people do: Deployment default/web."""
        return f"{self.kind.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind.kind} {self.name}"


class ObjectList(Struct, frozen=True):
    """The objects at one version of the cluster; a watch from that version continues it."""

    items: Sequence[KubernetesObject]
    version: str


class WatchEvent(Struct, frozen=True):
    """One change of one object. A bookmark tells only the version up to which everything has been sent."""

    type: EventType
    object: KubernetesObject
    version: str


class Selection(Struct, frozen=True):
    """Which objects of a kind to list or watch."""

    kind: ObjectKind
    namespace: str | None = None  # None: all namespaces
    labels: str = ""  # a selector in the syntax of Kubernetes; empty: all objects

    def __str__(self) -> str:
        """Write it for a log."""
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.kind}{place}" + (f" with {self.labels}" if self.labels else "")


def match_labels(labels: Mapping[str, str]) -> str:
    """Return the selector of objects that have all these labels."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


class ObjectClient(Protocol):
    """Reads and writes the objects of one cluster. Every call ends within a bounded time, or raises.

    Raises `KubernetesError` and its kinds, nothing else. A namespaced object needs a namespace; for other objects a
    namespace is ignored. Nothing is retried but a connection that broke while it was idle: callers retry conflicts.
    """

    async def discover(self, kind: ObjectKind) -> ServedKind:
        """Return how a kind is served; `KindUnknown`: it is not."""
        ...

    async def get(self, ref: ObjectRef) -> KubernetesObject:
        """Return an object."""
        ...

    async def list(self, selection: Selection) -> ObjectList:
        """Return all selected objects, and the version at which they were so."""
        ...

    async def apply(self, manifest: KubernetesObject, *, manager: str, force: bool = False) -> KubernetesObject:
        """Create an object, or change it to have the fields of a manifest (server-side apply); return it.

        The manager owns the fields it applied. A field it applied before and no longer does is removed, unless another
        manager owns it, too. A field of another manager is a conflict, unless `force` takes it over. An unchanged
        object keeps its version. With a `metadata.uid` in the manifest only that object is changed; none is created.
        """
        ...

    async def apply_status(self, manifest: KubernetesObject, *, manager: str, force: bool = False) -> KubernetesObject:
        """Do the same with the status, and nothing else, of an object that exists."""
        ...

    async def delete(self, ref: ObjectRef, *, propagation: Propagation = "Background", uid: str | None = None) -> None:
        """Ask to delete an object; with a uid, only if it is that one (otherwise `ObjectConflict`).

        An object with finalizers stays, with a `metadata.deletionTimestamp`, until they are removed.
        """
        ...

    def watch(
        self, selection: Selection, version: str, *, seconds: int = WATCH_SECONDS
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Yield the changes since a version for the length of a block, at most `seconds`; then the iterator ends.

        The last event's version is where to resume. Raises `VersionExpired` when the server no longer has the changes.
        """
        ...

    async def close(self) -> None:
        """Disconnect."""
        ...
