"""Replays the past of one resource under a policy: what happened goes in, a timeline of statuses comes out.

`replay` reads the past and runs this. Pure, like aggregation. Everything that happened at one instant is one step, so
states that lasted no time do not show. A deadline takes effect when it was due, not when a server noticed it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from hyperfleet.aggregation import Child, PolicySet, aggregate, transitions_between
from hyperfleet.expr import Budget, open_budget
from hyperfleet.model.event import PHASE_SUBJECT, Transition
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Status


class HistoryStep(Struct, frozen=True):
    """Everything that happened to a resource at one instant. `resource` is None unless it was edited."""

    time: datetime
    resource: Resource | None = None
    reports: tuple[StoredReport, ...] = ()
    retired: frozenset[str] = frozenset()  # adapters


class ResourcePast(Struct, frozen=True):
    """The state of a resource at `begin`, and everything that happened to it afterwards."""

    resource: Resource
    begin: datetime
    status: Status | None  # None: it was created at `begin`
    reports: Mapping[str, StoredReport]
    steps: tuple[HistoryStep, ...]  # later than `begin`, in order of time


class StatePeriod(Struct, frozen=True):
    """A period in which the phase, or a condition, kept one state."""

    state: str
    begin: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        """Return its length."""
        return (self.end - self.begin).total_seconds()


class SubjectTimeline(Struct, frozen=True):
    """The states of one subject (the phase, or a condition) in order, and the total duration of each state."""

    periods: tuple[StatePeriod, ...] = ()
    durations: Mapping[str, timedelta] = {}  # by state


class ResourceTimeline(Struct, frozen=True):
    """Every status of a resource: each from its time on, the last one until `end`."""

    resource: Resource
    times: tuple[datetime, ...]
    statuses: tuple[Status, ...]
    transitions: tuple[Transition, ...]
    subjects: Mapping[str, SubjectTimeline]  # by subject
    end: datetime

    def at(self, time: datetime) -> Status | None:
        """Return the status at a time; None: the resource did not exist yet."""
        place = bisect_right(self.times, time)
        return self.statuses[place - 1] if place else None


class PeriodRecorder:
    """Builds the timelines of all subjects during a replay: afterwards it could take too long in one go."""

    def __init__(self, status: Status, begin: datetime) -> None:
        """Start with the state of each subject."""
        self._present = {subject: (state, begin) for subject, state in _states(status)}
        self._periods: dict[str, list[StatePeriod]] = {subject: [] for subject in self._present}
        self._durations: defaultdict[str, defaultdict[str, timedelta]] = defaultdict(lambda: defaultdict(timedelta))

    def add(self, moves: Iterable[Transition], time: datetime) -> None:
        """Record transitions."""
        for move in moves:
            self._close(move.subject, time)
            if move.after is not None:
                self._present[move.subject] = move.after, time

    def close(self, end: datetime) -> Mapping[str, SubjectTimeline]:
        """End all open periods and return the timelines by subject."""
        for subject in list(self._present):
            self._close(subject, end)
        return {
            subject: SubjectTimeline(tuple(periods), self._durations[subject])
            for subject, periods in self._periods.items()
        }

    def _close(self, subject: str, end: datetime) -> None:
        if subject in self._present:
            state, begin = self._present.pop(subject)
            self._periods.setdefault(subject, []).append(StatePeriod(state, begin, end))
            self._durations[subject][state] += end - begin


def _states(status: Status) -> Iterator[tuple[str, str]]:
    yield PHASE_SUBJECT, status.phase
    for condition in status.conditions:
        yield condition.type, condition.status


class TimelineReplay:
    """A replay in progress of one resource's past under some policies."""

    def __init__(
        self,
        past: ResourcePast,
        policies: PolicySet,
        children: Sequence[ResourceTimeline] = (),
        open_budget: Callable[[], Budget] = open_budget,
    ) -> None:
        """Start at the beginning; `children` are the finished timelines of its children under the same policies."""
        self._open_budget = open_budget
        self._past = past
        self._policies = policies
        self._children = children
        self._resource = past.resource
        self._reports = dict(past.reports)
        self._times = [past.begin]
        self._transitions: list[Transition] = []
        status = self._aggregate(past.status, past.begin)
        if past.status is None:
            self._transitions += transitions_between(None, status)
        self._statuses = [status]
        self._recorder = PeriodRecorder(status, past.begin)

    def advance(self, end: datetime) -> Iterator[datetime]:
        """Replay until `end`; yields after each step, so that the caller can do other work in between."""
        for step in self._steps():
            if step.time > end:
                break
            yield from self._run_deadlines(step.time)
            self._apply(step)
            yield step.time
        yield from self._run_deadlines(end)
        if self._deadline == end:
            self._compute(end)

    def finish(self, end: datetime) -> ResourceTimeline:
        """Return the timeline up to `end`. Call it once, after `advance`."""
        end = max(end, self._times[-1])
        return ResourceTimeline(
            self._resource,
            tuple(self._times),
            tuple(self._statuses),
            tuple(self._transitions),
            self._recorder.close(end),
            end,
        )

    def _steps(self) -> Iterable[HistoryStep]:
        """Return the resource's own steps, and an empty one for each time at which a child changed."""
        own = {step.time: step for step in self._past.steps}
        changed = {time for child in self._children for time in child.times if time > self._past.begin}
        return [own.get(time) or HistoryStep(time) for time in sorted(own.keys() | changed)]

    @property
    def _deadline(self) -> datetime | None:
        return self._statuses[-1].next_deadline

    def _run_deadlines(self, until: datetime) -> Iterator[datetime]:
        """Compute the status at every deadline before `until`."""
        while (deadline := self._deadline) is not None and deadline < until:
            self._compute(deadline)
            yield deadline

    def _apply(self, step: HistoryStep) -> None:
        self._resource = step.resource or self._resource
        for adapter in step.retired:
            self._reports.pop(adapter, None)
        self._reports |= {stored.report.adapter: stored for stored in step.reports}
        self._compute(step.time)

    def _compute(self, now: datetime) -> None:
        before = self._statuses[-1]
        after = self._aggregate(before, now)
        moved = transitions_between(before, after)
        if moved:
            self._transitions += moved
            self._recorder.add(moved, now)
        if moved or before.conditions != after.conditions:
            self._times.append(now)
            self._statuses.append(after)
        else:
            self._statuses[-1] = after

    def _aggregate(self, previous: Status | None, now: datetime) -> Status:
        policy = self._policies.select(self._resource)
        children, budget = self._children_at(now), self._open_budget()
        return aggregate(self._resource, self._reports, policy, previous, now, children=children, budget=budget)

    def _children_at(self, now: datetime) -> list[Child]:
        found = [(timeline.resource, timeline.at(now)) for timeline in self._children]
        return [Child(child.kind, child.name, status.conditions) for child, status in found if status is not None]
