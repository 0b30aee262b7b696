"""What the driver knows about the server's resources: their addresses, and how generations map to the plan's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.simulator.actions import ResourceRef


class TrackedResource(Struct, frozen=True):
    """A resource that the driver created or adopted."""

    address: str
    spec: Mapping[str, Any]
    labels: Mapping[str, str]
    generation: int = 1  # of the plan
    generation_offset: int = 0  # the server's generation minus the plan's
    is_deleting: bool = False

    def server_generation(self, generation: int) -> int:
        """Convert a generation of the plan to the server's."""
        return max(generation + self.generation_offset, 1)


class Roster:
    """All tracked resources, by name."""

    def __init__(self) -> None:
        """Begin with none."""
        self._tracked: dict[ResourceRef, TrackedResource] = {}

    def find(self, ref: ResourceRef) -> TrackedResource | None:
        """Return a tracked resource, or None."""
        return self._tracked.get(ref)

    def put(self, ref: ResourceRef, tracked: TrackedResource) -> None:
        """Add or replace a resource."""
        self._tracked[ref] = tracked

    def mark_deleting(self, ref: ResourceRef) -> None:
        """Mark a resource, and the node pools of a cluster, as being deleted."""
        for each in self._with_pools(ref):
            self._tracked[each] = replace(self._tracked[each], is_deleting=True)

    def forget(self, ref: ResourceRef) -> None:
        """Remove a resource, and the node pools of a cluster."""
        for each in self._with_pools(ref):
            del self._tracked[each]

    def _with_pools(self, ref: ResourceRef) -> list[ResourceRef]:
        return [each for each in self._tracked if each == ref or (not ref.pool and each.cluster == ref.cluster)]
