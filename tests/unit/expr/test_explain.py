"""Explanations: the value of every term, what was not needed, and what failed."""

from __future__ import annotations

from typing import Any

import pytest

from hyperfleet import expr
from hyperfleet.expr.types import ANY, INT, STRING, Array, Schema, Struct

SCHEMA: Schema = {"adapters": Array(Struct("main.Adapter", {"available": STRING})), "n": INT, "open": ANY}


def values(*available: str, n: int = 3) -> dict[str, Any]:
    return {"adapters": [{"available": each} for each in available], "n": n, "open": None}


def explain(source: str, given: dict[str, Any] | None = None) -> expr.ExprExplanation:
    return expr.compile(source, SCHEMA).explain(given or values("True", "False"))


def outline(term: expr.ExprExplanation) -> list[tuple[str, Any]]:
    """Return the terms with their value, `…` for what was not needed."""
    return [(each.text, "…" if each.skipped else each.error or each.value) for each in term.walk()]


def test_every_term_has_its_value() -> None:
    assert outline(explain("n + 1 > 2 * n")) == [
        ("n + 1 > 2 * n", False),
        ("n + 1", 4),
        ("n", 3),
        ("2 * n", 6),
        ("n", 3),
    ]


def test_terms_that_are_not_needed() -> None:
    assert outline(explain("n > 5 && n < 9 && open.x")) == [
        ("n > 5 && n < 9 && open.x", False),
        ("n > 5", False),
        ("n", 3),
        ("n < 9", "…"),
        ("open.x", "…"),
    ]
    assert outline(explain("n > 5 ? n : n + 1"))[1:] == [("n > 5", False), ("n", 3), ("n", "…"), ("n + 1", 4), ("n", 3)]
    assert ("open ?? n", 3) in outline(explain("open ?? n"))


def test_loops_are_told_element_by_element() -> None:
    term = explain('all(adapters, {.available == "True"})')
    assert term.value is False
    assert [(each.index, each.item["available"], each.body.value) for each in term.elements] == [
        (0, "True", True),
        (1, "False", False),
    ]
    assert term.elements[0].body.text == '.available == "True"'
    assert term.children[0].text == "adapters"


def test_long_loops_are_cut() -> None:
    term = explain("count(1..250, # > 200)")
    assert (term.value, len(term.elements), term.omitted) == (50, 100, 150)


def test_an_explanation_is_bounded() -> None:
    source = "map(1..90, map(1..90, # + 1))"
    assert sum(1 for _ in explain(source).walk()) < 5_000


def test_failures_are_part_of_the_explanation() -> None:
    term = explain("n > 1 and open.x.y == 1")
    assert term.error == "cannot fetch x from <nil>"
    failed = [each.text for each in term.walk() if each.error]
    assert failed == ["n > 1 and open.x.y == 1", "open.x.y == 1", "open.x.y", "open.x"]


def test_optional_chains_stop_at_nil() -> None:
    assert outline(explain("open?.x.y ?? n")) == [
        ("open?.x.y ?? n", 3),
        ("open?.x.y", "…"),
        ("open?.x", "…"),
        ("open", None),
        ("n", 3),
    ]


def test_constants_need_no_explanation() -> None:
    assert outline(explain("1 + 2")) == [("1 + 2", 3)]


@pytest.mark.parametrize(
    "source",
    [
        'len(filter(adapters, {.available == "True"})) >= len(adapters) * 0.5',
        "let x = n; map(1..x, # * x)",
        "adapters | map(.available) | sort()",
        "not (n in 1..2) || n == 7",
    ],
)
def test_the_explained_value_is_the_value(source: str) -> None:
    program = expr.compile(source, SCHEMA)
    given = values("True", "False")
    assert program.explain(given).value == program.evaluate(given)


def test_rendering() -> None:
    text = expr.render_explanation(explain('any(adapters, {.available == "x"}) || n == 3 || n == 4'))
    assert text.splitlines() == [
        'any(adapters, {.available == "x"}) || n == 3 || n == 4 → true',
        '  any(adapters, {.available == "x"}) → false',
        "    adapters → [map[available:True] map[available:False]]",
        "    [0]",
        '      .available == "x" → false',
        '        .available → "True"',
        "    [1]",
        '      .available == "x" → false',
        '        .available → "False"',
        "  n == 3 → true",
        "    n → 3",
        "  n == 4 → not needed",
    ]
