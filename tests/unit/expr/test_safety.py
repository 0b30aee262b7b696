"""Nothing that an expression or its data says can crash, hang, or reach a Python object."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import Any

import pytest

from hyperfleet import expr
from hyperfleet.errors import ExprBudgetError, ExprError, ExprRuntimeError
from hyperfleet.expr.compiling import emission
from hyperfleet.expr.types import ANY, INT, STRING, Array, Func, Map


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
        'duration(repeat("1ns", 300000))',
        'date(repeat("x", 400000), repeat("x", 400000))',
        'date(repeat("x", 400000))',
        'timezone(repeat("a", 400000))',
        'date("2024-01-01").Format(repeat("2006", 100000))',
        'upper(repeat("é", 400000))',
        'let s = repeat("a", 400000); let t = repeat("a", 400000); all(1..20000, s <= t)',
        'all(1..2000, not ("x" matches (string(#) + "[a-z]{1,300}")))',
        'let s = repeat("a", 1000); all(1..5000, not (s matches "(a|b|ab)*c"))',
        "len(1..999999) + len(1..999998)",
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


BIG = "a" * 1_000_000


@pytest.mark.parametrize(
    "source",
    [
        'all(1..200, all(1..200, not (big contains "zz")))',
        'all(1..80, all(1..80, not (big matches "[xyz]+q$")))',
        "all(1..200, all(1..200, big == other))",
        "all(1..200, all(1..200, big <= other))",
        'big matches ".{1,500}"',
    ],
)
def test_large_data_is_paid_for_in_loops(source: str) -> None:
    program = expr.compile(source, {"big": STRING, "other": STRING})
    with pytest.raises(ExprBudgetError, match="iteration budget exceeded"):
        program.evaluate({"big": BIG, "other": "".join(["a"] * 1_000_000)})


def test_large_data_may_be_read_once() -> None:
    program = expr.compile('not (big contains "zz") and big matches "a$" and big == big', {"big": STRING})
    assert program.evaluate({"big": BIG}) is True


def emitted_nodes(monkeypatch: pytest.MonkeyPatch, source: str, schema: dict[str, Any] | None = None) -> int:
    """Return how many nodes of Python's syntax a source becomes."""
    emitted: list[ast.stmt] = []
    load = emission.load

    def spy(definition: ast.stmt, *rest: Any) -> Any:
        emitted.append(definition)
        return load(definition, *rest)

    monkeypatch.setattr(emission, "load", spy)
    expr.compile(source, schema)
    monkeypatch.setattr(emission, "load", load)
    return sum(1 for statement in emitted for _ in ast.walk(statement))


def nested_membership(levels: int) -> str:
    source = "x"
    for _ in range(levels):
        source = f"(({source} in 1..2) ? 1 : 2)"
    return f"{source} == 1"


def test_code_grows_no_faster_than_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [emitted_nodes(monkeypatch, nested_membership(levels), {"x": INT}) for levels in (10, 20, 40)]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


def test_a_range_evaluates_what_it_looks_for_once() -> None:
    calls: list[int] = []

    def next_number() -> int:
        calls.append(1)
        return 2

    assert expr.compile("f() in 1..3", {"f": Func((), INT)}).evaluate({"f": next_number}) is True
    assert calls == [1]


def scopes_of(function: Any) -> int:
    return 1 + sum(scopes_of(part) for part in function.co_consts if hasattr(part, "co_consts"))


def test_many_loops_are_not_as_many_scopes() -> None:
    program: Any = expr.compile(f"[{','.join(['map(a, #)'] * 500)}]")
    assert program.evaluate({"a": [1]}) == [[1]] * 500
    assert scopes_of(program.evaluate.__code__) < 40


def test_long_rows_of_declarations_and_summands_compile() -> None:
    lets = "".join(f"let a{place} = {f'a{place - 1} + 1' if place else 1};" for place in range(2_000))
    program = expr.compile(f"{lets} a1999")
    assert program.evaluate({}) == program.interpret({}) == 2_000
    assert expr.compile(f"sum([{','.join(['x'] * 2_000)}])").evaluate({"x": 2}) == 4_000


def test_patterns_of_one_expression_share_an_allowance() -> None:
    source = " || ".join(f'x matches "a{{1,{place % 900 + 1}}}b{place}"' for place in range(1_500))
    with pytest.raises(ExprError, match="expression too large"):
        expr.compile(source)
    joined = " || ".join(f'x matches ("a{{1,900}}" + "b{place}")' for place in range(500))
    with pytest.raises(ExprBudgetError):
        expr.compile(joined).evaluate({"x": "c"})
    with pytest.raises(ExprError, match="expression too large"):
        expr.compile(r'x matches "(\\pL|\\pN){1,100}"')


def test_a_pattern_put_together_of_constants_may_be_bad() -> None:
    program = expr.compile('x matches ("(" + "a")', {"x": STRING})
    with pytest.raises(ExprRuntimeError, match="missing closing"):
        program.evaluate({"x": "a"})


