"""What the front door promises of values: nothing internal comes out, nothing is shared, no host object is asked."""

from __future__ import annotations

import ast
import contextlib
import math
from collections import defaultdict
from typing import Any

import pytest

from hyperfleet import expr
from hyperfleet.expr import ANY, BOOL, FLOAT, INT, STRING, Array, ExprOptions, Func, Map, Nullable, Struct
from hyperfleet.expr.compiling import emission as py
from hyperfleet.expr.runtime.values import AnyMap, NilSlice

PERSON = Struct("Person", {"name": STRING, "ready": BOOL, "score": Nullable(FLOAT)})


def evaluate(source: str, values: dict[str, Any] | None = None, schema: expr.Schema | None = None) -> Any:
    return expr.compile(source, schema).evaluate(values or {})


def kinds(values: Any) -> list[tuple[type, Any]]:
    return [(type(value), value) for value in values]


THREE = [(int, 1), (bool, True), (float, 1.0)]


@pytest.mark.parametrize(
    "source", ["keys(groupBy([1, true, 1.0], #))", "map(toPairs(groupBy([1, true, 1.0], #)), #[0])"]
)
def test_keys_that_python_takes_for_one_come_out_as_they_went_in(source: str) -> None:
    assert kinds(evaluate(source)) == THREE


def test_a_map_of_any_keys_is_read_by_its_keys() -> None:
    groups = evaluate("groupBy([1, true, 1.0, 1], #)")
    assert kinds(groups) == kinds(groups.keys()) == kinds(key for key, _ in groups.items()) == THREE
    assert (groups[1], groups[True], groups[1.0], groups.get(2)) == ([1, 1], [True], [1.0], None)
    assert repr(groups) == "{1: [1, 1], True: [True], 1.0: [1.0]}"


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("string(groupBy([1, true, 1.0], #))", "map[true:[true] 1:[1] 1:[1]]"),
        ("groupBy([1, true], #) == groupBy([true, 1], #)", True),
        ("fromPairs([[1, 1], [true, 1]]) == fromPairs([[1, 1], [1.0, 1]])", False),
        ("let g = groupBy([1, true], #); true in g and not (1.0 in g)", True),
        ("toJSON(map(toPairs(groupBy([true, 1], #)), #[0]))", "[\n  true,\n  1\n]"),
        ("ceil(-0.5)", -0.0),
        ("take(concat([]), 1) == nil", True),
        ("concat([])[0:1] == nil", True),
        ("[1][0:0] == nil", False),
        ("(-8) ** 3", -512.0),
        ("0 ** -1", math.inf),
        ("(-10.0) ** 1001", -math.inf),
        ("4 ** -0.5", 0.5),
        ('["héllo", 1][0][1] + ["abc", 1][0][-1]', 0xC3 + ord("c")),
    ],
)
def test_values(source: str, wanted: Any) -> None:
    found = evaluate(source)
    assert (type(found), repr(found)) == (type(wanted), repr(wanted))


def test_negative_powers_without_a_value_are_not_numbers() -> None:
    assert math.isnan(evaluate("(-8) ** 0.3"))


@pytest.mark.parametrize("of", [Array(INT), Map(STRING, INT), PERSON])
def test_what_a_missing_entry_reads_as_is_new_each_time(of: expr.Type) -> None:
    program = expr.compile("m.q", {"m": Map(STRING, of)})
    for evaluated in (program.evaluate, program.interpret):
        assert evaluated({"m": {}}) is not evaluated({"m": {}})


@pytest.mark.parametrize("source", ["half(max(5..1))", "twice(min([]))", "greet(first([]))"])
def test_nil_is_no_number_and_no_text_to_a_function(source: str) -> None:
    schema = {"half": Func((FLOAT,), FLOAT), "twice": Func((INT,), INT), "greet": Func((STRING,), STRING)}
    program = expr.compile(source, schema)
    for evaluated in (program.evaluate, program.interpret):
        with pytest.raises(expr.ExprRuntimeError, match=r"interface conversion: interface \{\} is nil, not "):
            evaluated(dict.fromkeys(schema, lambda value: value))


