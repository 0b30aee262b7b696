"""From verdicts to published conditions: damping, and transition times that move if and only if the status does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.aggregation.policy import Policy
from hyperfleet.aggregation.verdict import Verdict
from hyperfleet.conditions.message import fit
from hyperfleet.model.condition import MAX_MESSAGE, Condition
from hyperfleet.model.status import RawResult, Status


class Publication(Struct, frozen=True):
    """What is published, what lies raw beside it, and when that will be published."""

    conditions: tuple[Condition, ...]
    raw: Mapping[str, RawResult]
    instants: Sequence[datetime]


def publish(verdicts: Sequence[Verdict], policy: Policy, previous: Status | None, now: datetime) -> Publication:
    """Publish each verdict, or what was published before while a damped one has not held for long enough."""
    before = {condition.type: condition for condition in previous.conditions} if previous else {}
    conditions = [_stamp(verdict, before.get(verdict.type), now) for verdict in verdicts]
    raw: dict[str, RawResult] = {}
    instants: list[datetime] = []
    for place, rule in enumerate(policy.rules, start=len(verdicts) - len(policy.rules)):
        if not (rule.go_bad_after or rule.go_good_after):
            continue
        raw[rule.type] = result = _raw_result(verdicts[place], previous, now)
        earlier, instant = before.get(rule.type), result.since + rule.delay_towards(result.status)
        if earlier is not None and earlier.status != result.status and instant > now:
            conditions[place] = replace(earlier, observed_generation=verdicts[place].observed_generation)
            instants.append(instant)
    return Publication(tuple(conditions), raw, instants)


def _stamp(verdict: Verdict, before: Condition | None, now: datetime) -> Condition:
    """Make a condition of a verdict; it keeps its transition time while its status stays."""
    status, message = verdict.status, verdict.message
    since = now if before is None or before.status != status else before.last_transition_time
    if len(message) > MAX_MESSAGE:
        message = fit(message)
    return Condition(verdict.type, status, verdict.reason, message, verdict.observed_generation, since)


def _raw_result(verdict: Verdict, previous: Status | None, now: datetime) -> RawResult:
    before = previous.raw.get(verdict.type) if previous else None
    return before if before is not None and before.status == verdict.status else RawResult(verdict.status, now)
