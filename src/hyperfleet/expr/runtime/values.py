"""Run-time values: which classes they have, what nil is, and when two of them are equal or ordered.

A value is None, a bool, int, float, str, bytes, list or dict, or one of the few classes of this package
(`StructValue`, `Function`, `Time`, `Duration`, …). Everything decides by the exact class of a value, never by its
attributes: `True` is no number here, and nothing that a host puts into its data can be reached through it.
"""

from __future__ import annotations

from collections.abc import ItemsView, KeysView, Mapping
from datetime import datetime, timedelta
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.runtime.budget import scan, visit
from hyperfleet.expr.temporal.durations import Duration
from hyperfleet.expr.temporal.times import Month, Time, Weekday
from hyperfleet.expr.temporal.zones import Zone
from hyperfleet.expr.types import ANY, Array, Func, Map, Scalar, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hyperfleet.expr.runtime.budget import Budget

Value: TypeAlias = Any
"""A value of an expression. Its class is known only at run time, so mypy does not check it."""


class StructValue(dict[str, Value]):
    """A struct value that knows its struct; a plain dict does where the static type says enough."""

    __slots__ = ("struct",)

    def __init__(self, struct: Struct, fields: Mapping[str, Value]) -> None:
        """Hold `fields` as a value of `struct`."""
        super().__init__(fields)
        self.struct = struct

    def __hash__(self) -> int:  # type: ignore[override]  # structs may be keys of groups, other maps may not
        """Hash by struct and fields; fails like a tuple does when a field cannot be hashed."""
        return hash((self.struct.name, *self.values()))


class Function:
    """A function as a value: what to call and the signature that decides how."""

    __slots__ = ("call", "signature")
    __hash__ = None  # type: ignore[assignment]  # no key of a map; the documented way to say so

    def __init__(self, call: Callable[..., Value], signature: Func) -> None:
        """Hold `call`, which takes what `signature` says."""
        self.call = call
        self.signature = signature


class NilSlice(list[Value]):
    """The nil slice: an empty list that is nil to `??` and `== nil`."""

    __slots__ = ()


class NilMap(dict[Value, Value]):
    """The nil map: an empty map that is nil to `??` and `== nil`."""

    __slots__ = ()


class _Twin(NamedTuple):
    """The place of a key in an `AnyMap` that holds an equal key of another class; never seen outside of it."""

    kind: type
    key: Value

    def __repr__(self) -> str:
        """Show the key, for the representation of the map does not ask the map."""
        return repr(self.key)


class AnyMap(dict[Value, Value]):
    """A map with keys of any type, where `1`, `1.0` and `true` are three keys, though Python takes them for one.

    The first of them is stored as it is, a later one under a `_Twin`; reading or
    iterating over the map only shows the keys themselves.
    """

    __slots__ = ("_classes",)
    shown = "map[interface {}]interface {}"

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()
        self._classes: dict[Value, type] = {}

    def _place(self, key: Value) -> Value:
        """Return the key under which `key` is, or would be, stored."""
        try:
            first = self._classes.get(key, type(key))
        except TypeError:
            first = bytes
        if first is bytes:  # no list can be a key, and these are one
            raise EvaluationFault(f"runtime error: hash of unhashable type {type_name(key)}")
        return key if first is type(key) else _Twin(type(key), key)

    def __setitem__(self, key: Value, value: Value) -> None:
        """Store a value."""
        place = self._place(key)
        self._classes.setdefault(key, type(key))
        super().__setitem__(place, value)

    def __getitem__(self, key: Value) -> Value:
        """Return the value of a key."""
        return super().__getitem__(self._place(key))

    def __contains__(self, key: object) -> bool:
        """Tell whether there is a value."""
        return super().__contains__(self._place(key))

    def get(self, key: Value, default: Value = None) -> Value:
        """Return the value of a key, or the default."""
        return super().get(self._place(key), default)

    def __iter__(self) -> Iterator[Value]:
        """Yield the keys."""
        return (place.key if type(place) is _Twin else place for place in super().__iter__())

    def keys(self) -> KeysView[Value]:  # type: ignore[override]  # as below
        """Return the keys."""
        return KeysView(self)

    def items(self) -> ItemsView[Value, Value]:  # type: ignore[override]  # dict has a class of its own for them
        """Return the keys and their values."""
        return ItemsView(self)

    def absent(self) -> Value:
        """Return what a missing key reads as."""
        return None


class Groups(AnyMap):
    """The result of `groupBy`: a missing key reads as the nil slice."""

    __slots__ = ()
    shown = "map[interface {}][]interface {}"

    def absent(self) -> Value:
        """Return what a missing key reads as."""
        return NilSlice()


