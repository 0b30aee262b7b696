"""A named reader of the log that one replica at a time uses: a lease, a position, and saving under the lease's epoch.

The relay and every webhook have one. The position advances only under the current epoch of the lease, so a holder that
was frozen and wakes up repeats a batch at worst, and never skips one.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from msgspec import Struct

from hyperfleet.errors import HistoryPruned
from hyperfleet.ports import ChangeQuery, Lease, LogGap, LoggedChange, Store

RENEWAL: Final = 1.0  # seconds after which the lease is extended
SAVING: Final = 0.25  # seconds after which the position is saved; a crash repeats at most what was handled since
_ATTEMPT: Final = 0.25  # seconds between attempts to get the lease: every commit wakes the replicas that do not have it
_LEASE: Final = timedelta(seconds=3)  # a holder that died is replaced within this time and a turn: under 5 s


class LogBatch(Struct, frozen=True):
    """The next changes, up to a position, and what was lost before them."""

    changes: tuple[LoggedChange, ...]
    upto: int
    gap: LogGap | None = None


class LeasedReader:
    """Reads the log for the holder of a lease, and remembers how far everything is handled."""

    def __init__(self, store: Store, name: str, holder: str, duration: timedelta = _LEASE) -> None:
        """Read as `name`, which is also the name of the lease; `holder` names this process among the replicas.

        `duration` must be longer than the work between two calls of `hold`.
        """
        self.name = name
        self._store = store
        self._holder = holder
        self._duration = duration
        self._lease: Lease | None = None
        self._leased_at = 0.0
        self._saved_at = 0.0
        self._saved = 0
        self.position = 0  # everything up to here is handled

    @property
    def lease(self) -> Lease | None:
        """Return the lease, if this replica holds it."""
        return self._lease

    @property
    def is_unsaved(self) -> bool:
        """Tell whether more is handled than is saved."""
        return self.position > self._saved

    async def open(self) -> None:
        """Open the reader, so that nothing from now on is missed."""
        await self._store.open_reader(self.name)

    async def hold(self) -> Lease | None:
        """Take the lease or extend it. A new holder starts where the last one has saved."""
        if _elapsed(self._leased_at) < (_ATTEMPT if self._lease is None else RENEWAL):
            return self._lease
        before, started = self._lease, asyncio.get_running_loop().time()
        lease = await self._store.take_lease(self.name, self._holder, self._duration)
        self._leased_at = started
        if lease is not None and (before is None or before.epoch != lease.epoch):
            self._lease = None  # if the position cannot be read now, the next turn must read it
            await self.reopen()
        self._lease = lease
        return self._lease

    async def reopen(self) -> None:
        """Go to the saved position; that of a new reader is the head of the log."""
        self._saved = self.position = (await self._store.open_reader(self.name)).position
        self._saved_at = asyncio.get_running_loop().time()

    async def read(self, limit: int) -> LogBatch:
        """Return what comes next; if the log was pruned there, what was lost too."""
        try:
            page = await self._store.read_changes(ChangeQuery(after=self.position, limit=limit))
        except HistoryPruned:
            lost = await self._store.read_next(self.name, limit)
            if lost is None or lost.gap is None:
                raise
            return LogBatch(lost.changes, lost.upto, lost.gap)
        return LogBatch(page.changes, page.upto)

    async def save_if_due(self) -> bool:
        """Save the position if that was not done for a while; False: another replica has taken the lease since."""
        return not self.is_unsaved or _elapsed(self._saved_at) < SAVING or await self.save()

    async def save(self) -> bool:
        """Save the position; False: another replica has taken the lease since, or the reader was closed."""
        if self.is_unsaved:
            lease = self._lease
            if lease is None or not await self._store.advance_reader(self.name, self._saved, self.position, lease):
                self._lease = None
                return False
            self._saved = self.position
        self._saved_at = asyncio.get_running_loop().time()
        return True

    async def release(self) -> None:
        """Save, and let another replica continue at once."""
        lease = self._lease
        if lease is not None:
            await self.save()
            await self._store.release_lease(lease)
        self._lease = None


def _elapsed(since: float) -> float:
    return asyncio.get_running_loop().time() - since
