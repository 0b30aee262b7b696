"""The values that templates see, as Go shows and compares them.

Values are those of JSON, and times. There is one kind of whole number and one of other numbers, and they compare by
value. In Go a number of an API answer is always a float: one million prints as 1e+06, and `eq .n 3` fails. Here a whole
number prints whole and compares with both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hyperfleet.adapter.templates.budget import RenderBudget, RenderingFault
from hyperfleet.expr.runtime.text import show_float
from hyperfleet.expr.temporal.layouts import DEFAULT, format_time
from hyperfleet.expr.temporal.times import Time

Value = Any  # of JSON, or a Time

MAX_DEPTH: Final = 64  # of a value that is shown; showing recurses
NO_VALUE: Final = "<no value>"  # what Go prints for nil

_NAMES: Final[Mapping[type, str]] = {
    type(None): "nil",
    bool: "a boolean",
    int: "an integer",
    float: "a float",
    str: "a string",
    list: "a list",
    dict: "a map",
    Time: "a time",
}


def name_kind(value: Value) -> str:
    """Name the type of a value; the value itself may be secret."""
    return _NAMES.get(type(value), "a value of another type")


def is_true(value: Value) -> bool:
    """Tell whether a value counts as true: it is not nil, false, zero or empty."""
    return True if isinstance(value, Time) else bool(value)


def is_number(value: Value) -> bool:
    """Tell whether a value is a number; to Python, booleans are."""
    return type(value) in (int, float)


def show(value: Value, budget: RenderBudget, depth: int = 0) -> str:
    """Write a value as Go does by default: `[1 2]`, `map[a:1]`, `1e+06`, `<nil>`."""
    if depth > MAX_DEPTH:
        raise RenderingFault(f"the value has more than {MAX_DEPTH} levels")
    budget.spend()
    match value:
        case str():
            text = value
        case None:
            text = "<nil>"
        case bool():
            text = "true" if value else "false"
        case int():
            text = show_integer(value)
        case float():
            text = show_float(value)
        case Time():
            text = format_time(value, DEFAULT)
        case list() | tuple():
            text = f"[{_join([show(each, budget, depth + 1) for each in value], budget)}]"
        case dict():
            pairs = [f"{name}:{show(value[name], budget, depth + 1)}" for name in sorted_keys(value)]
            text = f"map[{_join(pairs, budget)}]"
        case _:
            raise RenderingFault(f"{name_kind(value)} cannot be printed")
    return budget.hold(text)


def _join(texts: list[str], budget: RenderBudget) -> str:
    budget.check_size(sum(map(len, texts)))
    return " ".join(texts)


def show_integer(number: int) -> str:
    """Write an integer; one beyond 64 bits, which JSON may hold, is refused: Python may take long to write it."""
    if number.bit_length() > 64:
        raise RenderingFault("the number does not fit into 64 bits")
    return str(number)


def sorted_keys(value: Mapping[Any, Value]) -> list[Any]:
    """Return the keys of a map in the order in which Go visits them."""
    return sorted(value, key=str)


def equal(one: Value, other: Value) -> bool:
    """Compare two values; lists and maps cannot be compared, unlike types neither, but everything with nil."""
    if one is None or other is None:
        return one is other
    if is_number(one) and is_number(other):
        return bool(one == other)
    if type(one) is not type(other):
        raise RenderingFault(f"{name_kind(one)} and {name_kind(other)} cannot be compared")
    if isinstance(one, list | dict):
        raise RenderingFault(f"{name_kind(one)} cannot be compared")
    return bool(one == other)


def less(one: Value, other: Value) -> bool:
    """Compare two numbers or two strings."""
    is_ordered = (is_number(one) and is_number(other)) or (isinstance(one, str) and isinstance(other, str))
    if not is_ordered:
        raise RenderingFault(f"{name_kind(one)} and {name_kind(other)} have no order")
    return bool(one < other)


def encode(text: str) -> bytes:
    """Return the bytes of a text; Go counts in them."""
    return text.encode("utf-8", "surrogatepass")
