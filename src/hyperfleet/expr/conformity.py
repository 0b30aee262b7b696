"""Check that values have the types that a schema declares, for data of unknown origin.

Hosts call `conform` before evaluating. Generated code does not check its inputs: it trusts the schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from hyperfleet.errors import ExprRuntimeError
from hyperfleet.expr.runtime.numbers import LARGEST, SMALLEST
from hyperfleet.expr.runtime.values import Function, Value, adopt, type_name
from hyperfleet.expr.temporal.durations import Duration
from hyperfleet.expr.temporal.times import Time
from hyperfleet.expr.types import Array, Func, Map, Nullable, Struct

if TYPE_CHECKING:
    from hyperfleet.expr.types import Schema, Type

MOST = 100
"""Mismatches that are listed at most; data may have millions."""

_CLASSES: dict[str, type] = {"bool": bool, "int": int, "string": str, "time": Time, "duration": Duration}


def conform(values: Mapping[str, Value], schema: Schema) -> dict[str, Value]:
    """Return the values of a schema as plain data of exactly its types, or fail with everything that does not fit.

    What a schema does not declare is left out; what may be nil may be missing. An int is a float where one is wanted.
    The error is of the first mismatch, the others are its `others`; each begins with the path of its value.
    """
    mismatches = [ExprRuntimeError(text) for text in islice(_mismatches(values, Struct("values", schema), ""), MOST)]
    if mismatches:
        mismatches[0].others = tuple(mismatches[1:])
        raise mismatches[0]
    return {name: _plain(values.get(name), of) for name, of in schema.items()}


def _mismatches(value: Value, declared: Type, path: str) -> Iterator[str]:
    """Yield what is wrong with a value, and with all parts of it."""
    value = adopt(value)
    if isinstance(declared, Nullable):
        if value is not None:
            yield from _mismatches(value, declared.target, path)
    elif not _fits(value, declared):
        yield f"{path or 'values'}: {declared.name} is declared, but this is {_described(value)}"
    else:
        for part, of, place in _parts(value, declared, path):
            if part is _MISSING:
                yield f"{place}: is missing"
            else:
                yield from _mismatches(part, of, place)


_MISSING = object()


def _fits(value: Value, declared: Type) -> bool:
    """Tell whether a value is of a type, its parts aside."""
    if isinstance(declared, Array):
        return isinstance(value, (list, bytes))
    if isinstance(declared, Map | Struct):
        return isinstance(value, dict)
    if isinstance(declared, Func):
        return callable(value) or isinstance(value, Function)
    if declared.kind == "int":
        return type(value) is int and SMALLEST <= value <= LARGEST
    if declared.kind == "float":
        return type(value) in (int, float)
    if declared.kind == "nil":
        return value is None
    return declared.kind == "any" or type(value) is _CLASSES[declared.kind]


def _described(value: Value) -> str:
    if type(value) is int and not SMALLEST <= value <= LARGEST:
        return "an integer of more than 64 bits"
    return "nil" if value is None else type_name(value)


def _parts(value: Value, declared: Type, path: str) -> Iterator[tuple[Value, Type, str]]:
    """Yield the parts of a value with their types and paths."""
    if isinstance(declared, Array):
        for place, item in enumerate(value):
            yield item, declared.element, f"{path}[{place}]"
    elif isinstance(declared, Struct):
        for name, of in declared.fields.items():
            absent = None if isinstance(of, Nullable) else _MISSING
            yield dict.get(value, name, absent), of, f"{path}.{name}".lstrip(".")
    elif isinstance(declared, Map):
        for key, item in value.items():
            yield key, declared.key, f"{path}: key {key!r}"
            yield item, (declared.fields or {}).get(key, declared.value), f"{path}[{key!r}]"


def _plain(value: Value, declared: Type) -> Value:
    """Return a value that fits as plain data: no classes of the host, in which reading may do more than read."""
    value = adopt(value)
    if isinstance(declared, Nullable):
        return None if value is None else _plain(value, declared.target)
    if isinstance(declared, Array):
        return value if isinstance(value, bytes) else [_plain(item, declared.element) for item in value]
    if isinstance(declared, Struct):
        return {name: _plain(dict.get(value, name), of) for name, of in declared.fields.items()}
    if isinstance(declared, Map) and not declared.total:  # a total map is a class of the host on purpose
        fields = declared.fields or {}
        return {adopt(key): _plain(item, fields.get(key, declared.value)) for key, item in value.items()}
    return float(value) if declared.kind == "float" else value
