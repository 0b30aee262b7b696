"""The structured operators, with the defects of the Go adapter mended."""

from __future__ import annotations

import pytest

from hyperfleet.adapter.operators import OPERATORS, apply_operator, check_operator


def test_the_operators_are_those_of_the_guide() -> None:
    assert set(OPERATORS) == {
        "equals", "notEquals", "in", "notIn", "contains", "exists", "notExists",
        "greaterThan", "greaterThanOrEqual", "lessThan", "lessThanOrEqual",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("field", "operator", "value", "is_met", "because"),
    [
        ("Ready", "equals", "Ready", True, "equal"),
        ("ready", "equals", "Ready", False, "case matters"),
        (3.0, "equals", 3, True, "YAML's 3 is JSON's 3.0; in Go it is not"),
        (True, "equals", 1, False, "a boolean is no number"),
        ("3", "equals", 3, False, "a string is no number"),
        ([1, {"a": 2.0}], "equals", [1.0, {"a": 2}], True, "also inside"),
        ({"a": 1}, "equals", {"a": 1, "b": 2}, False, "another key"),
        ([1], "equals", [1, 2], False, "another length"),
        (None, "equals", None, True, "null is null"),
        (None, "equals", "x", False, "missing equals nothing"),
        (None, "notEquals", "x", True, "missing is not equal"),
        (3.0, "notEquals", 3, False, "the same number"),
        (2.0, "in", [1, 2], True, "a number by value"),
        ("c", "in", ["a", "b"], False, "not there"),
        (None, "in", ["a"], False, "missing is not in a list"),
        ("c", "notIn", ["a", "b"], True, "not there"),
        (None, "notIn", ["a"], True, "missing is not in a list"),
        ("abc", "contains", "b", True, "a part of a string"),
        (["a", 2.0], "contains", 2, True, "an item by value"),
        ({"k": None}, "contains", "k", True, "a key"),
        ({"k": 1}, "contains", "v", False, "no key"),
        (3, "greaterThan", 2.5, True, "numbers of both kinds"),
        (3, "greaterThan", 3, False, "not greater"),
        (3, "greaterThanOrEqual", 3.0, True, "documented by the guide, refused by the Go code"),
        (2, "lessThan", 3, True, "less"),
        (3, "lessThanOrEqual", 3, True, "documented by the guide, refused by the Go code"),
        (4, "lessThanOrEqual", 3, False, "more"),
        ("x", "exists", None, True, "there"),
        (0, "exists", None, True, "0 exists"),
        (False, "exists", None, True, "false exists"),
        ("", "exists", None, False, "empty"),
        ([], "exists", None, False, "empty"),
        ({}, "exists", None, False, "empty"),
        (None, "exists", None, False, "missing"),
        (None, "notExists", None, True, "documented by the guide, refused by the Go code"),
        ("x", "notExists", None, False, "there"),
    ],
)
def test_an_operator(field: object, operator: str, value: object, is_met: bool, because: str) -> None:
    assert apply_operator(operator, field, value) == (is_met, ""), because


@pytest.mark.parametrize(
    ("field", "operator", "value", "failure"),
    [
        (None, "contains", "x", "contains cannot look into a missing field"),
        ("x", "contains", None, "contains cannot look for null"),
        (3, "contains", 3, "contains cannot look into a number"),
        ("3", "contains", 3, "contains looks for a string here, not a number"),
        ({"3": 1}, "contains", 3, "contains looks for a string here, not a number"),
        (None, "greaterThan", 1, "the field must be a number, and is missing"),
        ("3", "lessThan", 1, "the field must be a number, and is a string"),
        (True, "lessThan", 1, "the field must be a number, and is a boolean"),
        (3, "lessThanOrEqual", "1", "the value must be a number, and is a string"),
        (3, "in", 3, "in needs a list, not a number"),
        (3, "notIn", None, "in needs a list, not null"),
        (3, "like", 3, "there is no operator like"),
    ],
)
def test_what_cannot_be_told_is_a_failure(field: object, operator: str, value: object, failure: str) -> None:
    assert apply_operator(operator, field, value) == (False, failure)


@pytest.mark.parametrize(
    ("operator", "value", "has_value", "problem"),
    [
        ("equals", "x", True, ""),
        ("equals", None, True, ""),
        ("equals", None, False, "equals needs a value"),
        ("exists", None, False, ""),
        ("exists", True, True, "exists takes no value"),
        ("notExists", True, True, "notExists takes no value"),
        ("in", ["x"], True, ""),
        ("in", "x", True, "in needs a list, not a string"),
        ("notIn", None, False, "notIn needs a list"),
        ("greaterThan", 3, True, ""),
        ("greaterThan", "3", True, "greaterThan needs a number, not a string"),
    ],
)
def test_a_file_is_checked(operator: str, value: object, has_value: bool, problem: str) -> None:
    assert check_operator(operator, value, has_value=has_value) == problem


def test_a_misspelt_operator_gets_a_hint() -> None:
    problem = check_operator("equal", "x", has_value=True)
    assert problem.startswith('there is no operator equal, did you mean "equals"?')
    assert all(name in problem for name in OPERATORS)
