"""Our own expr cases are what the generator writes, cover the whole language, and were answered in our environments."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from hyperfleet.errors import ExprError
from hyperfleet.expr import parse
from hyperfleet.expr.nodes import Builtin, Call, ExprNode, MemberAccess, String, walk
from hyperfleet.expr.signatures import BUILTINS, METHODS
from hyperfleet.expr.syntax.lexer import tokenize
from hyperfleet.expr.syntax.precedence import BINARY, NEGATABLE, UNARY
from tests.conformance.expr_answers import same
from tests.conformance.expr_cases import record
from tests.conformance.expr_cases.generator import Request, generate
from tests.conformance.expr_cases.worlds import WORLDS

HEAD, CASES = record.read()
FUNCTION = {"k": "func"}


def test_the_recorded_cases_are_those_that_the_generator_writes() -> None:
    asked = generate()
    recorded = [Request(case["set"], case["src"], case.get("expect", "")) for case in CASES]
    assert recorded == [request for request in asked if request in set(recorded)]
    assert len(asked) == len(recorded) + HEAD["left_out"], "run make record-expr-cases"


def test_only_answers_that_differ_from_run_to_run_are_left_out() -> None:
    assert HEAD["left_out"] <= len(CASES) * 0.01


def test_there_are_some_thousand_cases_in_a_small_file() -> None:
    assert len(CASES) > 4_000
    assert record.RECORDED.stat().st_size < 500_000


def test_the_generator_writes_the_same_for_the_same_seed_only() -> None:
    assert generate(1) == generate(1)
    assert generate(1) != generate(2)


@pytest.mark.parametrize("name", WORLDS)
def test_the_environments_are_those_of_the_original(name: str) -> None:
    schema, values = WORLDS[name]
    recorded: dict[str, tuple[str, Any]] = HEAD["environments"][name]
    assert recorded.keys() == values.keys()
    for variable, (declared, value) in recorded.items():
        assert schema is None or schema[variable].name == declared
        assert callable(values[variable]) if value == FUNCTION else same(value, values[variable]), variable


def parsed(case: dict[str, Any]) -> list[ExprNode]:
    try:
        return list(walk(parse(case["src"], WORLDS[case["set"]][0])))
    except ExprError:
        return []


def test_every_builtin_gives_values_and_errors() -> None:
    values: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    for case in CASES:
        names = {node.name for node in parsed(case) if isinstance(node, Builtin)}
        (values if "out" in case else errors).update(names)
    assert {name: values[name] for name in BUILTINS if values[name] < 5} == {}
    assert {name: errors[name] for name in BUILTINS - {"now"} if not errors[name]} == {}


def test_every_operator_gives_values() -> None:
    found: Counter[str] = Counter()
    for case in CASES:
        if "out" in case:
            texts = [token.value for token in tokenize(case["src"])]
            found.update({*texts, *(f"{first} {second}" for first, second in pairwise(texts))})
    others = {"?", ":", "? :", "?.", ".", "#", "$env", "::", ";", "let", "if", "else", "{", "["}
    wanted = {*BINARY, *UNARY, *(f"not {name}" for name in NEGATABLE), *others}
    assert sorted(operator for operator in wanted if not found[operator]) == []


def test_every_method_is_called() -> None:
    called = {
        node.callee.key.value
        for case in CASES
        for node in parsed(case)
        if isinstance(node, Call) and isinstance(node.callee, MemberAccess) and isinstance(node.callee.key, String)
    }
    assert {name for methods in METHODS.values() for name in methods} - called == set()


def test_there_are_errors_of_both_stages_in_every_set() -> None:
    found = Counter((case["set"], case.get("stage", "value")) for case in CASES)
    assert all(found[name, stage] > 100 for name in WORLDS for stage in ("value", "compile", "run"))
