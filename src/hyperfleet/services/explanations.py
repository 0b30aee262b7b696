"""Explains a stored status: gathers what it was computed from and explains it as of that time.

Called by the API. The explanation is about the status that GET returns. The policy is the one in force, which differs
from the one the status was computed with until the resource is recomputed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from hyperfleet.aggregation import Child, Policy, StatusExplanation, explain
from hyperfleet.aggregation.availability import READY
from hyperfleet.model.report import AVAILABLE
from hyperfleet.ports import EVERYTHING, Record, Scope, Store
from hyperfleet.services.policies import PolicyRegistry
from hyperfleet.services.results import Target

_TRIES: Final = (
    3  # to read a resource and its children unchanged; a resource written that often is explained as read last
)


class Evidence(Struct, frozen=True):
    """What a stored status was computed from, and the policy in force."""

    record: Record
    children: tuple[Child, ...]
    policy: Policy
    policy_version: int
    is_current: bool  # the stored status was computed with this policy

    @property
    def condition_types(self) -> tuple[str, ...]:
        """Return the conditions that can be explained."""
        return (AVAILABLE, READY, *(rule.type for rule in self.policy.rules))

    def explain(self, only: str | None, now: datetime) -> StatusExplanation:
        """Explain the status, or one condition of it. Takes 2 to 33 ms: call it in a thread.

        The explanation is as of now, unless a deadline has passed that was not handled yet.
        """
        record = self.record
        written, deadline = record.status.memory.written_time, record.status.next_deadline
        now = max(now, written) if deadline is None or deadline > now else written
        return explain(
            record.resource, record.reports, self.policy, record.status, now, children=self.children, only=only
        )


async def gather_evidence(store: Store, policies: PolicyRegistry, target: Target, scope: Scope) -> Evidence | None:
    """Read everything an explanation needs; None: the caller sees no such resource."""
    record = await store.read_record(target.kind.name, target.id, scope, target.parent_id)
    if record is None:
        return None
    if record.policy_version > policies.rules.policy_version:
        await policies.refresh()  # another replica was first
    rules = policies.rules
    children: tuple[Record, ...] = ()
    for _ in range(_TRIES if rules.wants_children(record.resource) else 0):
        children = await store.read_children(target.id, EVERYTHING)  # the status was computed from all of them
        again = await store.read_record(target.kind.name, target.id, scope, target.parent_id)
        if again is None or again.revision == record.revision:
            break  # a child that changes its parent's status also changes its revision, so these belong together
        record = again
    return Evidence(
        record,
        tuple(Child(each.resource.kind, each.resource.name, each.status.conditions) for each in children),
        rules.policies.select(record.resource),
        rules.policy_version,
        record.policy_version == rules.policy_version,
    )
