"""The deadline timer: recomputes each resource at the instant at which time alone changes its status.

There is no background aggregator. Each write stores the next such instant; this loop sleeps until the earliest one and
submits an ordinary write. Deadlines are in the store, so a restart loses none, and one replica at a time handles them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from hyperfleet.ports import StatusCause, Store
from hyperfleet.services.committer import Committer
from hyperfleet.services.loops import Loop
from hyperfleet.services.upkeep import recompute_all

_BATCH: Final = 128  # resources recomputed together: half a transaction, so that requests find room beside them
_MAX_SLEEP: Final = 2.0  # seconds; then look for deadlines of a replica that died
_FAR: Final = datetime.max.replace(tzinfo=UTC)


class DeadlineTimer:
    """Submits a write for every resource whose deadline has come."""

    def __init__(self, store: Store, committer: Committer) -> None:
        """Look for deadlines in `store` and write through `committer`, which announces new ones."""
        self._store = store
        self._committer = committer
        self._planned = _FAR
        self.loop = Loop("deadlines", self._turn)
        committer.on_wake = self.schedule

    def schedule(self, instant: datetime) -> None:
        """Take note of a deadline that was just written."""
        if instant < self._planned:
            self._planned = instant
            self.loop.nudge()

    async def _turn(self) -> float:
        self._planned = _FAR  # `schedule` announces what is written from now on
        due = await self._store.due(1)
        if due.ids:
            claim = await self._store.claim("deadlines")
            if claim is None:
                return _MAX_SLEEP / 4
            async with claim:
                await self._recompute_due()
            due = await self._store.due(1)
        found = due.now if due.ids else due.next_wake or _FAR
        self._planned = min(self._planned, found)
        return min(max((self._planned - due.now).total_seconds(), 0.0), _MAX_SLEEP)

    async def _recompute_due(self) -> None:
        while ids := (await self._store.due(_BATCH)).ids:
            await recompute_all(self._committer, ids, StatusCause("deadline"))
