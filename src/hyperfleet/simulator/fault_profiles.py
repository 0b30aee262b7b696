"""How often, and how, an adapter of the simulated fleet fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

ALL: Final = "*"


class FaultProfile(Struct, frozen=True):
    """The faults of one adapter. Probabilities are from 0 to 1, times are in seconds, 0 means never."""

    fail: float = 0.0  # probability that a run fails; it is retried later
    slow: float = 1.0  # factor on the duration of work
    sick: float = 0.0  # probability that a periodic check finds the adapter unhealthy
    flap: float = 0.0  # interval at which it alternates between available and not, once it is done
    silent: float = 0.0  # how long it stops reporting …
    silence_probability: float = 0.05  # … and the probability, at each periodic check, that it does
    skew: float = 0.0  # how far its clock is ahead
    lost: float = 0.0  # probability that a report does not arrive …
    twice: float = 0.0  # … that it arrives twice …
    late: float = 0.0  # … that it arrives after a later one
    stuck: bool = False  # never finishes cleaning up
    absent: bool = False  # never reports


NO_FAULTS: Final = FaultProfile()
# An ordinary fleet: something is always wrong somewhere, and most of it recovers by itself.
TYPICAL_FAULTS: Final = FaultProfile(fail=0.04, sick=0.002, lost=0.005, twice=0.01, late=0.01)


class FaultProfiles(Struct, frozen=True):
    """The profiles of all adapters: a default, and overrides by adapter name."""

    default: FaultProfile = TYPICAL_FAULTS
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by adapter, or ALL

    def profile_of(self, adapter: str) -> FaultProfile:
        """Return the profile of an adapter; an override by name wins over one for ALL."""
        return replace(self.default, **{**self.overrides.get(ALL, {}), **self.overrides.get(adapter, {})})

    @property
    def max_skew(self) -> float:
        """Return how far ahead the fastest clock is."""
        return max((float(each.get("skew", 0.0)) for each in self.overrides.values()), default=0.0)
