"""Errors of expressions are of the language's own kind, short, and in its own words, whatever the source and values."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hyperfleet import expr
from hyperfleet.errors import ExprError, ExprRuntimeError
from hyperfleet.expr.signatures import BUILTINS, METHODS, PREDICATES
from hyperfleet.expr.types import ANY, BOOL, INT, STRING, TIME, Array, Func, Map, Nullable, Schema, Struct

LONGEST = 500

# What Python says when our code is given something that it does not expect.
PYTHONS_WORDS = re.compile(
    r"NoneType|object has no attribute|unsupported operand|argument of type|not subscriptable|not iterable|not callable"
    r"|not supported between|positional argument|unhashable type: '|object is not|must be str|must be real|has no len"
    r"|codec can't|list index|string index|string indices|indices must|could not convert|invalid literal|Traceback"
    r"|<class|<function|<lambda|<object|hyperfleet\.|maximum recursion|Exceeds the limit|can't be converted|KeyError"
    r"|'(?:str|int|float|dict|list|bool|bytes|tuple|Time|Duration|Zone|AnyMap|Function)'"
)

INNER = Struct("main.Inner", {"city": STRING, "zip": INT})
PERSON = Struct("main.Person", {"name": STRING, "age": INT, "home": INNER, "work": Nullable(INNER), "ok": BOOL})
SCHEMA: Schema = {
    "m": ANY,
    "at": TIME,
    "people": Array(PERSON),
    "by": Map(STRING, PERSON),
    "twice": Func((INT,), INT),
    "any": Func((ANY,), ANY),
    "text": STRING,
    "xs": Array(INT),
}
ANN = {"name": "ann", "age": 41, "home": {"city": "x", "zip": 1}, "work": None, "ok": True}
AT = datetime(2024, 2, 29, 13, 4, 5, tzinfo=UTC)
DYNAMIC: list[Any] = [None, True, 3, 0.5, "text", "é" * 400, b"\xff", [], [1, "a", None], {}, {"a": {"b": 1}}]
DYNAMIC += [AT, timedelta(hours=1), 2**70, "9" * 5_000, {1: 2}, "a\ud800", [[1], {"k": None}], float("nan")]
NAMES = ["a", "b", "zz", "list", "at"]
entries = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(DYNAMIC), max_size=5)


def values_of(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "m": found,
        "at": AT,
        "people": [ANN],
        "by": {"ann": ANN},
        "twice": lambda number: number * 2,
        "any": lambda value: value,
        "text": "héllo",
        "xs": [1, 2, 3],
    }


DATA = ["m", "m.a", "m.b", "m.zz", "m.list[0]", "m.a.b", "m?.zz?.q", 'm["at"]', "any(m.a)", "any(m)"]
KNOWN = ["at", "people", "people[0]", "by.ann", 'by["nobody"]', "twice(2)", "text", "xs", "nil", "1", '"s"', "0.5"]
MISSING = ["find(people, .age < 0)", "findLast(people, .age < 0)", "first(filter(people, .age < 0))", "people[0].work"]
MISSING += ["get(people, 7)", 'by["nobody"].home', "max([])", "first([])", "findIndex(xs, # > 9)"]
leaves = st.sampled_from([*DATA, *KNOWN, *MISSING])
FIELDS = ["name", "home", "home.city", "work.zip", "age", "zz", "Year()", "String()"]
TIME_METHODS = sorted(METHODS[TIME.name])
LOOPS = sorted(PREDICATES)
PLAIN = sorted(BUILTINS - PREDICATES.keys())
OPERATORS = ["+", "-", "*", "/", "%", "**", "==", "<", ">=", "&&", "||", "??", "in", "..", "contains", "matches"]


def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = st.sampled_from(PLAIN)
    return st.one_of(
        st.builds("({}) {} ({})".format, inner, st.sampled_from(OPERATORS), inner),
        st.builds("({}).{}".format, inner, st.sampled_from(FIELDS)),
        st.builds("({})[{}]".format, inner, inner),
        st.builds("({})[{}:]".format, inner, inner),
        st.builds("at.{}({})".format, st.sampled_from(TIME_METHODS), inner),
        st.builds("({}).{}({}, {})".format, inner, st.sampled_from(TIME_METHODS), inner, inner),
        st.builds("m.at.{}()".format, st.sampled_from(TIME_METHODS)),
        st.builds("{}({})".format, names, inner),
        st.builds("{}({}, {})".format, names, inner, inner),
        st.builds("{}({}, {}, {})".format, names, inner, inner, inner),
        st.builds("{}({}, {})".format, st.sampled_from(LOOPS), inner, inner),
        st.builds("{}({}, #.name == {})".format, st.sampled_from(LOOPS), inner, inner),
        st.builds("twice({})".format, inner),
        st.builds("any({})".format, inner),
        st.builds("(twice(1); {})".format, inner),
        st.builds("(let v = {}; v.{})".format, inner, st.sampled_from(FIELDS)),
        st.builds("-({})".format, inner),
        st.builds("({}) ? ({}) : ({})".format, inner, inner, inner),
        st.builds("{{(string({})): {}}}".format, inner, inner),
    )


programs = st.recursive(leaves, grow, max_leaves=6)


def check_error(error: ExprError) -> None:
    for each in (error, *error.others):
        assert len(str(each)) <= LONGEST
        assert str(each).encode("utf-8")
        assert not PYTHONS_WORDS.search(each.message), each.message


@given(programs, entries, st.sampled_from([None, bool, int, float, str, list, dict]), st.booleans())
def test_errors_are_short_and_in_the_words_of_the_language(
    source: str, found: dict[str, Any], expect: type | None, is_declared: bool
) -> None:
    try:
        program = expr.compile(source, SCHEMA if is_declared else None, expect=expect)
    except ExprError as error:
        check_error(error)
        return
    outcomes = [outcome(evaluate, values_of(found)) for evaluate in (program.evaluate, program.interpret)]
    for value in outcomes:
        if isinstance(value, ExprRuntimeError):
            check_error(value)
        elif expect is not None:
            assert isinstance(value, expect)
            assert expect is not int or type(value) is int
    for term in program.explain(values_of(found)).walk():
        assert len(term.error) <= LONGEST
        assert not PYTHONS_WORDS.search(term.error), term.error


def outcome(evaluate: Any, values: dict[str, Any]) -> Any:
    try:
        return evaluate(values)
    except ExprRuntimeError as error:
        return error


@given(st.sampled_from(MISSING), st.lists(st.sampled_from(FIELDS), min_size=1, max_size=2), st.booleans())
def test_both_evaluators_agree_on_missing_structs(base: str, fields: list[str], after_call: bool) -> None:
    source = f"{base}.{'.'.join(fields)}"
    source = f"twice(1); {source}" if after_call else source
    try:
        program = expr.compile(source, SCHEMA)
    except ExprError:
        return
    first, second = (outcome(evaluate, values_of({})) for evaluate in (program.evaluate, program.interpret))
    assert (type(first), str(first)) == (type(second), str(second))


texts = st.one_of(st.text(min_size=1), st.sampled_from(["9", "a", "é", '"', "\\", "\n", " ", "0x", "+", "\udc80"]))


@given(st.sampled_from(sorted(BUILTINS - PREDICATES.keys() - {"repeat"})), texts, st.integers(1, 200_000))
def test_no_value_makes_an_error_long(name: str, text: str, times: int) -> None:
    long = (text * (times // len(text) + 1))[:times]
    values = {"x": long, "m": {long: [long]}, "at": AT}
    sources = [
        f"{name}(x)",
        f"{name}(x, x)",
        f"{name}(m, x)",
        f"{name}([x], x, x)",
        "m[x].y",
        "x.y",
        "at[x]",
        "at.In(x)",
    ]
    sources += [f"{name}(m)", "date(x, '2006')", "at.Format(x) + 1", "x matches x", "m.a[x]", "x[m]", "1[x]", "x()"]
    for source in sources:
        try:
            expr.compile(source).evaluate(values)
        except ExprError as error:
            check_error(error)


@given(texts, st.integers(1, 50_000), st.integers(0, 5))
def test_no_source_makes_an_error_long(text: str, times: int, shape: int) -> None:
    long = (text * (times // len(text) + 1))[:times]
    source = [long, f"foo.{long}", f"'{long}' + 1", f"{long} + foo", f"x matches '{long}('", f"{'a' * times} + b"][
        shape
    ]
    try:
        expr.compile(source, {"foo": INT, "x": STRING})
    except ExprError as error:
        check_error(error)


def test_the_message_of_a_long_value_shows_its_ends() -> None:
    program = expr.compile("float(repeat('9', 990000) + 'x')")
    for evaluate in (program.evaluate, program.interpret):
        message = str(outcome(evaluate, {}))
        assert message.startswith("invalid operation: float(9999")
        assert "…" in message
        assert "999x) (1:1)\n" in message
        assert len(message) <= LONGEST
