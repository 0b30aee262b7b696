"""The environments of our own expr cases; `original/worlds.go` has the same, and a test compares them.

- `typed`: declared names of every type.
- `untyped`: plain data, compiled without declared types.
- `rules`: what the rules of a policy see, in the types of the product's own vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hyperfleet.aggregation.vocabulary import ADAPTER, CONDITION, SCHEMA
from hyperfleet.expr.runtime.values import StructValue
from hyperfleet.expr.temporal.durations import Duration, parse_duration
from hyperfleet.expr.temporal.times import Time
from hyperfleet.expr.temporal.zones import load_zone
from hyperfleet.expr.types import (
    ANY_ARRAY,
    ANY_MAP,
    BOOL,
    BYTES,
    DURATION,
    FLOAT,
    INT,
    LOCATION,
    STRING,
    TIME,
    Array,
    Func,
    Map,
    Nullable,
    Schema,
    Struct,
    Type,
)

_MOMENT = Time.from_datetime(datetime(2024, 2, 29, 13, 4, 5, 678901, tzinfo=UTC))

_ADDRESS = Struct("main.Address", {"city": STRING, "zip": INT})
_PERSON = Struct(
    "main.Person",
    {"name": STRING, "age": INT, "score": FLOAT, "here": BOOL, "tags": Array(STRING), "home": _ADDRESS},
)


def _address(city: str, code: int) -> StructValue:
    return StructValue(_ADDRESS, {"city": city, "zip": code})


def _person(*fields: Any) -> StructValue:
    return StructValue(_PERSON, dict(zip(_PERSON.fields, fields, strict=True)))


_PEOPLE = [
    _person("ann", 41, 1.5, True, ["a", "b"], _address("Köln", 50667)),
    _person("bob", 7, -0.25, False, [], _address("Lyon", 69001)),
    _person("cy", 41, 3.0, True, ["b"], _address("Köln", 50668)),
]


def _root(number: int) -> int:
    if number < 0:
        raise ValueError("no root of a negative number")
    return math.isqrt(number)


_PLAIN: dict[str, Any] = {
    "i": 4,
    "f": 1.5,
    "s": "text",
    "b": True,
    "no": False,
    "zz": None,
    "xs": [3, 1, 2],
    "mix": [1, "a", None, 2.5],
    "deep": {"a": {"b": 2}, "list": [[1], [2, 3]]},
    "rows": [
        {"name": "n1", "cpu": 4, "ready": True},
        {"name": "n2", "cpu": 16, "ready": False},
        {"name": "n3", "cpu": 8, "ready": True, "zone": "a"},
    ],
    "at": _MOMENT,
    "d": Duration.from_timedelta(timedelta(minutes=5)),
}

_TYPED: dict[str, tuple[Type, Any]] = {
    "i": (INT, 3),
    "n": (INT, -7),
    "f": (FLOAT, 0.5),
    "g": (FLOAT, -2.25),
    "s": (STRING, "héllo"),
    "csv": (STRING, "a,b,c"),
    "b": (BOOL, True),
    "no": (BOOL, False),
    "xs": (Array(INT), [3, 1, 2]),
    "fs": (Array(FLOAT), [0.5, 2.0, -1.5]),
    "words": (Array(STRING), ["pear", "Apple", "fig"]),
    "people": (Array(_PERSON), _PEOPLE),
    "by": (Map(STRING, _PERSON), {person["name"]: person for person in _PEOPLE}),
    "counts": (Map(STRING, INT), {"a": 1, "b": 2}),
    "owner": (Nullable(_ADDRESS), _address("Köln", 50667)),
    "nobody": (Nullable(_ADDRESS), None),
    "items": (ANY_ARRAY, [1, "a", None, 2.5, True, [1, 2]]),
    "m": (ANY_MAP, _PLAIN),
    "at": (TIME, _MOMENT),
    "later": (TIME, Time(_MOMENT.nanoseconds + 36 * 3600 * 10**9)),
    "wait": (DURATION, Duration.from_timedelta(timedelta(minutes=90, milliseconds=1500))),
    "zone": (LOCATION, load_zone("Europe/Berlin")),
    "raw": (BYTES, b"ab\xff"),
    "twice": (Func((INT,), INT), lambda number: number * 2),
    "half": (Func((FLOAT,), FLOAT), lambda number: number / 2),
    "glue": (Func((STRING, STRING), STRING, variadic=True), lambda separator, *parts: separator.join(parts)),
    "root": (Func((INT,), INT, results=2, shown="func(int) (int, error)"), _root),
}

# Go prints the package of a type. The original has no map that answers for every name, so `adapters` is a plain one.
_CONDITION = replace(CONDITION, name="main.Condition")
_ADAPTER = replace(ADAPTER, name="main.AdapterStatus", fields={**ADAPTER.fields, "conditions": Map(STRING, _CONDITION)})
_RULES: dict[str, Type] = {
    **SCHEMA,
    **dict.fromkeys(("requiredAdapters", "optionalAdapters", "allAdapters"), Array(_ADAPTER)),
    "adapters": Map(STRING, _ADAPTER),
    "olderThan": Func((_ADAPTER, STRING), BOOL, results=2, shown="func(main.AdapterStatus, string) (bool, error)"),
}


def _condition(kind: str, status: str, reason: str) -> StructValue:
    fields = {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": _MOMENT}
    return StructValue(_CONDITION, fields)


def _adapter(name: str, available: str, reason: str, generation: int, data: dict[str, Any]) -> StructValue:
    fields = {
        "adapter": name,
        "available": available,
        "applied": "True",
        "health": "True",
        "observedGeneration": generation,
        "lastUpdated": _MOMENT,
        "reason": reason,
        "message": f"{name} is {available}",
        "conditions": {
            "Available": _condition("Available", available, reason),
            "Health": _condition("Health", "True", "Healthy"),
        },
        "data": data,
        "reported": True,
        "current": generation == 3,
        "stale": False,
        "state": {"True": "Completed", "False": "Failed"}[available],
    }
    return StructValue(_ADAPTER, fields)


_REQUIRED = [
    _adapter("validation", "True", "AllGood", 3, {"checks": 12, "ok": True}),
    _adapter("dns", "True", "RecordsCreated", 3, {"zones": ["a", "b"], "ttl": 300}),
    _adapter("infrastructure", "False", "QuotaExceeded", 2, {}),
]
_OPTIONAL = [_adapter("monitoring", "True", "Running", 3, {"url": "https://m"})]


def _older_than(adapter: Mapping[str, Any], age: str) -> bool:
    """Compare with a clock that stands ten minutes after the last report."""
    return bool(parse_duration(age) < parse_duration("10m") and adapter["reported"])


WORLDS: dict[str, tuple[Schema | None, Mapping[str, Any]]] = {
    "typed": (
        {name: declared for name, (declared, _) in _TYPED.items()},
        {name: value for name, (_, value) in _TYPED.items()},
    ),
    "untyped": (None, _PLAIN),
    "rules": (
        _RULES,
        {
            "requiredAdapters": _REQUIRED,
            "optionalAdapters": _OPTIONAL,
            "allAdapters": [*_REQUIRED, *_OPTIONAL],
            "adapters": {adapter["adapter"]: adapter for adapter in [*_REQUIRED, *_OPTIONAL]},
            "currentGeneration": 3,
            "olderThan": _older_than,
        },
    ),
}
"""By set: the declared types, if any, and the values."""
