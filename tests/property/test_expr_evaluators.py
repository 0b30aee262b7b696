"""Generated code and the plain evaluator are two implementations of one language: they agree on everything.

Expressions are made from a grammar, mostly well-typed, with some nonsense; the outcome of both is compared, a value
or the text of an error with its place. What the compiler refuses is no outcome.
"""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hyperfleet import expr
from hyperfleet.errors import ExprError, ExprRuntimeError
from hyperfleet.expr.runtime.values import Function, StructValue
from hyperfleet.expr.types import ANY, BOOL, DURATION, FLOAT, INT, STRING, TIME, Array, Func, Map, Schema, Struct

PERSON = Struct("main.Person", {"name": STRING, "age": INT, "tags": Array(STRING)})
SCHEMA: Schema = {
    "i": INT,
    "f": FLOAT,
    "s": STRING,
    "b": BOOL,
    "xs": Array(INT),
    "people": Array(PERSON),
    "by_name": Map(STRING, PERSON),
    "open": ANY,
    "twice": Func((INT,), INT),
    "at": TIME,
    "wait": DURATION,
}
PEOPLE = [{"name": "ann", "age": 41, "tags": ["a"]}, {"name": "bob", "age": 7, "tags": []}]
VALUES: dict[str, Any] = {
    "i": 3,
    "f": 0.5,
    "s": "héllo",
    "b": True,
    "xs": [1, 2, 3],
    "people": PEOPLE,
    "by_name": {person["name"]: person for person in PEOPLE},
    "open": {"list": [1, "a", None], "map": {"k": 2.5}, "text": "abc"},
    "twice": lambda number: number * 2,
    "at": datetime(2024, 2, 29, 13, 4, 5, 678901, tzinfo=UTC),
    "wait": timedelta(minutes=90, milliseconds=1500),
}

numbers = st.sampled_from(
    ["0", "1", "2", "7", "-1", "0.5", "2.0", "9223372036854775807", "i", "f", "len(xs)", "twice(i)"]
)
texts = st.sampled_from(['""', '"a"', '"héllo"', "s", "people[0].name", 'by_name["bob"].name', 'by_name["x"].name'])
truths = st.sampled_from(["true", "false", "b", "i > 2", 's == "a"', "open.map.k > 2", "open.nope"])
lists = st.sampled_from(
    ["[]", "[1, 2]", "xs", "1..4", "people", "open.list", '["a", s]', "open", "s", "people[0].tags"]
)
opens = st.sampled_from(
    ["nil", "open", "open.list[0]", "open?.x?.y", "open.text", "open.map.k", "$env", "#", "#index", "#acc", ".name"]
)
MOMENTS = ["at", "wait", 'date("2024-02-29")', 'date("2024-02-29 10:00", "2006-01-02 15:04", "Europe/Berlin")']
MOMENTS += ['duration("1h30m")', "at.Year()", "at.Month()", "wait.Hours()", "at.Add(wait)", "at - at", "at.Format(s)"]
moments = st.sampled_from(MOMENTS)
atoms = st.one_of(numbers, texts, truths, lists, opens, moments)

OPERATORS = ["+", "-", "*", "/", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "??", "in", "..", "contains"]
OPERATORS += ["not in", "startsWith", "endsWith", "not contains", "matches"]
LOOPS = ["all", "none", "any", "one", "filter", "map", "find", "findIndex", "findLast", "findLastIndex", "count", "sum"]
LOOPS += ["groupBy", "sortBy", "reduce"]
PLAIN = ["len", "type", "string", "first", "last", "abs", "max", "min", "mean", "sort", "reverse", "uniq", "flatten"]
PLAIN += ["toJSON", "keys", "int", "float", "upper", "trim", "values", "toPairs", "fromPairs", "median", "ceil"]
PLAIN += ["floor", "round", "bitnot", "lower", "fromJSON", "toBase64", "fromBase64", "duration", "date", "concat"]
PAIRED = ["bitand", "bitor", "bitxor", "bitnand", "bitshl", "bitshr", "bitushr", "split", "splitAfter", "join"]
PAIRED += ["indexOf", "lastIndexOf", "hasPrefix", "hasSuffix", "trimPrefix", "trimSuffix", "take", "get", "trim"]
PAIRED += ["concat", "max", "repeat"]


