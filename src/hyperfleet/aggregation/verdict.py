"""A verdict: the raw result of a rule, before it is published with damping and a transition time."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from hyperfleet.aggregation.adapters import AdapterView
from hyperfleet.aggregation.culprits import CulpritFinder
from hyperfleet.aggregation.situation import Situation
from hyperfleet.model.condition import TRUE, ConditionStatus

Culprits: TypeAlias = tuple[AdapterView, ...]


class Verdict(Struct):
    """The raw result for one condition type, and the adapters responsible for it.

    The culprits may be found lazily: most verdicts are good, and then nothing asks for them.
    """

    type: str
    status: ConditionStatus
    reason: str
    message: str
    observed_generation: int
    found: Culprits | None = ()  # None: not searched for yet
    names_adapters: bool = True  # False: the rule mentions no adapter, so its culprits are a guess
    finder: CulpritFinder | None = None
    situation: Situation | None = None

    @property
    def culprits(self) -> Culprits:
        """Return the adapters responsible for the status, in policy order."""
        if self.found is None:
            self.found = ()
            if self.finder and self.situation:
                situation = self.situation
                outcome = self.status == TRUE
                self.found = self.finder.find(situation.adapters, situation.values, outcome, situation.budget)
        return self.found
