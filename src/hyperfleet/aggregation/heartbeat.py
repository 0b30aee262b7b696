"""The shortcut for a heartbeat: an adapter says again what it said before, and nothing but times moves.

Most reports of a settled fleet are heartbeats, or differ only in data that no rule looks at. What `refresh` returns is
what `aggregate` would return, except that the next deadline may be earlier than it need be: the write it leads to then
finds nothing to change.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from hyperfleet.aggregation.flapping import forget, is_recent
from hyperfleet.aggregation.policy import Policy
from hyperfleet.model.condition import UNKNOWN
from hyperfleet.model.json_value import is_same
from hyperfleet.model.report import AVAILABLE, StoredReport
from hyperfleet.model.status import AdapterSummary, Status


def says_the_same(before: StoredReport, after: StoredReport) -> bool:
    """Tell whether two reports of an adapter differ in nothing but their times."""
    old, new = before.report, after.report
    return (
        old.observed_generation == new.observed_generation
        and old.conditions == new.conditions
        and is_same(old.data, new.data)
        and is_same(old.metadata, new.metadata)
    )


def means_the_same(before: StoredReport, after: StoredReport, policy: Policy) -> bool:
    """Tell whether two reports of an adapter come to the same status, but for times, by what they say alone."""
    old, new = before.report, after.report
    return (
        old.observed_generation == new.observed_generation
        and old.conditions == new.conditions
        and (not policy.reads_data or is_same(old.data, new.data))
    )


def refresh(heartbeat: StoredReport, policy: Policy, previous: Status, now: datetime) -> Status | None:
    """Return the status after a report that means the same as the one before it; None: it must be computed."""
    memory, deadline = previous.memory, previous.next_deadline
    now = max(now, memory.written_time)
    if policy.reads_times or previous.policy != policy.digest or (deadline is not None and deadline <= now):
        return None
    place = _place_of(heartbeat.report.adapter, previous.adapters)
    if place is None or previous.adapters[place].stale or heartbeat.report.status_of(AVAILABLE) == UNKNOWN:
        return None
    flips = memory.flips
    if flips and not is_recent(flips, policy, now):
        flips = forget(flips, policy, now)
    memory = replace(memory, written_time=now, flips=flips)
    summary = previous.adapters[place]
    if summary.last_updated == heartbeat.effective_time:
        return replace(previous, memory=memory)
    adapters = list(previous.adapters)
    adapters[place] = replace(summary, last_updated=heartbeat.effective_time)
    return replace(previous, adapters=tuple(adapters), last_updated=now, memory=memory)


def _place_of(adapter: str, summaries: tuple[AdapterSummary, ...]) -> int | None:
    for place, summary in enumerate(summaries):
        if summary.name == adapter:
            return place
    return None
