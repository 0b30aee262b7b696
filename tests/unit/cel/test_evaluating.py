"""Evaluating never raises: values are converted, and whatever goes wrong is an outcome."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from hyperfleet.cel import CelEnvironment, Outcome
from hyperfleet.cel.values import MAX_DEPTH, MAX_VALUES

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ENVIRONMENT = CelEnvironment({"x": "any", "m": "map", "age": "duration", "now": "timestamp"})


def evaluate(source: str, **values: Any) -> Outcome:
    """Compile and evaluate an expression that must be good."""
    program, faults = ENVIRONMENT.compile(source)
    assert program is not None, faults
    return program.evaluate(ENVIRONMENT.activate(values, NOW))


def nest(levels: int) -> Any:
    """Return lists within lists."""
    return [nest(levels - 1)] if levels else []


@pytest.mark.parametrize(
    ("given", "expected", "because"),
    [
        (None, None, "null"),
        (True, True, "a boolean stays one"),
        (7, 7, "a number without fraction is an int"),
        (2**63 - 1, 2**63 - 1, "the largest int"),
        (2**63, float(2**63), "a larger one is a double, as in Go"),
        (-(10**400), float("-inf"), "or infinite"),
        (Decimal("1.5"), 1.5, "the engine takes no decimals"),
        (Decimal("1e999"), float("inf"), "however large"),
        ((1, (2,)), [1, [2]], "nor tuples"),
        ({"a": {3}}, {"a": [3]}, "nor sets"),
        (UUID(int=5), str(UUID(int=5)), "nor ids"),
        ({1: "a"}, {"1": "a"}, "keys are texts, as in JSON"),
        ({"a": None, "b": [None]}, {"b": [None]}, "an entry that is null is absent"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z", "a time is as in JSON"),
        (timedelta(minutes=90), "1h30m", "a duration is as people write it"),
        (datetime(2026, 1, 2, tzinfo=UTC).date(), "2026-01-02", "a date too"),
        (b"ab", b"ab", "bytes stay bytes"),
        ("a\ud800b", "a?b", "half a character is replaced"),
        ("日本😀", "日本😀", "others are kept"),
    ],
)
def test_values_are_converted(given: Any, expected: Any, because: str) -> None:
    outcome = evaluate("x", x=given)
    assert outcome.failure is None
    assert outcome.value == expected, because
    assert type(outcome.value) is type(expected), because


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1u", 1),
        ('b"a"', b"a"),
        ("type(1)", "INT"),
        ("[type(1), {'a': [1.5]}]", ["INT", {"a": [1.5]}]),
        ("now + age", NOW + timedelta(hours=1)),
        ("now - timestamp('2025-12-31T00:00:00Z')", timedelta(days=1)),
        ("{1: true}", {1: True}),
    ],
)
def test_results_are_plain_values(source: str, expected: Any) -> None:
    assert evaluate(source, now=NOW, age=timedelta(hours=1)) == (expected, None)


@pytest.mark.parametrize(
    ("source", "values", "kind", "message", "because"),
    [
        ("x.a.b", {"x": {"a": {}}}, "missing", 'Key not found in map : "b"', "a field that is not there"),
        ("x[3]", {"x": [1]}, "missing", "Index error: index=3 size=1", "nor an item"),
        ("x", {}, "missing", 'No value with name "x" found in Activation', "nor a variable"),
        ("x + 'a'", {"x": 1}, "type", "No matching overloads found : _+_(int64, string)", "found by the value only"),
        ("x + 1.5", {"x": 1}, "type", "No matching overloads found : _+_(int64, double)", "int and double do not mix"),
        ("x.a.b", {"x": {"a": 5}}, "type", "Applying SELECT to non-message type", "a number has no fields"),
        ("1 / x", {"x": 0}, "other", "divide by zero", "arithmetic"),
        ("x.matches(x)", {"x": "["}, "other", "invalid regular expression: missing ]: [", "a pattern from a value"),
        ("m.a", {"m": 5}, "input", "Unexpected value type for 'm': int. (Expected MAP<DYN, DYN>)", "declared as a map"),
        ("now", {"now": "x"}, "input", "Unexpected value type for 'now': str. (Expected TIMESTAMP)", "and as a time"),
        (
            "x.all(a, x.all(b, x.all(c, true)))",
            {"x": list(range(50))},
            "limit",
            "Iteration budget exceeded",
            "the engine raises this one",
        ),
        ("x", {"x": nest(MAX_DEPTH + 1)}, "input", "the values are too large, or nested too deeply", "too deep"),
        ("x", {"x": [0] * MAX_VALUES}, "input", "the values are too large, or nested too deeply", "too many"),
        ("x", {"x": ["a" * 2_000_000] * 3}, "input", "the texts are too long", "too long"),
    ],
)
def test_failures_are_outcomes(source: str, values: dict[str, Any], kind: str, message: str, because: str) -> None:
    outcome = evaluate(source, **values)
    assert outcome.value is None
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.failure.message) == (kind, message), because


def test_a_result_of_another_type_is_a_failure() -> None:
    program = ENVIRONMENT.compile("x", "bool").program
    assert program is not None
    assert program.evaluate(ENVIRONMENT.activate({"x": True})) == (True, None)
    for value, name in ((1, "int"), ("True", "string"), (None, "null"), ({}, "map"), (1.5, "double")):
        failure = program.evaluate(ENVIRONMENT.activate({"x": value})).failure
        assert failure is not None
        assert failure.message == f"the result must be bool, and is {name}"


def test_texts_of_failures_are_bounded() -> None:
    failure = evaluate("x[x.k]", x={"k": "k" * 100_000}).failure
    assert failure is not None
    assert len(failure.message) <= 2000


def test_an_absent_value_and_null_are_the_same_to_optional_selection() -> None:
    assert evaluate('x.?error.?phase.orValue("unknown")', x={"error": None}).value == "unknown"
    assert evaluate('x.?error.?phase.orValue("unknown")', x={}).value == "unknown"


def test_one_activation_serves_many_programs() -> None:
    activation = ENVIRONMENT.activate({"x": {"n": 2}})
    for source, expected in (("x.n + 1", 3), ("x.n == 2", True), ("x.nope", None), ("x.n * 2", 4)):
        program = ENVIRONMENT.compile(source).program
        assert program is not None
        assert program.evaluate(activation).value == expected
