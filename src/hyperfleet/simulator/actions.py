"""What the simulator does to a fleet, and when: the words of a plan.

A plan knows resources by name. The ids that a server gives them, and its own generations, are the driver's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct, field

from hyperfleet.model.condition import Condition


class Place(Struct, frozen=True, gc=False):
    """Which resource: a cluster, or a node pool of it."""

    cluster: str
    pool: str = ""

    def __str__(self) -> str:
        """Write it as people do."""
        return f"{self.cluster}/{self.pool}" if self.pool else self.cluster


class Create(Struct, frozen=True):
    """Somebody wants a resource."""

    place: Place
    spec: Mapping[str, Any]
    labels: Mapping[str, str]


class Change(Struct, frozen=True):
    """Somebody wants it otherwise: what it shall be now, at which generation."""

    place: Place
    spec: Mapping[str, Any]
    labels: Mapping[str, str]
    generation: int


class Delete(Struct, frozen=True):
    """Somebody wants it gone; what belongs to it goes too."""

    place: Place
    generation: int


class ForceDelete(Struct, frozen=True):
    """Somebody has lost patience."""

    place: Place
    reason: str


class Say(Struct, frozen=True):
    """An adapter reports."""

    place: Place
    adapter: str
    generation: int
    conditions: tuple[Condition, ...]
    data: Mapping[str, Any] = field(default_factory=dict)
    observed: float = 0.0  # when it looked, in seconds of the plan …
    skew: float = 0.0  # … and how far its clock was ahead then, in seconds of the world: those do not go faster


Action: TypeAlias = Create | Change | Delete | ForceDelete | Say


class Step(Struct, frozen=True):
    """One action at its time, in seconds since the plan began."""

    at: float
    action: Action
