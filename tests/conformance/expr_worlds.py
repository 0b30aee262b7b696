"""The values of the recorded expr cases: tagged ones as Python values, and the three fixed environments.

Types of recorded values are in `expr_mock`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hyperfleet.expr.runtime.budget import open_budget
from hyperfleet.expr.runtime.text import show
from hyperfleet.expr.runtime.values import NilSlice, StructValue
from hyperfleet.expr.temporal.dates import parse_time
from hyperfleet.expr.temporal.durations import Duration
from hyperfleet.expr.temporal.layouts import RFC3339
from hyperfleet.expr.types import ANY, BOOL, FLOAT, INT, STRING, Array, Func, Map, Method, Schema, Struct, Type
from tests.conformance.expr_mock import type_named, type_of


def decode(tagged: Any) -> Any:
    """Return a tagged value."""
    if tagged is None or isinstance(tagged, (bool, str)):
        return tagged
    return _DECODERS.get(tagged["k"], _decode_number)(tagged)


def _decode_number(tagged: Any) -> Any:
    return float(tagged["v"]) if tagged["k"].startswith("float") else int(tagged["v"])


def _decode_list(tagged: Any) -> Any:
    items = [decode(item) for item in tagged["v"]]
    return bytes(items) if tagged["t"] == "uint8" else items


def _decode_struct(tagged: Any) -> Any:
    shape = type_of(tagged)
    fields = {name: decode(value) for name, value in tagged["v"].items()}
    return StructValue(shape, fields) if isinstance(shape, Struct) else fields


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "list": _decode_list,
    "map": lambda tagged: {decode(key): decode(value) for key, value in tagged["v"]},
    "struct": _decode_struct,
    "time": lambda tagged: parse_time(tagged["v"], RFC3339),
    "nilslice": lambda _: NilSlice(),
    "duration": lambda tagged: Duration(int(tagged["v"])),
}


def _method(
    receiver: str, call: Callable[..., object], result: Type, *parameters: Type, variadic: bool = False
) -> Method:
    """Declare a method; error texts print its receiver."""
    names = [receiver, *(parameter.name for parameter in parameters)]
    if variadic:
        names[-1] = f"...{names[-1]}"
    shown = f"func({', '.join(names)}) {result.name}"
    return Method(Func(parameters, result, variadic=variadic, shown=shown), call)


_GEN_FOO = Struct(
    "github.com/expr-lang/expr/test/gen.Foo", {"Bar": STRING}, {"String": _method("main.Foo", lambda _: "foo", STRING)}
)
_FUZZ_FOO = Struct(
    "github.com/expr-lang/expr/test/fuzz.Foo",
    {"Bar": STRING},
    {
        "String": _method("fuzz.Foo", lambda _: "foo", STRING),
        "Qux": _method("fuzz.Foo", lambda foo, text: foo["Bar"] + text, STRING, STRING),
    },
)


def _quotient(dividend: int, divisor: int) -> int:
    return int(dividend / divisor)


_INTEGERS = Func((INT, INT), INT)

GEN: tuple[Schema, Mapping[str, Any]] = (
    {
        "ok": BOOL,
        "i": INT,
        "str": STRING,
        "f64": FLOAT,
        "array": Array(INT),
        "foo": _GEN_FOO,
        "list": Array(_GEN_FOO),
        "add": _INTEGERS,
        "greet": Func((STRING,), STRING),
    },
    {
        "ok": True,
        "i": 1,
        "str": "str",
        "f64": 0.5,
        "array": [1, 2, 3, 4, 5],
        "foo": StructValue(_GEN_FOO, {"Bar": "foo"}),
        "list": [StructValue(_GEN_FOO, {"Bar": "bar"}), StructValue(_GEN_FOO, {"Bar": "baz"})],
        "add": lambda left, right: left + right,
        "greet": lambda name: "Hello, " + name,
    },
)

FUZZ: tuple[Schema, Mapping[str, Any]] = (
    {
        "ok": BOOL,
        "f64": FLOAT,
        "f32": type_named("float32"),
        "i": INT,
        "i64": type_named("int64"),
        "i32": type_named("int32"),
        "array": Array(INT),
        "list": Array(_FUZZ_FOO),
        "foo": _FUZZ_FOO,
        "add": _INTEGERS,
        "div": _INTEGERS,
        "half": Func((FLOAT,), FLOAT),
        "score": Func((INT, INT), INT, variadic=True),
        "greet": Func((STRING,), STRING),
        "fn": Func((ANY,), STRING, variadic=True),
    },
    {
        "ok": True,
        "f64": 0.5,
        "f32": 0.5,
        "i": 1,
        "i64": 1,
        "i32": 1,
        "array": [1, 2, 3, 4, 5],
        "list": [StructValue(_FUZZ_FOO, {"Bar": "bar"}), StructValue(_FUZZ_FOO, {"Bar": "baz"})],
        "foo": StructValue(_FUZZ_FOO, {"Bar": "bar"}),
        "add": lambda left, right: left + right,
        "div": _quotient,
        "half": lambda number: number / 2,
        "score": lambda first, *others: first + sum(others),
        "greet": lambda name: "Hello, " + name,
        "fn": lambda *arguments: f"fn({show(list(arguments), open_budget())})",
    },
)

_ADAPTER = Struct(
    "main.AdapterStatus",
    {"name": STRING, "available": STRING, "applied": STRING, "health": STRING, "observedGeneration": INT},
)


def _adapter(name: str, available: str = "True", generation: int = 3) -> dict[str, Any]:
    return {
        "name": name,
        "available": available,
        "applied": "True",
        "health": "True",
        "observedGeneration": generation,
    }


_ADAPTERS = [
    _adapter("validation"),
    _adapter("dns"),
    _adapter("infrastructure", "False", 2),
    _adapter("placement"),
]

DOMAIN: tuple[Schema, Mapping[str, Any]] = (
    {
        "requiredAdapters": Array(_ADAPTER),
        "allAdapters": Array(_ADAPTER),
        "adapters": Map(STRING, _ADAPTER),
        "currentGeneration": INT,
    },
    {
        "requiredAdapters": _ADAPTERS,
        "allAdapters": _ADAPTERS,
        "adapters": {adapter["name"]: adapter for adapter in _ADAPTERS},
        "currentGeneration": 3,
    },
)
