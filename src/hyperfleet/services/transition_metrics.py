"""Metrics of transitions: their number, the time spent in each state, the time to Ready.

`Measures` calls this after each commit. Most commits have no transition and cost one check per event.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from hyperfleet.aggregation.availability import READY
from hyperfleet.model.condition import TRUE
from hyperfleet.model.event import PHASE_SUBJECT, Transition
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Status
from hyperfleet.ports import Loaded, NewEvent, WriteSet
from hyperfleet.services.instruments import BoundedNames, Counter, Histogram

NONE: Final = "none"  # the state before a subject exists, and after it is gone

_MINUTE: Final = 60.0
_HOUR: Final = 3_600.0
_DAY: Final = 86_400.0
_TIMES_IN_STATE: Final = (  # seconds
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
_TIMES_TO_READY: Final = (  # seconds
    *(1.0, 5.0, 15.0, 30.0, _MINUTE, 2 * _MINUTE, 5 * _MINUTE, 10 * _MINUTE, 20 * _MINUTE),
    *(30 * _MINUTE, _HOUR, 2 * _HOUR, 6 * _HOUR, _DAY),
)
_MAX_SUBJECTS: Final = 100  # `phase` and condition types; policies that come and go may have named many

Since = dict[tuple[str, str], datetime]  # (resource id, subject) → time of its last transition


class TransitionMetrics:
    """The metrics of transitions."""

    def __init__(self) -> None:
        """Start at zero."""
        self.counter = Counter(
            "hyperfleet_status_transitions_total",
            "Transitions of phases and of condition statuses; subject is phase or a condition type, none: not there.",
            *("kind", "subject", "from", "to"),
        )
        self.time_in_state = Histogram(
            "hyperfleet_status_time_in_state_seconds",
            "How long a phase or a condition status had lasted when it ended.",
            _TIMES_IN_STATE,
            *("kind", "subject", "state"),
        )
        self.time_to_ready = Histogram(
            "hyperfleet_time_to_ready_seconds",
            "Time from creation, or from a change of spec or labels, until Ready was True; without recoveries.",
            _TIMES_TO_READY,
            *("kind", "since"),
        )
        self._subjects = BoundedNames(_MAX_SUBJECTS)

    def count(self, loaded: Loaded, changes: WriteSet) -> None:
        """Count the transitions of a transaction."""
        known: Since = {}
        for event in changes.events:
            if event.transitions:
                self._count_event(event, loaded, known)

    def _count_event(self, event: NewEvent, loaded: Loaded, known: Since) -> None:
        resource = event.resource
        status = _status_before(resource, loaded)
        for moved in event.transitions:
            subject = self._subjects.admit(moved.subject)
            self.counter.add(resource.kind, subject, moved.before or NONE, moved.after or NONE)
            since = known.get((resource.id, moved.subject)) or _since(status, moved.subject)
            if since is not None and moved.before is not None:
                duration = max((moved.time - since).total_seconds(), 0.0)
                self.time_in_state.observe(duration, resource.kind, subject, moved.before)
            if moved.subject == READY and moved.after == TRUE:
                self._count_ready(resource, moved, since)
            known[resource.id, moved.subject] = moved.time

    def _count_ready(self, resource: Resource, moved: Transition, since: datetime | None) -> None:
        """Record the time to Ready, unless the resource was Ready at this generation before."""
        if since is None or since <= resource.generation_time:
            took = max((moved.time - resource.generation_time).total_seconds(), 0.0)
            self.time_to_ready.observe(took, resource.kind, "creation" if resource.generation == 1 else "change")


def _status_before(resource: Resource, loaded: Loaded) -> Status | None:
    """Return the status of a resource before the transaction; None: it did not exist."""
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
