"""Generated code: what it does with types, order of evaluation, positions of errors, and values that break promises."""

from __future__ import annotations

from typing import Any

import pytest

from hyperfleet import expr
from hyperfleet.errors import ExprError, ExprRuntimeError, ExprTypeError
from hyperfleet.expr.types import ANY, BOOL, FLOAT, INT, STRING, Array, Func, Map, Method, Schema, Struct

ADAPTER = Struct("main.Adapter", {"name": STRING, "available": STRING, "generation": INT})
SCHEMA: Schema = {
    "adapters": Array(ADAPTER),
    "by_name": Map(STRING, ADAPTER),
    "n": INT,
    "f": FLOAT,
    "ok": BOOL,
    "open": ANY,
    "double": Func((INT,), INT),
    "join_all": Func((STRING, ANY), STRING, variadic=True),
}


def adapter(name: str, available: str = "True", generation: int = 1) -> dict[str, Any]:
    return {"name": name, "available": available, "generation": generation}


def environment(**changes: Any) -> dict[str, Any]:
    adapters = [adapter("dns"), adapter("validation", "False", 2)]
    values: dict[str, Any] = {
        "adapters": adapters,
        "by_name": {each["name"]: each for each in adapters},
        "n": 3,
        "f": 0.5,
        "ok": True,
        "open": None,
        "double": lambda number: number * 2,
        "join_all": lambda glue, *parts: glue.join(map(str, parts)),
    }
    return values | changes


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ('all(adapters, {.available == "True"})', False),
        ('any(adapters, {.available == "False" && .generation == n - 1})', True),
        ('len(filter(adapters, {.available == "True"})) >= len(adapters) * 0.5', True),
        ('by_name["dns"].generation == n', False),
        ('by_name["nope"].available == "True"', False),
        ('adapters[0].name in ["dns", "x"]', True),
        ('"dns" in by_name', True),
        ("n in 1..5 and not (n in [1, 2])", True),
        ("double(n) + double(1)", 8),
        ('join_all("-", n, nil, ok)', "3-None-True"),
        ("ok ? n : f", 3),
        ("open ?? n", 3),
        ("open?.x?.y", None),
        ("n < 5 < 10", True),
        ("n * f + n / 2", 3.0),
        ('adapters | map(.name) | join(",")', "dns,validation"),
        ("let x = n; let y = x + 1; x * y", 12),
        ("1; 2; n", 3),
        ('{"a": n, (adapters[0].name): f}', {"a": 3, "dns": 0.5}),
        ("$env.n + $env['n']", 6),
        ("$env.double(2)", 4),
        ("type($env.double)", "func"),
        ("type(adapters[0])", "main.Adapter"),
        ("string(adapters[0])", "{dns True 1}"),
    ],
)
def test_values(source: str, wanted: Any) -> None:
    program = expr.compile(source, SCHEMA)
    assert program.evaluate(environment()) == wanted
    assert program.interpret(environment()) == wanted


def test_the_result_has_the_expected_type() -> None:
    assert expr.compile("open", SCHEMA, expect=bool).evaluate(environment()) is False
    assert expr.compile("open", SCHEMA, expect=int).evaluate(environment(open=2.9)) == 2
    found = expr.compile("n", SCHEMA, expect=float).evaluate(environment())
    assert (found, type(found)) == (3.0, float)
    assert expr.compile("n > 1", SCHEMA).result_type == BOOL
    with pytest.raises(ExprTypeError, match="expected bool, but got int"):
        expr.compile("n", SCHEMA, expect=bool)
    with pytest.raises(ExprRuntimeError, match=r"invalid operation: bool\(string\) \(1:1\)"):
        expr.compile("open", SCHEMA, expect=bool).evaluate(environment(open="x"))


def test_an_open_type_may_be_refused() -> None:
    with pytest.raises(ExprTypeError):
        expr.compile("open", SCHEMA, expect=bool, options=expr.ExprOptions(allow_any=False))


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("adapters[9].name", "(1:9)"),
        ("ok && adapters[9].name == ''", "(1:15)"),
        ("map(adapters, open.x)", "(1:20)"),
        ("filter(adapters, {let a = open; a.x})", "(1:35)"),
        ("n +\n  open.x", "(2:8)"),
        ("'héé' + open.x", "(1:14)"),
        ("[1, 2, open.x]", "(1:13)"),
        ("ok ? open.x : 1", "(1:11)"),
        ("reduce(adapters, open.x)", "(1:23)"),
    ],
)
def test_errors_have_a_place(source: str, place: str) -> None:
    program = expr.compile(source, SCHEMA)
    for evaluate in (program.evaluate, program.interpret):
        with pytest.raises(ExprRuntimeError) as raised:
            evaluate(environment())
        assert str(raised.value).splitlines()[0].endswith(place)


