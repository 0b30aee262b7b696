"""Publish verdicts as conditions: damping, and transition times that change if and only if the status does."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.aggregation.policy import Rule
from hyperfleet.aggregation.verdict import Verdict
from hyperfleet.conditions.message import fit
from hyperfleet.model.condition import MAX_MESSAGE, Condition, ConditionStatus
from hyperfleet.model.status import RawResult, Status


class Published(Struct, frozen=True):
    """A verdict and its published condition; `is_held` while damping holds back a different verdict."""

    verdict: Verdict
    condition: Condition
    is_held: bool = False


class Publisher:
    """Publishes the verdicts of one aggregation, in order."""

    __slots__ = ("_before", "_now", "_previous", "instants", "moves", "published", "raw")

    def __init__(self, previous: Status | None, now: datetime) -> None:
        """Start from the previous status."""
        self._previous = previous
        self._now = now
        self._before = {condition.type: condition for condition in previous.conditions} if previous else {}
        self.published: list[Published] = []
        self.raw: dict[str, RawResult] = {}
        self.instants: list[datetime] = []  # when held verdicts will be published
        self.moves: dict[str, ConditionStatus] = {}  # the new status by type; for a damped condition, of its raw result

    def publish(self, verdict: Verdict, rule: Rule | None = None) -> None:
        """Publish a verdict; keep the previous condition while a damped verdict has not lasted long enough."""
        before = self._before.get(verdict.type)
        if rule is not None and (rule.go_bad_after or rule.go_good_after):
            instant = self._settles_at(verdict, rule)
            if before is not None and before.status != verdict.status and instant > self._now:
                self.instants.append(instant)
                held = replace(before, observed_generation=verdict.observed_generation)
                self.published.append(Published(verdict, held, True))
                return
        self.published.append(Published(verdict, self._stamp(verdict, before)))

    def _stamp(self, verdict: Verdict, before: Condition | None) -> Condition:
        """Make a condition from a verdict; the transition time stays while the status stays."""
        status, message = verdict.status, verdict.message
        if before is not None and before.status == status:
            since = before.last_transition_time
        else:
            since = self._now
            if before is not None and verdict.type not in self.raw:
                self.moves[verdict.type] = status
        if len(message) > MAX_MESSAGE:
            message = fit(message)
        return Condition(verdict.type, status, verdict.reason, message, verdict.observed_generation, since)

    def _settles_at(self, verdict: Verdict, rule: Rule) -> datetime:
        """Record the raw result and return when it will have lasted long enough.

        What counts is how long it has been good, or not good: a result that alternates between False and Unknown has
        been bad all the time.
        """
        status, is_good = verdict.status, rule.is_good(verdict.status)
        before = self._previous.raw.get(rule.type) if self._previous else None
        since = before.since if before and before.status == status else self._now
        side = before.side_since if before and rule.is_good(before.status) is is_good else self._now
        if before and before.status != status:
            self.moves[rule.type] = status
        self.raw[rule.type] = RawResult(status, since, side)
        return side + (rule.go_good_after if is_good else rule.go_bad_after)
