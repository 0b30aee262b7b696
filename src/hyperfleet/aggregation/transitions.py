"""The transitions between two statuses: the entries of a resource's history."""

from __future__ import annotations

from hyperfleet.model.condition import Condition
from hyperfleet.model.event import PHASE_SUBJECT, Transition
from hyperfleet.model.status import Status


def transitions_between(before: Status | None, after: Status) -> tuple[Transition, ...]:
    """List every change of the phase and of a condition's status, in the order of the status."""
    found = []
    if before is None or before.phase != after.phase:
        old_phase = before.phase if before else None
        found.append(Transition(PHASE_SUBJECT, old_phase, after.phase, after.phase_since))
    earlier = {condition.type: condition for condition in before.conditions} if before else {}
    for condition in after.conditions:
        old = earlier.pop(condition.type, None)
        if old is None or old.status != condition.status:
            found.append(_moved(old, condition))
    found += [Transition(type_, gone.status, None, after.memory.written_time) for type_, gone in earlier.items()]
    return tuple(found)


def _moved(old: Condition | None, new: Condition) -> Transition:
    if new.last_transition_time is None:
        raise ValueError(f"{new.type} of a stored status has no transition time")
    return Transition(
        new.type, old.status if old else None, new.status, new.last_transition_time, new.reason, new.message
    )
