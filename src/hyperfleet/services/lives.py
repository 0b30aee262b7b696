"""The life of a resource, lived again under some policy: its past in, every status it would have had out.

`replay` reads the past and lives it. Pure, as aggregation is. All that happened at one instant counts as one
step, so what lasted no time is not seen; a deadline counts when it came, not when somebody noticed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from hyperfleet.aggregation import Child, PolicySet, aggregate, transitions_between
from hyperfleet.model.event import PHASE_SUBJECT, Transition
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Status


class Step(Struct, frozen=True):
    """What happened at one instant. `resource`: None, unless it was edited."""

    time: datetime
    resource: Resource | None = None
    reports: tuple[StoredReport, ...] = ()
    retired: frozenset[str] = frozenset()  # adapters


class Past(Struct, frozen=True):
    """What happened to a resource, from the state in which it was at the beginning."""

    resource: Resource
    begin: datetime
    status: Status | None  # None: it was created at the beginning
    reports: Mapping[str, StoredReport]
    steps: tuple[Step, ...]  # after the beginning, in the order of time


class Stretch(Struct, frozen=True):
    """A time in which the phase, or a condition, stayed what it was."""

    state: str
    begin: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        """Return how long it was."""
        return (self.end - self.begin).total_seconds()


class Course(Struct, frozen=True):
    """What one subject was in a life, one thing after the other; and how long it was each, all in all."""

    stretches: tuple[Stretch, ...] = ()
    lasted: Mapping[str, timedelta] = {}  # by state


class Life(Struct, frozen=True):
    """Every status that a resource had: each from its time on, the last one until the end."""

    resource: Resource
    times: tuple[datetime, ...]
    statuses: tuple[Status, ...]
    transitions: tuple[Transition, ...]
    courses: Mapping[str, Course]  # by subject
    end: datetime

    def at(self, time: datetime) -> Status | None:
        """Return the status at a time; None: it was not there yet."""
        place = bisect_right(self.times, time)
        return self.statuses[place - 1] if place else None


class Diary:
    """The courses of a life, written while it is lived: at its end there may be too much to be read in one go."""

    def __init__(self, status: Status, begin: datetime) -> None:
        """Begin with what each subject is."""
        self._present = {subject: (state, begin) for subject, state in _states(status)}
        self._stretches: dict[str, list[Stretch]] = {subject: [] for subject in self._present}
        self._lasted: defaultdict[str, defaultdict[str, timedelta]] = defaultdict(lambda: defaultdict(timedelta))

    def note(self, moves: Iterable[Transition], time: datetime) -> None:
        """Note what moves."""
        for move in moves:
            self._close(move.subject, time)
            if move.after is not None:
                self._present[move.subject] = move.after, time

    def close(self, end: datetime) -> Mapping[str, Course]:
        """End everything, and return it by subject."""
        for subject in list(self._present):
            self._close(subject, end)
        return {
            subject: Course(tuple(stretches), self._lasted[subject]) for subject, stretches in self._stretches.items()
        }

    def _close(self, subject: str, end: datetime) -> None:
        if subject in self._present:
            state, begin = self._present.pop(subject)
            self._stretches.setdefault(subject, []).append(Stretch(state, begin, end))
            self._lasted[subject][state] += end - begin


def _states(status: Status) -> Iterator[tuple[str, str]]:
    yield PHASE_SUBJECT, status.phase
    for condition in status.conditions:
        yield condition.type, condition.status


class Living:
    """A life under way: the past of a resource, lived again under some policies."""

    def __init__(self, past: Past, policies: PolicySet, children: Sequence[Life] = ()) -> None:
        """Begin it; `children` have lived theirs before, under the same policies."""
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
        self._diary = Diary(status, past.begin)

    def advance(self, end: datetime) -> Iterator[datetime]:
        """Live until the end, step by step: whoever has other things to do can do them in between."""
        for step in self._steps():
            if step.time > end:
                break
            yield from self._sleep(step.time)
            self._take(step)
            yield step.time
        yield from self._sleep(end)
        if self._deadline == end:
            self._compute(end)

    def told(self, end: datetime) -> Life:
        """Return the life that was lived until the end. There is nothing after it."""
        end = max(end, self._times[-1])
        return Life(
            self._resource,
            tuple(self._times),
            tuple(self._statuses),
            tuple(self._transitions),
            self._diary.close(end),
            end,
        )

    def _steps(self) -> Iterable[Step]:
        """Return what happened, and when there was something new of the children."""
        told = {step.time: step for step in self._past.steps}
        news = {time for child in self._children for time in child.times if time > self._past.begin}
        return [told.get(time) or Step(time) for time in sorted(told.keys() | news)]

    @property
    def _deadline(self) -> datetime | None:
        return self._statuses[-1].next_deadline

    def _sleep(self, until: datetime) -> Iterator[datetime]:
        """Let time pass, and wake at every deadline before then."""
        while (deadline := self._deadline) is not None and deadline < until:
            self._compute(deadline)
            yield deadline

    def _take(self, step: Step) -> None:
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
            self._diary.note(moved, now)
        if moved or before.conditions != after.conditions:
            self._times.append(now)
            self._statuses.append(after)
        else:
            self._statuses[-1] = after

    def _aggregate(self, previous: Status | None, now: datetime) -> Status:
        policy = self._policies.select(self._resource)
        return aggregate(self._resource, self._reports, policy, previous, now, children=self._children_at(now))

    def _children_at(self, now: datetime) -> list[Child]:
        found = [(life.resource, life.at(now)) for life in self._children]
        return [Child(child.kind, child.name, status.conditions) for child, status in found if status is not None]