class Nosy:
    """An object that takes note of whoever asks it anything."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __eq__(self, other: object) -> bool:
        self.asked.append("==")
        return True

    def __hash__(self) -> int:
        return 1

    def get(self, *_: object) -> str:
        self.asked.append("get")
        return "got"


@pytest.mark.parametrize("declared", [None, ANY, Map(STRING, STRING), Map(STRING, Array(INT)), Array(INT)])
@pytest.mark.parametrize("source", ["x == x", "x == y", "[x] == [y]", "x in [y]", "x.a", 'x["a"]', "uniq([x, y])"])
def test_the_objects_of_a_host_are_not_asked(source: str, declared: expr.Type | None) -> None:
    values = {"x": Nosy(), "y": Nosy()}
    schema = None if declared is None else {"x": declared, "y": declared}
    with contextlib.suppress(expr.ExprError):
        expr.compile(source, schema).evaluate(values)
    assert [nosy.asked for nosy in values.values()] == [[], []]


def test_reading_an_open_map_does_not_fill_it() -> None:
    made: defaultdict[str, list[int]] = defaultdict(list)
    for schema in (None, {"m": ANY}, {"m": Map(STRING, Array(INT))}, {"m": Map(STRING, INT)}):
        evaluate('[m.zz, m["zz"], m?.zz, get(m, "zz"), "zz" in m]', {"m": made}, schema)
    assert made == {}


def test_generated_code_reads_no_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    emitted: list[ast.AST] = []
    load = py.load

    def load_and_keep(definition: ast.stmt, *rest: Any) -> Any:
        emitted.append(definition)
        return load(definition, *rest)

    monkeypatch.setattr(py, "load", load_and_keep)
    schema: expr.Schema = {"m": Map(STRING, INT), "p": PERSON, "xs": Array(PERSON), "o": ANY}
    expr.compile('m.a + m["b"] > 1 and p.name == "" and all(xs, .ready) and o.a.b.c?.d[1:2] == nil', schema)
    assert not [node for node in ast.walk(emitted[0]) if isinstance(node, ast.Attribute)]


SHARED = 'let s = repeat("a", 300000); '


@pytest.mark.parametrize(
    "source",
    [
        SHARED + "toJSON(map(1..2000, s))",
        SHARED + "string(map(1..2000, s))",
        SHARED + "string(fromPairs(map(1..2000, [string(#), s])))",
        'let s = [repeat("é", 300000), 1][0]; all(1..20000, s[#] != 1)',
        'let s = [repeat("é", 300000), 1][0]; all(1..20000, get(s, #) != 1)',
    ],
)
def test_texts_are_paid_for_before_they_are_made(source: str) -> None:
    with pytest.raises(expr.ExprBudgetError):
        evaluate(source)


def test_a_byte_of_plain_text_costs_nothing() -> None:
    assert evaluate('let s = [repeat("a", 400000), 1][0]; all(1..20000, s[#] != 1)') is True


# The checked door

SCHEMA: expr.Schema = {"nodes": Array(PERSON), "limit": INT, "labels": Map(STRING, STRING), "f": Func((), INT)}


def test_values_that_fit_come_back_as_plain_data() -> None:
    node = defaultdict(list, {"name": "n", "ready": True, "score": 1, "more": 2})
    found = expr.conform({"nodes": (node,), "limit": 3, "labels": {}, "f": len, "other": 1}, SCHEMA)
    assert found == {"nodes": [{"name": "n", "ready": True, "score": 1.0}], "limit": 3, "labels": {}, "f": len}
    assert (type(found["nodes"][0]), type(found["nodes"][0]["score"])) == (dict, float)


def test_everything_that_does_not_fit_is_listed_with_its_path() -> None:
    nodes = [{"name": "n", "ready": "false"}, {"ready": None, "score": "1"}, 5]
    with pytest.raises(expr.ExprRuntimeError) as caught:
        expr.conform({"nodes": nodes, "limit": 2**64, "labels": {"a": 1, 2: "b"}}, SCHEMA)
    assert [str(error) for error in (caught.value, *caught.value.others)] == [
        "nodes[0].ready: bool is declared, but this is string",
        "nodes[1].name: is missing",
        "nodes[1].ready: bool is declared, but this is nil",
        "nodes[1].score: float64 is declared, but this is string",
        "nodes[2]: Person is declared, but this is int",
        "limit: int is declared, but this is an integer of more than 64 bits",
        "labels['a']: string is declared, but this is int",
        "labels: key 2: string is declared, but this is int",
        "f: is missing",
    ]


def test_the_list_of_what_does_not_fit_ends() -> None:
    with pytest.raises(expr.ExprRuntimeError) as caught:
        expr.conform({"xs": ["a"] * 1000}, {"xs": Array(INT)})
    assert len(caught.value.others) == 99


# Trees, options, results


def test_a_hidden_builtin_is_written_so_that_it_is_found_again() -> None:
    schema = {"len": Func((ANY,), INT)}
    tree = expr.parse("::len(x) + len(x)", schema)
    assert expr.format(tree, schema) == "::len(x) + len(x)"
    assert expr.parse(expr.format(tree, schema), schema) == tree


def test_a_long_row_of_pipes_is_refused_in_words() -> None:
    with pytest.raises(expr.ExprSyntaxError, match="nested too deeply"):
        expr.format(expr.parse("a" + "|f()" * 900))


@pytest.mark.parametrize("name", ["map", "all", "reduce", "len"])
def test_a_disabled_builtin_does_not_exist(name: str) -> None:
    with pytest.raises(expr.ExprTypeError, match=f"unknown name {name}"):
        expr.compile(f"{name}([1], true)", {}, options=ExprOptions(disabled=frozenset({name})))


def test_lists_and_maps_can_be_expected() -> None:
    assert expr.compile("[1]", expect=list).evaluate({}) == [1]
    assert expr.compile("{a: 1}", expect=dict).evaluate({}) == {"a": 1}
    with pytest.raises(expr.ExprTypeError):
        expr.compile("1", expect=list)
    with pytest.raises(TypeError, match="no expression has a result of"):
        expr.compile("1", expect=set)


def test_chained_comparisons_keep_their_places() -> None:
    source = "(1) < (f(x)) <= (3)"
    tree = expr.parse(source)
    assert [source[node.start : node.end] for node in (tree, *tree.children())] == [
        source,
        "(1) < (f(x))",
        "(f(x)) <= (3)",
    ]


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (math.inf, '"+Inf"'),
        (NilSlice(), "null"),
        ({1: "a", None: [b"x"]}, '{"1": "a", "<nil>": ["eA=="]}'),
        ("a\ud800b\udc80", '"a\\ufffdb\\ufffd"'),
        (object(), '"<value>"'),
        (AnyMap(), "{}"),
        (1e21, "1e+21"),
    ],
)
def test_every_value_can_be_written(value: object, line: str) -> None:
    assert expr.to_json(value) == line


def test_a_value_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(expr.ExprRuntimeError, match="nested too deeply"):
        expr.to_json(endless)
