"""Writes that nobody asks for: a deadline has come, or another policy is in force."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Self

from msgspec import Struct

from hyperfleet.ports import Cause
from hyperfleet.services.commands import Wants
from hyperfleet.services.committer import Committer
from hyperfleet.services.workspace import Workspace

_BREATH: Final = 0.05  # seconds to wait when requests have filled the queue


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


async def recompute_all(committer: Committer, ids: Sequence[str], cause: Cause) -> None:
    """Compute statuses anew, leaving half of the queue to requests; what goes wrong with one is raised."""
    rest = list(ids)
    with committer.tracer.span(f"recompute: {cause.kind}", {"hyperfleet.resources": len(rest)}):
        while rest:
            room = (committer.room + 1) // 2
            now, rest = rest[:room], rest[room:]
            if not now:
                await asyncio.sleep(_BREATH)
            for result in await committer.submit_all([Recompute(id_, cause) for id_ in now]):
                if isinstance(result, BaseException):
                    raise result
