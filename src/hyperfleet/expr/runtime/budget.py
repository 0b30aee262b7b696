"""What one evaluation may cost, and the account from which it is paid.

Memory is counted in cells as the original does (an element of a list, a byte of a repeated string). Work is ours:
the original has no limit, so nested loops over small ranges could run for hours. Generated code, the plain
evaluator and the functions are charged to the same account; time is not measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from hyperfleet.expr.faults import BudgetExhausted

if TYPE_CHECKING:
    from collections.abc import Iterable

Budget: TypeAlias = list[int]
"""What is left, `[cells of memory, steps of work]`, and how often functions of the host were called.

A list, because making one costs next to nothing.
"""

MEMORY = 0
WORK = 1
CALLS = 2

CELLS = 1_000_000
"""The original's memory budget."""

STEPS = 100_000
"""A step is one round of a loop with a small body, or 64 characters or elements looked at."""

_SHORT = 64  # the texts that are usually read one by one: dates, layouts, durations

_FREE = 256  # looking at less than this is as cheap as the call that would charge for it


def open_budget(cells: int = CELLS, steps: int = STEPS) -> Budget:
    """Return a full account."""
    return [cells, steps, 0]


def allocate(budget: Budget, cells: int) -> None:
    """Pay for memory."""
    budget[MEMORY] -= cells
    if budget[MEMORY] <= 0:
        raise BudgetExhausted("memory budget exceeded")


def spend(budget: Budget, steps: int) -> None:
    """Pay for work."""
    budget[WORK] -= steps
    if budget[WORK] < 0:
        raise BudgetExhausted("iteration budget exceeded")


def scan(budget: Budget, size: int) -> None:
    """Pay for looking at `size` characters or elements once."""
    if size > _FREE:
        spend(budget, size // 64)


def read(budget: Budget, size: int) -> None:
    """Pay for reading a text character by character, in Python: a date, a layout, letters that are not ASCII."""
    spend(budget, size if size > _SHORT else size // 4)


def read_arguments(budget: Budget, arguments: Iterable[object]) -> None:
    """Pay for the texts among the arguments of a call."""
    for argument in arguments:
        if isinstance(argument, str):
            read(budget, len(argument))


def grow(budget: Budget, size: int) -> None:
    """Pay for a text of `size` characters that an operation makes; the original does not charge for it.

    One text may not be larger than all memory of an untouched budget, or doubling would get there in 30 steps.
    """
    if size > _FREE:
        spend(budget, size // 64)
        if size >= CELLS:
            raise BudgetExhausted("memory budget exceeded")
