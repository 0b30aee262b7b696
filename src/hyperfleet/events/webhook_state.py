"""What a webhook remembers: the problems that it has sent or is about to send, and how deliveries went.

Saved in the store as JSON, so that a restart neither repeats nor forgets. Pure: nothing here reads a clock or sends.

A problem is a cause (adapter, reason and folded message, as in `/problems`) and the resources that have it. Looking at
a resource again changes nothing if the resource has not changed. So a batch of the log may be observed twice, and what
was observed may be saved before the position of the log is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.ports import LogGap
from hyperfleet.services.failures import Failure
from hyperfleet.services.message_folding import fold_message

MAX_MEMBERS: Final = 5_000  # of all problems of a webhook: about 1 MB of state; as many as `/problems` looks at
_MAX_LEFT: Final = 1_000  # of one problem; a message shows 20 of them
_MAX_EXAMPLE: Final = 1_000  # characters of a message


class WebhookTiming(Struct, frozen=True):
    """How long a webhook waits for what."""

    gather: timedelta = timedelta(seconds=2)  # for more resources with the same cause, before the first message
    growth: timedelta = timedelta(minutes=1)  # before further resources of a cause that was sent are sent
    repeat: timedelta = timedelta(minutes=2)  # before Alertmanager gets open problems again; it forgets them otherwise
    give_up: timedelta = timedelta(days=1)  # of failing, before a webhook is disabled
    retries: tuple[float, ...] = (1.0, 5.0, 15.0, 60.0, 300.0)  # seconds after failures; the last one for ever


class Member(Struct, frozen=True, omit_defaults=True):
    """A resource that has, or had, the cause of a problem."""

    kind: str
    name: str
    tenant: str
    since: datetime
    href: str = ""
    is_told: bool = False


class Problem(Struct, frozen=True, omit_defaults=True):
    """A cause and the resources that have it. `due` is when the next message is to be sent; None: nothing is new."""

    adapter: str
    reason: str
    message: str  # folded
    example: str
    since: datetime  # when the first of its resources began to fail
    members: dict[str, Member] = {}
    left: dict[str, Member] = {}  # those that were sent and have recovered since
    recovered: int = 0  # how many were sent and have recovered; `left` has the last of them
    due: datetime | None = None
    told_time: datetime | None = None
    number: int = 0  # of its last message

    @property
    def is_over(self) -> bool:
        """Tell whether no resource has the cause any more."""
        return not self.members


class WebhookState(Struct, frozen=True, omit_defaults=True):
    """Everything that a webhook remembers."""

    problems: dict[str, Problem] = {}
    gap: LogGap | None = None  # changes that were lost, to be sent
    must_survey: bool = False  # changes may have been missed: look at the whole fleet
    is_full: bool = False  # there were more members than fit
    sent_time: datetime | None = None  # of the last message
    failing_since: datetime | None = None
    disabled_time: datetime | None = None
    last_error: str = ""

    @classmethod
    def decode(cls, text: bytes) -> Self:
        """Read a saved state; an empty text is that of a new webhook."""
        return msgspec.json.decode(text, type=cls) if text else cls()

    def encode(self) -> bytes:
        """Write the state."""
        return msgspec.json.encode(self)

    @property
    def member_ids(self) -> frozenset[str]:
        """Return the ids of all resources with an open problem."""
        return frozenset(id_ for problem in self.problems.values() for id_ in problem.members)

    def is_newer(self, other: WebhookState, least: timedelta) -> bool:
        """Tell whether something was sent for the first time, or at least that long after another state."""
        if self.sent_time is None:
            return False
        return other.sent_time is None or self.sent_time - other.sent_time >= least

    def enabled(self) -> Self:
        """Return the state of a webhook that is enabled again: it must see what it has missed."""
        return replace(self, disabled_time=None, failing_since=None, must_survey=True)


class Sighting(Struct, frozen=True):
    """A resource that was looked at, and the failures that the filter admits; none: it has recovered or is gone."""

    resource_id: str
    failures: tuple[Failure, ...] = ()
    href: str = ""


def observe(
    state: WebhookState, sightings: Sequence[Sighting], now: datetime, timing: WebhookTiming, *, tells_each: bool
) -> WebhookState:
    """Return the state after looking at resources; `tells_each`: a recovery is sent while others still fail, too."""
    drafts = {id_: _Draft(problem) for id_, problem in state.problems.items()}
    room = MAX_MEMBERS - sum(len(problem.members) for problem in state.problems.values())
    is_full = state.is_full
    for sighting in sightings:
        found = {cause_id(failure): failure for failure in sighting.failures}
        for id_, draft in drafts.items():
            if id_ not in found and sighting.resource_id in draft.members:
                draft.leave(sighting.resource_id)
                room += 1
        for id_, failure in found.items():
            draft = drafts.get(id_) or _Draft(_open(failure))
            if sighting.resource_id not in draft.members:
                if room <= 0:
                    is_full = True
                    continue
                drafts[id_] = draft
                draft.join(sighting, failure, tells_each=tells_each)
                room -= 1
    problems = {id_: draft.finish(now, timing, tells_each=tells_each) for id_, draft in drafts.items()}
    kept = {id_: problem for id_, problem in problems.items() if problem.members or problem.left}
    if is_full and room > MAX_MEMBERS // 2:  # those that did not fit may still fail
        return replace(state, problems=kept, is_full=False, must_survey=True)
    return replace(state, problems=kept, is_full=is_full)


class _Draft:
    """A problem while resources join and leave it; copied when the first one does."""

    def __init__(self, problem: Problem) -> None:
        self._before = problem
        self.members = problem.members
        self._left = problem.left
        self._recovered = problem.recovered
        self._since = problem.since

    def join(self, sighting: Sighting, failure: Failure, *, tells_each: bool) -> None:
        """Add a resource. One that is back before the problem was over is not news, unless its recovery was sent."""
        self._copy()
        id_, resource = sighting.resource_id, failure.resource
        is_back = self._left.pop(id_, None) is not None
        is_told = is_back and not tells_each
        self.members[id_] = Member(
            resource.kind, resource.name, resource.tenant, failure.since, sighting.href, is_told=is_told
        )
        self._recovered -= is_back
        self._since = min(self._since, failure.since)

    def leave(self, id_: str) -> None:
        """Remove a resource; one that was never sent leaves no trace."""
        self._copy()
        member = self.members.pop(id_)
        if not member.is_told:
            return
        self._left[id_] = member
        self._recovered += 1
        if len(self._left) > _MAX_LEFT:
            del self._left[next(iter(self._left))]

    def finish(self, now: datetime, timing: WebhookTiming, *, tells_each: bool) -> Problem:
        """Return the problem as it is now."""
        if self.members is self._before.members:
            return self._before
        return replace(
            self._before,
            members=self.members,
            left=self._left,
            recovered=self._recovered,
            since=self._since,
            due=self._due(now, timing, tells_each=tells_each),
        )

    def _due(self, now: datetime, timing: WebhookTiming, *, tells_each: bool) -> datetime | None:
        """Return when the next message is to be sent; None: there is nothing new."""
        before, soon = self._before, now + timing.gather
        if not self.members or (tells_each and self._left):
            return soon if before.due is None else min(before.due, soon)
        if all(member.is_told for member in self.members.values()):
            return None
        if before.due is not None and before.members:
            return before.due
        pause = timing.gather if tells_each else timing.growth
        return soon if before.told_time is None else max(soon, before.told_time + pause)

    def _copy(self) -> None:
        if self.members is self._before.members:
            self.members, self._left = dict(self.members), dict(self._left)


def cause_id(failure: Failure) -> str:
    """Return the id of the cause of a failure."""
    key = "\0".join((failure.adapter, failure.reason, _fold(failure)))
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:16]


def _fold(failure: Failure) -> str:
    resource = failure.resource
    return fold_message(failure.message, (resource.id, resource.parent_id or "", resource.name))


def _open(failure: Failure) -> Problem:
    example = failure.message[:_MAX_EXAMPLE]
    return Problem(failure.adapter, failure.reason, _fold(failure), example, failure.since)


# ── sending ──────────────────────────────────────────────────────────────────────────────────────────────────────


def due_problems(state: WebhookState, now: datetime, repeat: timedelta | None) -> Iterator[str]:
    """Yield the ids of problems to be sent now, the oldest first; with `repeat`, open ones again and again."""
    by_age = sorted(state.problems.items(), key=lambda item: (item[1].since, item[0]))
    for id_, problem in by_age:
        is_old = repeat is not None and problem.told_time is not None and problem.told_time + repeat <= now
        if is_old or (problem.due is not None and problem.due <= now):
            yield id_


def mark_told(state: WebhookState, id_: str, now: datetime, *, tells_each: bool) -> WebhookState:
    """Return the state after a message about a problem was sent."""
    problems, problem = dict(state.problems), state.problems[id_]
    if problem.is_over:
        del problems[id_]
    else:
        problems[id_] = replace(
            problem,
            members={each: replace(member, is_told=True) for each, member in problem.members.items()},
            left={} if tells_each else problem.left,
            due=None,
            told_time=now,
            number=problem.number + 1,
        )
    return replace(state, problems=problems)


def oldest_due(state: WebhookState) -> datetime | None:
    """Return when the problem that waits for longest should have been sent."""
    return min((problem.due for problem in state.problems.values() if problem.due is not None), default=None)
