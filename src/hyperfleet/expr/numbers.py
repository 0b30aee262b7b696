"""Arithmetic as the language has it: int64 that wraps around, floats that never fail, `/` and `**` always float.

Called by generated code and by the plain evaluator where static types do not settle the matter.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hyperfleet.expr.durations import Duration
from hyperfleet.expr.faults import Fault
from hyperfleet.expr.times import Time
from hyperfleet.expr.values import NUMBERS, adopt, type_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.values import Value

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
        raise Fault("runtime error: integer divide by zero")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def negate(value: Value) -> Value:
    """Return `-value`."""
    if type(value) in NUMBERS:
        return fit(-value)
    adopted = adopt(value)
    if type(adopted) in NUMBERS:
        return fit(-adopted)
    raise Fault(f"invalid operation: - {type_name(adopted)}")


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
    raise Fault(f"invalid operation: {type_name(left)} {operator} {type_name(right)}")


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
    raise Fault(f"invalid operation: int({type_name(value)})")


def to_float(value: Value) -> float:
    """Return a number as a float; no other value has one."""
    if type(value) in NUMBERS:
        return float(value)
    adopted = adopt(value)
    if adopted is not value:
        return to_float(adopted)
    raise Fault(f"invalid operation: float({type_name(value)})")


def to_bool(value: Value) -> bool:
    """Return the truth that the caller of an expression asked for; nil counts as false."""
    if value is None:
        return False
    if type(value) is bool:
        return value
    raise Fault(f"invalid operation: bool({type_name(value)})")


def power(base: Value, exponent: Value) -> float:
    """Return `base ** exponent` as a float."""
    return _power(to_float(base), to_float(exponent))


def _power(base: float, exponent: float) -> float:
    """Raise by repeated squaring of the mantissa: the original's way, whose last digit differs from libm's."""
    if exponent == 0.0 or base == 1.0:
        return 1.0
    if exponent == 1.0:
        return base
    if base == 0.0 or not (math.isfinite(base) and math.isfinite(exponent)):
        return _limit(base, exponent)
    if abs(exponent) == 0.5:
        root = math.sqrt(base) if base >= 0 else math.nan
        return root if exponent > 0 else 1.0 / root
    fraction, whole = math.modf(abs(exponent))
    if fraction and base < 0:
        return math.nan
    if whole >= 2.0**63:
        return _huge(base, exponent)
    mantissa, scale = 1.0, 0
    if fraction:
        if fraction > 0.5:
            fraction, whole = fraction - 1.0, whole + 1.0
        mantissa = math.exp(fraction * math.log(base))
    mantissa, scale = _square(base, int(whole), mantissa)
    if exponent < 0:
        mantissa, scale = 1.0 / mantissa, -scale
    return _scaled(mantissa, scale)


def _square(base: float, count: int, mantissa: float) -> tuple[float, int]:
    """Multiply `mantissa` by `base` `count` times, keeping the power of two apart."""
    scale = 0
    factor, exponent = math.frexp(base)
    while count:
        if not -4096 <= exponent <= 4096:  # the result overflows or vanishes, whatever follows
            return mantissa, scale + exponent
        if count & 1:
            mantissa *= factor
            scale += exponent
        factor *= factor
        exponent *= 2
        if factor < 0.5:
            factor += factor
            exponent -= 1
        count >>= 1
    return mantissa, scale


def _scaled(mantissa: float, scale: int) -> float:
    try:
        return math.ldexp(mantissa, scale)
    except OverflowError:
        return math.copysign(math.inf, mantissa)


def _huge(base: float, exponent: float) -> float:
    """Return a power whose exponent is beyond any integer: 1, zero or infinity."""
    if base == -1.0:
        return 1.0
    return 0.0 if (abs(base) < 1) == (exponent > 0) else math.inf


def _limit(base: float, exponent: float) -> float:
    """Return a power of zero, an infinity or NaN, where no arithmetic is left to do."""
    try:
        return math.pow(base, exponent)
    except ValueError:  # 0 to a negative power: C signals it, the original returns the limit
        odd = exponent == math.floor(exponent) and abs(exponent) < 2.0**53 and exponent % 2 == 1
        return math.copysign(math.inf, base) if odd else math.inf
