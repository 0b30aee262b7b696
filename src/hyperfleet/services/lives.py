"""The life of a resource, lived again under some policy: its past in, every status it would have had out.

`replay` reads the past and lives it. Pure, as aggregation is. All that happened at one instant counts as one
step, so what lasted no time is not seen; a deadline counts when it came, not when somebody noticed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from hyperfleet.aggregation import Child, PolicySet, aggregate, refresh, says_the_same, transitions_between
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


class Life(Struct, frozen=True):
    """Every status that a resource had: each from its time on, the last one until the end."""

    resource: Resource
    times: tuple[datetime, ...]
    statuses: tuple[Status, ...]
    transitions: tuple[Transition, ...]
    end: datetime

    def at(self, time: datetime) -> Status | None:
        """Return the status at a time; None: it was not there yet."""
        place = bisect_right(self.times, time)
        return self.statuses[place - 1] if place else None

    def stretches(self) -> Mapping[str, tuple[Stretch, ...]]:
        """Return what each subject was, one thing after the other."""
        found: dict[str, list[Stretch]] = {}
        ends = (*self.times[1:], self.end)
        for begin, end, status in zip(self.times, ends, self.statuses, strict=True):
            for subject, state in _states(status):
                told = found.setdefault(subject, [])
                if told and told[-1].state == state and told[-1].end == begin:
                    told[-1] = Stretch(state, told[-1].begin, end)
                else:
                    told.append(Stretch(state, begin, end))
        return {subject: tuple(told) for subject, told in found.items()}


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
        """Return the life that was lived until the end."""
        return Life(
            self._resource,
            tuple(self._times),
            tuple(self._statuses),
            tuple(self._transitions),
            max(end, self._times[-1]),
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
        beats = [stored for stored in step.reports if self._is_heartbeat(stored)]
        is_quiet = step.reports and len(beats) == len(step.reports) and not (step.resource or step.retired)
        self._reports |= {stored.report.adapter: stored for stored in step.reports}
        if not (is_quiet and self._refresh(beats, step.time)):
            self._compute(step.time)

    def _is_heartbeat(self, stored: StoredReport) -> bool:
        before = self._reports.get(stored.report.adapter)
        return before is not None and says_the_same(before, stored)

    def _refresh(self, beats: Sequence[StoredReport], now: datetime) -> bool:
        """Take the shortcut for heartbeats, if there is one; tell whether there was."""
        status, policy = self._statuses[-1], self._policies.select(self._resource)
        for beat in beats:
            refreshed = refresh(beat, policy, status, now)
            if refreshed is None:
                return False
            status = refreshed
        self._statuses[-1] = status
        return True

    def _compute(self, now: datetime) -> None:
        before = self._statuses[-1]
        after = self._aggregate(before, now)
        moved = transitions_between(before, after)
        if moved:
            self._transitions += moved
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
