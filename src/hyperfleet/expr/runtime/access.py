"""Access to values: members, indices, slices, `in`, and calls.

Nothing here reads a Python attribute of a value. A name reaches only elements of lists and dicts and the tables of
methods; other attributes of a host's object do not exist for an expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.errors import HyperFleetError
from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.runtime.budget import look_up, open_budget, scan, visit
from hyperfleet.expr.runtime.methods import METHODS
from hyperfleet.expr.runtime.numbers import to_int
from hyperfleet.expr.runtime.text import show
from hyperfleet.expr.runtime.values import (
    LISTS,
    AnyMap,
    Function,
    StructValue,
    adopt,
    equal,
    expect,
    is_nil,
    type_name,
    zero,
)
from hyperfleet.expr.temporal.durations import Duration
from hyperfleet.expr.temporal.times import Time
from hyperfleet.expr.temporal.zones import Zone
from hyperfleet.expr.types import ANY, BYTES, LOCATION

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.runtime.values import Value
    from hyperfleet.expr.types import Func, Type


def fetch(base: Value, key: Value, budget: Budget) -> Value:
    """Return `base[key]`, or fail."""
    base = adopt(base)
    if isinstance(base, dict):
        look_up(budget, key)
        return fetch_field(base, key) if isinstance(base, StructValue) else fetch_entry(base, key)
    if isinstance(base, (list, bytes)):
        return fetch_item(base, key)
    if isinstance(base, str):
        return _fetch_byte(base, key, budget)
    if type(base) in METHODS and type(key) is str and key in METHODS[type(base)]:
        return METHODS[type(base)][key].bind(base)
    if isinstance(base, Time) and type(key) is not str:
        raise EvaluationFault(f"interface conversion: interface {{}} is {_asserted(key)}, not string")
    raise _cannot_fetch(base, key)


def _cannot_fetch(base: Value, key: Value) -> EvaluationFault:
    return EvaluationFault(f"cannot fetch {show(key, open_budget())} from {type_name(base)}")


def fetch_field(record: StructValue, key: Value) -> Value:
    """Return a method or a field of a struct."""
    if type(key) is not str:
        raise EvaluationFault(f"interface conversion: interface {{}} is {_asserted(key)}, not string")
    method = record.struct.methods.get(key)
    if method is not None and method.call is not None:
        return bind(method.call, record, method.signature)
    if key in record:
        return record[key]
    raise _cannot_fetch(record, key)


def _asserted(value: Value) -> str:
    return "nil" if value is None else type_name(value)


def bind(call: Callable[..., Value], receiver: Value, signature: Func) -> Function:
    """Return a method as a function of its own."""
    return Function(lambda *arguments: call(receiver, *arguments), signature)


def fetch_entry(mapping: dict[Value, Value], key: Value) -> Value:
    """Return an entry of a map; a missing one reads as nil."""
    if isinstance(mapping, AnyMap):
        return mapping[key] if key in mapping else mapping.absent()
    if type(key) is str:
        return dict.get(mapping, key)
    return dict.get(mapping, map_key(mapping, key))


def map_key(mapping: dict[Value, Value], key: Value) -> Value:
    """Return `key` as this map's keys are; a map of strings refuses any other, except nil for the empty one."""
    if key is None:
        return None if None in mapping else ""
    key = adopt(key)
    first = next(iter(mapping), "")
    if type(key) is not type(first):
        wanted = "string" if isinstance(first, str) else type_name(first)
        message = f"value of type {type_name(key)} is not assignable to type {wanted}"
        raise EvaluationFault(f"reflect.Value.MapIndex: {message}")
    return key


def fetch_item(items: Value, key: Value) -> Value:
    """Return an element of a list, counted from the end when negative."""
    if not isinstance(items, (*LISTS, bytes)):
        raise TypeError("not the list that was declared")  # then the plain evaluator decides
    return _pick(items, key)


def _pick(items: Value, key: Value) -> Value:
    index = key if type(key) is int else to_int(key)
    place = index + len(items) if index < 0 else index
    if not 0 <= place < len(items):
        raise EvaluationFault(f"index out of range: {place} (array length is {len(items)})")
    return items[place]


