"""How resources move: which transitions, how long they were in the state they left, how long it took to be Ready.

`Measures` asks for this after each commit. Most of them moved nothing: then it costs a look at each event.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from hyperfleet.aggregation.availability import READY
from hyperfleet.model.condition import TRUE
from hyperfleet.model.event import PHASE_SUBJECT, Transition
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Status
from hyperfleet.ports import Changes, Draft, Loaded
from hyperfleet.services.instruments import Counter, Histogram, Names

NONE: Final = "none"  # the state of what was not there before, or is no longer

_MINUTE: Final = 60.0
_HOUR: Final = 3_600.0
_DAY: Final = 86_400.0
_STAY: Final = (
    1.0,
    5.0,
    15.0,
    _MINUTE,
    5 * _MINUTE,
    15 * _MINUTE,
    _HOUR,
    4 * _HOUR,
    12 * _HOUR,
    _DAY,
    3 * _DAY,
    7 * _DAY,
)
_READYING: Final = (
    *(1.0, 5.0, 15.0, 30.0, _MINUTE, 2 * _MINUTE, 5 * _MINUTE, 10 * _MINUTE, 20 * _MINUTE),
    *(30 * _MINUTE, _HOUR, 2 * _HOUR, 6 * _HOUR, _DAY),
)
_MOST_SUBJECTS: Final = 100  # `phase` and condition types; policies that come and go may have named many

Known = dict[tuple[str, str], datetime]  # (resource id, subject) → since when it is as it is


class Movements:
    """What is counted of transitions."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.transitions = Counter(
            "hyperfleet_status_transitions_total",
            "Moves of phases and of conditions' statuses; subject is phase or a condition type, none: not there.",
            *("kind", "subject", "from", "to"),
        )
        self.time_in_state = Histogram(
            "hyperfleet_status_time_in_state_seconds",
            "How long a phase or a condition's status had lasted when it was left.",
            _STAY,
            *("kind", "subject", "state"),
        )
        self.time_to_ready = Histogram(
            "hyperfleet_time_to_ready_seconds",
            "Time from the creation or a change of spec or labels until Ready was True; recoveries do not count.",
            _READYING,
            *("kind", "since"),
        )
        self._subjects = Names(_MOST_SUBJECTS)

    def count(self, loaded: Loaded, changes: Changes) -> None:
        """Count what a transaction moved."""
        known: Known = {}
        for draft in changes.events:
            if draft.transitions:
                self._count_event(draft, loaded, known)

    def _count_event(self, draft: Draft, loaded: Loaded, known: Known) -> None:
        resource = draft.resource
        status = _status_before(resource, loaded)
        for moved in draft.transitions:
            subject = self._subjects.admit(moved.subject)
            self.transitions.add(resource.kind, subject, moved.before or NONE, moved.after or NONE)
            since = known.get((resource.id, moved.subject)) or _since(status, moved.subject)
            if since is not None and moved.before is not None:
                stay = max((moved.time - since).total_seconds(), 0.0)
                self.time_in_state.observe(stay, resource.kind, subject, moved.before)
            if moved.subject == READY and moved.after == TRUE:
                self._count_ready(resource, moved, since)
            known[resource.id, moved.subject] = moved.time

    def _count_ready(self, resource: Resource, moved: Transition, since: datetime | None) -> None:
        """Count how long it took to be Ready, unless it has been Ready at this generation before."""
        if since is None or since <= resource.generation_time:
            took = max((moved.time - resource.generation_time).total_seconds(), 0.0)
            self.time_to_ready.observe(took, resource.kind, "creation" if resource.generation == 1 else "change")


def _status_before(resource: Resource, loaded: Loaded) -> Status | None:
    """Return the status that a resource had before the transaction; None: it was not there."""
    record = loaded.records.get(resource.id)
    if record is None and resource.parent_id is not None:
        family = loaded.children.get(resource.parent_id, ())
        record = next((child for child in family if child.resource.id == resource.id), None)
    return record.status if record is not None else None


def _since(status: Status | None, subject: str) -> datetime | None:
    if status is None:
        return None
    if subject == PHASE_SUBJECT:
        return status.phase_since
    condition = status.condition(subject)
    return condition.last_transition_time if condition is not None else None
