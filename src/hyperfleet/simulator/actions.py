"""The actions of a plan, and when each happens.

A plan knows resources by name. The driver maps names to the server's ids and generations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct, field

from hyperfleet.model.condition import Condition


class ResourceRef(Struct, frozen=True, gc=False):
    """The name of a cluster, or of a node pool in a cluster."""

    cluster: str
    pool: str = ""

    def __str__(self) -> str:
        """Format as `cluster` or `cluster/pool`."""
        return f"{self.cluster}/{self.pool}" if self.pool else self.cluster


class CreateAction(Struct, frozen=True):
    """A person creates a resource."""

    ref: ResourceRef
    spec: Mapping[str, Any]
    labels: Mapping[str, str]


class UpdateAction(Struct, frozen=True):
    """A person changes a resource; `generation` is the new one."""

    ref: ResourceRef
    spec: Mapping[str, Any]
    labels: Mapping[str, str]
    generation: int


class DeleteAction(Struct, frozen=True):
    """A person deletes a resource, with its node pools."""

    ref: ResourceRef
    generation: int


class ForceDeleteAction(Struct, frozen=True):
    """A person gives up waiting for a deletion and forces it."""

    ref: ResourceRef
    reason: str


class ReportAction(Struct, frozen=True):
    """An adapter sends a report."""

    ref: ResourceRef
    adapter: str
    generation: int
    conditions: tuple[Condition, ...]
    data: Mapping[str, Any] = field(default_factory=dict)
    observed: float = 0.0  # observation time, in seconds of the plan
    skew: float = 0.0  # how far the adapter's clock is ahead, in real seconds: the speed does not scale it


Action: TypeAlias = CreateAction | UpdateAction | DeleteAction | ForceDeleteAction | ReportAction


class PlanStep(Struct, frozen=True):
    """One action and its time, in seconds since the plan began."""

    at: float
    action: Action
