"""Bringing every resource under the policy in force, in small batches, while requests go on."""

from __future__ import annotations

from typing import Final

from hyperfleet.ports import Cause, Store
from hyperfleet.services.committer import Committer
from hyperfleet.services.loops import Loop
from hyperfleet.services.policies import PolicyBook
from hyperfleet.services.upkeep import recompute_all

_BATCH: Final = 64  # resources computed together; requests get their turn in between
_NAP: Final = 5.0  # seconds between looks for a policy that another replica put in force


class Recomputation:
    """Computes anew what was computed under an earlier policy."""

    def __init__(self, store: Store, committer: Committer, policies: PolicyBook) -> None:
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
            return _NAP
        claim = await self._store.claim("recomputation")
        if claim is None:
            return _NAP
        async with claim:
            await self._recompute_all(version)
        return 0.0

    async def _recompute_all(self, version: int) -> None:
        while ids := (await self._store.outdated(version, _BATCH))[0]:
            await recompute_all(self._committer, ids, Cause("policy"))
