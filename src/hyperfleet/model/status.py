"""A status: what we compute of one resource from all its reports and store with them.

Reads return a stored status as it is. Only `aggregation.aggregate` makes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from hyperfleet.model.condition import Condition, ConditionStatus, find

Phase = Literal["Deleting", "Degraded", "Failed", "Ready", "Provisioning", "Pending"]

# In the order of priority: the first one that holds is the phase. Not configurable, so that no policy can
# hide a state that matters.
PHASES: Final[tuple[Phase, ...]] = ("Deleting", "Degraded", "Failed", "Ready", "Provisioning", "Pending")

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
    """One adapter that reported, on one line."""

    name: str
    available: ConditionStatus
    observed_generation: int
    state: AdapterState
    state_since: datetime
    stale: bool = False


class RawResult(Struct, frozen=True, gc=False):
    """What a damped rule says now, beside what is still published."""

    status: ConditionStatus
    since: datetime
    side_since: datetime  # since when it has been good, or not good; damping counts from here


class Flip(Struct, frozen=True, gc=False, array_like=True):
    """One move of the phase or of a condition's status; of a damped condition, of what its rule says."""

    time: datetime
    after: str


Flips: TypeAlias = tuple[Flip, ...]  # of one subject, the oldest first


class Flapping(Struct, frozen=True, gc=False):
    """The mark of what moves too often."""

    since: datetime  # when it was marked
    transitions: int  # moves in all, from the first of those that led to the mark
    window: timedelta  # within which so many are too many


# What has a default here is not stored while it has that value: a settled fleet pays nothing for what might flap.
class Memory(Struct, frozen=True, omit_defaults=True, gc=False):
    """What the next aggregation must know of this one and no reader needs."""

    written_time: datetime  # no later write may be earlier
    last_state_change: datetime  # of any required adapter; starts the clock of missing adapters
    required_since: Mapping[str, datetime] = field(default_factory=dict)
    flips: Mapping[str, Flips] = field(default_factory=dict)  # by subject, those that may still count


class Status(Struct, frozen=True, omit_defaults=True, gc=False):
    """The stored answer to «how is it?»."""

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
