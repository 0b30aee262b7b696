"""Verifying a whole database for `hyperfleet db verify`, with `services.verification`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hyperfleet.aggregation import load_policies
from hyperfleet.api.wire import present
from hyperfleet.cli.exits import USAGE
from hyperfleet.cli.failures import CommandFailure
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import EVERYTHING, Query
from hyperfleet.services.verification import Verification
from hyperfleet.services.workspace import Rules

if TYPE_CHECKING:
    from hyperfleet.bootstrap import MigratableStore


async def verify(
    store: MigratableStore, write: Callable[[str], None], progress: Callable[[int, int], None]
) -> tuple[int, int]:
    """Verify everything with the policy in force; return the numbers of resources and of findings."""
    if not await store.schema_version():
        raise CommandFailure("the database has no tables yet; see `hyperfleet db migrate`", USAGE)
    await store.open()
    active = await store.active_policy()
    if active is None:
        return 0, 0  # no server has ever used it
    kinds = Kinds()
    rules = Rules(load_policies(active.text, active.name, kinds), active.version, kinds, present)
    total = sum([await store.count(Query(kind.name, EVERYTHING)) for kind in kinds])
    verification = Verification(store, rules, lambda checked: progress(checked, total))
    findings = 0
    async for finding in verification.run():
        write(str(finding))
        findings += 1
    return verification.checked, findings