def _fetch_byte(text: str, key: Value, budget: Budget) -> int:
    """Return a byte of a string; only beyond ASCII must all its bytes be made for that."""
    return ord(_pick(text, key)) if text.isascii() else int(_pick(_encode(text, budget), key))


def _encode(text: str, budget: Budget) -> bytes:
    scan(budget, len(text))
    return text.encode("utf-8", "surrogateescape")


def get(base: Value, key: Value, budget: Budget) -> Value:
    """Return `base[key]`, or nil where there is none."""
    base = adopt(base)
    if base is None:
        return None
    if isinstance(base, (list, bytes, str)):
        size, index = byte_length(base, budget), to_int(key)
        return fetch(base, index, budget) if -size <= index < size else None
    if isinstance(base, dict):
        look_up(budget, key)
    if isinstance(base, AnyMap):
        return base.get(key)
    if isinstance(base, dict) and not isinstance(base, StructValue):
        return fetch_entry(base, key)
    if isinstance(base, StructValue) or type(base) in METHODS:
        known = type(key) is not str or _has_member(base, key)
        return fetch(base, key, budget) if known else None
    return None


def _has_member(base: Value, key: str) -> bool:
    if isinstance(base, StructValue):
        return key in base or key in base.struct.methods
    return key in METHODS[type(base)]


def byte_length(value: Value, budget: Budget) -> int:
    """Return the length that slicing counts: bytes for a string."""
    value = adopt(value)
    if isinstance(value, str):
        return len(value) if value.isascii() else len(_encode(value, budget))
    if isinstance(value, (list, bytes, dict)) and not isinstance(value, StructValue):
        return len(value)
    raise EvaluationFault(f"invalid argument for len (type {type_name(value)})")


def cut(base: Value, upper: Value, lower: Value, budget: Budget) -> Value:
    """Return `base[lower:upper]`; bounds count from the end when negative, and are cut to the length.

    A bound that is absent is given as 0 and as the length. The upper one comes first: so it is evaluated.
    """
    base = adopt(base)
    if not isinstance(base, (list, bytes, str)):
        raise EvaluationFault(f"cannot slice {show(lower, budget)}")
    if is_nil(base):
        return base
    size = byte_length(base, budget)
    scan(budget, size)
    start, stop = to_int(lower), to_int(upper)
    start = max(size + start if start < 0 else start, 0)
    stop = min(max(size + stop if stop < 0 else stop, 0), size)
    start = min(start, stop)
    if isinstance(base, str) and not base.isascii():
        return base.encode("utf-8", "surrogateescape")[start:stop].decode("utf-8", "surrogateescape")
    return base[start:stop]


def contains(needle: Value, haystack: Value, budget: Budget) -> bool:
    """Tell whether `needle in haystack`: an element of a list, a key of a map, a field of a struct."""
    haystack = adopt(haystack)
    if haystack is None:
        return False
    if isinstance(haystack, (list, bytes)):
        visit(budget, len(haystack))
        return any(equal(item, needle, budget) for item in haystack)
    look_up(budget, needle)
    if isinstance(haystack, (StructValue, Time)):
        if type(needle) is not str:
            raise EvaluationFault(f"cannot use {type_name(needle)} as field name of {type_name(haystack)}")
        return isinstance(haystack, StructValue) and needle in haystack  # a time is a struct without fields to name
    if isinstance(haystack, AnyMap):
        return needle in haystack
    if isinstance(haystack, dict):
        return (needle if type(needle) is str else map_key(haystack, needle)) in haystack
    raise EvaluationFault(f'operator "in" not defined on {type_name(haystack)}')


def call(function: Value, *arguments: Value) -> Value:
    """Call a function value, checking what only run time knows."""
    if function is None:
        raise EvaluationFault("invalid operation: cannot call nil")
    if not isinstance(function, Function):
        raise EvaluationFault(f"invalid operation: cannot call non-function of type {type_name(function)}")
    signature = function.signature
    _check_count(signature, len(arguments))
    fitted = [_fit(argument, _parameter(signature, place)) for place, argument in enumerate(arguments)]
    return invoke(function.call, *fitted)


