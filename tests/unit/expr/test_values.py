"""Numbers, equality, order and text of run-time values."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperfleet import expr
from hyperfleet.errors import ExprRuntimeError
from hyperfleet.expr.runtime.budget import open_budget
from hyperfleet.expr.runtime.text import show, show_float
from hyperfleet.expr.runtime.values import NilSlice, StructValue, adopt, equal, is_nil, zero
from hyperfleet.expr.types import ANY, INT, STRING, Array, Map, Struct


def value_of(source: str, **values: Any) -> Any:
    return expr.compile(source).evaluate(values)


@pytest.mark.parametrize(
    ("source", "wanted", "because"),
    [
        ("9223372036854775807 + 1", -(2**63), "int64 wraps around"),
        ("x + 1", -(2**63), "also when only run time knows"),
        ("-x - 2", 2**63 - 1, "in the other direction too"),
        ("x * 2", -2, "products wrap"),
        ("-7 % 3", -1, "the remainder has the sign of the dividend"),
        ("7 % -3", 1, "whatever the divisor's"),
        ("7 / 2", 3.5, "division gives a float"),
        ("6 / 2", 3.0, "always"),
        ("1 / 0", math.inf, "and never fails"),
        ("-1 / 0", -math.inf, "with the sign of the dividend"),
        ("2 ** 3", 8.0, "so do powers"),
        ("2 ** -1", 0.5, "negative ones too"),
        ("0.5 ** -0.5", 1.414213562373095, "the original divides by a root here, libm does not"),
        ("2 ** 3 ** 2", 512.0, "from right to left"),
        ("-2 ** 2", -4.0, "before the sign"),
        ("1 + 0.5", 1.5, "an int and a float give a float"),
    ],
)
def test_arithmetic(source: str, wanted: float, because: str) -> None:
    found = value_of(source, x=2**63 - 1)
    assert (found, type(found)) == (wanted, type(wanted)), because


@pytest.mark.parametrize(
    ("left", "right", "wanted"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (0, False, False),
        ("", None, False),
        (2**53 + 1, float(2**53), True),
        ([1, [2]], [1.0, [2.0]], True),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": 1}, {"a": 1}, True),
        ([], NilSlice(), True),
        (None, NilSlice(), True),
        (b"ab", [97, 98], True),
        (math.nan, math.nan, False),
        (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC), True),
    ],
)
def test_equality(left: Any, right: Any, wanted: bool) -> None:
    assert equal(left, right, open_budget()) is wanted
    assert equal(right, left, open_budget()) is wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, "<nil>"),
        (True, "true"),
        (100000.0, "100000"),
        (1234567.0, "1.234567e+06"),
        (1e21, "1e+21"),
        (0.00001, "1e-05"),
        (0.0001, "0.0001"),
        (-0.0, "-0"),
        (math.inf, "+Inf"),
        (math.nan, "NaN"),
        ([1, "a", None, [2.5]], "[1 a <nil> [2.5]]"),
        ({"b": 1, "a": None}, "map[a:<nil> b:1]"),
        (b"ab", "[97 98]"),
        (timedelta(hours=1, milliseconds=5), "1h0m0.005s"),
        (datetime(2023, 1, 2, tzinfo=UTC), "2023-01-02 00:00:00 +0000 UTC"),
        (StructValue(Struct("main.Foo", {"Bar": STRING, "Baz": INT}), {"Bar": "x", "Baz": 1}), "{x 1}"),
    ],
)
def test_text(value: Any, wanted: str) -> None:
    assert show(value, open_budget()) == wanted


def test_floats_are_written_with_the_fewest_digits() -> None:
    assert [show_float(number, largest=21, smallest=-7) for number in (0.1, 123456789.0, 1e20, 5e-7)] == [
        "0.1",
        "123456789",
        "100000000000000000000",
        "5e-07",
    ]


def test_zero_values() -> None:
    adapter = Struct("main.Adapter", {"name": STRING, "tags": Array(STRING)})
    found = zero(adapter)
    assert found == {"name": "", "tags": []}
    assert is_nil(found["tags"])
    assert is_nil(zero(Map(STRING, INT)))
    assert zero(ANY) is None


def test_a_missing_key_reads_as_the_zero_value() -> None:
    schema = {"m": Map(STRING, INT), "s": Map(STRING, Struct("main.Adapter", {"available": STRING}))}
    values: dict[str, Any] = {"m": {}, "s": {}}
    assert expr.compile('m["x"]', schema).evaluate(values) == 0
    assert expr.compile('s["x"].available', schema).evaluate(values) == ""
    assert expr.compile('s?.x?.available ?? "none"', schema).evaluate(values) == ""


def test_keys_that_python_confuses_are_told_apart() -> None:
    found = value_of('map([1, 1.0, true], get(groupBy([1, 1.0, true, "1", true], #), #))')
    assert found == [[1], [1.0], [True, True]]
    assert [type(group[0]) for group in found] == [int, float, bool]


def test_hosts_may_use_their_own_kinds_of_values() -> None:
    class Name(str):
        __slots__ = ()

    assert adopt((1, 2)) == [1, 2]
    assert value_of('x == "a" && t[0] == 1', x=Name("a"), t=(1, 2)) is True


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("x + 1", "invalid operation: string + int (1:3)"),
        ("x < 1", "invalid operation: string < int (1:3)"),
        ("-x", "invalid operation: - string (1:1)"),
        ("1 % y", "runtime error: integer divide by zero (1:3)"),
        ("1..x", "invalid operation: int(string) (1:2)"),
        ("x && true", "interface conversion: interface {} is string, not bool"),
        ("y.z", "cannot fetch z from int (1:3)"),
        ("nope.z", "cannot fetch z from <nil> (1:6)"),
        ("[1, 2][y + 5]", "index out of range: 5 (array length is 2) (1:7)"),
        ("y()", "invalid operation: cannot call non-function of type int (1:1)"),
        ("1 in x", 'operator "in" not defined on string (1:3)'),
    ],
)
def test_faults_say_what_the_original_says(source: str, text: str) -> None:
    program = expr.compile(source)
    if source == "x && true":  # folded away: the original does not look at x either
        assert program.evaluate({"x": "a"}) == "a"
        return
    with pytest.raises(ExprRuntimeError) as raised:
        program.evaluate({"x": "a", "y": 0})
    assert str(raised.value).splitlines()[0] == text
