"""How often an adapter of the simulated fleet goes wrong, and in which way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

ALL: Final = "*"


class Temper(Struct, frozen=True):
    """The temper of one adapter; probabilities are from 0 to 1, times in seconds, 0 stands for never."""

    fail: float = 0.0  # that a run fails; it is tried again later
    slow: float = 1.0  # how many times longer than usual it works
    sick: float = 0.0  # that it is unhealthy when it looks again
    flap: float = 0.0  # how often it changes its mind once it is done
    silent: float = 0.0  # for how long it is not heard of …
    hush: float = 0.05  # … with this probability, whenever it looks again
    skew: float = 0.0  # how far its clock runs ahead
    lost: float = 0.0  # that a report does not arrive …
    twice: float = 0.0  # … arrives twice …
    late: float = 0.0  # … or arrives after one that was sent later
    stuck: bool = False  # it never finishes cleaning up
    absent: bool = False  # it never reports at all


CALM: Final = Temper()
# What an ordinary fleet is like: something is always wrong somewhere, most of it mends itself.
EVERYDAY: Final = Temper(fail=0.04, sick=0.002, lost=0.005, twice=0.01, late=0.01)


class Faults(Struct, frozen=True):
    """The tempers of all adapters: those of everyday life, and what is said to be otherwise."""

    usual: Temper = EVERYDAY
    special: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by adapter, or ALL

    def temper_of(self, adapter: str) -> Temper:
        """Return the temper of an adapter: what is said of it by name counts more than what is said of all."""
        return replace(self.usual, **{**self.special.get(ALL, {}), **self.special.get(adapter, {})})

    @property
    def greatest_skew(self) -> float:
        """Return how far ahead the clock is that is furthest ahead."""
        return max((float(each.get("skew", 0.0)) for each in self.special.values()), default=0.0)
