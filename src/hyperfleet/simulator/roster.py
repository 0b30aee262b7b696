"""What the driver knows of the resources of a server: their addresses, and how their generations are counted there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.simulator.actions import Place


class Known(Struct, frozen=True):
    """A resource that we created, or found there."""

    address: str
    spec: Mapping[str, Any]
    labels: Mapping[str, str]
    generation: int = 1  # the plan's, of what was last wanted
    ahead: int = 0  # how many generations the server is ahead of the plan
    is_leaving: bool = False

    def generation_there(self, generation: int) -> int:
        """Return what the server calls a generation of the plan."""
        return max(generation + self.ahead, 1)


class Roster:
    """All resources that are there, by their place."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[Place, Known] = {}

    def find(self, place: Place) -> Known | None:
        """Return what is known of a resource."""
        return self._known.get(place)

    def note(self, place: Place, known: Known) -> None:
        """Learn of a resource, or more of it."""
        self._known[place] = known

    def mark_leaving(self, place: Place) -> None:
        """Learn that a cluster, or a node pool, is to go, and all that belongs to it."""
        for each in self._family(place):
            self._known[each] = replace(self._known[each], is_leaving=True)

    def forget(self, place: Place) -> None:
        """Learn that a resource is no longer there, nor what belongs to it."""
        for each in self._family(place):
            del self._known[each]

    def _family(self, place: Place) -> list[Place]:
        return [each for each in self._known if each == place or (not place.pool and each.cluster == place.cluster)]
