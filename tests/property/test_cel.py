"""Laws of CEL: no expression and no value crashes the process or raises; an outcome is a value or a bounded reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from hyperfleet.cel import HELPERS, LISTS, CelEnvironment

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ENVIRONMENT = CelEnvironment({"x": "any", "m": "map", "age": "duration", "now": "timestamp"}, (*HELPERS, *LISTS))
CONTAINERS = CelEnvironment({"x": "any"}, HELPERS)

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "type"]), inner, max_size=3),
    max_leaves=12,
)

atoms = st.sampled_from(
    ["x", "m", "age", "now", "1", "2u", "1.5", '"a"', "b'a'", "true", "null", "[]", "{}", "y", "x.a", "m.?a", "x[?0]"]
)


def combine(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Write an expression around others."""
    one = st.sampled_from(
        [
            "!({0})", "-({0})", "({0}).a", "({0}).?b", "({0})[0]", "({0})[?'a']", "size({0})", "string({0})",
            "int({0})", "type({0})", "dyn({0})", "toJson({0})", "toJson(dyn({0}))", "toJson([{0}])", "dig({0}, 'a.0')",
            "[{0}]", "[?{0}]", "{{'a': {0}}}", "{{?'a': {0}}}", "optional.of({0})", "optional.ofNonZeroValue({0})",
            "({0}).distinct()", "({0}).sort()", "({0}).flatten(3)", "({0}).orValue(1)", "({0}).value()", "has(({0}).a)",
            "duration({0})", "timestamp({0})", "({0}).map(e, e.?a)", "({0}).filter(e, e == 1)", "base64.encode({0})",
            "conditionStatus({0}, 'A')", "conditionAge({0}, 'A')", "statusFeedbackValue({0}, 'a')", "lists.range({0})",
            "({0}).optMap(v, v)", "({0}).optMap(v, [v])", "cel.bind(v, {0}, {{'k': v}})", "'%s'.format([{0}])",
        ]
    )  # fmt: skip
    two = st.sampled_from(
        [
            "({0}) + ({1})", "({0}) / ({1})", "({0}) == ({1})", "({0}) < ({1})", "({0}) && ({1})", "({0}) in ({1})",
            "[{0}, {1}]", "{{'a': {0}, 'b': {1}}}", "true ? ({0}) : ({1})", "({0}).exists(e, ({1}) == e)",
            "({0}).map(e, {1})", "({0}).orValue({1})", "({0}).or({1})", "({0}).optFlatMap(v, {1})",
            "toJson({{'k': true ? ({0}) : dyn({1})}})", "({0})[?({1})]", "({0}).join({1})", "{{{0}: {1}}}",
            "({0}).matches({1})",
        ]
    )  # fmt: skip
    singles = st.tuples(one, inner).map(lambda parts: parts[0].format(parts[1]))
    pairs = st.tuples(two, inner, inner).map(lambda parts: parts[0].format(parts[1], parts[2]))
    return singles | pairs


expressions = st.recursive(atoms, combine, max_leaves=5)


@given(expressions, json_values, st.dictionaries(st.text(max_size=2), json_values, max_size=3))
@example('toJson({"a": dyn(m.?a)})', None, {})
@example('[x].map(e, {"a": e.?a})', {}, {})
@example("toJson([x[?0]])", {"a": 1}, {})
def test_no_expression_crashes(source: str, x: Any, m: dict[str, Any]) -> None:
    evaluate_bounded(source, x, m)


def evaluate_bounded(source: str, x: Any, m: dict[str, Any]) -> None:
    """Compile an expression and evaluate it; every text must be bounded."""
    program, faults = ENVIRONMENT.compile(source)
    assert all(fault.line >= 1 and fault.column >= 1 and len(fault.message) <= 2000 for fault in faults)
    if program is None:
        assert faults
        return
    values = {"x": x, "m": m, "age": timedelta(minutes=1), "now": NOW}
    outcome = program.evaluate(ENVIRONMENT.activate(values, NOW))
    assert outcome.failure is None or (outcome.value is None and 0 < len(outcome.failure.message) <= 2000)


@given(st.text(max_size=60))
def test_no_text_crashes(source: str) -> None:
    program, faults = ENVIRONMENT.compile(source)
    assert (program is None) is bool(faults)


@given(json_values)
def test_values_arrive_as_they_are(value: Any) -> None:
    """What a value is as JSON, except for entries that are null, it is in an expression."""
    program = CONTAINERS.compile("toJson(x)").program
    assert program is not None
    first = program.evaluate(CONTAINERS.activate({"x": value}))
    assert first.failure is None
    again = CONTAINERS.compile("x").program
    assert again is not None
    plain = again.evaluate(CONTAINERS.activate({"x": value}))
    assert program.evaluate(CONTAINERS.activate({"x": plain.value})) == first