def call_declared(function: Value, *arguments: Value) -> Value:
    """Call a function that the checker knows: for a number, a text, a bool or a time it does not take nil."""
    _check_common(function, arguments)
    if isinstance(function, Function) and not function.signature.variadic:
        for argument, parameter in zip(arguments, function.signature.parameters, strict=False):
            if argument is None and parameter.kind in _CLASSES:
                raise EvaluationFault(f"interface conversion: interface {{}} is nil, not {parameter.name}")
    return call(function, *arguments)


def call_native(function: Value, *arguments: Value) -> Value:
    """Call a method of a time or a duration that the checker knows."""
    _check_common(function, arguments)
    return call(function, *arguments)


def _check_common(function: Value, arguments: tuple[Value, ...]) -> None:
    """Refuse a wrong argument of a common signature: the original converts these itself, so the text is another."""
    if not isinstance(function, Function) or function.signature.variadic:
        return
    parameters = function.signature.parameters
    for argument, parameter in zip(reversed(arguments), reversed(parameters), strict=False):
        wanted = _CLASSES.get(parameter.kind)
        if wanted is None or type(argument) is wanted:
            continue
        if _is_common(function.signature):
            expect(argument, wanted, parameter.name)


def _is_common(signature: Func) -> bool:
    """Tell whether the original has a call of its own for this signature."""
    result = signature.result.name if signature.result is not None else ""
    return signature.results == 1 and (*(parameter.name for parameter in signature.parameters), result) in _COMMON


def _check_count(signature: Func, count: int) -> None:
    wanted = len(signature.parameters)
    if signature.variadic and count < wanted - 1:
        raise EvaluationFault(f"invalid number of arguments: expected at least {wanted - 1}, got {count}")
    if not signature.variadic and count != wanted:
        raise EvaluationFault(f"invalid number of arguments: expected {wanted}, got {count}")


def _parameter(signature: Func, place: int) -> Type:
    return signature.parameters[min(place, len(signature.parameters) - 1)] if signature.parameters else ANY


def _fit(argument: Value, parameter: Type) -> Value:
    """Return an argument as its parameter wants it: nil as the zero value, anything else of its very type."""
    if argument is None:
        return zero(parameter)
    argument = adopt(argument)
    wanted = _CLASSES.get(parameter.kind) or _NAMED.get(parameter.name)
    if wanted is not None and type(argument) is not wanted:
        raise EvaluationFault(f"reflect: Call using {type_name(argument)} as type {parameter.name}")
    return argument


_CLASSES: dict[str, type] = {
    "bool": bool,
    "int": int,
    "float": float,
    "string": str,
    "time": Time,
    "duration": Duration,
}
_NAMED: dict[str, type] = {LOCATION.name: Zone, BYTES.name: bytes}
_COMMON = frozenset(
    {
        *(
            (one, result)
            for one in ("bool", "float64", "int", "string")
            for result in ("bool", "float64", "int", "string")
        ),
        ("bool", "bool", "bool"),
        ("float64", "float64", "bool"),
        *(("int", "int", result) for result in ("bool", "int", "string")),
        *(("string", "string", result) for result in ("bool", "string")),
        ("string", "int", "int"),
        ("time.Duration", "time.Duration"),
        ("time.Duration", "time.Time"),
        ("time.Time", "time.Duration"),
        ("time.Time", "bool"),
    }
)


_PYTHONS_OWN = (ArithmeticError, AttributeError, IndexError, KeyError, NameError, TypeError, UnicodeError)


def invoke(function: Callable[..., Value], *arguments: Value) -> Value:
    """Call a host's function; what it raises becomes a fault of the expression.

    The text of Python's own errors describes the code of the function, not the expression, so it is not shown.
    """
    try:
        return function(*arguments)
    except (EvaluationFault, HyperFleetError):
        raise
    except RecursionError:
        raise EvaluationFault("recursion depth exceeded") from None
    except _PYTHONS_OWN as error:
        raise EvaluationFault("the function failed on these arguments") from error
    except Exception as error:
        raise EvaluationFault(str(error) or type(error).__name__) from error