def test_the_price_of_a_pattern_does_not_depend_on_what_ran_before() -> None:
    source = 'all(1..900, not ("x" matches (p + "[a-z]{1,100}")))'
    outcomes = []
    for _ in range(2):
        with pytest.raises(ExprBudgetError) as error:
            expr.compile(source).evaluate({"p": "y"})
        outcomes.append(str(error.value))
    assert outcomes[0] == outcomes[1]


def test_limits_can_be_set() -> None:
    small = expr.ExprOptions(nodes=10, nesting=3, memory=100, work=50)
    with pytest.raises(ExprError, match="maximum allowed nodes"):
        expr.compile("1 + 1 + 1 + 1 + 1 + 1", options=small)
    with pytest.raises(ExprError, match="nested too deeply"):
        expr.compile("((((1))))", options=small)
    with pytest.raises(ExprBudgetError, match="memory budget exceeded"):
        expr.compile("1..100", options=small).evaluate({})
    with pytest.raises(ExprBudgetError, match="iteration budget exceeded"):
        expr.compile("all(x, true)", options=small).evaluate({"x": [1] * 60})
    large = expr.ExprOptions(work=10_000_000, memory=10_000_000)
    assert expr.compile("count(1..200000, # > 0)", options=large).evaluate({}) == 200_000


def test_disabled_functions_do_not_exist() -> None:
    with pytest.raises(ExprError):
        expr.compile("len([1])", {}, options=expr.ExprOptions(disabled=frozenset({"len"})))


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


# The plain evaluator is slower, so it may do less; what generated code has spent is gone.


def test_the_evaluator_pays_more_for_a_round() -> None:
    program = expr.compile("all(1..90000, # > 0)")
    assert program.evaluate({}) is True
    with pytest.raises(ExprBudgetError):
        program.interpret({})
    assert program.explain({}).error == "iteration budget exceeded"


def test_starting_over_pays_from_the_same_budget() -> None:
    program = expr.compile("count(1..12000, # > 0) == 12000 && n + 1 > 0", {"n": INT})
    assert program.evaluate({"n": 1}) is program.interpret({"n": 1}) is True
    with pytest.raises(ExprBudgetError):
        program.evaluate({"n": None})


def test_a_function_of_the_host_is_never_called_twice() -> None:
    calls: list[int] = []

    def count() -> int:
        calls.append(1)
        return 1

    program = expr.compile("f() + n", {"f": Func((), INT), "n": INT})
    with pytest.raises(ExprRuntimeError, match="unsupported value"):
        program.evaluate({"f": count, "n": "a"})
    assert calls == [1]


def test_an_explanation_is_shown_within_one_budget() -> None:
    nest = "let a = reduce(1..60, [#acc, #acc], []); "
    shown = expr.compile(nest + ";".join(["a"] * 200)).explain({}).render()
    assert shown.count("(too large to show)") > 100
    long = expr.compile(";".join(["x"] * 300)).explain({"x": list(range(100_000))}).render()
    assert "(too large to show)" not in long
    assert max(map(len, long.splitlines()[1:])) < 100


BAD = {"half": "a\ud800b", "map": {1: 2}, "huge": 10**5_000}


@pytest.mark.parametrize(
    "source",
    [
        "half",
        "half[0]",
        'half matches "a"',
        "toJSON(map)",
        "huge",
        "huge + 1",
        "huge / 2",
        "string(huge)",
    ],
)
def test_explaining_bad_data_does_not_crash(source: str) -> None:
    assert expr.compile(source).explain(BAD).render().startswith(source)


def test_trimming_many_equal_characters_is_trimming_one() -> None:
    assert value_of('trim(repeat("a", 400000), repeat("b", 400000) + "a")') == ""


def test_a_bad_duration_is_quoted_byte_by_byte() -> None:
    with pytest.raises(ExprRuntimeError) as error:
        value_of('duration("h\\u{e9}llo")')
    assert error.value.message == r'time: invalid duration "h\xc3\xa9llo"'


def test_half_a_character_is_no_pattern() -> None:
    with pytest.raises(ExprError, match="error parsing regexp: invalid UTF-8"):
        expr.compile('x matches "\ud800"')


def test_arguments_that_nobody_checked_are_counted() -> None:
    program = expr.compile("$env?.[first(i, zz)]", {"i": Array(INT)})
    for evaluate in (program.evaluate, program.interpret):
        with pytest.raises(ExprRuntimeError, match="too many arguments to call first"):
            evaluate({"i": [1]})


@pytest.mark.parametrize(
    ("expect", "good", "message"),
    [
        (str, "a", "expected string, but got int"),
        (Array(ANY), [1], "expected slice, but got int"),
        (Map(STRING, ANY), {"a": 1}, "expected map, but got int"),
    ],
)
def test_a_result_is_what_was_expected(expect: Any, good: Any, message: str) -> None:
    program = expr.compile("x", expect=expect)
    for evaluate in (program.evaluate, program.interpret):
        assert evaluate({"x": good}) == good
        with pytest.raises(ExprRuntimeError, match=message):
            evaluate({"x": 5})
        with pytest.raises(ExprRuntimeError, match="but got nil"):
            evaluate({"x": None})
