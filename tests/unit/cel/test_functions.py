"""The functions of the Go adapter, and those of cel-go's list extension."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hyperfleet.cel import HELPERS, LISTS, CelEnvironment, Outcome

NOW = datetime(2026, 1, 1, 12, 0, 0, 500_000, tzinfo=UTC)
ENVIRONMENT = CelEnvironment({"x": "any", "conditions": "any"}, (*HELPERS, *LISTS))
CONDITIONS = [
    {"type": "Old", "status": "True", "last_transition_time": "2026-01-01T11:00:00Z"},
    {"type": "Kubernetes", "status": "True", "lastTransitionTime": "2026-01-01T11:59:00Z"},
    {"type": "Undated", "status": "False"},
    {"type": "Odd", "status": "True", "last_transition_time": "yesterday"},
    {"type": "Old", "status": "False"},
    "no condition",
]


def evaluate(source: str, x: Any = None, now: datetime | None = NOW) -> Outcome:
    """Compile and evaluate an expression that must be good."""
    program, faults = ENVIRONMENT.compile(source)
    assert program is not None, faults
    return program.evaluate(ENVIRONMENT.activate({"x": x, "conditions": CONDITIONS}, now))


@pytest.mark.parametrize(
    ("source", "x", "expected"),
    [
        ("now()", None, "2026-01-01T12:00:00Z"),
        ("timestamp(now()).getHours()", None, 12),
        ("toJson(x)", {"b": [1, None, 1.5, True], "a": "ä<"}, '{"a":"ä<","b":[1,null,1.5,true]}'),
        ("toJson(x)", "text", '"text"'),
        ("toJson(x)", 7, "7"),
        ("toJson(x)", 7.5, "7.5"),
        ("toJson(x)", True, "true"),
        ("toJson(x)", None, "null"),
        ("toJson(x)", [], "[]"),
        ("toJson(1u)", None, "1"),
        ("toJson(b'a')", None, '"YQ=="'),
        ("toJson({2: 2, 'a': 3u})", None, '{"2":2,"a":3}'),
        ("toJson([timestamp('2026-01-01T00:00:00Z'), duration('90s')])", None, '["2026-01-01T00:00:00Z","1m30s"]'),
        ("dig(x, 'a.1.b')", {"a": [0, {"b": 5}]}, 5),
        ("dig(x, 'a.2.b')", {"a": [0, {"b": 5}]}, None),
        ("dig(x, 'a.-1')", {"a": [0]}, None),
        ("dig(x, 'a.99999999999999999999')", {"a": [0]}, None),
        ("dig(x, 'a.b')", {"a": 5}, None),
        ("dig(x, 'a')", None, None),
        ("dig(x, 'a')", "text", None),
        ("conditionStatus(conditions, 'Old')", None, "True"),
        ("conditionStatus(conditions, 'Undated')", None, "False"),
        ("conditionStatus(conditions, 'Nope')", None, "Unknown"),
        ("conditionAge(conditions, 'Old')", None, 3600),
        ("conditionAge(conditions, 'Kubernetes')", None, 60),
        ("conditionAge(conditions, 'Undated')", None, -1),
        ("conditionAge(conditions, 'Odd')", None, -1),
        ("conditionAge(conditions, 'Nope')", None, -1),
        ("stableFor(conditions, 'Old', 3600)", None, True),
        ("stableFor(conditions, 'Old', 3601)", None, False),
        ("stableFor(conditions, 'Undated', -5)", None, False),
        ("statusFeedbackValue(x, 'a')", {"values": [{"name": "a", "fieldValue": {"string": "s"}}]}, "s"),
        ("statusFeedbackValue(x, 'b')", {"values": [{"name": "a", "fieldValue": {"string": "s"}}, 5]}, ""),
        ("statusFeedbackValue(x, 'a')", {"values": [{"name": "a", "fieldValue": {"integer": 5}}]}, ""),
        ("statusFeedbackValue(x, 'a')", {"values": "odd"}, ""),
        ("triState(true, true)", None, "True"),
        ("triState(false, true)", None, "False"),
        ("triState(false, false)", None, "Unknown"),
        ("lists.range(3)", None, [0, 1, 2]),
        ("lists.range(-1)", None, []),
        ("[3, 1, 3, 1.0, true, true].distinct()", None, [3, 1, True]),
        ("x.distinct()", [{"a": [1]}, {"a": [1]}, {"a": [True]}], [{"a": [1]}, {"a": [True]}]),
        ("[1, 2, 3].slice(1, 2)", None, [2]),
        ("x.sort()", [3, 1.5, 2], [1.5, 2, 3]),
        ("x.sort()", ["b", "a"], ["a", "b"]),
        ("x.flatten()", [1, [2, [3]]], [1, 2, [3]]),
        ("x.flatten(2)", [1, [2, [3, [4]]]], [1, 2, 3, [4]]),
        ("x.map(i, i * 2).sort()", [2, 1], [2, 4]),
    ],
)
def test_functions(source: str, x: Any, expected: Any) -> None:
    assert evaluate(source, x) == (expected, None)


@pytest.mark.parametrize(
    ("source", "x", "message", "because"),
    [
        ("lists.range(10001)", None, "lists.range makes at most 10000 items", "memory is bounded"),
        ("x.map(i, x).flatten()", [0] * 101, "flatten() makes at most 10000 items", "also here"),
        ("[1].slice(1, 2)", None, "slice(1, 2) of a list of 1", "as in cel-go"),
        ("[1, 'a'].sort()", None, "sort() needs items of one type that has an order", "as in cel-go"),
        ("[x].sort()", {}, "sort() needs items of one type that has an order", "a map has none"),
        ("x.sort()", 5, "No matching overloads found : (int64).sort()", "not a list"),
    ],
)
def test_functions_fail_with_a_reason(source: str, x: Any, message: str, because: str) -> None:
    outcome = evaluate(source, x)
    assert outcome.failure is not None
    assert outcome.failure.message == message, because


def test_time_is_an_argument() -> None:
    failure = evaluate("now()", now=None).failure
    assert failure is not None
    assert failure.message == "there is no current time here"
