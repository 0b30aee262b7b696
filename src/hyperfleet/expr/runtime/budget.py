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
"""A step is one round of a loop with a small body, two elements handled one by one, or 64 characters looked at."""

_SHORT = 64  # the texts that are usually read one by one: dates, layouts, durations

_FREE = 256  # looking at less than this is as cheap as the call that would charge for it


def open_budget(cells: int = CELLS, steps: int = STEPS) -> Budget:
    """Return a full account."""
    return [cells, steps, 0]


def steps_left(budget: Budget) -> int:
    """Return the steps that are left."""
    return budget[WORK]


def reopen(budget: Budget, cells: int) -> Budget:
    """Return an account that another expression has used: memory and calls are counted for each one alone."""
    budget[MEMORY] = cells
    budget[CALLS] = 0
    return budget


def allocate(budget: Budget, cells: int) -> None:
    """Pay for memory; what cannot be paid is not done, and costs nothing."""
    left = budget[MEMORY] - cells
    if left <= 0:
        raise BudgetExhausted("memory budget exceeded")
    budget[MEMORY] = left


def spend(budget: Budget, steps: int) -> None:
    """Pay for work; what cannot be paid is not done, and costs nothing."""
    left = budget[WORK] - steps
    if left < 0:
        raise BudgetExhausted("iteration budget exceeded")
    budget[WORK] = left


def scan(budget: Budget, size: int) -> None:
    """Pay for what Python does at the speed of C: looking at `size` characters, copying `size` elements."""
    if size > _FREE:
        spend(budget, size // 64)


def visit(budget: Budget, size: int) -> None:
    """Pay for handling `size` elements one by one."""
    spend(budget, size // 2)


def look_up(budget: Budget, key: object) -> None:
    """Pay for finding a key in a map: a text is compared with an equal one character by character."""
    if isinstance(key, (str, bytes)):
        scan(budget, len(key))


def read(budget: Budget, size: int) -> None:
    """Pay for reading a text character by character, in Python: a date, a layout, letters that are not ASCII."""
    spend(budget, size if size > _SHORT else size // 4)


def read_arguments(budget: Budget, arguments: Iterable[object]) -> None:
    """Pay for the texts and bytes among the arguments of a call."""
    for argument in arguments:
        if isinstance(argument, str):
            read(budget, len(argument))
        elif isinstance(argument, bytes):
            scan(budget, len(argument))


def grow(budget: Budget, size: int) -> None:
    """Pay for a text of `size` characters that an operation makes; the original does not charge for it.

    One text may not be larger than all memory of an untouched budget, or doubling would get there in 30 steps.
    """
    if size > _FREE:
        spend(budget, size // 64)
        if size >= CELLS:
            raise BudgetExhausted("memory budget exceeded")
