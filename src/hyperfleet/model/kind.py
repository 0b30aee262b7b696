"""The kinds of resources: clusters, node pools, and those that a configuration adds.

The core asks a kind for its place in the hierarchy only; paths and ids are made from it at the edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Kind(Struct, frozen=True):
    """A kind of resource: `NodePool`, spelt `nodepools` in paths, with ids `np-…`, children of a `Cluster`."""

    name: str
    plural: str
    id_prefix: str
    parent: str | None = None


CLUSTER: Final = Kind("Cluster", "clusters", "cls")
NODE_POOL: Final = Kind("NodePool", "nodepools", "np", parent="Cluster")


class Kinds:
    """An immutable registry of kinds, by name and in the order of declaration."""

    __slots__ = ("_by_name", "_parents")

    def __init__(self, kinds: Iterable[Kind] = (CLUSTER, NODE_POOL)) -> None:
        """Register `kinds`; a name, plural or prefix given twice, or an unknown parent, is an error."""
        self._by_name: dict[str, Kind] = {}
        for kind in kinds:
            self._add(kind)
        self._parents = frozenset(kind.parent for kind in self._by_name.values())

    def _add(self, kind: Kind) -> None:
        for other in self._by_name.values():
            for field in ("name", "plural", "id_prefix"):
                if getattr(other, field) == getattr(kind, field):
                    raise ValueError(f"kind {kind.name}: {field} {getattr(kind, field)!r} is already taken")
        if kind.parent is not None and kind.parent not in self._by_name:
            raise ValueError(f"kind {kind.name}: its parent {kind.parent} is not a known kind")
        self._by_name[kind.name] = kind

    def with_kinds(self, *kinds: Kind) -> Kinds:
        """Return a registry that knows `kinds` too."""
        return Kinds((*self, *kinds))

    def get(self, name: str) -> Kind | None:
        """Return the kind of that name, if there is one."""
        return self._by_name.get(name)

    def is_parent(self, name: str) -> bool:
        """Tell whether resources of a kind can have children."""
        return name in self._parents

    def children_of(self, name: str) -> tuple[Kind, ...]:
        """Return the kinds whose parent is `name`."""
        return tuple(kind for kind in self if kind.parent == name)

    def __iter__(self) -> Iterator[Kind]:
        """Iterate in the order of declaration, so parents come before children."""
        return iter(self._by_name.values())
