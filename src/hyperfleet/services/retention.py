"""Retention: prunes logs in small batches, by one replica at a time.

Pruning waits for named readers of the log, but not for one that lags too far behind: an abandoned reader must not fill
the disk. Nor must the queue of an abandoned subscription.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final

from hyperfleet.errors import StoreError
from hyperfleet.ports import Pruning, Store
from hyperfleet.services.loops import Loop

_LOG: Final = logging.getLogger(__name__)
_BATCH: Final = 1_000  # rows deleted in one transaction, which takes milliseconds; writers wait for no longer than that
_PAUSE: Final = 0.05  # seconds between transactions, so that requests have most of the disk
_INTERVAL: Final = 600.0  # seconds; short against any retention, and cheap

DEFAULT_READER_LAG: Final = timedelta(hours=72)  # a reader may be down over a weekend


class Retention:
    """Deletes what is past its retention."""

    def __init__(
        self,
        store: Store,
        prunings: Sequence[Pruning],
        max_reader_lag: timedelta = DEFAULT_READER_LAG,
        drop_overdue: Callable[[timedelta], Awaitable[Sequence[str]]] | None = None,
    ) -> None:
        """Prune each log of `store` according to `prunings`, and wait for named readers for up to `max_reader_lag`.

        `drop_overdue` empties queues that nobody has pulled from for so long, and returns their names.
        """
        self._store = store
        self._prunings = prunings
        self._max_reader_lag = max_reader_lag
        self._drop_overdue = drop_overdue
        self.loop = Loop("retention", self._turn)
        self.on_pruned: Callable[[str, int], None] | None = None  # called with a log and the number of deleted rows
        self.on_failure: Callable[[str], None] | None = None  # called with a log that was not pruned
        self.on_dropped: Callable[[str], None] | None = None  # called with the name of a dropped reader

    async def _turn(self) -> float:
        claim = await self._store.claim("retention")
        if claim is not None:
            async with claim:
                await self._drop_readers()
                for pruning in self._prunings:
                    await self._prune(pruning)
                await self._drop_queues()
        return _INTERVAL

    async def _drop_readers(self) -> None:
        """Stop waiting for readers that lag too far behind."""
        for reader in await self._store.drop_readers(self._max_reader_lag):
            _LOG.warning(
                "reader %s is dropped: it has read up to position %d, and the next change is from %s; what it has not "
                "read may be pruned from now on",
                reader.name,
                reader.position,
                reader.unread_since,
            )
            if self.on_dropped is not None:
                self.on_dropped(reader.name)

    async def _drop_queues(self) -> None:
        """Empty queues that nobody pulls from."""
        if self._drop_overdue is not None:
            for name in await self._drop_overdue(self._max_reader_lag):
                if self.on_dropped is not None:
                    self.on_dropped(f"subscription/{name}")

    async def _prune(self, pruning: Pruning) -> None:
        """Prune one log; a failure does not stop the others."""
        try:
            while rows := await self._store.prune(pruning, _BATCH):
                if self.on_pruned is not None:
                    self.on_pruned(pruning.log, rows)
                await asyncio.sleep(_PAUSE)
        except StoreError as error:
            _LOG.warning("%s were not pruned: %s", pruning.log, error)
            if self.on_failure is not None:
                self.on_failure(pruning.log)
