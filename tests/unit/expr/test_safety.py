"""Nothing that an expression or its data says can crash, hang, or reach a Python object."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import Any

import pytest

from hyperfleet import expr
from hyperfleet.errors import ExprBudgetError, ExprError, ExprRuntimeError
from hyperfleet.expr import emission
from hyperfleet.expr.types import ANY, Func


def value_of(source: str, **values: Any) -> Any:
    return expr.compile(source).evaluate(values)


class Trap:
    """An object that must not be touched."""

    answer = "reached"

    def __call__(self) -> str:
        return self.answer

    def __getattr__(self, name: str) -> str:
        raise AssertionError(name)


@pytest.mark.parametrize(
    "source",
    [
        "x.__class__",
        'x["__class__"]',
        "x.answer",
        "x()",
        "x.__call__()",
        "s.__class__",
        "s.format",
        "s.upper()",
        "l.append(1)",
        "m.__init__",
        "f.__globals__",
        "f()",
        "f.__code__",
        "$env.x.answer",
        "$env.f()",
        "get(x, 'answer')",
        "string(x)[9]",
        "toJSON(x)",
        "x + 1",
        "x < x",
        "x in x",
        "all(x, true)",
        "keys(x)",
        "'{0.__class__}'.format(1)",
        "__import__('os')",
        "__builtins__",
        "E",
        "recover",
    ],
)
def test_python_objects_are_out_of_reach(source: str) -> None:
    values = {"x": Trap(), "s": "{0.__class__}", "l": [1], "m": {"a": 1}, "f": test_python_objects_are_out_of_reach}
    try:
        found = expr.compile(source).evaluate(values)
    except ExprError:
        return
    assert found is None, "whatever is no part of the data is nil"


def test_an_object_shows_nothing_of_itself() -> None:
    assert value_of("string(x)", x=Trap()) == "<value>"
    assert value_of("string([f])", f=print) == "[<value>]"


def test_a_callable_is_a_function_only_where_one_is_declared() -> None:
    values = {"f": lambda: "called"}
    with pytest.raises(ExprRuntimeError, match="cannot call non-function"):
        expr.compile("f()", {"f": ANY}).evaluate(values)
    assert expr.compile("f()", {"f": Func((), ANY)}).evaluate(values) == "called"


def test_dunder_keys_are_only_keys() -> None:
    assert value_of("m.__class__ + m['__dict__']", m={"__class__": "a", "__dict__": "b"}) == "ab"


def test_format_tricks_are_only_text() -> None:
    assert value_of("s + '%s' + '{x}'", s="{0.__class__.__mro__}") == "{0.__class__.__mro__}%s{x}"


def test_generated_code_reads_no_attribute_but_get(monkeypatch: pytest.MonkeyPatch) -> None:
    emitted: list[ast.stmt] = []
    load = emission.load

    def spy(definition: ast.stmt, *rest: Any) -> Any:
        emitted.append(definition)
        return load(definition, *rest)

    monkeypatch.setattr(emission, "load", spy)
    for source in (
        'all(a, {.b == "x"}) && m.k[0].z?.y in [1, 2] ? f(1).g(2)[1:] : {q: 1 .. 2}',
        'let v = reduce(a, #acc + #, ""); sortBy(a, .x) | map(#index) | groupBy(#) ?? now()',
    ):
        expr.compile(source)
    nodes = [node for statement in emitted for node in ast.walk(statement)]
    assert {node.attr for node in nodes if isinstance(node, ast.Attribute)} <= {"get"}
    assert not [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom, ast.Global, ast.Lambda))]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    assert not names & {"a", "b", "m", "f", "v", "q"}


def test_generated_code_has_no_builtins() -> None:
    evaluate: Any = expr.compile("1 + x").evaluate
    assert evaluate.__globals__["__builtins__"] == {}


NEST = "let a = [1, 1]; " + "".join(f"let {chr(98 + i)} = [{chr(97 + i)}, {chr(97 + i)}]; " for i in range(22))


@pytest.mark.parametrize(
    "source",
    [
        "map(1..1000, map(1..1000, map(1..1000, #)))",
        "all(1..99999, any(1..99999, # < 0))",
        "sum(1..999999, # ** 2)",
        "1..100000000",
        "map(1..999, 1..9999)",
        'repeat("a", 2000000)',
        'repeat(repeat("a", 9999), 9999)',
        'reduce(1..99999, #acc + #acc, "a")',
        "reduce(1..99999, concat(#acc, #acc), [1])",
        'let s = repeat("a", 900000); all(1..99999, s contains "b")',
        'let s = repeat("a", 900000); all(1..99999, s + "" == s)',
        'let s = repeat("a", 900000); replace(s, "a", s)',
        'let s = repeat("a", 900000); join(map(1..9, s))',
        'repeat("a", 999999) matches "(a*)*b"',
        'let s = repeat("a", 900000); none(map(1..999, s), # contains "b")',
        'let s = repeat("a", 400000); let t = repeat("a", 400000); all(1..9999, s == t)',
        'let s = repeat("a", 400000); let t = repeat("a", 400000); all(1..9999, s + t == t + s)',
        f"{NEST}string(w)",
        f"{NEST}toJSON(w)",
        f"{NEST}w == map(w, #)",
        f"{NEST}flatten(w)",
        f"{NEST}max(w)",
        "uniq(map(1..9999, [#]))",
        'map(1..99999, date("2024-01-01"))',
        'map(1..99999, toJSON({"a": #}))',
    ],
)
def test_hostile_expressions_run_out_of_budget(source: str) -> None:
    with pytest.raises(ExprBudgetError, match="budget exceeded"):
        value_of(source)


@pytest.mark.parametrize(
    "source",
    [
        "(" * 5_000 + "1" + ")" * 5_000,
        "[" * 5_000 + "]" * 5_000,
        "-" * 5_000 + "1",
        "not " * 5_000 + "true",
        "a" + ".a" * 5_000,
        "a" + "?.a" * 3_000,
        "x" + "[0]" * 3_000,
        "1 ? " * 2_000 + "1" + " : 1" * 2_000,
        " && ".join(["x"] * 30_000),
        "map(1..2, " * 500 + "1" + ")" * 500,
        "9" * 5_000,
        '"' + "\\" * 4_999,
        '"x" matches "' + "(" * 5_000 + '"',
        '"x" matches "' + "a?" * 20_000 + '"',
        "\0",
        "let " * 1_000,
        "{" * 1_000,
    ],
)
def test_hostile_sources_are_errors(source: str) -> None:
    with pytest.raises(ExprError):
        value_of(source, x=True)


def test_limits_can_be_set() -> None:
    small = expr.Options(nodes=10, nesting=3, memory=100, work=50)
    with pytest.raises(ExprError, match="maximum allowed nodes"):
        expr.compile("1 + 1 + 1 + 1 + 1 + 1", options=small)
    with pytest.raises(ExprError, match="nested too deeply"):
        expr.compile("((((1))))", options=small)
    with pytest.raises(ExprBudgetError, match="memory budget exceeded"):
        expr.compile("1..100", options=small).evaluate({})
    with pytest.raises(ExprBudgetError, match="iteration budget exceeded"):
        expr.compile("all(x, true)", options=small).evaluate({"x": [1] * 60})
    large = expr.Options(work=10_000_000, memory=10_000_000)
    assert expr.compile("count(1..200000, # > 0)", options=large).evaluate({}) == 200_000


def test_disabled_functions_do_not_exist() -> None:
    with pytest.raises(ExprError):
        expr.compile("len([1])", {}, options=expr.Options(disabled=frozenset({"len"})))


def cyclic() -> list[Any]:
    items: list[Any] = [1]
    items.append(items)
    return items


def deep(levels: int) -> list[Any]:
    items: list[Any] = []
    for _ in range(levels):
        items = [items]
    return items


@pytest.mark.parametrize("source", ["string(x)", "toJSON(x)", "x == y", "flatten(x)", "max(x)", "uniq([x, y])"])
@pytest.mark.parametrize("make", [cyclic, lambda: deep(50_000)])
def test_cyclic_and_deep_data_do_not_crash(source: str, make: Any) -> None:
    program = expr.compile(source)
    for evaluate in (program.evaluate, program.interpret):
        with pytest.raises(ExprRuntimeError, match=r"depth exceeded|budget exceeded"):
            evaluate({"x": make(), "y": make()})


@pytest.mark.parametrize(
    "source", ["x + 1", "x * x", "x > 1", "x == 1.5", "-x", "x / 2", "x ** 2", "string(x)", "1..x"]
)
def test_huge_integers_do_not_crash(source: str) -> None:
    with suppress(ExprError):
        value_of(source, x=10**5_000)
