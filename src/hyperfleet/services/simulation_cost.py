"""Counts the work of the rules of a candidate policy, and stops a simulation that would take too much of it.

A status costs at most the budget of one aggregation (`STEPS`), whatever the policy is. A simulation computes very many,
so their average is bounded too. Called for each status by `simulation` and `replay`.
"""

from __future__ import annotations

from typing import Final

from hyperfleet.errors import PolicyTooExpensive
from hyperfleet.expr import STEPS, Budget, open_budget, steps_left

FREE_STEPS: Final = 5_000_000  # about two seconds of processor time
STEPS_PER_STATUS: Final = 5_000  # about two milliseconds; rules with loops over a hundred adapters take hundreds


class SimulationCost:
    """The work of one simulation so far."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.statuses = 0
        self._before = 0  # steps for all statuses but the last one
        self._budget = open_budget()

    @property
    def steps(self) -> int:
        """Return the steps so far."""
        return self._before + STEPS - steps_left(self._budget)

    def open(self) -> Budget:
        """Return a full budget for the next status; raise `PolicyTooExpensive` if the ones before cost too much."""
        self._before = self.steps
        self._budget = open_budget()
        if self._before > FREE_STEPS + STEPS_PER_STATUS * self.statuses:
            raise PolicyTooExpensive(
                f"the rules took {self._before:,} steps for {self.statuses:,} statuses; a simulation stops when they "
                f"take more than {STEPS_PER_STATUS:,} for each, after the first {FREE_STEPS:,}"
            )
        self.statuses += 1
        return self._budget
