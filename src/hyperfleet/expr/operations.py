"""The binary operators at run time, for operands of any type: a table from the operator to a function.

Each takes both operands and the account it pays from. The plain evaluator uses all of them; generated code those
for which static types do not say enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from hyperfleet.expr import access, numbers, regex, values
from hyperfleet.expr.budget import allocate, grow, scan
from hyperfleet.expr.types import INT, STRING
from hyperfleet.expr.values import as_string, is_nil

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.budget import Budget
    from hyperfleet.expr.values import Value


def add(left: Value, right: Value, budget: Budget) -> Value:
    """Return `left + right`, paying for a text that it makes."""
    if type(left) is str and type(right) is str:
        grow(budget, len(left) + len(right))
        return left + right
    return numbers.add(left, right)


def span(left: Value, right: Value, budget: Budget) -> list[int]:
    """Return the integers from `left` to `right`."""
    return list(steps(left, right, budget))


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
    if type(text) is str:
        return _search(text, as_string(pattern), budget)
    wanted = as_string(pattern)
    return _search(values.expect(text, bytes, "[]uint8").decode("utf-8", "surrogateescape"), wanted, budget)


def _search(text: str, pattern: str, budget: Budget) -> bool:
    scan(budget, 64 + 8 * len(text))
    return regex.matches(text, pattern)


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


def _free(operation: Callable[[Value, Value], Value]) -> Operation:
    """Return an operation that costs nothing worth counting, in the shape of those that do."""

    def apply(left: Value, right: Value, _: Budget) -> Value:
        return operation(left, right)

    return apply


Operation: TypeAlias = "Callable[[Value, Value, Budget], Value]"

OPERATIONS: dict[str, Operation] = {
    "==": values.equal,
    "!=": _denied(values.equal),
    "<": _free(values.less),
    "<=": _free(values.less_or_equal),
    ">": _free(values.more),
    ">=": _free(values.more_or_equal),
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
