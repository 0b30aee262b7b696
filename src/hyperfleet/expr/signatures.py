"""The 71 functions of the language and the methods of times: names, argument shapes and types, as tables.

The parser asks which names are builtins and how a predicate builtin reads its arguments; the checker (`calls`)
asks what each accepts and returns. What they compute is elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hyperfleet.expr.types import (
    ANY,
    ANY_ARRAY,
    BOOL,
    BYTES,
    DURATION,
    FLOAT,
    INT,
    LOCATION,
    MONTH,
    STRING,
    TIME,
    WEEKDAY,
    Array,
    Func,
    Map,
    Scalar,
    Type,
)

PREDICATES = {
    "all": "ep",
    "none": "ep",
    "any": "ep",
    "one": "ep",
    "filter": "ep",
    "map": "ep",
    "count": "eP",
    "sum": "eP",
    "find": "ep",
    "findIndex": "ep",
    "findLast": "ep",
    "findLastIndex": "ep",
    "groupBy": "ep",
    "sortBy": "epE",
    "reduce": "epE",
}
"""The arguments of the builtins that take a predicate: e an expression, p a predicate, a capital may be absent."""


def _function(*parameters: Type, returns: Type, shown: str = "") -> Func:
    return Func(parameters, returns, shown=shown)


_INT64 = Scalar("int64", "int")
_STRINGS = Array(STRING)
_TEST = _function(ANY, returns=BOOL)
_TEXT = _function(STRING, returns=STRING)
_TEXT2 = _function(STRING, STRING, returns=STRING)
_BITS = (_function(INT, INT, returns=INT),)
_SORTABLE = (ANY_ARRAY, Array(INT), Array(FLOAT), _STRINGS)

OVERLOADS: Mapping[str, tuple[Func, ...]] = {
    **dict.fromkeys(("all", "none", "any", "one"), (_function(ANY_ARRAY, _TEST, returns=BOOL),)),
    **dict.fromkeys(("find", "findLast"), (_function(ANY_ARRAY, _TEST, returns=ANY),)),
    **dict.fromkeys(("findIndex", "findLastIndex", "count", "sum"), (_function(ANY_ARRAY, _TEST, returns=INT),)),
    "filter": (_function(ANY_ARRAY, _TEST, returns=ANY_ARRAY),),
    "map": (_function(ANY_ARRAY, _function(ANY, returns=ANY), returns=ANY_ARRAY),),
    "groupBy": (_function(ANY_ARRAY, _function(ANY, returns=ANY), returns=Map(ANY, ANY_ARRAY)),),
    "sortBy": (_function(ANY_ARRAY, _TEST, STRING, returns=ANY_ARRAY),),
    "reduce": (_function(ANY_ARRAY, _function(ANY, ANY, returns=ANY), ANY, returns=ANY),),
    "type": (_function(ANY, returns=STRING),),
    "string": (_function(ANY, returns=STRING),),
    "trim": (_TEXT, _TEXT2),
    "trimPrefix": (_TEXT2, _TEXT),
    "trimSuffix": (_TEXT2, _TEXT),
    "upper": (_TEXT,),
    "lower": (_TEXT,),
    **dict.fromkeys(
        ("split", "splitAfter"),
        (_function(STRING, STRING, returns=_STRINGS), _function(STRING, STRING, INT, returns=_STRINGS)),
    ),
    "replace": (
        _function(STRING, STRING, STRING, INT, returns=STRING),
        _function(STRING, STRING, STRING, returns=STRING),
    ),
    "repeat": (_function(STRING, INT, returns=STRING),),
    "join": (
        _function(_STRINGS, STRING, returns=STRING),
        _function(ANY_ARRAY, STRING, returns=STRING),
        _function(ANY_ARRAY, returns=STRING),
        _function(_STRINGS, STRING, returns=STRING),
        _function(_STRINGS, returns=STRING),
    ),
    **dict.fromkeys(("indexOf", "lastIndexOf"), (_function(STRING, STRING, returns=INT),)),
    **dict.fromkeys(("hasPrefix", "hasSuffix"), (_function(STRING, STRING, returns=BOOL),)),
    "toJSON": (_function(ANY, returns=STRING),),
    "fromJSON": (_function(STRING, returns=ANY),),
    "toBase64": (_TEXT,),
    "fromBase64": (_TEXT,),
    "duration": (_function(STRING, returns=DURATION, shown="func(string) (time.Duration, error)"),),
    "timezone": (_function(STRING, returns=LOCATION, shown="func(string) (*time.Location, error)"),),
    "sort": (
        *(_function(array, STRING, returns=ANY_ARRAY) for array in _SORTABLE),
        *(_function(array, returns=ANY_ARRAY) for array in (ANY_ARRAY, Array(FLOAT), _STRINGS, Array(INT))),
    ),
    **dict.fromkeys(("bitand", "bitor", "bitxor", "bitnand", "bitshl", "bitshr", "bitushr"), _BITS),
    "bitnot": (_function(INT, returns=INT),),
}
"""Builtins with signatures; of several the first one that fits counts."""


@dataclass(frozen=True, slots=True)
class ArgumentRule:
    """A builtin with one argument of certain kinds; `result` None means: the type of the argument.

    `complaint` is the text about an argument of another kind.
    """

    kinds: frozenset[str]
    result: Type | None
    complaint: str


_NUMBERS = frozenset({"any", "int", "float", "duration"})
_ARRAYS = frozenset({"any", "array"})
_MAPS = frozenset({"any", "map"})
_INVALID = "invalid argument for {name} (type {type})"

RULES: Mapping[str, ArgumentRule] = {
    "len": ArgumentRule(_ARRAYS | _MAPS | {"string"}, INT, _INVALID),
    "abs": ArgumentRule(_NUMBERS, None, _INVALID),
    "ceil": ArgumentRule(_NUMBERS, FLOAT, _INVALID),
    "floor": ArgumentRule(_NUMBERS, FLOAT, _INVALID),
    "round": ArgumentRule(_NUMBERS, FLOAT, _INVALID),
    "int": ArgumentRule(_NUMBERS | {"string"}, INT, _INVALID),
    "float": ArgumentRule(_NUMBERS | {"string"}, FLOAT, _INVALID),
    "keys": ArgumentRule(_MAPS, ANY_ARRAY, "cannot get keys from {type}"),
    "values": ArgumentRule(_MAPS, ANY_ARRAY, "cannot get values from {type}"),
    "toPairs": ArgumentRule(_MAPS, ANY_ARRAY, "cannot transform {type} to pairs"),
    "fromPairs": ArgumentRule(_ARRAYS, Map(ANY, ANY), "cannot transform {type} from pairs"),
    "reverse": ArgumentRule(_ARRAYS, ANY_ARRAY, "cannot reverse {type}"),
    "uniq": ArgumentRule(_ARRAYS, ANY_ARRAY, "cannot uniq {type}"),
    "flatten": ArgumentRule(_ARRAYS, ANY_ARRAY, "cannot flatten {type}"),
}
"""Builtins that accept kinds rather than types."""

SPECIAL = frozenset({"max", "min", "mean", "median", "now", "date", "first", "last", "get", "take", "concat"})
"""Builtins with a rule of their own, in `calls`."""

BUILTINS = frozenset(OVERLOADS) | frozenset(RULES) | SPECIAL


def builtin_type(name: str) -> Func:
    """Return the type of a builtin that is used as a value."""
    if name in OVERLOADS:
        first = OVERLOADS[name][0]
        return Func(first.parameters, first.result, builtin=name, shown=first.shown)
    shown = "func(...interface {}) (interface {}, error)"
    return Func((ANY,), ANY, variadic=True, builtin=name, shown=shown)


def _methods(receiver: Type, table: Mapping[str, tuple[Type, ...]]) -> dict[str, Func]:
    """Return signatures by name from tables of a result and parameters."""
    return {name: _method(receiver, result, *parameters) for name, (result, *parameters) in table.items()}


def _method(receiver: Type, result: Type, *parameters: Type, others: tuple[str, ...] = ()) -> Func:
    """Return the signature of a method; of several results only the first is used, of more than two none."""
    names = ", ".join(parameter.name for parameter in (receiver, *parameters))
    given = f"({', '.join((result.name, *others))})" if others else result.name
    return Func(parameters, result, results=1 + len(others), shown=f"func({names}) {given}")


METHODS: Mapping[str, Mapping[str, Func]] = {
    TIME.name: _methods(
        TIME,
        {
            **dict.fromkeys(("Year", "Day", "Hour", "Minute", "Second", "Nanosecond", "YearDay"), (INT,)),
            **dict.fromkeys(("Unix", "UnixMilli", "UnixMicro", "UnixNano"), (_INT64,)),
            **dict.fromkeys(("Before", "After", "Equal"), (BOOL, TIME)),
            **dict.fromkeys(("UTC", "Local"), (TIME,)),
            **dict.fromkeys(("Add", "Round", "Truncate"), (TIME, DURATION)),
            **dict.fromkeys(("IsZero", "IsDST"), (BOOL,)),
            **dict.fromkeys(("MarshalJSON", "MarshalText"), (BYTES,)),
            "String": (STRING,),
            "Month": (MONTH,),
            "Weekday": (WEEKDAY,),
            "AddDate": (TIME, INT, INT, INT),
            "Compare": (INT, TIME),
            "Format": (STRING, STRING),
            "In": (TIME, LOCATION),
            "Location": (LOCATION,),
            "Sub": (DURATION, TIME),
            "GoString": (STRING,),
            "AppendFormat": (BYTES, BYTES, STRING),
        },
    )
    | {
        "Zone": _method(TIME, STRING, others=("int",)),
        "ISOWeek": _method(TIME, INT, others=("int",)),
        "Date": _method(TIME, INT, others=("time.Month", "int")),
        "Clock": _method(TIME, INT, others=("int", "int")),
    },
    DURATION.name: _methods(
        DURATION,
        {
            **dict.fromkeys(("Hours", "Minutes", "Seconds"), (FLOAT,)),
            **dict.fromkeys(("Milliseconds", "Microseconds", "Nanoseconds"), (_INT64,)),
            **dict.fromkeys(("Round", "Truncate"), (DURATION, DURATION)),
            "Abs": (DURATION,),
            "String": (STRING,),
        },
    ),
    LOCATION.name: _methods(LOCATION, {"String": (STRING,)}),
    MONTH.name: _methods(MONTH, {"String": (STRING,)}),
    WEEKDAY.name: _methods(WEEKDAY, {"String": (STRING,)}),
}
"""The methods of the types that come with the language, by the name of the type."""
