"""Relations between types, for the checker and its rule tables.

Nothing here reports errors; the caller does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.expr.types import ANY, ANY_ARRAY, BYTES, Array, Map, Nullable, Scalar

if TYPE_CHECKING:
    from hyperfleet.expr.types import Type

_INTEGERS = frozenset(f"{sign}int{size}" for sign in ("", "u") for size in ("", "8", "16", "32", "64")) | {"uintptr"}
_FLOATS = frozenset({"float32", "float64"})
_TAKE_NIL = frozenset({"any", "array", "map", "func", "nullable"})
_ROUGH = {"duration": "int64", "nil": "unknown", "time": "struct"}


def is_any(found: Type) -> bool:
    """Tell whether the type is open until run time."""
    return found.kind == "any"


def is_nil(found: Type) -> bool:
    """Tell whether the type is that of `nil` alone."""
    return found.kind == "nil"


def is_integer(found: Type) -> bool:
    """Tell whether the operators take it for an integer."""
    return found.kind == "int" and found.name in _INTEGERS


def is_float(found: Type) -> bool:
    """Tell whether the operators take it for a floating-point number."""
    return found.kind == "float" and found.name in _FLOATS


def is_number(found: Type) -> bool:
    """Tell whether the operators take it for a number."""
    return is_integer(found) or is_float(found)


def is_bytes(found: Type) -> bool:
    """Tell whether it is the type of bytes literals."""
    return found.name == BYTES.name


def through(found: Type) -> Type:
    """Return the type inside a nullable type."""
    while isinstance(found, Nullable):
        found = found.target
    return found


def rough_kind(found: Type) -> str:
    """Return the kind as the original's literals compare it: integers of other sizes differ, structs do not."""
    if isinstance(found, Scalar):
        if found.kind == "any":
            return found.name
        if found.kind in ("int", "float"):
            return found.kind if found.defined else found.name
    return _ROUGH.get(found.kind, found.kind)


def printed(found: Type) -> Type:
    """Return what remains of a type when only its printed name is passed on: the original forgets the rest."""
    if found.kind == "any":
        return ANY
    if isinstance(found, Array) and found.shown:
        return ANY_ARRAY
    if isinstance(found, Map) and (found.shown or found.fields is not None):
        return Map(found.key, ANY)
    return found


def is_assignable(found: Type, wanted: Type) -> bool:
    """Tell whether a value of one type may be used where the other is declared."""
    if found.kind == "nil":
        return wanted.kind in _TAKE_NIL and wanted.name != "unknown"
    if "unknown" in (found.name, wanted.name):
        return False  # nothing is known about it
    return wanted.kind == "any" or (found.kind == wanted.kind and found.name == wanted.name)


def is_comparable(left: Type, right: Type) -> bool:
    """Tell whether `==` makes sense between two types."""
    if left.kind in ("any", "nil") or right.kind in ("any", "nil"):
        return True
    if is_number(left):
        return is_number(right)
    if left.kind == "array" == right.kind:
        return True
    return is_assignable(left, right)
