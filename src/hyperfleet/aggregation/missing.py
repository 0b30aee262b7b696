"""The timeout of missing adapters: how long a required adapter may stay silent before the resource has failed.

The clock restarts with every sign of progress and is stopped while a required adapter is Running: adapters that wait
for that one are not missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from hyperfleet.aggregation.adapters import Adapters
from hyperfleet.aggregation.policy import Policy
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Memory, Status


def remember(adapters: Adapters, policy: Policy, previous: Status | None, now: datetime) -> Memory:
    """Carry over since when each adapter is required and when a required one last changed its state."""
    if previous is None:
        return Memory(now, now, {view.adapter: now for view in adapters.required})
    since = previous.memory.required_since
    required = {view.adapter: since.get(view.adapter, now) for view in adapters.required}
    changed = now if _has_changed(adapters, policy, previous) else previous.memory.last_state_change
    return Memory(now, changed, required)


def _has_changed(adapters: Adapters, policy: Policy, previous: Status) -> bool:
    """Tell whether a required adapter changed its state, so that the clock restarts."""
    before = {summary.name: summary.state for summary in previous.adapters}
    for view in adapters.required:
        if view.state != before.get(view.adapter, "Unreported"):
            return True
    if policy.digest == previous.policy:
        return False
    # A Running adapter that a new policy no longer requires: it had stopped the clock until now.
    was_working = any(before.get(name) == "Running" for name in previous.memory.required_since)
    return was_working and not _is_working(adapters)


def _is_working(adapters: Adapters) -> bool:
    return any(view.state == "Running" for view in adapters.required)


def missing_instants(resource: Resource, adapters: Adapters, policy: Policy, memory: Memory) -> Mapping[str, datetime]:
    """Return when each required adapter that has not reported counts, or counted, as missing."""
    unreported = [view for view in adapters.required if not view.is_reported]
    if policy.missing_after is None or resource.is_deleting or not unreported or _is_working(adapters):
        return {}
    progress = max(resource.generation_time, memory.last_state_change)
    return {
        view.adapter: max(progress, memory.required_since[view.adapter], view.last_unknown or progress)
        + policy.missing_after
        for view in unreported
    }
