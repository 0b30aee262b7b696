"""The functions on numbers: rounding, extremes and averages, bits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.runtime.budget import spend
from hyperfleet.expr.runtime.numbers import wrap
from hyperfleet.expr.runtime.values import NUMBERS, adopt, less, more, type_name
from hyperfleet.expr.temporal.durations import Duration
from hyperfleet.expr.temporal.times import Month, Weekday

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.runtime.values import Value

_SEQUENCES = (list, tuple, bytes)
_COUNTING = frozenset({int, float, Duration, Month, Weekday})  # what is a number underneath, whatever its name


def absolute(_: Budget, value: Value) -> Value:
    """Return a number without its sign."""
    return wrap(abs(_number("abs", value))) if type(adopt(value)) is int else abs(_number("abs", value))


def ceil(_: Budget, value: Value) -> float:
    """Return the next whole number above."""
    number = float(_number("ceil", value))
    if not math.isfinite(number) or not number % 1:
        return number
    return math.copysign(math.ceil(number), number)  # what is above -0.5 is -0


def floor(_: Budget, value: Value) -> float:
    """Return the next whole number below."""
    number = float(_number("floor", value))
    return float(math.floor(number)) if math.isfinite(number) and number % 1 else number


def round_half_away(_: Budget, value: Value) -> float:
    """Return the nearest whole number, halves away from zero."""
    number = float(_number("round", value))
    if not math.isfinite(number) or not number % 1:
        return number
    whole = math.floor(abs(number))
    whole += abs(number) - whole >= 0.5
    return math.copysign(float(whole), number)


def _number(name: str, value: Value) -> Value:
    number = adopt(value)
    if type(number) in NUMBERS:
        return number
    raise EvaluationFault(f"invalid argument for {name} (type {type_name(number)})")


def maximum(budget: Budget, *arguments: Value) -> Value:
    """Return the largest of numbers and lists of numbers, nil if there is none."""
    return _extreme(budget, "max", less, arguments)


def minimum(budget: Budget, *arguments: Value) -> Value:
    """Return the smallest of numbers and lists of numbers, nil if there is none."""
    return _extreme(budget, "min", more, arguments)


def _extreme(budget: Budget, name: str, yields: Callable[[Value, Value], bool], arguments: tuple[Value, ...]) -> Value:
    """Return the argument that yields to no other."""
    best: Value = None
    for argument in map(adopt, arguments):
        if isinstance(argument, _SEQUENCES):
            candidates = _elements(budget, name, argument)
        elif type(argument) in _COUNTING:
            candidates = iter((argument,))
        elif len(arguments) == 1:
            return argument
        else:
            raise EvaluationFault(f"invalid argument for {name} (type {type_name(argument)})")
        for candidate in candidates:
            if best is None or yields(best, candidate):
                best = candidate
    return best


def _elements(budget: Budget, name: str, items: Value, allowed: frozenset[type] = NUMBERS) -> Iterator[Value]:
    """Yield the numbers of a list and of the lists in it."""
    spend(budget, len(items) + 4)
    for item in map(adopt, items):
        if type(item) in allowed:
            yield item
        elif isinstance(item, _SEQUENCES):
            yield from _elements(budget, name, item, allowed)
        else:
            raise EvaluationFault(f"invalid argument for {name} (type {type_name(item)})")


def mean(budget: Budget, *arguments: Value) -> float:
    """Return the average of numbers and lists of numbers, 0 if there is none."""
    total, count = 0.0, 0
    for number in _elements(budget, "mean", arguments, _COUNTING):
        total += float(number)
        count += 1
    return total / count if count else 0.0


def median(budget: Budget, *arguments: Value) -> float:
    """Return the middle of numbers and lists of numbers, 0 if there is none."""
    numbers = sorted(map(float, _elements(budget, "median", arguments, _COUNTING)))
    if not numbers:
        return 0.0
    middle = len(numbers) // 2
    return numbers[middle] if len(numbers) % 2 else (numbers[middle - 1] + numbers[middle]) / 2


def _bits(name: str, operation: Callable[[int, int], int]) -> Callable[[Budget, Value, Value], int]:
    """Return a function on the bits of two integers."""

    def apply(_: Budget, left: Value, right: Value) -> int:
        return wrap(operation(_integer(name, left), _integer(name, right)))

    return apply


def _shift(name: str, operation: Callable[[int, int], int]) -> Callable[[Budget, Value, Value], int]:
    """Return a function that shifts an integer by a count of bits."""

    def apply(_: Budget, value: Value, count: Value) -> int:
        number, places = _integer(name, value), _integer(name, count)
        if places < 0:
            raise EvaluationFault(f"invalid operation: negative shift count {places} (type int)")
        return wrap(operation(number, min(places, 64)))  # 64 places empty an int64, more change nothing

    return apply


def _integer(name: str, value: Value) -> int:
    number = adopt(value)
    if type(number) is int:
        return number
    raise EvaluationFault(f"cannot use {type_name(number)} as argument (type int) to call {name}")


def bit_not(_: Budget, value: Value) -> int:
    """Return an integer with all its bits turned."""
    return ~_integer("bitnot", value)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "abs": absolute,
    "ceil": ceil,
    "floor": floor,
    "round": round_half_away,
    "max": maximum,
    "min": minimum,
    "mean": mean,
    "median": median,
    "bitand": _bits("bitand", lambda left, right: left & right),
    "bitor": _bits("bitor", lambda left, right: left | right),
    "bitxor": _bits("bitxor", lambda left, right: left ^ right),
    "bitnand": _bits("bitnand", lambda left, right: left & ~right),
    "bitshl": _shift("bitshl", lambda value, places: value << places),
    "bitshr": _shift("bitshr", lambda value, places: value >> places),
    "bitushr": _shift("bitushr", lambda value, places: (value % 2**64) >> places),
    "bitnot": bit_not,
}
