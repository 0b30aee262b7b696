"""Writes that nobody asks for: a deadline has come, or another policy is in force."""

from __future__ import annotations

from typing import Self

from msgspec import Struct

from hyperfleet.ports import Cause
from hyperfleet.services.commands import Wants
from hyperfleet.services.workspace import Workspace


class Done(Struct, frozen=True):
    """Nobody waits for more than that it is done."""

    is_found: bool

    def at(self, base: int) -> Self:
        """Return itself."""
        return self


class Recompute(Struct, frozen=True):
    """Compute a status anew from what is stored, because of `cause`."""

    id: str
    cause: Cause

    @property
    def wants(self) -> Wants:
        """Load the resource."""
        return Wants(ids=(self.id,))

    def apply(self, workspace: Workspace) -> Done:
        """Do it, unless the resource has gone meanwhile."""
        record = workspace.get(self.id)
        if record is not None:
            workspace.settle(record, record, self.cause)
        return Done(record is not None)
