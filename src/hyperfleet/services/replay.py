"""What would another policy have made of the past? Replays it under that policy and under the one in force.

`simulation` hands over each resource that it examines. Both replays start in the state that the resource was in, so
that they can be compared. Under the policy in force, a replay gives what history shows, apart from what `INEXACT`
names. The log holds changes only: heartbeats and repeated deliveries are not in it. Resources that were removed
meanwhile are not replayed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.documents.durations import short_duration
from hyperfleet.errors import HistoryPruned
from hyperfleet.model.resource import Resource
from hyperfleet.ports import Record, Scope, Store
from hyperfleet.services.past_events import RestoreVersion, read_past
from hyperfleet.services.time_slices import TimeSlices
from hyperfleet.services.timelines import ResourcePast, ResourceTimeline, SubjectTimeline, TimelineReplay
from hyperfleet.services.workspace import Rules

# Replayed by one request in all, which bounds its time and memory; a larger fleet must be narrowed by filters.
MAX_REPORTS: Final = 200_000

# The first ones of one subject of one resource: as many as a person reads, and few enough for a thousand resources.
SHOWN_PERIODS: Final = 50

# The log has no heartbeats, so a silence between two changes of a report that a heartbeat ended does not show.
_STALENESS: Final = (
    "staleness: heartbeats are not recorded one by one, so between two changes of its report an adapter counts as "
    "reporting until it was last heard"
)
# The time since which an adapter was missing is not recorded, so at the beginning of a replay it starts again.
_MISSING: Final = (
    "missing adapters: since when an adapter was missing is not recorded, so where that was before the beginning, its "
    "timeout may end at another time"
)
INEXACT: Final = (_STALENESS, _MISSING)

_ZERO: Final = timedelta()
_EMPTY: Final = SubjectTimeline()


class ReplayRange(Struct, frozen=True):
    """The range of time that is replayed."""

    begin: datetime
    end: datetime


class SubjectTotals:
    """The totals of one subject over all resources under one policy."""

    def __init__(self) -> None:
        """Start with zero."""
        self.transitions = 0
        self.durations: defaultdict[str, timedelta] = defaultdict(timedelta)  # by state

    def add(self, timeline: SubjectTimeline) -> None:
        """Add the transitions of one resource, and how long each state lasted."""
        self.transitions += max(0, len(timeline.periods) - 1)
        for state, duration in timeline.durations.items():
            self.durations[state] += duration


class ComparedTotals(Struct, frozen=True):
    """The totals of one subject under the policy in force, and under the candidate."""

    present: SubjectTotals
    candidate: SubjectTotals


class SubjectDifference(Struct, frozen=True):
    """A subject of one resource whose states would have differed."""

    subject: str
    present: SubjectTimeline
    candidate: SubjectTimeline

    @property
    def summary(self) -> str:
        """Describe in one line which states would have lasted longer or shorter: `False 12m → 3m`."""
        before, after = self.present.durations, self.candidate.durations
        shifts = [
            f"{state} {short_duration(before.get(state, _ZERO))} → {short_duration(after.get(state, _ZERO))}"
            for state in dict.fromkeys([*before, *after])
            if before.get(state, _ZERO) != after.get(state, _ZERO)
        ]
        return ", ".join(shifts) or "each state for as long, at other times"


class DifferingResource(Struct, frozen=True):
    """A resource whose timeline would have differed."""

    resource: Resource
    differences: tuple[SubjectDifference, ...]


class ComparedTimelines(Struct, frozen=True):
    """The timelines of one past, under the policy in force and under the candidate."""

    present: ResourceTimeline
    candidate: ResourceTimeline


class Replay:
    """Compares what two policies make of the same past."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        present: Rules,
        candidate: Rules,
        range_: ReplayRange,
        restore: RestoreVersion,
        limit: int = 100,
    ) -> None:
        """Replay what happened within `range_`; `restore` reads stored answers. Up to `limit` resources are shown."""
        self._store = store
        self._scope = scope
        self._present = present
        self._candidate = candidate
        self._restore = restore
        self._limit = limit
        self._slices = TimeSlices()
        self.range_ = range_
        self.resources = 0
        self.reports = 0
        self.differing = 0
        self.is_complete = True
        self.shown: list[DifferingResource] = []
        self.totals: dict[str, ComparedTotals] = {}

    async def add(self, record: Record) -> None:
        """Replay one resource, unless the limit of reports is reached or nothing of its past is kept."""
        if not self.resources:
            await self._check_for_gaps(record.resource.id)
        if self.reports >= MAX_REPORTS:
            self.is_complete = False
            return
        timelines = await self.replay_record(record)
        if timelines is None:
            self.is_complete = False
            return
        self.resources += 1
        differences = self._compare(timelines)
        self.differing += bool(differences)
        if differences and len(self.shown) < self._limit:
            self.shown.append(DifferingResource(record.resource, differences))

    async def _check_for_gaps(self, resource_id: str) -> None:
        """Check whether reports later than the beginning were pruned: the log itself does not show it."""
        try:
            await self._store.read_reports_past(resource_id, self._scope, self.range_.begin)
        except HistoryPruned:
            self.is_complete = False

    async def replay_record(self, record: Record) -> ComparedTimelines | None:
        """Replay a resource, after all descendants that its status depends on."""
        since, id_ = self.range_.begin, record.resource.id
        read = await read_past(self._store, id_, self._scope, since, self._restore, self._slices)
        if read is None:
            return None
        self.reports += read.report_count
        self.is_complete = self.is_complete and read.is_complete
        resource = record.resource
        reads_children = self._present.wants_children(resource) or self._candidate.wants_children(resource)
        children = await self._store.read_children(resource.id, self._scope) if reads_children else ()
        below = [timelines for child in children if (timelines := await self.replay_record(child)) is not None]
        return ComparedTimelines(
            await self._run(read.past, self._present, [each.present for each in below]),
            await self._run(read.past, self._candidate, [each.candidate for each in below]),
        )

    async def _run(self, past: ResourcePast, rules: Rules, children: Sequence[ResourceTimeline]) -> ResourceTimeline:
        """Run a replay to the end, and give way to requests meanwhile: a past may have very many reports."""
        replay = TimelineReplay(past, rules.policies, children, rules.open_budget)
        for _ in replay.advance(self.range_.end):
            await self._slices.yield_if_due()
        return replay.finish(self.range_.end)

    def _compare(self, timelines: ComparedTimelines) -> tuple[SubjectDifference, ...]:
        """Add two timelines to the totals, and return where they differ."""
        differences = []
        for subject in dict.fromkeys([*timelines.present.subjects, *timelines.candidate.subjects]):
            present = timelines.present.subjects.get(subject, _EMPTY)
            candidate = timelines.candidate.subjects.get(subject, _EMPTY)
            totals = self.totals.setdefault(subject, ComparedTotals(SubjectTotals(), SubjectTotals()))
            totals.present.add(present)
            totals.candidate.add(candidate)
            if present.periods != candidate.periods:
                differences.append(SubjectDifference(subject, _shorten(present), _shorten(candidate)))
        return tuple(differences)


def _shorten(timeline: SubjectTimeline) -> SubjectTimeline:
    """Keep only the periods that are shown: a thousand resources may have very many."""
    return replace(timeline, periods=timeline.periods[:SHOWN_PERIODS])
