"""Forgetting in time: logs are pruned a little at a time, by one replica.

Pruning waits for named readers of the log, but not for one that has not read for too long: a reader that nobody uses
any more must not fill the disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from hyperfleet.errors import StoreError
from hyperfleet.ports import Pruning, Store
from hyperfleet.services.loops import Loop

_LOG: Final = logging.getLogger(__name__)
_BATCH: Final = 1_000  # rows deleted in one transaction; writers wait for no longer than that
_BREATH: Final = 0.05  # seconds between transactions
_INTERVAL: Final = 600.0

DEFAULT_READER_LAG: Final = timedelta(hours=72)


class Retention:
    """Deletes what is past its time."""

    def __init__(
        self, store: Store, prunings: Sequence[Pruning], max_reader_lag: timedelta = DEFAULT_READER_LAG
    ) -> None:
        """Prune each log of `store` as `prunings` say, and wait for named readers for up to `max_reader_lag`."""
        self._store = store
        self._prunings = prunings
        self._max_reader_lag = max_reader_lag
        self.loop = Loop("retention", self._turn)
        self.on_pruned: Callable[[str, int], None] | None = None  # told of each log how many rows went
        self.on_failure: Callable[[str], None] | None = None  # told which log was not pruned
        self.on_dropped: Callable[[str], None] | None = None  # told which reader is no longer waited for

    async def _turn(self) -> float:
        claim = await self._store.claim("retention")
        if claim is not None:
            async with claim:
                await self._drop_readers()
                for pruning in self._prunings:
                    await self._prune(pruning)
        return _INTERVAL

    async def _drop_readers(self) -> None:
        """Stop waiting for readers that lag too far behind."""
        for reader in await self._store.drop_readers(self._max_reader_lag):
            _LOG.warning(
                "reader %s is dropped: it has read up to position %d, and the next change is of %s; what it has not "
                "read may be pruned from now on",
                reader.name,
                reader.position,
                reader.unread_since,
            )
            if self.on_dropped is not None:
                self.on_dropped(reader.name)

    async def _prune(self, pruning: Pruning) -> None:
        """Prune one log; that it fails is no reason to leave the others."""
        try:
            while rows := await self._store.prune(pruning, _BATCH):
                if self.on_pruned is not None:
                    self.on_pruned(pruning.log, rows)
                await asyncio.sleep(_BREATH)
        except StoreError as error:
            _LOG.warning("%s were not pruned: %s", pruning.log, error)
            if self.on_failure is not None:
                self.on_failure(pruning.log)
