"""Forgetting in time: logs are pruned a little at a time, by one replica."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from hyperfleet.errors import StoreError
from hyperfleet.ports import Pruning, Store
from hyperfleet.services.loops import Loop

_LOG: Final = logging.getLogger(__name__)
_BATCH: Final = 1_000  # rows deleted in one transaction; writers wait for no longer than that
_BREATH: Final = 0.05  # seconds between transactions
_INTERVAL: Final = 600.0


class Retention:
    """Deletes what is past its time."""

    def __init__(self, store: Store, prunings: Sequence[Pruning]) -> None:
        """Prune each log of `store` as `prunings` say."""
        self._store = store
        self._prunings = prunings
        self.loop = Loop("retention", self._turn)
        self.on_pruned: Callable[[str, int], None] | None = None  # told of each log how many rows went
        self.on_failure: Callable[[str], None] | None = None  # told which log was not pruned

    async def _turn(self) -> float:
        claim = await self._store.claim("retention")
        if claim is not None:
            async with claim:
                for pruning in self._prunings:
                    await self._prune(pruning)
        return _INTERVAL

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
