"""Recomputes every resource under the policy in force, in small batches beside the requests."""

from __future__ import annotations

from typing import Final

from hyperfleet.ports import StatusCause, Store
from hyperfleet.services.committer import Committer
from hyperfleet.services.loops import Loop
from hyperfleet.services.policies import PolicyRegistry
from hyperfleet.services.upkeep import recompute_all

_BATCH: Final = 64  # resources recomputed together: a quarter of a transaction, so that requests share it
_INTERVAL: Final = 5.0  # seconds between checks for a policy that another replica put in force


class Recomputation:
    """Recomputes what was computed under an earlier policy."""

    def __init__(self, store: Store, committer: Committer, policies: PolicyRegistry) -> None:
        """Look for outdated resources in `store` and write through `committer`."""
        self._store = store
        self._committer = committer
        self._policies = policies
        self.loop = Loop("recomputation", self._turn)

    async def _turn(self) -> float:
        await self._policies.refresh()
        version = self._policies.rules.policy_version
        ids, _ = await self._store.outdated(version, 1)
        if not ids:
            return _INTERVAL
        claim = await self._store.claim("recomputation")
        if claim is None:
            return _INTERVAL
        async with claim:
            await self._recompute_all(version)
        return 0.0

    async def _recompute_all(self, version: int) -> None:
        while ids := (await self._store.outdated(version, _BATCH))[0]:
            await recompute_all(self._committer, ids, StatusCause("policy"))
