"""The timer: wakes each resource at the instant at which time alone changes its status.

There is no background aggregator. Each write stores when the next such instant is; this loop sleeps until the
earliest of them and submits an ordinary write. What is due is in the store, so a restart forgets nothing, and one
replica at a time sees to it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from hyperfleet.ports import Cause, Store
from hyperfleet.services.committer import Committer
from hyperfleet.services.loops import Loop
from hyperfleet.services.upkeep import recompute_all

_BATCH: Final = 128  # resources woken together; more would keep requests waiting
_LONGEST_NAP: Final = 2.0  # seconds; after that, look for deadlines of a replica that died
_FAR: Final = datetime.max.replace(tzinfo=UTC)


class Timekeeper:
    """Submits a write for every resource whose time has come."""

    def __init__(self, store: Store, committer: Committer) -> None:
        """Look for deadlines in `store` and write through `committer`, which tells of new ones."""
        self._store = store
        self._committer = committer
        self._planned = _FAR
        self.loop = Loop("deadlines", self._turn)
        committer.on_wake = self.expect

    def expect(self, instant: datetime) -> None:
        """Learn of a deadline that was just written."""
        if instant < self._planned:
            self._planned = instant
            self.loop.nudge()

    async def _turn(self) -> float:
        self._planned = _FAR  # whatever is written from now on is told by `expect`
        due = await self._store.due(1)
        if due.ids:
            claim = await self._store.claim("deadlines")
            if claim is None:
                return _LONGEST_NAP / 4
            async with claim:
                await self._wake_all()
            due = await self._store.due(1)
        found = due.now if due.ids else due.next_wake or _FAR
        self._planned = min(self._planned, found)
        return min(max((self._planned - due.now).total_seconds(), 0.0), _LONGEST_NAP)

    async def _wake_all(self) -> None:
        while ids := (await self._store.due(_BATCH)).ids:
            await recompute_all(self._committer, ids, Cause("deadline"))
