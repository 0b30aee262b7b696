"""What would another policy have made of the past? Lives recorded lives again: under it, and under the one in force.

`simulation` hands over each resource that it examines. Both lives begin in the state in which the resource was, so
that they can be compared; under the policy in force, a life is what history tells. Only accepted reports are in the
log: nobody knows when one was delivered twice, and what was removed meanwhile is not there to be asked.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.documents.durations import short_duration
from hyperfleet.errors import HistoryPruned
from hyperfleet.model.resource import Resource
from hyperfleet.ports import Record, Scope, Store
from hyperfleet.services.lives import Course, Life, Living
from hyperfleet.services.pacing import Pace
from hyperfleet.services.recollection import Recall, recollect
from hyperfleet.services.workspace import Rules

MOST_REPORTS: Final = 200_000  # lived again in all; beyond that, filters must narrow what is looked at

SHOWN_STRETCHES: Final = 50  # of one subject of one resource; the first ones

_NO_TIME: Final = timedelta()
_NOTHING: Final = Course()


class Span(Struct, frozen=True):
    """The time that is lived again."""

    begin: datetime
    end: datetime


class Account:
    """What became of one subject in all lives under one policy."""

    def __init__(self) -> None:
        """Begin with no life."""
        self.transitions = 0
        self.lasted: defaultdict[str, timedelta] = defaultdict(timedelta)  # by state

    def add(self, course: Course) -> None:
        """Count the moves of one life from state to state, and how long each state lasted."""
        self.transitions += max(0, len(course.stretches) - 1)
        for state, lasted in course.lasted.items():
            self.lasted[state] += lasted


class Accounts(Struct, frozen=True):
    """What became of one subject under the policy in force, and under the other."""

    present: Account
    candidate: Account


class Story(Struct, frozen=True):
    """A subject of one resource that would have been something else for a while."""

    subject: str
    present: Course
    candidate: Course

    @property
    def gist(self) -> str:
        """Say in one line what would have lasted longer or shorter: `False 12m → 3m`."""
        before, after = self.present.lasted, self.candidate.lasted
        shifts = [
            f"{state} {short_duration(before.get(state, _NO_TIME))} → {short_duration(after.get(state, _NO_TIME))}"
            for state in dict.fromkeys([*before, *after])
            if before.get(state, _NO_TIME) != after.get(state, _NO_TIME)
        ]
        return ", ".join(shifts) or "each state for as long, at other times"


class Differing(Struct, frozen=True):
    """A resource whose life would have been another one."""

    resource: Resource
    stories: tuple[Story, ...]


class Lives(Struct, frozen=True):
    """One past, lived under the policy in force and under the other."""

    present: Life
    candidate: Life


class Replay:
    """Compares what two policies make of the same past."""

    def __init__(
        self, store: Store, scope: Scope, present: Rules, candidate: Rules, span: Span, recall: Recall, limit: int = 100
    ) -> None:
        """Live what happened within `span` again; `recall` reads stored answers. Tell of up to `limit` resources."""
        self._store = store
        self._scope = scope
        self._present = present
        self._candidate = candidate
        self._recall = recall
        self._limit = limit
        self._pace = Pace()
        self.span = span
        self.resources = 0
        self.reports = 0
        self.differing = 0
        self.is_complete = True
        self.told: list[Differing] = []
        self.accounts: dict[str, Accounts] = {}

    async def add(self, record: Record) -> None:
        """Live one life again, unless there were too many reports already or nothing of it is kept."""
        if not self.resources:
            await self._look_for_gaps(record.resource.id)
        if self.reports >= MOST_REPORTS:
            self.is_complete = False
            return
        lives = await self.relive(record)
        if lives is None:
            self.is_complete = False
            return
        self.resources += 1
        stories = self._compare(lives)
        self.differing += bool(stories)
        if stories and len(self.told) < self._limit:
            self.told.append(Differing(record.resource, stories))

    async def _look_for_gaps(self, resource_id: str) -> None:
        """Find out whether reports were forgotten that came after the beginning: the log itself does not tell."""
        try:
            await self._store.read_reports_past(resource_id, self._scope, self.span.begin)
        except HistoryPruned:
            self.is_complete = False

    async def relive(self, record: Record) -> Lives | None:
        """Live the lives of a resource, after those of all below it that its status depends on."""
        since, id_ = self.span.begin, record.resource.id
        past = await recollect(self._store, id_, self._scope, since, self._recall, self._pace)
        if past is None:
            return None
        self.reports += past.count
        self.is_complete = self.is_complete and past.is_whole
        resource = record.resource
        reads_children = self._present.wants_children(resource) or self._candidate.wants_children(resource)
        children = await self._store.read_children(resource.id, self._scope) if reads_children else ()
        below = [lives for child in children if (lives := await self.relive(child)) is not None]
        return Lives(
            await self._live(Living(past.past, self._present.policies, [each.present for each in below])),
            await self._live(Living(past.past, self._candidate.policies, [each.candidate for each in below])),
        )

    async def _live(self, living: Living) -> Life:
        """Live to the end, and let others have their turn meanwhile: a life may have very many reports."""
        for _ in living.advance(self.span.end):
            await self._pace.keep()
        return living.told(self.span.end)

    def _compare(self, lives: Lives) -> tuple[Story, ...]:
        """Add two lives to the accounts, and return where they differ."""
        stories = []
        for subject in dict.fromkeys([*lives.present.courses, *lives.candidate.courses]):
            present = lives.present.courses.get(subject, _NOTHING)
            candidate = lives.candidate.courses.get(subject, _NOTHING)
            accounts = self.accounts.setdefault(subject, Accounts(Account(), Account()))
            accounts.present.add(present)
            accounts.candidate.add(candidate)
            if present.stretches != candidate.stretches:
                stories.append(Story(subject, _shorten(present), _shorten(candidate)))
        return tuple(stories)


def _shorten(course: Course) -> Course:
    """Leave only what is shown: a thousand lives may have very many stretches."""
    return replace(course, stretches=course.stretches[:SHOWN_STRETCHES])