def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return larger expressions made of smaller ones."""
    return st.one_of(
        st.builds("({}) {} ({})".format, inner, st.sampled_from(OPERATORS), inner),
        st.builds("{}({}, {})".format, st.sampled_from(LOOPS), st.one_of(lists, inner), inner),
        st.builds("{}({})".format, st.sampled_from(PLAIN), inner),
        st.builds("{}({}, {})".format, st.sampled_from(PAIRED), inner, inner),
        st.builds("replace({}, {}, {})".format, inner, texts, texts),
        st.builds("({} | {}())".format, atoms, st.sampled_from(PLAIN)),
        st.builds("({} | {}({}))".format, lists, st.sampled_from(LOOPS), inner),
        st.builds("({}; {})".format, inner, inner),
        st.builds("(if {} {{ {} }} else {{ {} }})".format, st.one_of(truths, inner), inner, inner),
        st.builds("({} < {} <= {})".format, atoms, inner, atoms),
        st.builds("({}) ? ({}) : ({})".format, st.one_of(truths, inner), inner, inner),
        st.builds("(let v = {}; {} + v)".format, inner, inner),
        st.builds("({})[{}]".format, inner, inner),
        st.builds("({})?.name".format, inner),
        st.builds("({})[{}:{}]".format, inner, numbers, numbers),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{a: {}, b: {}}}".format, inner, inner),
        st.builds("-({})".format, inner),
        st.builds("!({})".format, inner),
        st.builds("count({}, {}) > 1".format, lists, inner),
        st.builds("filter({}, {})[0]".format, lists, inner),
    )


expressions = st.recursive(atoms, grow, max_leaves=8)


def outcome(evaluate: Any, values: dict[str, Any] = VALUES) -> Any:
    """Return the value, or the text of the error."""
    try:
        return comparable(evaluate(values))
    except ExprRuntimeError as error:
        return str(error)


def comparable(value: Any) -> Any:
    """Return a value such that `==` means: the same value of the same class."""
    if isinstance(value, Function):
        return value.signature.name
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, (list, range)):
        return [type(value).__name__, *map(comparable, value)]
    if isinstance(value, dict):
        kind = dict if isinstance(value, StructValue) else type(value)
        return (kind.__name__, [(comparable(key), comparable(item)) for key, item in value.items()])
    return (type(value).__name__, value)


@given(expressions)
def test_both_evaluators_agree(source: str) -> None:
    try:
        program = expr.compile(source, SCHEMA)
    except ExprError:
        return
    assert outcome(program.evaluate) == outcome(program.interpret)


@given(expressions)
def test_both_evaluators_agree_without_declared_types(source: str) -> None:
    try:
        program = expr.compile(source)
    except ExprError:
        return
    assert outcome(program.evaluate) == outcome(program.interpret)


MISFITS: list[Any] = [None, True, 3, 2**70, 0.5, math.nan, "héllo", "a\ud800", b"\xff", [], [None], (1, "a"), {}]
MISFITS += [{"name": 1}, {1: 2}, {"tags": {}}, object(), VALUES["at"], VALUES["wait"], PEOPLE, [PEOPLE]]
misfitting = st.fixed_dictionaries({name: st.sampled_from([value, *MISFITS]) for name, value in VALUES.items()})


@given(expressions, misfitting)
def test_no_value_that_contradicts_its_type_does_more_than_fail(source: str, values: dict[str, Any]) -> None:
    try:
        program = expr.compile(source, SCHEMA)
    except ExprError:
        return
    for evaluate in (program.evaluate, program.interpret):
        with suppress(ExprRuntimeError):
            evaluate(values)
    assert program.explain(values).render()


@given(expressions, misfitting)
def test_both_evaluators_agree_on_values_of_any_type(source: str, values: dict[str, Any]) -> None:
    try:
        program = expr.compile(source)
    except ExprError:
        return
    assert outcome(program.evaluate, values) == outcome(program.interpret, values)


@given(expressions)
def test_every_result_can_be_written(source: str) -> None:
    with suppress(ExprError):
        assert expr.to_json(expr.compile(source, SCHEMA).evaluate(VALUES))


@given(expressions)
def test_an_explanation_ends_with_the_value(source: str) -> None:
    try:
        program = expr.compile(source, SCHEMA)
    except ExprError:
        return
    term = program.explain(VALUES)
    if not term.error:  # what folding spares the program may fail here, but never the other way round
        assert comparable(term.value) == outcome(program.evaluate)


@given(st.text(max_size=40))
def test_no_text_does_more_than_fail(source: str) -> None:
    try:
        expr.compile(source).evaluate({})
    except ExprError:
        return


@given(
    st.lists(
        st.sampled_from(
            [
                *OPERATORS,
                *LOOPS,
                *PLAIN,
                "(",
                ")",
                "[",
                "]",
                "{",
                "}",
                "#",
                ".",
                "?.",
                "1",
                '"a"',
                "i",
                ",",
                ";",
                "let",
                "=",
                ":",
                "?",
                "|",
            ]
        ),
        max_size=25,
    )
)
def test_no_row_of_tokens_does_more_than_fail(tokens: list[str]) -> None:
    try:
        expr.compile(" ".join(tokens), SCHEMA).evaluate(VALUES)
    except ExprError:
        return
