"""The types of calls: whether arguments fit a function, and what it returns.

The checker hands over the arguments as `Arguments`, which types each one on first use: an argument that
does not fit is reported before a later one is checked, as in the original.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hyperfleet.expr.checking.compatibility import (
    is_any,
    is_assignable,
    is_float,
    is_integer,
    is_nil,
    printed,
    through,
)
from hyperfleet.expr.signatures import OVERLOADS, RULES
from hyperfleet.expr.types import (
    ANY,
    ANY_ARRAY,
    LOCATION,
    TIME,
    Array,
    Func,
    Nullable,
    Type,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Arguments(Protocol):
    """The arguments of one call."""

    def __len__(self) -> int:
        """Return how many there are."""

    def type_of(self, index: int) -> Type:
        """Return the type of an argument, checking it if necessary."""

    def make_float(self, index: int) -> None:
        """Read the integer literals of one as floating-point numbers."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a call is wrong; at the call itself, or at the argument with this index."""

    message: str
    argument: int | None = None


def call_type(name: str, function: Func, arguments: Arguments) -> Type | Misfit:
    """Return the result of calling `function` under a name."""
    if function.builtin:
        return builtin_call_type(function.builtin, arguments)
    if function.overloads:
        return _first_fit(name, function.overloads, arguments)
    return _signature_call_type(name, function, arguments)


def builtin_call_type(name: str, arguments: Arguments) -> Type | Misfit:
    """Return the result of a function of the language; predicates and `get` are the checker's."""
    if name in OVERLOADS:
        return _first_fit(name, OVERLOADS[name], arguments)
    types = [arguments.type_of(index) for index in range(len(arguments))]
    if name in RULES:
        return _rule_call_type(name, types)
    return printed(result) if not isinstance(result := _SPECIAL[name](name, types), Misfit) else result


def _first_fit(name: str, overloads: tuple[Func, ...], arguments: Arguments) -> Type | Misfit:
    result: Type | Misfit = ANY
    for function in overloads:
        result = _signature_call_type(name, function, arguments)
        if not isinstance(result, Misfit):
            return result
    return result


def _signature_call_type(name: str, function: Func, arguments: Arguments) -> Type | Misfit:
    if function.result is None:
        return Misfit(f"func {name} doesn't return value")
    if function.results > 2:
        return Misfit(f"func {name} returns more then two values")
    if wrong := _wrong_count(name, function, len(arguments)):
        for index in range(len(arguments)):
            arguments.type_of(index)  # what is wrong inside them comes first
        return wrong
    last = len(function.parameters) - 1
    for index in range(len(arguments)):
        parameter = function.parameters[min(index, last)]
        if wrong := _misfit(name, arguments, index, parameter):
            return wrong
    return function.result


def _wrong_count(name: str, function: Func, count: int) -> Misfit | None:
    wanted = len(function.parameters)
    if count < wanted - function.variadic:
        return Misfit(f"not enough arguments to call {name}")
    if count > wanted and not function.variadic:
        return Misfit(f"too many arguments to call {name}")
    return None


def _misfit(name: str, arguments: Arguments, index: int, parameter: Type) -> Misfit | None:
    """Describe why an argument does not fit its parameter."""
    found = arguments.type_of(index)
    if is_integer(found):
        if is_float(parameter):
            arguments.make_float(index)
            return None
        if is_integer(parameter):
            return None
    if is_nil(found):
        if parameter.kind in ("any", "nullable"):
            return None
        return Misfit(f"cannot use nil as argument (type {parameter.name}) to call {name}", index)
    if is_any(found) or is_assignable(found, parameter):
        return None
    if isinstance(found, Nullable) and is_assignable(through(found), parameter):
        return None
    # The blank at the end is the original's.
    return Misfit(f"cannot use {found.name} as argument (type {parameter.name}) to call {name} ", index)


def _name_of(found: Type) -> str:
    """Return the name of an argument's type for messages; the original has none for nil."""
    return "%!s(<nil>)" if is_nil(found) else printed(found).name


def _rule_call_type(name: str, types: list[Type]) -> Type | Misfit:
    if len(types) != 1:
        return _expected("1", len(types))
    rule = RULES[name]
    if through(types[0]).kind not in rule.kinds:
        return Misfit(rule.complaint.format(name=name, type=_name_of(types[0])))
    return rule.result or printed(types[0])


def _expected(wanted: str, count: int) -> Misfit:
    return Misfit(f"invalid number of arguments (expected {wanted}, got {count})")


def _aggregate(name: str, types: list[Type]) -> Type | Misfit:
    if not types:
        return Misfit(f"not enough arguments to call {name}")
    for found in types:
        kind = through(found).kind
        if kind in ("any", "array"):
            return ANY
        if kind not in ("int", "float", "duration"):
            return Misfit(f"invalid argument for {name} (type {_name_of(found)})")
    return types[0]


def _end(name: str, types: list[Type]) -> Type | Misfit:
    if len(types) != 1:
        return _expected("1", len(types))
    found = through(types[0])
    if is_any(found):
        return ANY
    if isinstance(found, Array):
        return ANY if found.shown else found.element
    return Misfit(f"cannot get {name} element from {_name_of(types[0])}")


def _take(_name: str, types: list[Type]) -> Type | Misfit:
    if len(types) != 2:
        return _expected("2", len(types))
    array, count = types
    if through(array).kind not in ("any", "array"):
        return Misfit(f"cannot take from {_name_of(array)}")
    number = through(count)
    if number.kind not in ("any", "int", "duration") or number.name.startswith("uint"):
        return Misfit(f"cannot take {_name_of(count)} elements")
    return array


def _concat(_name: str, types: list[Type]) -> Type | Misfit:
    if not types:
        return _expected("at least 1", 0)
    for found in types:
        if through(found).kind not in ("any", "array"):
            return Misfit(f"cannot concat {_name_of(found)}")
    return ANY_ARRAY


def _now(_name: str, types: list[Type]) -> Type | Misfit:
    if not types or (len(types) == 1 and types[0] == LOCATION):
        return TIME
    return _expected("0", len(types))


def _date(_name: str, types: list[Type]) -> Type | Misfit:
    if not types:
        return _expected("at least 1", 0)
    count = len(types) - (types[0] == LOCATION)
    return _expected("at most 3", count) if count > 3 else TIME


_SPECIAL: dict[str, Callable[[str, list[Type]], Type | Misfit]] = {
    **dict.fromkeys(("max", "min", "mean", "median"), _aggregate),
    **dict.fromkeys(("first", "last"), _end),
    "take": _take,
    "concat": _concat,
    "now": _now,
    "date": _date,
}
