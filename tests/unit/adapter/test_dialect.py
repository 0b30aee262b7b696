"""The contract's dialect: what an expression means, and where its faults are."""

from __future__ import annotations

from typing import Any

import pytest

from hyperfleet.adapter.dialect import choose_language, is_dialect, parse_dialect
from hyperfleet.adapter.dialect.parser import MAX_DEPTH, MAX_SOURCE
from hyperfleet.adapter.faults import place_source_faults
from hyperfleet.documents import Places, read

VARIABLES: dict[str, Any] = {
    "a": {"b": {"c": 1}, "list": [10, 20], "no": False, "text": "x", "null": None},
    "items": [{"k": "v", "n": 1}, {"k": "w", "n": 2.0}, {"n": 3, "inner": [{"t": "x", "v": 7}]}],
    "key": "b",
}


def evaluate(expression: str) -> Any:
    program = parse_dialect(expression).program
    assert program, parse_dialect(expression).faults
    outcome = program.evaluate(VARIABLES)
    assert outcome.fault is None, outcome.fault
    return outcome.value


@pytest.mark.parametrize(
    ("expression", "value", "because"),
    [
        ("a.b.c", 1, "members"),
        ("a?.b?.c", 1, "?. is the same: every access is nil-safe"),
        ("a.x.y.z", None, "an access into nil is nil"),
        ("nothing.x", None, "a variable that is not there is nil"),
        ("a.text.x", None, "a string has no members"),
        ("a['b'].c", 1, "a name in brackets"),
        ("a[key].c", 1, "a computed name"),
        ("a.list[1]", 20, "a position"),
        ("a.list[2]", None, "a position that is not there"),
        ("a.list[-1]", None, "there is no counting from the end"),
        ("items[?(@.k=='w')].n", 2.0, "the first match"),
        ("items[?(@.k==\"q\")].n", None, "no match is nil"),
        ("items[?(@.n>=2)].k", "w", "any comparison"),
        ("items[?(@.n>1 && @.k!='w')].n", 3, "any condition"),
        ("items[?(@.inner)].n", 3, "a bare path must be there"),
        ("items[?(@.inner[?(@.t=='x')].v == 7)].n", 3, "a filter in a filter"),
        ("a[?(@.k=='v')]", None, "a map has no items"),
        ("nothing[?(@.k=='v')].x", None, "nil has no items"),
        ("items[?(@.k < 'w')].n", 1, "an order with nil is false, so that the item without k is passed over"),
        ("a.x ?? 1", 1, "nil is replaced"),
        ("a.no ?? true", False, "false is not nil"),
        ("a.x ?? a.y ?? 3", 3, "the first that is not nil"),
        ("a.x ?? nil", None, "also by nil"),
        ("a.x < 1", False, "an order with nil is false"),
        ("a.x > 1", False, "an order with nil is false"),
        ("1 > a.x", False, "an order with nil is false"),
        ("a.x <= 1 || a.x >= 1", False, "an order with nil is false"),
        ("nil == 'x'", False, "nil equals nil only"),
        ("nil == nil", True, "nil equals nil"),
        ("a.x == nil", True, "what is missing is nil"),
        ("a.null != nil", False, "null is nil"),
        ("2 == 2.0", True, "numbers compare by value"),
        ("true == 1", False, "a boolean is no number"),
        ("'a' < 'b'", True, "strings have an order"),
        ("a.b == a.b", True, "maps compare by content"),
        ("!a.no", True, "not"),
        ("!!a.no", False, "twice"),
        ("!a.x", True, "nil counts as false"),
        ("a.x && true", False, "nil counts as false"),
        ("true || a.text", True, "the right side is not evaluated"),
        ("false && a.text", False, "the right side is not evaluated"),
        ("true || false && false", True, "&& binds closer"),
        ("a.no ? 1 : 2", 2, "a choice"),
        ("a.x ? 1 : a.no ? 2 : 3", 3, "a choice in a choice"),
        ("a.x ?? true ? 1 : 2", 1, "?? binds closer than a choice"),
        ("(a.x ?? 0) < 1", True, "parentheses"),
        ("(a.x ?? a).text", "x", "an access into parentheses"),
        ("-1 < 0", True, "a negative number"),
        ("1.5e1 == 15", True, "floats"),
        ("'it\\'s' == \"it's\"", True, "escapes"),
        ("'\\u00e9'", "é", "escapes"),
        (' \n a.text\n== "x" \n', True, "line breaks are blanks"),
    ],
)  # fmt: skip
def test_an_expression_has_its_value(expression: str, value: object, because: str) -> None:
    assert evaluate(expression) == value, because
    assert type(evaluate(expression)) is type(value), because


