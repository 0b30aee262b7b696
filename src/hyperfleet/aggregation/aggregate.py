"""★ The heart: reports + policy + previous status + now → status.

Called in every write that can change a status (a report, an edit, a deletion, a deadline, a new policy), in the same
transaction. Pure: the same inputs give the same status, on any machine, at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec.structs import replace

from hyperfleet.aggregation.availability import judge_available, judge_ready
from hyperfleet.aggregation.flapping import FlappingState, follow
from hyperfleet.aggregation.phase import PhaseInputs, decide_phase
from hyperfleet.aggregation.policy import Policy
from hyperfleet.aggregation.publication import Publisher
from hyperfleet.aggregation.rules import judge_rules
from hyperfleet.aggregation.situation import Child, Situation, read_situation
from hyperfleet.expr import Budget
from hyperfleet.model.condition import UNKNOWN
from hyperfleet.model.event import PHASE_SUBJECT
from hyperfleet.model.phase import Phase
from hyperfleet.model.report import AVAILABLE, StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import AdapterSummary, Status


def aggregate(
    resource: Resource,
    reports: Mapping[str, StoredReport],
    policy: Policy,
    previous: Status | None,
    now: datetime,
    *,
    children: Iterable[Child] = (),
    budget: Budget | None = None,
) -> Status:
    """Compute the status of a resource from the stored reports of its adapters, by adapter name.

    All rules pay from one `budget`; a caller that counts the work gives its own.
    """
    situation = read_situation(resource, reports, policy, previous, now, children, budget)
    publisher = judge(situation)
    return settle(situation, publisher, decide_phase(PhaseInputs(situation, publisher.published)))


def judge(situation: Situation) -> Publisher:
    """Decide and publish every condition: Available, Ready, then one for each rule."""
    publisher = Publisher(situation.previous, situation.now)
    publisher.publish(judge_available(situation))
    publisher.publish(judge_ready(situation))
    judge_rules(situation, publisher)
    return publisher


def settle(situation: Situation, publisher: Publisher, phase: Phase) -> Status:
    """Put the status together; what readers see is dated by its last change, not by the last look."""
    previous, now = situation.previous, situation.now
    conditions = tuple([published.condition for published in publisher.published])
    adapters = _summaries(situation)
    description = situation.policy.description_of(phase)
    moved = previous is None or previous.phase != phase
    movements = follow(situation, {**publisher.moves, PHASE_SUBJECT: phase} if moved else publisher.moves)
    changed = (
        previous is None
        or moved
        or previous.conditions != conditions
        or previous.adapters != adapters
        or previous.phase_description != description
        or previous.raw != publisher.raw
        or previous.flapping != movements.flapping
    )
    return Status(
        phase=phase,
        phase_description=description,
        phase_since=now if previous is None or moved else previous.phase_since,
        conditions=conditions,
        adapters=adapters,
        last_updated=now if previous is None or changed else previous.last_updated,
        policy=situation.policy.digest,
        raw=publisher.raw,
        next_deadline=_next_deadline(situation, publisher, movements),
        memory=replace(situation.memory, flips=movements.flips) if movements.flips else situation.memory,
        flapping=movements.flapping,
        restless=_restless(situation),
    )


def _summaries(situation: Situation) -> tuple[AdapterSummary, ...]:
    previous, now = situation.previous, situation.now
    before = {summary.name: summary for summary in previous.adapters} if previous else {}
    summaries = []
    for view in situation.adapters.reported:
        earlier = before.get(view.adapter)
        since = now if earlier is None or earlier.state != view.state else earlier.state_since
        summaries.append(
            AdapterSummary(
                view.adapter,
                view.available,
                view.observed_generation,
                view.state,
                since,
                view.is_stale,
            )
        )
    return tuple(summaries)


def _restless(situation: Situation) -> tuple[str, ...]:
    """Return the adapters whose next heartbeat alone can change the status.

    Of any other adapter's times a status takes only that it is not stale and that each `olderThan` is false, and both
    stay so when it is heard later.
    """
    views = situation.by_name
    if situation.policy.reads_times:
        return tuple(views)
    elapsed = situation.clock.elapsed
    return tuple([name for name, view in views.items() if view.is_stale or name in elapsed])


def is_calm(stored: StoredReport, status: Status) -> bool:
    """Tell whether being heard again changes nothing of a status that was just computed.

    An Unknown report moves the clock of missing adapters, and a heartbeat after `OutOfOrder` discards ends their count.
    """
    return (
        stored.report.status_of(AVAILABLE) != UNKNOWN
        and not stored.discards
        and stored.report.adapter not in status.restless
    )


def can_change_status(before: StoredReport | None, after: StoredReport, policy: Policy) -> bool:
    """Tell whether a report that replaces another can change the status at all.

    It cannot if the one before was calm and the two differ only in data that no rule reads: counters, for instance.
    """
    return (
        before is None
        or policy.reads_data
        or not before.is_calm
        or before.report.observed_generation != after.report.observed_generation
        or before.report.conditions != after.report.conditions
    )


def _next_deadline(situation: Situation, publisher: Publisher, movements: FlappingState) -> datetime | None:
    """Return the next instant at which time alone changes what was looked at."""
    now = situation.now
    instants = [view.stale_at for view in situation.by_name.values() if view.stale_at]
    instants += (*situation.missing_at.values(), *publisher.instants, *situation.clock.instants, *movements.instants)
    return min([instant for instant in instants if instant > now], default=None)
