"""A command is one write. It declares what must be loaded, then changes a workspace.

A command validates before it changes anything: once it has changed the workspace it must succeed, because other
commands share its transaction.
"""

from __future__ import annotations

from typing import Protocol, Self, TypeVar

from msgspec import Struct

from hyperfleet.ports import Heartbeat, NameKey
from hyperfleet.services.workspace import Workspace


class Placeable(Protocol):
    """A result that gets its position when its transaction has committed."""

    def at(self, base: int) -> Self:
        """Return the result with its position."""
        ...


R_co = TypeVar("R_co", bound=Placeable, covariant=True)


class Wants(Struct, frozen=True, gc=False):
    """What must be loaded for one command; for `families`, the children too."""

    ids: tuple[str, ...] = ()
    names: tuple[NameKey, ...] = ()
    keys: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    reporting: tuple[str, ...] = ()  # adapters that report on the first of `ids`
    heartbeat: Heartbeat | None = None  # if the command may be one: it is tried as a heartbeat first


class Command(Protocol[R_co]):
    """One write."""

    @property
    def wants(self) -> Wants:
        """Return what must be loaded."""
        ...

    def apply(self, workspace: Workspace) -> R_co:
        """Make the change, or refuse it."""
        ...