@pytest.mark.parametrize(
    ("expression", "is_fallback", "because"),
    [
        ("a.text ?? 'y'", False, "the left side had a value"),
        ("a.x ?? 'y'", True, "the right side was taken"),
        ("(a.x ?? 'y')", True, "parentheses change nothing"),
        ("a.x ?? a.text", True, "also if it is no literal"),
        ("a.x ?? nil", True, "also if it is nil"),
        ("a.no ? 'z' : a.x ?? 'y'", True, "the branch that was taken counts"),
        ("!a.no ? 'z' : (a.x ?? 'y')", False, "the other branch does not"),
        ("(a.x ?? a).text", True, "an access into the right side"),
        ("(a.x ?? 0) == 0", False, "a comparison is a result of its own"),
        ("'y'", False, "there is no ??"),
    ],
)
def test_an_outcome_tells_whether_it_came_from_a_fallback(expression: str, is_fallback: bool, because: str) -> None:
    program = parse_dialect(expression).program
    assert program
    assert program.evaluate(VARIABLES).is_fallback is is_fallback, because


@pytest.mark.parametrize(
    ("expression", "column", "message"),
    [
        ("", 1, "expected a value and not the end of the expression"),
        ("a.", 3, "a name is missing after ."),
        ("a ==", 5, "expected a value and not the end of the expression"),
        ("a = 1", 3, "unexpected =; equality is =="),
        ("a == 'x", 6, "unexpected ': the string is not closed"),
        ("a & b", 3, "unexpected &; and is &&"),
        ("a + 1", 3, "unexpected +; there is no arithmetic, CEL has it"),
        ("-a", 1, "- must be followed by a number; there is no arithmetic, CEL has it"),
        ("size(a)", 5, "unexpected (: there are no functions here, CEL has them"),
        ("(a", 3, "expected ) and not the end of the expression"),
        ("a)", 2, "unexpected )"),
        ("a b", 3, "unexpected b"),
        ("a[?(@.k=='v')", 14, "expected ] and not the end of the expression"),
        ("a[?@.k]", 4, "expected ( and not @"),
        ("@.k", 1, "@ is the item of a filter: [?(@.type=='Ready')]"),
        ("a < b < c", 7, "a comparison has two sides; join several with &&"),
        ("a ?? b == c", 3, "?? beside another operator needs parentheses: (a ?? b) == c"),
        ("a && b ?? c", 8, "?? beside another operator needs parentheses: (a ?? b) == c"),
        ("a ? b", 6, "expected : and not the end of the expression"),
        ("'\\q'", 2, "\\q is not an escape"),
        ("99999999999999999999", 1, "99999999999999999999 does not fit into 64 bits"),
        ("1" * 50, 1, "the number has too many digits"),
        ("(" * 100, MAX_DEPTH + 1, f"more than {MAX_DEPTH} levels of parentheses, brackets or choices"),
        ("!" * 100 + "a", MAX_DEPTH + 1, f"more than {MAX_DEPTH} levels of parentheses, brackets or choices"),
        ("a" * (MAX_SOURCE + 1), 1, f"the expression has more than {MAX_SOURCE} characters"),
    ],
)
def test_a_fault_has_its_place(expression: str, column: int, message: str) -> None:
    (fault,) = parse_dialect(expression).faults
    assert (fault.line, fault.column, fault.message) == (1, column, message)


