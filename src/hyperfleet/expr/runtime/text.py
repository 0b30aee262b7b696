"""Values as text, as `string()` and error texts show them: `[1 2]`, `map[a:1]`, `1e+06`, `<nil>`.

Called by the functions `string` and `toJSON` (numbers) and wherever a fault names a value.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hyperfleet.expr.runtime.budget import grow, spend, visit
from hyperfleet.expr.runtime.values import Function, StructValue, adopt
from hyperfleet.expr.temporal.durations import Duration
from hyperfleet.expr.temporal.layouts import DEFAULT, format_time
from hyperfleet.expr.temporal.times import Month, Time, Weekday
from hyperfleet.expr.temporal.zones import Zone

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.runtime.values import Value


def show(value: Value, budget: Budget) -> str:
    """Write a value as text."""
    writer = _WRITERS.get(type(value))
    if writer is not None:
        return writer(value)
    if isinstance(value, bytes):
        visit(budget, len(value))
        grow(budget, 4 * len(value))
        return "[" + " ".join(map(str, value)) + "]"
    if isinstance(value, StructValue):
        return _show_record(value, budget)
    if isinstance(value, dict):
        return _show_map(value, budget)
    if isinstance(value, list):
        return _show_list(value, budget)
    adopted = adopt(value)
    return show(adopted, budget) if adopted is not value else "<value>"  # a host's object shows nothing of itself


def show_float(number: float, *, largest: int = 6, smallest: int = -5) -> str:
    """Write a float with as few digits as tell it apart, and an exponent outside of the given powers of ten."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    digits, exponent = _decimal(abs(number))
    if exponent <= smallest or exponent >= largest:
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else sign + whole


def _decimal(number: float) -> tuple[str, int]:
    """Return the shortest digits of a float and the power of ten of the first one."""
    mantissa, _, exponent = f"{number!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or "0") + len(whole) - 1
    if whole == "0":
        power = int(exponent or "0") - 1 - (len(fraction) - len(digits))
    digits = digits.rstrip("0")
    return (digits, power) if digits else ("0", 0)


def show_time(moment: Time) -> str:
    """Write a time with its offset and zone."""
    return format_time(moment, DEFAULT)


def _show_list(items: list[Value], budget: Budget) -> str:
    visit(budget, len(items) + 16)  # shared parts are written every time they are met
    return f"[{_joined([show(item, budget) for item in items], budget)}]"


def _joined(texts: list[str], budget: Budget) -> str:
    """Return texts with blanks between them, having paid for all of them."""
    grow(budget, sum(map(len, texts)))
    return " ".join(texts)


def _show_map(pairs: dict[Value, Value], budget: Budget) -> str:
    spend(budget, len(pairs) + 8)
    ordered = sorted(pairs, key=lambda key: _rank(key, budget))
    return f"map[{_joined([_entry(show(key, budget), show(pairs[key], budget), budget) for key in ordered], budget)}]"


def _entry(key: str, value: str, budget: Budget) -> str:
    grow(budget, len(key) + len(value))
    return f"{key}:{value}"


def _show_record(record: StructValue, budget: Budget) -> str:
    """Write a struct: with its own `String` method if it has one, else its values in braces."""
    method = record.struct.methods.get("String")
    if method is not None and method.call is not None and not method.signature.parameters:
        return str(method.call(record))
    return f"{{{_joined([show(value, budget) for value in record.values()], budget)}}}"


# Keys of unlike types are written in this order; within one type by value.
_RANKS: dict[type, int] = {type(None): 0, bool: 1, int: 2, float: 3, str: 4}


def _rank(key: Value, budget: Budget) -> tuple[int, Value]:
    rank = _RANKS.get(type(key), 5)
    return (rank, key) if 0 < rank < 5 else (rank, show(key, budget))


def _show_function(_: Function) -> str:
    return "<func>"  # the original prints an address


_WRITERS: dict[type, Callable[[Value], str]] = {
    type(None): lambda _: "<nil>",
    bool: lambda value: "true" if value else "false",
    int: str,
    float: show_float,
    str: str,
    Time: show_time,
    Duration: str,
    Month: str,
    Weekday: str,
    Zone: lambda zone: zone.name,
    Function: _show_function,
}
