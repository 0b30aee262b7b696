"""Expressions are compiled once: every fault is found, with line and column, also inside a YAML file."""

from __future__ import annotations

import pytest

from hyperfleet.cel import HELPERS, LISTS, CelEnvironment, CelType, place_faults
from hyperfleet.cel.environment import MAX_SOURCE
from hyperfleet.documents import DocumentPlace, Places, read

ENVIRONMENT = CelEnvironment(
    {"x": "any", "m": "map", "age": "duration", "now": "timestamp", "name": "string"}, (*HELPERS, *LISTS)
)


def find_faults(source: str, expect: CelType | None = None) -> list[tuple[int, int, str]]:
    """Return the faults of an expression that does not compile."""
    compiled = ENVIRONMENT.compile(source, expect)
    assert (compiled.program is None) is bool(compiled.faults)
    return [(fault.line, fault.column, fault.message) for fault in compiled.faults]


@pytest.mark.parametrize(
    ("source", "expected", "because"),
    [
        ("y", [(1, 1, "undeclared reference to 'y'")], "variables are declared: a typo is found at load"),
        (
            'y +\n  "ä" + zz',
            [(1, 1, "undeclared reference to 'y'"), (2, 9, "undeclared reference to 'zz'")],
            "all faults at once, columns in characters",
        ),
        ("x.nope()", [(1, 7, "undeclared reference to 'nope'")], "functions are declared too"),
        ("name + 1", [(1, 6, "found no matching overload for '_+_' applied to '(string, int)'")], "types are checked"),
        ("x +", [(1, 4, "mismatched input '<EOF>', expected an expression or the end of it")], "it ends too early"),
        ("", [(1, 1, "the expression is empty")], "nothing is no expression"),
        (" \n", [(1, 1, "the expression is empty")], "nor is space"),
        ("x\n\0", [(2, 1, "the character \\x00 is not allowed")], "the engine would end the text there"),
        ('"\ud800"', [(1, 2, "the character \\ud800 is not allowed")], "half a character cannot be encoded"),
    ],
)
def test_faults_have_a_place(source: str, expected: list[tuple[int, int, str]], because: str) -> None:
    assert find_faults(source) == expected, because


@pytest.mark.parametrize(
    "source", ["(" * 40 + "1" + ")" * 40, "1" + "+1" * 2000, "x" + ".a" * 400, "[" * 50 + "]" * 50]
)
def test_the_depth_is_bounded(source: str) -> None:
    message = "the expression has more than 32 levels of brackets, operators or fields"
    assert find_faults(source) == [(1, 1, message)]


def test_the_length_is_bounded() -> None:
    (fault,) = find_faults("x == 1 || " * MAX_SOURCE)
    assert fault[2] == f"an expression has at most {MAX_SOURCE} characters, this one {10 * MAX_SOURCE}"


def test_a_long_list_of_alternatives_compiles() -> None:
    assert not find_faults(" || ".join(f'name == "{number}"' for number in range(400)))


def test_texts_are_bounded() -> None:
    faults = ENVIRONMENT.compile(f"{'y' * 5000} + {'z' * 4000}").faults
    assert len(faults) == 2
    assert all(len(fault.message) <= 2000 and len(fault.snippet) <= 300 for fault in faults)


@pytest.mark.parametrize(
    ("source", "expect", "fault", "because"),
    [
        ("1 == 1", "bool", "", "it is a boolean"),
        ("{1: 2}", "map", "", "a map of anything is a map"),
        ("[1]", "map", "the result must be map, and is list", "a list is not"),
        ("x", "bool", "", "only its value tells"),
        ("name", "bool", "the result must be bool, and is string", "it can never be one"),
        ("age", "bool", "the result must be bool, and is duration", "nor this"),
        ("[1]", "list", "", "a list of anything is a list"),
        ("x[?0]", None, "the result is an optional value; end it with .orValue(…)", "nor this"),
        ("x.?a", None, "the result is an optional value; end it with .orValue(…)", "it cannot be returned"),
    ],
)
def test_the_type_of_the_result_is_checked(source: str, expect: CelType | None, fault: str, because: str) -> None:
    assert [message for _, _, message in find_faults(source, expect)] == ([fault] if fault else []), because