NUMBERS = frozenset({int, float})
SIMPLE = frozenset({int, float, str, bool, type(None)})
LISTS = (list, tuple)

_NAMES: dict[type, str] = {
    type(None): "<nil>",
    bool: "bool",
    int: "int",
    float: "float64",
    str: "string",
    bytes: "[]uint8",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    NilSlice: "[]interface {}",
    NilMap: "map[string]interface {}",
    AnyMap: AnyMap.shown,
    Groups: Groups.shown,
    Time: "time.Time",
    Duration: "time.Duration",
    Month: "time.Month",
    Weekday: "time.Weekday",
    Zone: "*time.Location",
}

_KINDS: dict[type, str] = {
    type(None): "invalid",
    bool: "bool",
    int: "int",
    float: "float64",
    str: "string",
    StructValue: "struct",
    Time: "struct",
    Duration: "int64",
    Month: "int",
    Weekday: "int",
    Zone: "ptr",
    Function: "func",
}

# What hosts may hand in besides our own classes, and what it becomes.
_FOREIGN: tuple[tuple[type, Callable[[Any], Value]], ...] = (
    (datetime, Time.from_datetime),
    (timedelta, Duration.from_timedelta),
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (tuple, list),
    (bytearray, bytes),
    (Mapping, dict),
)


def adopt(value: Value) -> Value:
    """Return a host's value as one that the run-time functions know."""
    if type(value) in _NAMES or isinstance(value, dict):
        return value
    for accepted, convert in _FOREIGN:
        if isinstance(value, accepted):
            return convert(value)
    return value


def is_nil(value: Value) -> bool:
    """Tell whether `value` is nil; the nil slice and the nil map are too."""
    return value is None or type(value) in (NilSlice, NilMap)


def type_name(value: Value) -> str:
    """Return the name of a value's type as error texts print it."""
    name = _NAMES.get(type(value))
    if name is not None:
        return name
    if isinstance(value, StructValue):
        return value.struct.name
    if isinstance(value, Function):
        return value.signature.name
    adopted = adopt(value)
    if adopted is not value:
        return type_name(adopted)
    return "map[string]interface {}" if isinstance(value, dict) else "interface {}"


def kind_name(value: Value) -> str:
    """Return the kind of a value: what it is, whatever the name of its type."""
    kind = _KINDS.get(type(value))
    if kind is not None:
        return kind
    if isinstance(value, (*LISTS, bytes)):
        return "slice"
    if isinstance(value, dict):
        return "map"
    adopted = adopt(value)
    return kind_name(adopted) if adopted is not value else "interface"


def brand(value: Value, declared: Type, budget: Budget) -> Value:
    """Return `value` with its structs as records, so that text and type names can tell them from maps."""
    if isinstance(declared, Struct) and isinstance(value, dict) and not isinstance(value, StructValue):
        visit(budget, 2 * len(declared.fields))
        return StructValue(declared, {key: brand(value.get(key), of, budget) for key, of in declared.fields.items()})
    if isinstance(declared, Array) and isinstance(value, list) and has_structs(declared.element):
        visit(budget, len(value))
        return [brand(item, declared.element, budget) for item in value]
    if isinstance(declared, Map) and isinstance(value, dict) and has_structs(declared.value):
        visit(budget, len(value))
        return {key: brand(item, declared.value, budget) for key, item in value.items()}
    return value


def has_structs(declared: Type) -> bool:
    """Tell whether values of this type are, or directly hold, structs."""
    if isinstance(declared, Array):
        return has_structs(declared.element)
    if isinstance(declared, Map):
        return has_structs(declared.value)
    return isinstance(declared, Struct)


def zero(declared: Type) -> Value:
    """Return the value that a variable of this type has before anything is put into it."""
    if isinstance(declared, Array):
        return NilSlice()
    if isinstance(declared, Map):
        return NilMap()
    if isinstance(declared, Struct):
        return StructValue(declared, {name: zero(of) for name, of in declared.fields.items()})
    return _ZEROS.get(declared.kind) if isinstance(declared, Scalar) and declared is not ANY else None


_ZEROS: dict[str, Value] = {
    "bool": False,
    "int": 0,
    "float": 0.0,
    "string": "",
    "time": Time.from_unix(-62135596800, 0),  # year 1, January 1
    "duration": Duration(0),
}


