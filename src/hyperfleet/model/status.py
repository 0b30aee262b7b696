"""A status: what we compute of one resource from all its reports and store with them.

Reads return a stored status as it is. Only `aggregation.aggregate` makes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

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
    last_updated: datetime
    stale: bool = False


class RawResult(Struct, frozen=True, gc=False):
    """What a damped rule says now, beside what is still published."""

    status: ConditionStatus
    since: datetime
    side_since: datetime  # since when it has been good, or not good; damping counts from here


class Memory(Struct, frozen=True):
    """What the next aggregation must know of this one and no reader needs."""

    written_time: datetime  # no later write may be earlier
    last_state_change: datetime  # of any required adapter; starts the clock of missing adapters
    required_since: Mapping[str, datetime] = field(default_factory=dict)


class Status(Struct, frozen=True):
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

    def condition(self, type_: str) -> Condition | None:
        """Return the condition of a type, if this status has one."""
        return find(self.conditions, type_)
