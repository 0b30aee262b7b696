"""Arithmetic as the language has it: int64 that wraps around, floats that never fail, `/` and `**` always float.

Called by generated code and by the plain evaluator where static types do not decide.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.runtime.values import NUMBERS, adopt, type_name
from hyperfleet.expr.temporal.durations import Duration
from hyperfleet.expr.temporal.times import Time

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.runtime.values import Value

LARGEST = 2**63 - 1
SMALLEST = -(2**63)


def wrap(number: int) -> int:
    """Return the int64 with the same low 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


def add(left: Value, right: Value) -> Value:
    """Return `left + right`."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        return fit(left + right)
    if type(left) is str and type(right) is str:
        return left + right
    return _otherwise(left, right, "+", _SUMS, add)


def subtract(left: Value, right: Value) -> Value:
    """Return `left - right`."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        return fit(left - right)
    return _otherwise(left, right, "-", _DIFFERENCES, subtract)


def multiply(left: Value, right: Value) -> Value:
    """Return `left * right`."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        return fit(left * right)
    return _otherwise(left, right, "*", _PRODUCTS, multiply)


def divide(left: Value, right: Value) -> float:
    """Return `left / right`, always a float; dividing by zero gives an infinity or NaN."""
    if type(left) not in NUMBERS or type(right) not in NUMBERS:
        return float(_otherwise(left, right, "/", {}, divide))
    dividend, divisor = float(left), float(right)
    if divisor:
        return dividend / divisor
    if dividend == 0.0 or math.isnan(dividend):
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def modulo(left: Value, right: Value) -> int:
    """Return `left % right` of two integers, with the sign of `left`."""
    if type(left) is not int or type(right) is not int:
        return int(_otherwise(left, right, "%", {}, modulo))
    if right == 0:
        raise EvaluationFault("runtime error: integer divide by zero")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def negate(value: Value) -> Value:
    """Return `-value`."""
    if type(value) in NUMBERS:
        return fit(-value)
    adopted = adopt(value)
    if type(adopted) in NUMBERS:
        return fit(-adopted)
    raise EvaluationFault(f"invalid operation: - {type_name(adopted)}")


def fit(number: Value) -> Value:
    """Bring an int back into 64 bits; a float is fine as it is."""
    if type(number) is int and not SMALLEST <= number <= LARGEST:
        return wrap(number)
    return number


def _otherwise(
    left: Value,
    right: Value,
    operator: str,
    table: dict[tuple[type, type], Callable[[Value, Value], Value]],
    again: Callable[[Value, Value], Value],
) -> Value:
    """Do an operation on what are not two plain numbers or strings: times, durations, or a host's classes."""
    operation = table.get((type(left), type(right)))
    if operation is not None:
        return operation(left, right)
    adopted = adopt(left), adopt(right)
    if adopted[0] is not left or adopted[1] is not right:
        return again(*adopted)
    raise EvaluationFault(f"invalid operation: {type_name(left)} {operator} {type_name(right)}")


def _length(number: int) -> Duration:
    return Duration(wrap(int(number)))


_SUMS: dict[tuple[type, type], Callable[[Value, Value], Value]] = {
    (Time, Duration): lambda time, length: time.plus(length),
    (Duration, Time): lambda length, time: time.plus(length),
    (Duration, Duration): lambda one, other: _length(int(one) + int(other)),
}
_DIFFERENCES: dict[tuple[type, type], Callable[[Value, Value], Value]] = {
    (Time, Time): lambda time, other: time.minus(other),
    (Time, Duration): lambda time, length: time.plus(-length),
    (Duration, Duration): lambda one, other: _length(int(one) - int(other)),
}
_PRODUCTS: dict[tuple[type, type], Callable[[Value, Value], Value]] = {
    (Duration, int): lambda length, factor: _length(int(length) * factor),
    (int, Duration): lambda factor, length: _length(int(length) * factor),
    (Duration, Duration): lambda one, other: _length(int(one) * int(other)),
    (Duration, float): lambda length, factor: float(length) * factor,
    (float, Duration): lambda factor, length: float(length) * factor,
}


def to_int(value: Value) -> int:
    """Return a number as an int64, cut towards zero; no other value has one."""
    if type(value) is int:
        return value
    if type(value) is float:
        # Out of range the original gives what the processor gives: the smallest int64.
        inside = -9.3e18 < value < 9.3e18 and SMALLEST <= int(value) <= LARGEST
        return int(value) if inside else SMALLEST
    adopted = adopt(value)
    if adopted is not value:
        return to_int(adopted)
    raise EvaluationFault(f"invalid operation: int({type_name(value)})")


def to_float(value: Value) -> float:
    """Return a number as a float; no other value has one."""
    if type(value) in NUMBERS:
        return float(value)
    adopted = adopt(value)
    if adopted is not value:
        return to_float(adopted)
    raise EvaluationFault(f"invalid operation: float({type_name(value)})")


def to_bool(value: Value) -> bool:
    """Return the boolean result that the caller expects; nil counts as false."""
    if value is None:
        return False
    if type(value) is bool:
        return value
    raise EvaluationFault(f"invalid operation: bool({type_name(value)})")


def power(base: Value, exponent: Value) -> float:
    """Return `base ** exponent` as a float; what has no value is NaN, what is too large an infinity."""
    number, times = to_float(base), to_float(exponent)
    if abs(times) == 0.5 and 0.0 < number < math.inf:
        root = math.sqrt(number)  # exact to the last digit, which `pow` is not everywhere
        return root if times > 0 else 1.0 / root
    try:
        return math.pow(number, times)
    except OverflowError:
        return _infinity(number, times)
    except ValueError:  # zero to a negative power, or a root of a negative number
        return math.nan if number else _infinity(number, times)


def _infinity(base: float, exponent: float) -> float:
    """Return the infinity that a power runs into: a negative one for an odd power of what is negative."""
    is_odd = exponent % 2 == 1
    return math.copysign(math.inf, base) if is_odd else math.inf
