"""A command: one thing to be written. It says what must be loaded, then does its work on a workspace.

A command validates before it changes anything: once it has changed the workspace it must succeed, because others
share its transaction.
"""

from __future__ import annotations

from typing import Protocol, Self, TypeVar

from msgspec import Struct

from hyperfleet.ports import Heartbeat, NameKey
from hyperfleet.services.workspace import Workspace


class Placeable(Protocol):
    """A result that learns its position when its transaction has committed."""

    def at(self, base: int) -> Self:
        """Return the result with its position."""
        ...


R_co = TypeVar("R_co", bound=Placeable, covariant=True)


class Wants(Struct, frozen=True, gc=False):
    """What one command must find loaded; of `families`, the children too."""

    ids: tuple[str, ...] = ()
    names: tuple[NameKey, ...] = ()
    keys: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    reporting: tuple[str, ...] = ()  # adapters that report on the first of `ids`
    heartbeat: Heartbeat | None = None  # if the command may be one: then it is tried as such first


class Command(Protocol[R_co]):
    """One write."""

    @property
    def wants(self) -> Wants:
        """Say what must be loaded."""
        ...

    def apply(self, workspace: Workspace) -> R_co:
        """Do it, or refuse."""
        ...
