"""From verdicts to published conditions: damping, and transition times that move if and only if the status does."""

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
    """A verdict and the condition that stands for it; a damped one is `is_held` while it says something else."""

    verdict: Verdict
    condition: Condition
    is_held: bool = False


class Publisher:
    """Publishes the verdicts of one aggregation, one after the other."""

    __slots__ = ("_before", "_now", "_previous", "instants", "moves", "published", "raw")

    def __init__(self, previous: Status | None, now: datetime) -> None:
        """Go on from what was published before."""
        self._previous = previous
        self._now = now
        self._before = {condition.type: condition for condition in previous.conditions} if previous else {}
        self.published: list[Published] = []
        self.raw: dict[str, RawResult] = {}
        self.instants: list[datetime] = []  # when what is held will be published
        self.moves: dict[str, ConditionStatus] = {}  # to what status; of a damped condition its raw result

    def publish(self, verdict: Verdict, rule: Rule | None = None) -> None:
        """Publish a verdict, or what was published before while a damped one has not held for long enough."""
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
        """Make a condition of a verdict; it keeps its transition time while its status stays."""
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
        """Remember the raw result and return when it will have held for long enough.

        What counts is how long it has been good, or not good: a result that flickers between False and Unknown has
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
