"""The functions of the language, one row for each rule worth knowing; both evaluators must agree."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hyperfleet import expr
from hyperfleet.errors import ExprRuntimeError
from hyperfleet.expr.runtime.functions import FUNCTIONS
from hyperfleet.expr.signatures import BUILTINS, PREDICATES

JSON = """[
  1,
  2,
  1e+21,
  "\\u003cé\\u003e",
  {
    "a": {},
    "b": null
  }
]"""


def both(source: str, values: dict[str, Any] | None = None) -> Any:
    """Return the value of an expression, which both evaluators must give."""
    program = expr.compile(source)
    found = program.evaluate(values or {})
    interpreted = program.interpret(values or {})
    assert repr(found) == repr(interpreted)
    return found


def test_every_builtin_exists_at_run_time() -> None:
    assert set(FUNCTIONS) | set(PREDICATES) | {"now"} == set(BUILTINS)
    assert len(BUILTINS) == 71


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ('trim("  a\u00a0 ")', "a"),
        ('trim("xxaxx", "x")', "a"),
        ('trim("a", "")', "a"),
        ('trimPrefix("aab", "a")', "ab"),
        ('trimSuffix("a ")', "a"),
        ('upper("straße")', "STRAßE"),
        ('lower("ΑΣ")', "ας"[0] + "σ"),
        ('split("a,b,c", ",", 2)', ["a", "b,c"]),
        ('split("héy", "")', ["h", "é", "y"]),
        ('split("a", ",", 0) ?? "nil"', "nil"),
        ('splitAfter("a,b", ",")', ["a,", "b"]),
        ('replace("aaa", "a", "b", 2)', "bba"),
        ('replace("ab", "", "-")', "-a-b-"),
        ('repeat("ab", 3)', "ababab"),
        ('join(["a", "b"], "-")', "a-b"),
        ('indexOf("héllo", "l")', 3),
        ('lastIndexOf("abcabc", "b")', 4),
        ('hasPrefix("abc", "ab") && hasSuffix("abc", "bc")', True),
        ('len("héllo")', 5),
        ('"héllo"[1:3]', "é"),
        ('"abc"[-2:]', "bc"),
        ('"abc"[:99]', "abc"),
        ('"foobar" matches "o+b"', True),
        ('{}.a contains "a"', False),
    ],
)
def test_strings(source: str, wanted: Any) -> None:
    assert both(source) == wanted


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("max(1, [2, [3.5]])", 3.5),
        ("min([])", None),
        ("mean([1, 2, 6])", 3.0),
        ("median(1, 5, 2, 4)", 3.0),
        ("abs(-5)", 5),
        ("ceil(1.2) + floor(-1.2) + round(2.5) + round(-0.5)", 2.0 - 2.0 + 3.0 - 1.0),
        ("floor(1/0)", math.inf),
        ("bitand(12, 10) + bitor(12, 10) + bitxor(12, 10) + bitnand(12, 10)", 8 + 14 + 6 + 4),
        ("bitshl(1, 63)", -(2**63)),
        ("bitshl(1, 64)", 0),
        ("bitushr(-1, 60)", 15),
        ("bitshr(-8, 1)", -4),
        ("bitnot(0)", -1),
    ],
)
def test_numbers(source: str, wanted: Any) -> None:
    assert both(source) == wanted


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("first([]) ?? last([1, 2])", 2),
        ("take([1, 2, 3], 5)", [1, 2, 3]),
        ("reverse(1..3)", [3, 2, 1]),
        ('uniq([1, 1.0, true, 1, "1", [1], [1]])', [1, True, "1", [1]]),
        ("concat([1], [], [2])", [1, 2]),
        ("concat([]) == nil", True),
        ("flatten([1, [2, [3]]])", [1, 2, 3]),
        ('sort(["b", "a"], "desc")', ["b", "a"]),
        ("sort([2, 1.5, 1])", [1, 1.5, 2]),
        ("keys({b: 1, a: 2})", ["b", "a"]),
        ("values({b: 1, a: 2})", [1, 2]),
        ("toPairs({a: 1})", [["a", 1]]),
        ('fromPairs([["a", 1], [2, 3]])', {"a": 1, 2: 3}),
        ("{a: 1, a: 2}", {"a": 1}),
        ('get({a: 1}, "b")', None),
        ("get([1, 2], -1)", 2),
        ("1..0", []),
    ],
)
def test_collections(source: str, wanted: Any) -> None:
    assert both(source) == wanted


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("all(1..3, # > 0)", True),
        ("none(1..3, # > 3)", True),
        ("any([], true)", False),
        ("one(1..3, # == 2)", True),
        ("filter(1..6, # % 2 == 0)", [2, 4, 6]),
        ("map(1..3, # * #index)", [0, 2, 6]),
        ("find(1..3, # > 1)", 2),
        ("find(1..3, # > 9)", None),
        ("findIndex(1..3, # > 1)", 1),
        ("findLast(1..3, # < 3)", 2),
        ("findLastIndex(1..3, # < 3)", 1),
        ("count([true, false, true])", 2),
        ("count(1..9, # > 2) >= 3", True),
        ("sum(1..4, # * #)", 30),
        ("sum([0.5, 1.5])", 2.0),
        ("groupBy(1..4, # % 2 == 0)", {False: [1, 3], True: [2, 4]}),
        ('sortBy([{n: 2}, {n: 1}], .n, "desc") | map(.n)', [2, 1]),
        ("reduce(1..4, #acc + #)", 10),
        ("reduce(1..4, #acc + # + #index, 100)", 116),
        ("filter(1..9, # > 3)[0]", 4),
        ("len(filter(1..9, # > 3))", 6),
        ("map(filter(1..5, # > 2), # + 1)", [4, 5, 6]),
        ("map(1..2, map(1..2, # * 10))", [[10, 20], [10, 20]]),
        ("map(1..2, let x = #; map(1..2, # + x))", [[2, 3], [3, 4]]),
    ],
)
def test_loops(source: str, wanted: Any) -> None:
    assert both(source) == wanted


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ('int("-12") + int(3.9)', -9),
        ('float("1_000") + float("0x1p4")', 1016.0),
        ("string([1, {a: nil}])", "[1 map[a:<nil>]]"),
        ('type(1) + type(1.5) + type("") + type(nil) + type([]) + type({})', "intfloatstringnilarraymap"),
        ('type(duration("1s"))', "time.Duration"),
        ('toJSON([1, 2.0, 1e21, "<é>", {b: nil, a: {}}])', JSON),
        ('fromJSON("{\\"a\\": [1, true, null]}")', {"a": [1.0, True, None]}),
        ('fromBase64(toBase64("héllo"))', "héllo"),
    ],
)
def test_conversions(source: str, wanted: Any) -> None:
    assert both(source) == wanted


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('int("1x")', "invalid operation: int(1x)"),
        ('float("")', "invalid operation: float()"),
        ('fromJSON("[1,")', "unexpected end of JSON input"),
        ('fromJSON("{\\"a\\" 1}")', "invalid character '1' after object key"),
        ('fromJSON("tru")', "invalid character ' ' in literal true (expecting 'e')"),
        ('fromBase64("YQ=")', "illegal base64 data at input byte 3"),
        ("toJSON(1/0)", "json: unsupported value: +Inf"),
        ('repeat("a", -1)', "invalid argument for repeat (expected positive integer, got -1)"),
        ('sort([1, "a"])', "invalid operation: string < int"),
        ('sort([1], "up")', "invalid order up, expected asc or desc"),
        ("fromPairs([[1]])", "invalid pair length [1]"),
        ("max([1, nil])", "invalid argument for max (type <nil>)"),
        ("join([1])", "interface conversion: interface {} is int, not string"),
        ("reduce([], #)", "reduce of empty array with no initial value"),
        ("filter(1..3, # > 5)[0]", "reflect: slice index out of range"),
        ("bitshl(1, -1)", "invalid operation: negative shift count -1 (type int)"),
        ("take([1], -1)", "reflect.Value.Slice: slice index out of bounds"),
        ("groupBy([[1]], #)", "hash of unhashable type: []interface {}"),
        ("findIndex([1], # > 5) == 0", "interface conversion: interface {} is nil, not int"),
    ],
)
def test_failures_say_what_the_original_says(source: str, message: str) -> None:
    program = expr.compile(source)
    for evaluate in (program.evaluate, program.interpret):
        with pytest.raises(ExprRuntimeError) as raised:
            evaluate({})
        assert raised.value.message == message
