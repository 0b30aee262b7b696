"""A status: computed from all reports of one resource and stored with them.

Reads return a stored status as it is. Only `aggregation.aggregate` makes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from hyperfleet.model.condition import Condition, ConditionStatus, find
from hyperfleet.model.phase import Phase

AdapterState = Literal["Unreported", "Unhealthy", "Outdated", "Completed", "Pending", "Running", "Failed"]
ADAPTER_STATES: Final[tuple[AdapterState, ...]] = (
    "Unreported",
    "Unhealthy",
    "Outdated",
    "Completed",
    "Pending",
    "Running",
    "Failed",
)


class AdapterSummary(Struct, frozen=True, gc=False):
    """A summary of one adapter that reported."""

    name: str
    available: ConditionStatus
    observed_generation: int
    state: AdapterState
    state_since: datetime
    stale: bool = False


class RawResult(Struct, frozen=True, gc=False):
    """The current result of a damped rule, which may not be published yet."""

    status: ConditionStatus
    since: datetime
    side_since: datetime  # since when it has been good, or not good; damping counts from here


class Flip(Struct, frozen=True, gc=False, array_like=True):
    """One move of the phase or of a condition's status; for a damped condition, of its raw result."""

    time: datetime
    after: str


Flips: TypeAlias = tuple[Flip, ...]  # of one subject, the oldest first


class Flapping(Struct, frozen=True, gc=False):
    """The mark of a subject that moves too often."""

    since: datetime  # when it was marked
    transitions: int  # all moves, from the first one that led to the mark
    window: timedelta  # in which moves are counted


# Defaults are not stored, so a settled fleet pays nothing for flapping.
class Memory(Struct, frozen=True, omit_defaults=True, gc=False):
    """What the next aggregation needs from this one, and readers do not."""

    written_time: datetime  # no later write may be earlier
    last_state_change: datetime  # of any required adapter; starts the clock of missing adapters
    required_since: Mapping[str, datetime] = field(default_factory=dict)
    flips: Mapping[str, Flips] = field(default_factory=dict)  # by subject, those that may still count


class Status(Struct, frozen=True, omit_defaults=True, gc=False):
    """The stored status of one resource."""

    phase: Phase
    phase_description: str
    phase_since: datetime
    conditions: tuple[Condition, ...]  # Available, Ready, then one per rule in policy order
    adapters: tuple[AdapterSummary, ...]
    last_updated: datetime  # when anything above last changed
    policy: str  # digest of the policy it was computed with
    raw: Mapping[str, RawResult]  # by condition type, for damped rules only
    next_deadline: datetime | None  # when time alone will change this status
    memory: Memory
    flapping: Mapping[str, Flapping] = field(default_factory=dict)  # by subject: `phase`, or a condition type
    restless: tuple[str, ...] = ()  # adapters of which the next heartbeat alone can change this status

    def condition(self, type_: str) -> Condition | None:
        """Return the condition of a type, if this status has one."""
        return find(self.conditions, type_)
