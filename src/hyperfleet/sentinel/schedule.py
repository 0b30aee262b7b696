"""When a resource wants to be looked at next, and which rules are due.

Every ordinary write calls `next_look` and stores the result, so it takes a few microseconds and evaluates no
expressions. The server calls `due_rules` for a resource whose time has come, `after_look` once adapters were asked to
look, and `next_look` again. Pure: `now` is an argument, and jitter comes from the id of the resource.

A look is due at the begin of a state, or at the last look if that was later, plus the pause of the rule. So a write
never postpones a look (an adapter that reports all the time does not hide another one that is silent), and a look never
causes the next one at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from zlib import crc32

from msgspec import Struct, field
from msgspec.structs import replace

from hyperfleet.aggregation.availability import READY
from hyperfleet.aggregation.policy import Policy
from hyperfleet.model.condition import TRUE
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Status
from hyperfleet.sentinel.rules import (
    DEFAULT_RETRY_INTERVAL,
    LONGEST_RESYNC,
    SHORTEST_PAUSE,
    Rule,
    RuleSet,
    State,
)

_MOST_DOUBLINGS: Final = 64  # any pause has reached its maximum by then; larger powers overflow
_NONE_DECLINED: Final[frozenset[str]] = frozenset()


class LookHistory(Struct, frozen=True, gc=False, array_like=True):
    """What is remembered of the looks at a resource; stored beside the time of the next one."""

    last: datetime | None = None  # when adapters were last asked to look
    attempts: int = 0  # looks since it was Ready or its generation changed
    retries: int = 0  # of them, those for the state `failed`


NO_LOOKS: Final = LookHistory()


class LookedAt(Struct, frozen=True, gc=False):
    """A resource as the schedule sees it."""

    resource: Resource
    status: Status
    policy: Policy
    reports: Mapping[str, StoredReport] = field(default_factory=dict)  # dates staleness; may be left out
    history: LookHistory = NO_LOOKS


class PlannedLook(NamedTuple):
    """When a resource wants its next look, for which rule, and the history to store with it."""

    at: datetime | None  # None: never, it has no required adapters or no rule applies
    rule: Rule | None
    history: LookHistory


class DueRule(NamedTuple):
    """A rule whose time has come."""

    rule: Rule
    since: datetime  # when the state of the rule began
    at: datetime  # since when it is due


def states_of(looked_at: LookedAt) -> tuple[tuple[State, datetime], ...]:
    """Return the states of a resource, each with the time it began; none if no adapter is required."""
    resource, status = looked_at.resource, looked_at.status
    required = status.memory.required_since
    if not required:
        return ()
    if resource.deletion_time is not None:
        return (("deleting", resource.deletion_time), ("any", resource.created_time))
    stale = _stale_since(looked_at)
    main = _main_state(resource, status)
    return (main, *((("stale", stale),) if stale else ()), ("any", resource.created_time))


def next_look(
    looked_at: LookedAt, rules: RuleSet, now: datetime, declined: frozenset[str] = _NONE_DECLINED
) -> PlannedLook:
    """Return the earliest time, not before `now`, at which a rule wants a look.

    `declined` are rules whose `where` or `when` has just been false: they are tried again after their pause.
    """
    looked_at = _start_over(looked_at)
    at: datetime | None = None
    chosen: Rule | None = None
    for rule, _, due in _due_times(looked_at, rules):
        wanted = now + max(_pause_of(rule, looked_at), SHORTEST_PAUSE) if rule.name in declined else max(due, now)
        if at is None or wanted < at:
            at, chosen = wanted, rule
    return PlannedLook(at, chosen, looked_at.history)


def due_rules(looked_at: LookedAt, rules: RuleSet, now: datetime) -> tuple[DueRule, ...]:
    """Return the rules that want a look now, the one that has been due for longest first."""
    due = [each for each in _due_times(_start_over(looked_at), rules) if each.at <= now]
    return tuple(sorted(due, key=lambda each: each.at))


def after_look(looked_at: LookedAt, rule: Rule, now: datetime) -> LookedAt:
    """Return the resource after adapters were asked to look at it for a rule."""
    history = _start_over(looked_at).history
    retries = history.retries + (rule.state == "failed")
    return replace(looked_at, history=LookHistory(now, history.attempts + 1, retries))


def pause(rule: Rule, policy: Policy, history: LookHistory, jitter: float) -> timedelta:
    """Return the time from the begin of a state, or from the last look, to the next look for a rule.

    It grows with the attempts up to the maximum of the rule. `jitter`, from 0 to 1, tells how much of what a rule
    allows is cut off: a pause may be shorter than written, and never longer.
    """
    backoff = rule.backoff
    if rule.after is None:
        whole = _policy_pause(rule, policy, history)
    elif not history.attempts:
        whole = rule.after
    else:
        first = max(rule.after, SHORTEST_PAUSE)
        grown = backoff.factor ** min(history.attempts, _MOST_DOUBLINGS)
        most = max(first, backoff.max)
        whole = most if grown * first.total_seconds() >= most.total_seconds() else first * grown
    return whole * (1.0 - backoff.jitter * jitter)


def resync_age(policy: Policy) -> timedelta:
    """Return how often a settled resource is looked at: so that adapters report before they are stale."""
    return LONGEST_RESYNC if policy.stale_after is None else min(policy.stale_after / 3, LONGEST_RESYNC)


def _policy_pause(rule: Rule, policy: Policy, history: LookHistory) -> timedelta:
    if rule.state == "failed" and history.retries < policy.max_retries:
        return max(policy.retry_interval or DEFAULT_RETRY_INTERVAL, SHORTEST_PAUSE)
    return resync_age(policy)


def _start_over(looked_at: LookedAt) -> LookedAt:
    """Forget the attempts once the resource is Ready or has another generation."""
    history = looked_at.history
    if not history.attempts:
        return looked_at
    is_new = history.last is None or history.last < looked_at.resource.generation_time
    if not is_new and looked_at.status.phase != "Ready":
        return looked_at
    return replace(looked_at, history=LookHistory(history.last))


def _main_state(resource: Resource, status: Status) -> tuple[State, datetime]:
    if status.phase == "Failed":
        return "failed", status.phase_since
    required = status.memory.required_since
    observed = [each.observed_generation for each in status.adapters if each.name in required]
    if not observed:
        return "new", resource.generation_time
    if len(observed) < len(required) or min(observed) < resource.generation:
        return "outdated", resource.generation_time
    if status.phase == "Ready":
        return "ready", status.phase_since
    return "notReady", _unready_since(resource, status)


def _unready_since(resource: Resource, status: Status) -> datetime:
    """Return when a resource stopped being Ready. Its phase may move many times since: that is no reason to wait."""
    ready = status.condition(READY)
    if ready is None or ready.status == TRUE or ready.last_transition_time is None:  # Ready, and yet Degraded
        return status.phase_since
    return max(ready.last_transition_time, resource.generation_time)


def _stale_since(looked_at: LookedAt) -> datetime | None:
    """Return since when a required adapter is stale: the latest of them, as each is news."""
    status, stale_after = looked_at.status, looked_at.policy.stale_after
    latest: datetime | None = None
    for each in status.adapters:
        if each.stale and each.name in status.memory.required_since:
            stored = looked_at.reports.get(each.name)
            since = status.phase_since
            if stored is not None and stale_after is not None:
                since = max(stored.last_heard, looked_at.resource.generation_time) + stale_after
            latest = since if latest is None else max(latest, since)
    return latest


def _due_times(looked_at: LookedAt, rules: RuleSet) -> Iterator[DueRule]:
    last = looked_at.history.last
    for state, since in states_of(looked_at):
        begin = since if last is None or last < since else last
        for rule in rules.of(state):
            at = begin + _pause_of(rule, looked_at)
            yield DueRule(rule, since, at if last is None else max(at, last + SHORTEST_PAUSE))


def _pause_of(rule: Rule, looked_at: LookedAt) -> timedelta:
    history = looked_at.history
    jitter = crc32(looked_at.resource.id.encode(), history.attempts) / 2**32
    return pause(rule, looked_at.policy, history, jitter)
