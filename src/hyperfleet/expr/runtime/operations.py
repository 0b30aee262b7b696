"""The binary operators at run time, for operands of any type: a table from the operator to a function.

Each takes both operands and the account it pays from. The plain evaluator uses all of them; generated code those
for which static types do not say enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from hyperfleet.expr.runtime import access, numbers, values
from hyperfleet.expr.runtime.budget import allocate, grow, scan, spend
from hyperfleet.expr.runtime.regex import load_pattern
from hyperfleet.expr.runtime.values import as_string, is_nil
from hyperfleet.expr.types import INT, STRING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.runtime.regex import Pattern
    from hyperfleet.expr.runtime.values import Value


def add(left: Value, right: Value, budget: Budget) -> Value:
    """Return `left + right`, paying for a text that it makes."""
    if type(left) is str and type(right) is str:
        grow(budget, len(left) + len(right))
        return left + right
    return numbers.add(left, right)


def span(left: Value, right: Value, budget: Budget) -> list[int]:
    """Return the integers from `left` to `right`."""
    numbers_between = steps(left, right, budget)
    spend(budget, len(numbers_between) // 8)  # a list takes longer to make than its cells show
    return list(numbers_between)


def steps(left: Value, right: Value, budget: Budget) -> range:
    """Return the integers from `left` to `right` for a loop, which needs no list; it is paid for like one."""
    low, high = numbers.to_int(left), numbers.to_int(right)
    size = max(numbers.wrap(high - low + 1), 0)  # wraps around as the original does
    allocate(budget, size)
    return range(low, low + size)


def matches(text: Value, pattern: Value, budget: Budget) -> bool:
    """Tell whether `text`, a string or bytes, contains a match of a regular expression; nil never does."""
    if is_nil(text) or is_nil(pattern):
        return False
    wanted = as_string(pattern)
    given = _as_text(text)
    machine = load_pattern(wanted)
    spend(budget, machine.price() + machine.steps(len(given)))
    return machine.search(given)


def search(text: Value, pattern: Pattern, budget: Budget) -> bool:
    """Tell whether `text` contains a match of a pattern that is compiled already."""
    if is_nil(text):
        return False
    given = _as_text(text)
    spend(budget, pattern.steps(len(given)))
    return pattern.search(given)


def _as_text(value: Value) -> str:
    """Return what a pattern looks at: a string, or bytes."""
    return value if type(value) is str else values.expect(value, bytes, "[]uint8").decode("utf-8", "surrogateescape")


def contains_text(text: Value, part: Value, budget: Budget) -> bool:
    """Tell whether `text` contains `part`; nil contains nothing and is nowhere."""
    if is_nil(text) or is_nil(part):
        return False
    given, wanted = as_string(text), as_string(part)
    scan(budget, len(given))
    return wanted in given


def starts_with(text: Value, part: Value, budget: Budget) -> bool:
    """Tell whether `text` starts with `part`."""
    if is_nil(text) or is_nil(part):
        return False
    given, wanted = as_string(text), as_string(part)
    scan(budget, len(wanted))
    return given.startswith(wanted)


def ends_with(text: Value, part: Value, budget: Budget) -> bool:
    """Tell whether `text` ends with `part`."""
    if is_nil(text) or is_nil(part):
        return False
    given, wanted = as_string(text), as_string(part)
    scan(budget, len(wanted))
    return given.endswith(wanted)


def _denied(operation: Operation) -> Operation:
    """Return the opposite of a comparison."""

    def apply(left: Value, right: Value, budget: Budget) -> bool:
        return not operation(left, right, budget)

    return apply


def _ordering(operation: Callable[[Value, Value], bool]) -> Operation:
    """Return a comparison that pays for looking at two texts."""

    def apply(left: Value, right: Value, budget: Budget) -> bool:
        if isinstance(left, str) and isinstance(right, str):
            scan(budget, min(len(left), len(right)))
        return operation(left, right)

    return apply


def _free(operation: Callable[[Value, Value], Value]) -> Operation:
    """Return an operation that costs nothing worth counting, in the shape of those that do."""

    def apply(left: Value, right: Value, _: Budget) -> Value:
        return operation(left, right)

    return apply


Operation: TypeAlias = "Callable[[Value, Value, Budget], Value]"

OPERATIONS: dict[str, Operation] = {
    "==": values.equal,
    "!=": _denied(values.equal),
    "<": _ordering(values.less),
    "<=": _ordering(values.less_or_equal),
    ">": _ordering(values.more),
    ">=": _ordering(values.more_or_equal),
    "+": add,
    "-": _free(numbers.subtract),
    "*": _free(numbers.multiply),
    "/": _free(numbers.divide),
    "%": _free(numbers.modulo),
    "**": _free(numbers.power),
    "^": _free(numbers.power),
    "..": span,
    "in": access.contains,
    "matches": matches,
    "contains": contains_text,
    "startsWith": starts_with,
    "endsWith": ends_with,
}

STRICT: dict[tuple[str, str], Operation] = {
    ("==", INT.name): values.equal_integers,
    ("!=", INT.name): _denied(values.equal_integers),
    ("==", STRING.name): values.equal_strings,
    ("!=", STRING.name): _denied(values.equal_strings),
}
"""By operator and the type that the checker promises for both operands."""
