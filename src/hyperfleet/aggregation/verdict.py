"""A verdict: what a condition should say, before it is published with damping and a transition time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from hyperfleet.aggregation.adapters import AdapterView
from hyperfleet.model.condition import ConditionStatus

Culprits: TypeAlias = tuple[AdapterView, ...]


class Verdict(Struct):
    """The raw result for one condition type, and the adapters responsible for it.

    Who is responsible is found out when somebody asks: most verdicts are good, and nobody does.
    """

    type: str
    status: ConditionStatus
    reason: str
    message: str
    observed_generation: int
    blame: Culprits | Callable[[], Culprits] = ()
    names_adapters: bool = True  # False: the rule mentions no adapter, so its culprits are a guess

    @property
    def culprits(self) -> Culprits:
        """Return the adapters responsible for the status, in policy order."""
        if callable(self.blame):
            self.blame = self.blame()
        return self.blame
