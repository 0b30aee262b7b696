"""The types of operators: what `left op right` gives, or why it is invalid.

The checker calls `binary_type` and `unary_type` with the types of the operands. A rule is a function of both
types; the simple ones are rows of `_RESULTS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.expr.checking.compatibility import (
    is_any,
    is_assignable,
    is_bytes,
    is_comparable,
    is_float,
    is_integer,
    is_nil,
    is_number,
)
from hyperfleet.expr.types import (
    BOOL,
    DURATION,
    FLOAT,
    INT,
    NIL,
    STRING,
    TIME,
    UNKNOWN,
    Array,
    Map,
    untyped_array,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hyperfleet.expr.types import Type

    Operation = Callable[[Type, Type], Type | str | None]


def unary_type(operator: str, operand: Type) -> Type | str:
    """Return the type of `operator operand`, or the message why it has none."""
    if operator in ("!", "not"):
        if operand.kind in ("bool", "any"):
            return BOOL
    elif is_number(operand):
        return operand
    elif is_any(operand):
        return UNKNOWN
    return f"invalid operation: {operator} (mismatched type {operand.name})"


def binary_type(operator: str, left: Type, right: Type) -> Type | str:
    """Return the type of `left operator right`, or the message why it has none."""
    found = _OPERATIONS[operator](left, right)
    if found is None:
        return f"invalid operation: {operator} (mismatched types {left.name} and {right.name})"
    return found


def _class_of(found: Type) -> str:
    """Return how arithmetic and order see a type; empty if they do not apply to it."""
    if found.kind in ("int", "float"):
        return "number" if is_number(found) else ""
    return found.kind if found.kind in ("any", "string", "time", "duration") else ""


def _table(results: Mapping[tuple[str, str], Type | None], unknown: Type) -> Operation:
    """Return an operation by a table of classes; None stands for the promoted number, `any` gives `unknown`."""
    classes = {name for pair in results for name in pair}

    def apply(left: Type, right: Type) -> Type | None:
        first, second = _class_of(left), _class_of(right)
        if (first, second) in results:
            return results[first, second] or (FLOAT if is_float(left) or is_float(right) else INT)
        if "any" in (first, second) and classes.issuperset({first, second} - {"any"}):
            return unknown
        return None

    return apply


def _equal(left: Type, right: Type) -> Type | None:
    return BOOL if is_comparable(left, right) else None


def _logical(left: Type, right: Type) -> Type | None:
    kinds = {left.kind, right.kind}
    return BOOL if kinds <= {"bool", "any"} else None


def _integers(result: Type) -> Operation:
    def apply(left: Type, right: Type) -> Type | None:
        return result if all(is_integer(side) or is_any(side) for side in (left, right)) else None

    return apply


def _text(left: Type, right: Type) -> Type | None:
    return BOOL if {left.kind, right.kind} <= {"string", "any"} else None


def _matches(left: Type, right: Type) -> Type | None:
    return BOOL if is_bytes(left) and right.kind == "string" else _text(left, right)


def _in(left: Type, right: Type) -> Type | str | None:
    if right.kind in ("struct", "time") and left.kind in ("string", "any"):
        return BOOL
    if isinstance(right, Map):
        if is_any(left) or is_assignable(left, right.key):
            return BOOL
        return f"cannot use {left.name} as type {right.key.name} in map key"
    if isinstance(right, Array):
        if is_comparable(left, right.element):
            return BOOL
        return f"cannot use {left.name} as type {right.element.name} in array"
    if is_any(right) or (is_any(left) and right.kind == "string"):
        return BOOL
    return None


def _coalesce(left: Type, right: Type) -> Type:
    if is_nil(left):
        return NIL if is_nil(right) else right
    if is_nil(right) or is_assignable(right, left):
        return left
    return UNKNOWN


_NUMBERS = ("number", "number")
_ORDERED = {(name, name): BOOL for name in ("number", "string", "time", "duration")}
_PLUS = {
    _NUMBERS: None,
    ("string", "string"): STRING,
    ("time", "duration"): TIME,
    ("duration", "time"): TIME,
    ("duration", "duration"): DURATION,
}
_MINUS = {
    _NUMBERS: None,
    ("time", "time"): DURATION,
    ("time", "duration"): TIME,
    ("duration", "duration"): DURATION,
}
_TIMES = {
    _NUMBERS: None,
    ("number", "duration"): DURATION,
    ("duration", "number"): DURATION,
    ("duration", "duration"): DURATION,
}

_OPERATIONS: Mapping[str, Operation] = {
    **dict.fromkeys(("==", "!="), _equal),
    **dict.fromkeys(("or", "||", "and", "&&"), _logical),
    **dict.fromkeys(("<", ">", ">=", "<="), _table(_ORDERED, BOOL)),
    **dict.fromkeys(("/", "**", "^"), _table({_NUMBERS: FLOAT}, FLOAT)),
    **dict.fromkeys(("contains", "startsWith", "endsWith"), _text),
    "+": _table(_PLUS, UNKNOWN),
    "-": _table(_MINUS, UNKNOWN),
    "*": _table(_TIMES, UNKNOWN),
    "%": _integers(INT),
    "..": _integers(untyped_array(INT)),
    "in": _in,
    "matches": _matches,
    "??": _coalesce,
}
