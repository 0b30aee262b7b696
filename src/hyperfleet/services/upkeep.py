"""Writes that no request asks for: a deadline has come, or another policy is in force."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Self

from msgspec import Struct

from hyperfleet.ports import StatusCause
from hyperfleet.services.commands import Wants
from hyperfleet.services.committer import Committer
from hyperfleet.services.workspace import Workspace

_PAUSE: Final = 0.05  # seconds to wait while requests fill the queue: a few commits


class Recomputed(Struct, frozen=True):
    """The result of a recomputation."""

    is_found: bool

    def at(self, base: int) -> Self:
        """Return itself."""
        return self


class Recompute(Struct, frozen=True):
    """Recompute a status from what is stored, because of `cause`."""

    id: str
    cause: StatusCause

    @property
    def wants(self) -> Wants:
        """Load the resource."""
        return Wants(ids=(self.id,))

    def apply(self, workspace: Workspace) -> Recomputed:
        """Recompute it, unless the resource was removed meanwhile."""
        record = workspace.get(self.id)
        if record is not None:
            workspace.update_status(record, record, self.cause)
        return Recomputed(record is not None)


async def recompute_all(committer: Committer, ids: Sequence[str], cause: StatusCause) -> None:
    """Recompute statuses, leaving half of the queue to requests; raises the first error."""
    rest = list(ids)
    with committer.tracer.span(f"recompute: {cause.kind}", {"hyperfleet.resources": len(rest)}):
        while rest:
            room = (committer.room + 1) // 2
            now, rest = rest[:room], rest[room:]
            if not now:
                await asyncio.sleep(_PAUSE)
            for result in await committer.submit_all([Recompute(id_, cause) for id_ in now]):
                if isinstance(result, BaseException):
                    raise result