def equal(left: Value, right: Value, budget: Budget) -> bool:
    """Tell whether `left == right`: numbers by value, lists element by element, the rest exactly."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        # As the original: a mixed pair is compared as floats, even beyond 2**53.
        return bool(left == right) if type(left) is type(right) else float(left) == float(right)
    if type(left) is str and type(right) is str:
        scan(budget, len(left))
        return bool(left == right)
    if type(left) in SIMPLE and type(left) is type(right):
        return bool(left == right)
    left, right = adopt(left), adopt(right)
    if isinstance(left, (list, bytes)) and isinstance(right, (list, bytes)):
        return len(left) == len(right) and _all(equal, left, right, budget)
    if is_nil(left) and is_nil(right):
        return True
    return _same(left, right, budget)


def _all(alike: Callable[[Value, Value, Budget], bool], left: Value, right: Value, budget: Budget) -> bool:
    """Compare two lists of the same length, paying for every element: shared parts may be met very often."""
    visit(budget, len(left) + 16)
    return all(map(alike, left, right, repeat(budget)))


def _same(left: Value, right: Value, budget: Budget) -> bool:
    """Tell whether both are the same value of the same type, all the way down."""
    left, right = adopt(left), adopt(right)
    if left is right and isinstance(left, (dict, list)):
        return True
    if type_name(left) != type_name(right) or isinstance(left, Function):
        return False
    if isinstance(left, dict):
        if is_nil(left) != is_nil(right) or len(left) != len(right):
            return False
        visit(budget, 2 * len(left))
        if not all(key in right for key in left):
            return False
        return _all(_same, list(left.values()), [right[key] for key in left], budget)
    if isinstance(left, list):
        alike = is_nil(left) == is_nil(right) and len(left) == len(right)
        return alike and _all(_same, left, right, budget)
    if type(left) not in _NAMES:
        return left is right  # a host's own object is not asked
    if isinstance(left, (str, bytes)):
        scan(budget, len(left))
    return bool(left == right)


def equal_integers(left: Value, right: Value, _: Budget) -> bool:
    """Compare values that the checker typed as integers; nil is not one."""
    return bool(expect(left, int, "int") == expect(right, int, "int"))


def equal_strings(left: Value, right: Value, budget: Budget) -> bool:
    """Compare values that the checker typed as strings; nil is not one."""
    first, second = expect(left, str, "string"), expect(right, str, "string")
    scan(budget, len(first))
    return bool(first == second)


def less(left: Value, right: Value) -> bool:
    """Tell whether `left < right`; only numbers, strings, times and durations have an order."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        return bool(left < right) if type(left) is type(right) else float(left) < float(right)
    left, right = _ordered(left, right, "<")
    return bool(left < right)


def less_or_equal(left: Value, right: Value) -> bool:
    """Tell whether `left <= right`; not the opposite of `>`, because of NaN."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        return bool(left <= right) if type(left) is type(right) else float(left) <= float(right)
    left, right = _ordered(left, right, "<=")
    return bool(left <= right)


def more(left: Value, right: Value) -> bool:
    """Tell whether `left > right`."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        return bool(left > right) if type(left) is type(right) else float(left) > float(right)
    left, right = _ordered(left, right, ">")
    return bool(left > right)


def more_or_equal(left: Value, right: Value) -> bool:
    """Tell whether `left >= right`."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        return bool(left >= right) if type(left) is type(right) else float(left) >= float(right)
    left, right = _ordered(left, right, ">=")
    return bool(left >= right)


_ORDERED = frozenset({int, float, str, Time, Duration})


def _ordered(left: Value, right: Value, operator: str) -> tuple[Value, Value]:
    """Return both as values that Python can order, or fail."""
    left, right = adopt(left), adopt(right)
    both_numbers = type(left) in NUMBERS and type(right) in NUMBERS
    if both_numbers or (type(left) is type(right) and type(left) in _ORDERED):
        return left, right
    raise EvaluationFault(f"invalid operation: {type_name(left)} {operator} {type_name(right)}")


def expect(value: Value, wanted: type, name: str) -> Value:
    """Return `value` if it is of the class `wanted`, or fail as the original does."""
    if type(value) is wanted:
        return value
    adopted = adopt(value)
    if type(adopted) is wanted:
        return adopted
    found = "nil" if value is None else type_name(adopted)
    raise EvaluationFault(f"interface conversion: interface {{}} is {found}, not {name}")


def as_bool(value: Value) -> bool:
    """Return `value` if it is a bool, or fail."""
    return value if value is True or value is False else bool(expect(value, bool, "bool"))


def as_string(value: Value) -> str:
    """Return `value` if it is a string, or fail."""
    return value if type(value) is str else str(expect(value, str, "string"))
