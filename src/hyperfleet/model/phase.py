"""The phases of a resource: one table with all their fixed properties.

All code that lists, orders, colours or counts phases derives from this table. `aggregation.phase` decides when a phase
holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct

Phase = Literal["Deleting", "Degraded", "Failed", "Ready", "Provisioning", "Pending"]
PhaseColour = Literal["good", "bad", "busy"]


class PhaseTraits(Struct, frozen=True, kw_only=True):
    """The fixed properties of one phase. A policy can change only the description."""

    name: Phase
    severity: int  # 0 is the worst. Stores keep it in a column: a change needs a migration.
    colour: PhaseColour
    is_troubled: bool = False  # a person on call should look at it
    is_progressing: bool = False  # on the way to Ready, nothing wrong yet
    is_timed: bool = False  # metrics have the age of the oldest resource in it; alerts use that
    description: str  # for policies that do not describe it themselves


# In the order of priority: the first phase that holds is the phase of the resource.
#
# Severity is for a person on call: trouble first, then work in progress. Deleting comes after it because it
# was requested; a deletion that hangs is found by its age.
PHASE_TABLE: Final[tuple[PhaseTraits, ...]] = (
    PhaseTraits(
        name="Deleting",
        severity=4,
        colour="busy",
        is_timed=True,
        description="Being deleted; adapters are cleaning up",
    ),
    PhaseTraits(
        name="Degraded",
        severity=1,
        colour="bad",
        is_troubled=True,
        is_timed=True,
        description="Operational but with health issues",
    ),
    PhaseTraits(
        name="Failed",
        severity=0,
        colour="bad",
        is_troubled=True,
        is_timed=True,
        description="One or more required adapters failed",
    ),
    PhaseTraits(
        name="Ready",
        severity=5,
        colour="good",
        description="All required adapters completed successfully",
    ),
    PhaseTraits(
        name="Provisioning",
        severity=2,
        colour="busy",
        is_progressing=True,
        description="One or more adapters are actively provisioning resources",
    ),
    PhaseTraits(
        name="Pending",
        severity=3,
        colour="busy",
        is_progressing=True,
        description="Waiting for adapters to start processing",
    ),
)

PHASES: Final[tuple[Phase, ...]] = tuple(row.name for row in PHASE_TABLE)
PHASE_TRAITS: Final[Mapping[str, PhaseTraits]] = MappingProxyType({row.name: row for row in PHASE_TABLE})
WORST_FIRST: Final[tuple[Phase, ...]] = tuple(row.name for row in sorted(PHASE_TABLE, key=lambda row: row.severity))
TROUBLED_PHASES: Final[tuple[Phase, ...]] = tuple(row.name for row in PHASE_TABLE if row.is_troubled)
PROGRESSING_PHASES: Final[tuple[Phase, ...]] = tuple(row.name for row in PHASE_TABLE if row.is_progressing)
TIMED_PHASES: Final[tuple[Phase, ...]] = tuple(row.name for row in PHASE_TABLE if row.is_timed)