def test_places_far_to_the_right() -> None:
    source = "'" + "x" * 70_000 + "' == open.y"
    with pytest.raises(ExprRuntimeError) as raised:
        expr.compile(source, SCHEMA).evaluate(environment())
    assert raised.value.column == len(source)


def test_operands_are_evaluated_from_left_to_right_also_when_one_needs_a_loop() -> None:
    seen: list[int] = []

    def note(number: int) -> int:
        seen.append(number)
        return number

    program = expr.compile("[f(1), sum(map(1..2, f(# + 1))), f(4)]", {"f": Func((INT,), INT)})
    assert program.evaluate({"f": note}) == [1, 5, 4]
    assert seen == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "source",
    [
        "false && f(1) > 0",
        "ok || all(1..2, f(#) > 0)",
        "any(1..2, ok) ? 1 : f(1)",
        "1 ?? f(1)",
        "no?.a(sum(1..2, f(#)))",
        "not ok && any(1..2, f(#) > 0) && any(1..2, f(#) > 1)",
    ],
)
def test_what_is_not_needed_is_not_evaluated(source: str) -> None:
    def fail(_: int) -> int:
        raise AssertionError("not needed")

    schema: Schema = {"f": Func((INT,), INT), "ok": BOOL, "no": ANY}
    program = expr.compile(source, schema)
    if "no?." in source:  # arguments come before what is called, as in the original
        with pytest.raises(ExprRuntimeError, match="not needed"):
            program.evaluate({"f": fail, "ok": True, "no": None})
        return
    program.evaluate({"f": fail, "ok": True, "no": None})


def test_values_that_break_the_promise_of_their_type() -> None:
    program = expr.compile('all(adapters, {.available == "True"})', SCHEMA)
    with pytest.raises(ExprRuntimeError, match=r"cannot fetch available from main\.Adapter"):
        program.evaluate(environment(adapters=[{"name": "x"}]))
    with pytest.raises(ExprRuntimeError, match="Len on zero Value"):
        program.evaluate(environment(adapters=None))
    with pytest.raises(ExprRuntimeError, match="invalid operation: string - int"):
        expr.compile("n - 1", SCHEMA).evaluate(environment(n="x"))


def test_a_name_that_is_declared_but_not_given_is_nil() -> None:
    assert expr.compile("open ?? 7", SCHEMA).evaluate({}) == 7


def test_what_a_function_raises_is_an_error_of_the_expression() -> None:
    def fail(_: int) -> int:
        raise LookupError("nothing there")

    with pytest.raises(ExprRuntimeError, match=r"nothing there \(1:5\)") as raised:
        expr.compile("1 + double(2)", SCHEMA).evaluate(environment(double=fail))
    assert isinstance(raised.value.__cause__, LookupError)


def test_methods_of_structs() -> None:
    greet = Method(Func((STRING,), STRING), lambda each, word: f"{word} {each['name']}")
    person = Struct("main.Person", {"name": STRING}, {"Greet": greet})
    program = expr.compile('map(people, .Greet("hi"))', {"people": Array(person)})
    assert program.evaluate({"people": [{"name": "Ann"}]}) == ["hi Ann"]


def test_deep_and_long_expressions() -> None:
    terms = " && ".join(["ok"] * 4_000)
    assert expr.compile(terms, SCHEMA).evaluate(environment()) is True
    assert expr.compile("open" + " + 1" * 4_000, SCHEMA).evaluate(environment(open=0)) == 4_000
    nested = "#"
    for _ in range(30):
        nested = f"sum(1..1, {nested})"
    assert expr.compile(nested.replace("#", "1", 1)).evaluate({}) == 1
    with pytest.raises(ExprError):
        expr.compile("(" * 2_000 + "1" + ")" * 2_000)


def test_a_program_keeps_its_source_and_tree() -> None:
    program = expr.compile("n + 1", SCHEMA)
    assert program.source == "n + 1"
    assert program.tree == expr.parse("n+1")
    assert expr.format(program.tree) == "n + 1"


def test_the_predicate_of_sort_by_fails_before_the_element_is_fetched() -> None:
    program = expr.compile("sortBy(open, names.x.name)")
    for evaluate in (program.evaluate, program.interpret):
        with pytest.raises(ExprRuntimeError, match="cannot fetch name from <nil>"):
            evaluate({"open": {"a": 1}, "names": {}})
