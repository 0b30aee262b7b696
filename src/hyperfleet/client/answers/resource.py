"""Resources as the server returns them: spec and status."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from msgspec import Raw, Struct, field

from hyperfleet.client.answers.document import ApiDocument


class Undamped(Struct, frozen=True, rename="camel"):
    """The present result of a damped rule, if it differs from the published one."""

    status: str = ""
    since: datetime | None = None


class FlappingMark(Struct, frozen=True, rename="camel"):
    """Marks a phase or condition that changes too often."""

    transitions: int = 0
    window: str = ""
    since: datetime | None = None


class Condition(Struct, frozen=True, rename="camel"):
    """One observation: computed by the server, or reported by an adapter."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None
    undamped: Undamped | None = field(default=None, name="raw")
    flapping: FlappingMark | None = None


class AdapterState(Struct, frozen=True, rename="camel"):
    """The state of one adapter that has reported on a resource."""

    name: str
    available: str = "Unknown"
    observed_generation: int = 0
    state: str = ""
    state_since: datetime | None = None
    stale: bool = False


class Status(Struct, frozen=True, rename="camel"):
    """The status of a resource."""

    phase: str = ""
    phase_description: str = ""
    phase_since: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    adapters: tuple[AdapterState, ...] = ()
    last_updated: datetime | None = None
    phase_flapping: FlappingMark | None = None

    def condition(self, type_: str) -> Condition | None:
        """Return the condition of a type."""
        return next((each for each in self.conditions if each.type == type_), None)

    def adapter(self, name: str) -> AdapterState | None:
        """Return the adapter of a name, if it has reported."""
        return next((each for each in self.adapters if each.name == name), None)


class Metadata(Struct, frozen=True, rename="camel"):
    """The metadata of a resource."""

    created_at: datetime | None = None
    updated_at: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    created_by: str | None = None
    deletion_timestamp: datetime | None = None
    cluster_id: str | None = None
    parent_id: str | None = None
    tenant: str | None = None


class Resource(ApiDocument, frozen=True, rename="camel", dict=True):
    """A cluster, a node pool or a resource of another kind. With `fields`, what was not requested is empty."""

    id: str
    type: str = ""
    href: str = ""
    name: str = ""
    generation: int = 0
    spec: Mapping[str, Any] = field(default_factory=dict)
    metadata: Metadata = field(default_factory=Metadata)
    status: Status = field(default_factory=Status)

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels."""
        return self.metadata.labels

    @property
    def phase(self) -> str:
        """Return the phase."""
        return self.status.phase

    @property
    def is_ready(self) -> bool:
        """Return whether the phase is Ready."""
        return self.status.phase == "Ready"

    @property
    def is_deleting(self) -> bool:
        """Return whether it is being deleted."""
        return self.metadata.deletion_timestamp is not None


class Cluster(Resource, frozen=True, rename="camel", dict=True):
    """A cluster."""


class NodePool(Resource, frozen=True, rename="camel", dict=True):
    """A node pool of a cluster."""

    @property
    def cluster_id(self) -> str:
        """Return the id of the cluster it belongs to."""
        return self.metadata.cluster_id or ""


R = TypeVar("R", bound=Resource)

Action = Literal["created", "configured", "unchanged"]


class Applied(Struct, Generic[R], frozen=True):
    """What `apply` did. With `dry_run`, what it would have done; `resource` is then the present one, if any."""

    action: Action
    resource: R | None


class PageAnswer(ApiDocument, frozen=True, rename="camel", dict=True):
    """A page as the server sends it: the items are not decoded yet."""

    items: tuple[Raw, ...] = ()
    continue_: str | None = field(default=None, name="continue")
    page: int | None = None
    size: int | None = None
    total: int | None = None


class Page(Struct, Generic[R], frozen=True):
    """One page of a list. `continue_` is for the next one; None: this was the last. `total` with `page` only."""

    items: tuple[R, ...]
    continue_: str | None = None
    total: int | None = None


class WaitResult(Struct, frozen=True, rename="camel"):
    """The result of a successful wait; without a resource: it is gone, and the wait was for that."""

    outcome: str = ""
    revision: int | None = None
    resource: Raw = field(default_factory=Raw)


class ReconcileRequested(ApiDocument, frozen=True, rename="camel", dict=True):
    """Adapters were asked to look again: the position of the event in the log."""

    requested: int = 0
    position: int = 0


class DeletedItem(Struct, frozen=True, rename="camel"):
    """The event of a resource that was removed or no longer matches."""

    id: str = ""
    reason: str = ""
    object: Raw = field(default_factory=Raw)


WatchKind = Literal["added", "modified", "deleted", "transitions", "synced", "bookmark", "relist"]
W = TypeVar("W", bound=ApiDocument)


class WatchEvent(Struct, Generic[W], frozen=True):
    """One event of a watch.

    `added`, `modified`: with what it is about as `resource`. `deleted`: with its id and the `reason`, `Removed` or
    `NoLongerMatches` (then with the resource). `transitions`: with the change as `resource`. `synced`: the list is
    complete. `bookmark`: nothing, but the position moved. `relist`, which the client adds: discard what you have, the
    whole list follows again up to `synced`.
    """

    kind: WatchKind
    position: int | None = None
    id: str = ""
    resource: W | None = None
    reason: str = ""