@pytest.mark.parametrize(
    ("expression", "column", "message"),
    [
        ("a.text && true", 1, "a boolean is wanted here, and this is a string"),
        ("true && a.list", 9, "a boolean is wanted here, and this is a list"),
        ("a.text < 1", 8, "a string and a number have no order"),
        ("a.b ? 1 : 2", 1, "a boolean is wanted here, and this is an object"),
    ],
)
def test_a_wrong_type_is_a_fault_of_the_evaluation(expression: str, column: int, message: str) -> None:
    program = parse_dialect(expression).program
    assert program
    outcome = program.evaluate(VARIABLES)
    assert outcome.fault
    assert (outcome.fault.column, outcome.fault.message) == (column, message)
    assert outcome.value is None


def test_a_fault_on_a_later_line_has_that_line() -> None:
    (fault,) = parse_dialect("a.b == 1 &&\n  a.c = 2").faults
    assert (fault.line, fault.column) == (2, 7)
    assert fault.snippet == "      a.c = 2\n          ^"


def test_a_fault_is_placed_in_the_file() -> None:
    text = 'reason:\n  expression: |\n    a.b ??\n    "x" +\n'
    document = read(text, "dns.yaml").documents[0]
    faults = parse_dialect('a.b ??\n"x" +\n').faults
    (problem,) = place_source_faults(faults, Places(document), "/reason/expression", "Expression")
    assert str(problem.place) == "dns.yaml:4:9"


def test_the_steps_are_bounded() -> None:
    program = parse_dialect("items[?(@.a[?(@.b==1)].c==2)]").program
    assert program
    outcome = program.evaluate({"items": [{"a": [{"b": 0}] * 1_000}] * 1_000})
    assert outcome.fault
    assert "steps" in outcome.fault.message


def test_a_long_chain_is_no_deep_one() -> None:
    assert evaluate("a" + ".x" * 4_000) is None
    assert evaluate(" && ".join(["true"] * 1_000)) is True
    assert evaluate(" ?? ".join(["a.x"] * 1_000)) is None


def test_the_paths_that_an_expression_reads() -> None:
    program = parse_dialect("(resources.c.status.x[?(@.t == key)].y ?? env.A) == params['p'].q\n&& !flag").program
    assert program
    assert [(".".join(use.path), use.line, use.column) for use in program.paths()] == [
        ("resources.c.status.x", 1, 2),
        ("key", 1, 32),
        ("env.A", 1, 43),
        ("params.p.q", 1, 53),
        ("flag", 2, 5),
    ]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a ?? b", True),
        ("a[?(@.k=='v')]", True),
        ("a != nil", True),
        ("a?.b", True),
        ('a == "??"', False),
        ("a == 'nil' // nil ??", False),
        ('a == """x ?? "y" @"""', False),
        ("a.?b.orValue('')", False),
        ("a[?0].?b", False),
        ("a.nil", False),
        ("a ?.5 : 1.0", False),
        ("a > 0", False),
    ],
)
def test_a_sign_of_the_dialect_is_found_outside_of_strings(expression: str, expected: bool) -> None:
    assert is_dialect(expression) is expected


@pytest.mark.parametrize(
    ("expression", "is_contract_block", "language"),
    [
        ("a.status.replicas > 0", True, "dialect"),
        ("a.status.replicas > 0", False, "cel"),
        ("a.b ?? 1", False, "dialect"),
        ("has(a.b)", True, "cel"),
        ("a.?b.orValue(1) == 1", True, "cel"),
        ("a in ['x']", True, "cel"),
    ],
)
def test_the_language_depends_on_the_block(expression: str, is_contract_block: bool, language: str) -> None:
    assert choose_language(expression, is_contract_block=is_contract_block) == language
