"""Reads the past of a resource from its stored answers and the log of its reports, as steps in order of time.

`replay` calls `read_past`. What retention has pruned is not guessed: the past then begins later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.model.condition import UNKNOWN
from hyperfleet.model.event import EventType
from hyperfleet.model.report import AVAILABLE, StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Status
from hyperfleet.ports import LoggedEvent, PastReport, Scope, Store
from hyperfleet.services.time_slices import TimeSlices
from hyperfleet.services.timelines import HistoryStep, ResourcePast

_EDITS: Final[frozenset[EventType]] = frozenset({"Created", "SpecChanged", "DeletionRequested"})


class RestoredVersion(Struct, frozen=True):
    """The resource and the status that a stored answer shows."""

    resource: Resource
    status: Status

    @property
    def adapters(self) -> frozenset[str]:
        """Return the adapters that had reported True or False."""
        return frozenset([summary.name for summary in self.status.adapters])


RestoreVersion = Callable[[LoggedEvent], RestoredVersion]


class PastRead(Struct, frozen=True):
    """A past, the number of reports in it, and whether it reaches back as far as was asked for."""

    past: ResourcePast
    report_count: int
    is_complete: bool


async def read_past(
    store: Store, resource_id: str, scope: Scope, since: datetime, restore: RestoreVersion, slices: TimeSlices
) -> PastRead | None:
    """Read everything that happened to a resource since a time; None: nothing of it is kept."""
    events = await store.read_versions(resource_id, scope, since)
    if not events:
        return None
    log = await store.read_report_log(resource_id, scope, since)
    first, version = events[0], restore(events[0])
    is_created = first.type == "Created" and first.time >= since
    begin = max(first.time, since)
    reports = {each.stored.report.adapter: each.stored for each in log if each.received_time <= begin}
    known = {name: stored for name, stored in reports.items() if _may_belong_to(stored, version)}
    steps: dict[datetime, HistoryStep] = {}
    await _add_edits(steps, events, version, restore, slices)
    await _add_reports(steps, [each for each in log if each.received_time > begin], slices)
    status = None if is_created else version.status
    past = ResourcePast(version.resource, begin, status, known, tuple([steps[time] for time in sorted(steps)]))
    has_all_reports = version.adapters <= known.keys()
    return PastRead(past, len(log), has_all_reports and (is_created or first.time <= since))


def _may_belong_to(stored: StoredReport, version: RestoredVersion) -> bool:
    """Tell whether an adapter counted when an answer was written: the answer names it, unless it was still Unknown."""
    return stored.report.adapter in version.adapters or stored.report.status_of(AVAILABLE) == UNKNOWN


async def _add_edits(
    steps: dict[datetime, HistoryStep],
    events: Sequence[LoggedEvent],
    first: RestoredVersion,
    restore: RestoreVersion,
    slices: TimeSlices,
) -> None:
    """Add edits and retirements: an adapter that an answer no longer names was retired. No answer is kept."""
    before = first.adapters
    for event in events[1:]:
        version = restore(event)
        step = steps.get(event.time, HistoryStep(event.time))
        retired = step.retired | (before - version.adapters)
        resource = version.resource if event.type in _EDITS else step.resource
        if resource is not None or retired:
            steps[event.time] = replace(step, resource=resource, retired=retired)
        before = version.adapters
        await slices.yield_if_due()


async def _add_reports(steps: dict[datetime, HistoryStep], log: Iterable[PastReport], slices: TimeSlices) -> None:
    """Add reports; those of one instant share a step.

    Each report counts as fresh until the next change of its adapter: the times of heartbeats in between are not kept.
    """
    for each in log:
        step = steps.get(each.received_time, HistoryStep(each.received_time))
        steps[step.time] = replace(step, reports=(*step.reports, each.stored))
        await slices.yield_if_due()
