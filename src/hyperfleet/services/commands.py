"""A command: one thing somebody wants written. It says what must be loaded, then does its work on a workspace.

A command validates before it changes anything: once it has changed the workspace it must succeed, because others
share its transaction.
"""

from __future__ import annotations

from typing import Protocol, Self, TypeVar

from msgspec import Struct

from hyperfleet.model.report import Report
from hyperfleet.ports import NameKey
from hyperfleet.services.workspace import Workspace


class Placeable(Protocol):
    """A result that learns its position when its transaction has committed."""

    def at(self, base: int) -> Self:
        """Return the result with its position."""
        ...


R_co = TypeVar("R_co", bound=Placeable, covariant=True)


class Wants(Struct, frozen=True, gc=False):
    """What one command must find loaded; of `families`, the children too.

    `sent` are reports on the first of `ids`, after which nobody looks at its other ones.
    """

    ids: tuple[str, ...] = ()
    names: tuple[NameKey, ...] = ()
    keys: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    sent: tuple[Report, ...] = ()


class Command(Protocol[R_co]):
    """One write."""

    @property
    def wants(self) -> Wants:
        """Say what must be loaded."""
        ...

    def apply(self, workspace: Workspace) -> R_co:
        """Do it, or refuse."""
        ...
