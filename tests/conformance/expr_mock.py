"""The environments of the conformance cases, as far as types go.

The recorded cases name Go types (`mock.Env`) or carry values without their types; here is what the expressions and
the error texts say about them. The runner asks `environment_of` for a case, and `grammar_of` for its limits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hyperfleet.expr.checking.environment import Environment
from hyperfleet.expr.syntax.cursor import Grammar
from hyperfleet.expr.types import (
    ANY,
    ANY_ARRAY,
    ANY_MAP,
    BOOL,
    DURATION,
    FLOAT,
    INT,
    NIL,
    STRING,
    TIME,
    UNKNOWN,
    Array,
    Func,
    Map,
    Method,
    Nullable,
    Scalar,
    Schema,
    Struct,
    Type,
    untyped_array,
)

Case = Mapping[str, Any]

_NAMED: dict[str, Type] = {
    "interface {}": ANY,
    "bool": BOOL,
    "string": STRING,
    "time.Time": TIME,
    "time.Duration": DURATION,
    **{
        name: Scalar(name, "int")
        for sign in ("int", "uint")
        for name in (sign, *(f"{sign}{size}" for size in (8, 16, 32, 64)))
    },
    "float64": FLOAT,
    "float32": Scalar("float32", "float"),
}


def type_named(name: str) -> Type:
    """Return the type that a Go type name says; an unknown name is a struct of which nothing is known."""
    if name in _NAMED:
        return _NAMED[name]
    if name.startswith("[]"):
        return Array(type_named(name[2:]))
    if name.startswith("*"):
        return Nullable(type_named(name[1:]))
    if found := re.match(r"map\[([^]]*)\](.*)", name):
        return Map(type_named(found[1]), type_named(found[2]))
    return Struct(name)


def type_of(value: Any) -> Type:
    """Return the type of a tagged value, as the original types it."""
    if not isinstance(value, dict):
        return {bool: BOOL, str: STRING}.get(type(value), NIL)
    kind: str = value["k"]
    name: str = value.get("t", "")
    if kind == "struct":
        return _RECONSTRUCTED.get(name) or Struct(name, {key: type_of(part) for key, part in value["v"].items()})
    if kind == "list":
        return Array(type_of(value["v"][0]) if value["v"] and "." in name else type_named(name))
    if name == "types.Map":
        return Map(STRING, ANY, fields={key: type_of(part) for key, part in value["v"]}, strict=True)
    plain = {"time": "time.Time", "duration": "time.Duration"}.get(kind, kind)
    return type_named(name or plain)


def schema_of(environment: Any) -> Schema | None:
    """Return the schema of a recorded environment: the fields of a struct, or the entries of a map."""
    if not isinstance(environment, dict):
        return None
    entries = environment["v"].items() if environment["k"] == "struct" else environment["v"]
    return _ENVIRONMENTS.get(environment["t"], {}) | {
        name: type_of(value) for name, value in entries if name not in _ENVIRONMENTS.get(environment["t"], {})
    }


# The environment of the original's own checker tests.

_BAR = Struct("mock.Bar", {"Baz": STRING})
_FOO = Struct(
    "mock.Foo",
    {"Value": STRING, "Bar": _BAR},
    {
        "Method": Method(Func((), _BAR)),
        "VariadicMethod": Method(Func((STRING,), BOOL, variadic=True)),
    },
)

MOCK: dict[str, Type] = {
    "Any": ANY,
    "Int": INT,
    **{name.title(): _NAMED[name] for name in ("bool", "string", "int32", "int64", "uint32", "uint64")},
    **{name.title(): _NAMED[name] for name in ("float32", "float64")},
    "Float": FLOAT,
    "BoolPtr": Nullable(BOOL),
    "FloatPtr": Nullable(FLOAT),
    "IntPtr": Nullable(INT),
    "StringPtr": Nullable(STRING),
    "NilFn": Func((), None),
    "Foo": _FOO,
    "ArrayOfAny": ANY_ARRAY,
    "ArrayOfInt": Array(INT),
    "ArrayOfString": Array(STRING),
    "ArrayOfFoo": Array(Nullable(_FOO)),
    "MapOfFoo": Map(STRING, _FOO),
    "MapOfAny": ANY_MAP,
    "FuncParam": Func((BOOL, INT, STRING), BOOL),
    "Variadic": Func((INT, INT), BOOL, variadic=True),
    "Fast": Func((ANY,), ANY, variadic=True),
    "Time": TIME,
    "Duration": DURATION,
    "Func": Func((), INT),
    "FuncTyped": Func((STRING,), INT),
    "BoolFn": Func((), BOOL),
}

# What values do not show: interfaces, and named types behind a null.

_RECONSTRUCTED: dict[str, Type] = {
    "mock.Foo": _FOO,
    "mock.Bar": _BAR,
    "issue_test.EnvField": Struct(
        "issue_test.EnvField", {"Str": STRING, "S": Scalar("issue_test.EnvStr", "string", defined=True)}
    ),
}
_ENVIRONMENTS: dict[str, dict[str, Type]] = {
    "interface_test.Env": {"store": Struct("interface_test.StoreInterface")},
    "issue_test.Env": {"Mode": Scalar("issue_test.ModeEnum", "int", defined=True)},
}

_NUMBERS: dict[str, Type] = {name.title(): kind for name, kind in _NAMED.items() if kind.kind in ("int", "float")}
_STRICT: dict[str, Type] = {
    "foo": Map(STRING, ANY, fields={"bar": Map(STRING, ANY, fields={"baz": STRING}, strict=True)}, strict=True),
    "arr": untyped_array(Map(STRING, ANY, fields={"value": STRING}, strict=True)),
}
_FUNCTIONS = {
    "re": Func((STRING,), Nullable(Struct("regexp.Regexp"))),
    "add": Func((INT, INT), INT),
    "func": Func((FLOAT,), FLOAT),
}

_BY_NAME: dict[str | None, Environment] = {
    "mock.Env": Environment(MOCK, name="mock.Env"),
    "types.Map": Environment(_STRICT),
    "map[string]interface {}": Environment({**_NUMBERS, "Any": STRING, "str": STRING, "null": NIL}, is_strict=False),
    "map[string]bool": Environment({}, is_strict=False),
    "checker_test.Env": Environment({"Any": ANY, "fn": Func((), UNKNOWN)}, is_strict=False),
    None: Environment(functions=_FUNCTIONS),
}


def environment_of(case: Case) -> Environment:
    """Return the environment of a case of the sets `check` and `compile_err`."""
    if case["set"] == "check":
        return _BY_NAME[case["envtype"]]
    recorded = case["env"]
    if recorded is None:
        return Environment(functions=_FUNCTIONS if "fn=1" in case["cfg"] else {})
    name = recorded["t"] if recorded["k"] == "struct" else ANY_MAP.name
    return Environment(schema_of(recorded), name=name)


_EXPECTED: dict[str, Type] = {"bool": BOOL, "int64": _NAMED["int64"], "float64": FLOAT, "int": INT, "string": STRING}


def expectation_of(case: Case) -> Type | None:
    """Return the result type that a case asks for; in the set `check` only the error text tells."""
    if found := re.match(r"expected (\w+), but", case.get("err") or ""):
        return _EXPECTED[found[1]]
    found = re.search(r"expect=(\w+)", case.get("cfg", ""))
    return _EXPECTED.get(found[1]) if found else None


# Two cases of the set `parse` were recorded with a small node budget, which the record does not say.
_NODE_LIMITS = {"1 + (2 + (3 + (4 + (5 + (6 + (7 + 8))))))": 10, "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]": 5}


def grammar_of(case: Case, environment: Environment | None = None) -> Grammar:
    """Return the grammar of a case: which builtins are hidden, and how many nodes it may have."""
    limit = _NODE_LIMITS.get(case["src"], 10_000)
    if found := re.search(r"maxn=(\d+)", case.get("cfg", "")):
        limit = int(found[1])
    return Grammar(overridden=environment.overridden() if environment else frozenset(), max_nodes=limit)
