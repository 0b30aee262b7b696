"""An event: something happened to a resource. It carries identity, never state: readers fetch that."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from msgspec import Struct

from hyperfleet.model.condition import ConditionStatus

EventType = Literal["Created", "SpecChanged", "StatusChanged", "DeletionRequested", "Removed", "ReconcileRequested"]

PHASE_SUBJECT: Final = "phase"


class Event(Struct, frozen=True):
    """Something happened to a resource at a generation. A heartbeat is not an event."""

    type: EventType
    kind: str
    resource_id: str
    generation: int
    time: datetime
    parent_id: str | None = None
    tenant: str = ""


class Transition(Struct, frozen=True, gc=False):
    """One step of a resource's history: its phase, or the status of one condition, moved."""

    subject: str  # `phase`, or a condition type
    before: str | ConditionStatus | None  # None: it was not there before
    after: str | ConditionStatus | None  # None: it is no longer there
    time: datetime
    reason: str = ""
    message: str = ""
