"""Reading the past of a resource: from its stored answers and the log of its reports to what happened, in order.

`replay` calls `recollect`. What retention has taken is not made up: the past then begins later.
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
from hyperfleet.ports import Entry, PastReport, Scope, Store
from hyperfleet.services.lives import Past, Step
from hyperfleet.services.pacing import Pace

_EDITS: Final[frozenset[EventType]] = frozenset({"Created", "SpecChanged", "DeletionRequested"})


class Recalled(Struct, frozen=True):
    """What a stored answer tells of a resource and its status."""

    resource: Resource
    status: Status

    @property
    def adapters(self) -> frozenset[str]:
        """Return the adapters that had said True or False."""
        return frozenset([summary.name for summary in self.status.adapters])


Recall = Callable[[Entry], Recalled]


class Recollection(Struct, frozen=True):
    """A past, the number of reports in it, and whether it goes back as far as was asked for."""

    past: Past
    count: int
    is_whole: bool


async def recollect(
    store: Store, resource_id: str, scope: Scope, since: datetime, recall: Recall, pace: Pace
) -> Recollection | None:
    """Read what happened to a resource since then; None: nothing of it is kept."""
    entries = await store.read_versions(resource_id, scope, since)
    if not entries:
        return None
    log = await store.read_report_log(resource_id, scope, since)
    first, version = entries[0], recall(entries[0])
    is_born = first.type == "Created" and first.time >= since
    begin = max(first.time, since)
    reports = {each.stored.report.adapter: each.stored for each in log if each.received_time <= begin}
    known = {name: stored for name, stored in reports.items() if _may_be_in(stored, version)}
    steps: dict[datetime, Step] = {}
    await _add_edits(steps, entries, version, recall, pace)
    await _add_reports(steps, [each for each in log if each.received_time > begin], pace)
    status = None if is_born else version.status
    past = Past(version.resource, begin, status, known, tuple([steps[time] for time in sorted(steps)]))
    has_all_reports = version.adapters <= known.keys()
    return Recollection(past, len(log), has_all_reports and (is_born or first.time <= since))


def _may_be_in(stored: StoredReport, version: Recalled) -> bool:
    """Tell whether an adapter was there when an answer was written: it is in it, unless it had no verdict yet."""
    return stored.report.adapter in version.adapters or stored.report.status_of(AVAILABLE) == UNKNOWN


async def _add_edits(
    steps: dict[datetime, Step], entries: Sequence[Entry], first: Recalled, recall: Recall, pace: Pace
) -> None:
    """Add edits and retirements: an adapter that an answer has no longer was retired. Of the answers none is kept."""
    before = first.adapters
    for entry in entries[1:]:
        version = recall(entry)
        step = steps.get(entry.time, Step(entry.time))
        retired = step.retired | (before - version.adapters)
        resource = version.resource if entry.type in _EDITS else step.resource
        if resource is not None or retired:
            steps[entry.time] = replace(step, resource=resource, retired=retired)
        before = version.adapters
        await pace.keep()


async def _add_reports(steps: dict[datetime, Step], log: Iterable[PastReport], pace: Pace) -> None:
    """Add reports; what shares an instant is one step.

    Each has been heard until its adapter's next change. When in between is not kept, so it counts as fresh until then.
    """
    for each in log:
        step = steps.get(each.received_time, Step(each.received_time))
        steps[step.time] = replace(step, reports=(*step.reports, each.stored))
        await pace.keep()