@pytest.mark.parametrize(
    ("source", "column", "because"),
    [
        ("[m.?a]", 3, "an item"),
        ("[1, m.?a]", 6, "an item of a mixed list, whose type hides it"),
        ('{"a": m.?a}', 8, "a value of a map"),
        ('toJson({"a": m.?a})', 15, "this would end the process"),
        ('toJson({"a": dyn(m.?a)})', 19, "a conversion hides it"),
        ('toJson({"a": true ? m.?a : dyn(1)})', 19, "a choice hides it"),
        ('cel.bind(o, m.?a, toJson({"a": o}))', 32, "a name hides it"),
        ("x.map(i, i.?a)", 11, "each item of the result"),
        ("toJson([x[?0]])", 10, "of a value of any type the checker does not know that it is optional"),
        ('toJson({"a": x[?0].b})', 19, "nor of a part of it"),
        ('cel.bind(o, x[?0], toJson({"a": o}))', 33, "nor of a name"),
        ("[x].map(i, cel.bind(o, i[?0], o))", 20, "nor of a name inside"),
        ("m.?a.orValue(m.?b)", 15, "the default"),
        ('dig(m, "a") == optional.of(m.?a)', 29, "an optional of an optional"),
    ],
)
def test_an_optional_must_be_opened(source: str, column: int, because: str) -> None:
    message = "an optional value cannot be used here; open it with .orValue(…), or write ?item in a list or map"
    assert find_faults(source) == [(1, column, message)], because


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('m.?a.?b.orValue("z")', "z"),
        ("m.?a.b.orValue(2)", 2),
        ("m.?a.or(m.?c).orValue(3)", 7),
        ("m[?'c'].optMap(v, v + 1).orValue(0)", 8),
        ("m.?c.optFlatMap(v, m.?a).orValue(0)", 0),
        ("m.l[?5].orValue(6)", 6),
        ("[?m.?a, ?m.?c]", [7]),
        ("{?'a': m.?a, ?'c': m.?c}", {"c": 7}),
        ("m.?c.hasValue() && m.?c == optional.of(7)", True),
        ("(m.?a.hasValue() ? m.?a : m.?c).orValue(0)", 7),
        ("has(m.?c.d)", False),
    ],
)
def test_optionals_work(source: str, expected: object) -> None:
    program = ENVIRONMENT.compile(source).program
    assert program is not None
    outcome = program.evaluate(ENVIRONMENT.activate({"m": {"c": 7, "l": []}}))
    if source.startswith("has("):
        assert outcome.failure is not None  # 7 has no fields
    else:
        assert outcome == (expected, None)


def test_regular_expressions_are_checked() -> None:
    assert find_faults('name.matches("a") && name.matches("[")') == [
        (1, 35, "the regular expression is not valid: missing ]: [")
    ]


def test_a_program_knows_what_it_uses() -> None:
    program = ENVIRONMENT.compile("x.exists(e, e.type == name) && m.?spec.size.orValue(1) > 0 && has(x.late)").program
    assert program is not None
    assert program.variables == {"x", "name", "m"}
    assert program.fields == {"type", "spec", "size", "late"}


def test_without_optionals_it_is_the_dialect_of_the_go_sentinel() -> None:
    environment = CelEnvironment({"x": "any"}, has_optionals=False)
    assert [fault.message for fault in environment.compile("x.?a").faults] == ["unsupported syntax '.?'"]


TEXT = """\
rules:
  - when: age > foo
  - when: "bar"
  - when: |
      x == 1
        && baz
  - when: 'it''s'
"""


@pytest.mark.parametrize(
    ("pointer", "place", "because"),
    [
        ("/rules/0/when", (2, 17), "plain text"),
        ("/rules/1/when", (3, 12), "after the quote"),
        ("/rules/2/when", (6, 12), "a line of a block"),
    ],
)
def test_faults_are_placed_in_the_file(pointer: str, place: tuple[int, int], because: str) -> None:
    document = read(TEXT, "f.yaml").documents[0]
    source = {"0": "age > foo", "1": "bar", "2": "x == 1\n  && baz\n"}[pointer[7]]
    (problem,) = place_faults(ENVIRONMENT.compile(source).faults, Places(document), pointer)
    assert problem.place == DocumentPlace("f.yaml", *place, pointer), because
    assert problem.code == "Expression"
    assert problem.snippet.endswith("^")
