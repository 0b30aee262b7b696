"""Trees: what binds to what, what sugar becomes, the budgets, and the texts of errors."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.errors import ExprSyntaxError
from hyperfleet.expr.nodes import (
    ArrayLiteral,
    Binary,
    Boolean,
    Builtin,
    Call,
    Chain,
    Conditional,
    ExprNode,
    Identifier,
    Integer,
    Let,
    MapLiteral,
    MemberAccess,
    Nil,
    Pair,
    Pointer,
    Predicate,
    Sequence,
    Slice,
    String,
    Unary,
    walk,
)
from hyperfleet.expr.syntax.cursor import Grammar
from hyperfleet.expr.syntax.parser import parse

A, B, C, D = (Identifier(name) for name in "abcd")
ONE, TWO, THREE = Integer(1), Integer(2), Integer(3)
FIELD = String("b")
KEY_FAULT = "a map key must be a quoted string, a number, a identifier, or an expression enclosed in parentheses"


def fault(text: str, grammar: Grammar | None = None) -> str:
    with pytest.raises(ExprSyntaxError) as caught:
        parse(text, grammar)
    return str(caught.value).split("\n", maxsplit=1)[0]


@pytest.mark.parametrize(
    ("text", "tree", "because"),
    [
        ("a + b * c", Binary("+", A, Binary("*", B, C)), "products before sums"),
        ("a - b - c", Binary("-", Binary("-", A, B), C), "from the left"),
        ("a ** b ** c", Binary("**", A, Binary("**", B, C)), "powers from the right"),
        ("-a ** b", Unary("-", Binary("**", A, B)), "a power before its sign"),
        ("-1[a]", MemberAccess(Unary("-", ONE), A), "a number takes no access, its sign does"),
        ("not a in b", Binary("in", Unary("not", A), B), "not binds to the operand"),
        ("a not in b", Unary("not", Binary("in", A, B)), "but may belong to the operator"),
        ("not a * b", Unary("not", Binary("*", A, B)), "and takes a product with it"),
        ("a || b && c", Binary("||", A, Binary("&&", B, C)), "and before or"),
        ("a or b ?? c", Binary("or", A, Binary("??", B, C)), "the alternative binds strongest"),
        ("a + 1..3", Binary("..", Binary("+", A, ONE), THREE), "sums before ranges"),
        ("a < b < c", Binary("&&", Binary("<", A, B), Binary("<", B, C)), "comparisons chain"),
        ("a < b == c", Binary("==", Binary("<", A, B), C), "equality does not"),
        ("a ?: b", Conditional(A, A, B), "a short choice"),
        ("a ? b : c ? d : a", Conditional(A, B, Conditional(C, D, A)), "choices nest to the right"),
        ("if a {b} else if c {d} else {1}", Conditional(A, B, Conditional(C, D, ONE)), "if is a choice"),
        ("let x = a; let y = b; x; y", None, "declarations nest"),
        ("a; b;", Sequence((A, B)), "a last semicolon at the end"),
        ("a.b", MemberAccess(A, FIELD), "a name"),
        ("a['b']", MemberAccess(A, FIELD), "is the same as its string"),
        ("a.not", MemberAccess(A, String("not")), "words are names behind a dot"),
        ("a?.b.c", Chain(MemberAccess(MemberAccess(A, FIELD, True), String("c"))), "a chain goes on"),
        ("a?.b[1]", MemberAccess(Chain(MemberAccess(A, FIELD, True)), ONE), "until a bracket"),
        ("(a?.b).c", Chain(MemberAccess(MemberAccess(A, FIELD, True), String("c"))), "parentheses do not end it"),
        ("a?.[1]", Chain(MemberAccess(A, ONE, True)), "a bracket can be optional"),
        ("a?.[1:]", Slice(A, ONE, None), "a slice cannot"),
        ("a[:2]", Slice(A, None, TWO), "bounds may be absent"),
        ("a.b(1)", Call(MemberAccess(A, FIELD, is_method=True), (ONE,)), "a method"),
        ("a | b(1,)", Call(B, (A, ONE)), "a pipe gives the first argument"),
        ("a | len()", Builtin("len", (A,)), "to builtins too"),
        ("all(a, # > 1)", Builtin("all", (A, Predicate(Binary(">", Pointer(), ONE)))), "a bare predicate"),
        ("map(a, {.b})", Builtin("map", (A, Predicate(MemberAccess(Pointer(), FIELD)))), "an implied pointer"),
        ("map(a, {{}})", Builtin("map", (A, Predicate(MapLiteral(())))), "a map in a predicate has two braces"),
        ("reduce(a, #acc + #, 1)", None, "named pointers"),
        ("{a: 1, 'b': 2, (c): nil}", None, "keys are strings"),
        ("[1, true,]", ArrayLiteral((ONE, Boolean(True))), "a last comma"),
    ],
)
def test_trees(text: str, tree: ExprNode | None, because: str) -> None:
    assert parse(text) == (tree or LONG_TREES[text]), because


LONG_TREES: dict[str, ExprNode] = {
    "let x = a; let y = b; x; y": Let("x", A, Let("y", B, Sequence((Identifier("x"), Identifier("y"))))),
    "reduce(a, #acc + #, 1)": Builtin("reduce", (A, Predicate(Binary("+", Pointer("acc"), Pointer())), ONE)),
    "{a: 1, 'b': 2, (c): nil}": MapLiteral((Pair(String("a"), ONE), Pair(FIELD, TWO), Pair(C, Nil()))),
}


@pytest.mark.parametrize(
    ("text", "message", "because"),
    [
        ("", "unexpected token EOF", "nothing to point at"),
        ("a b", 'unexpected token Identifier("b") (1:3)', "no operator between"),
        ("a +", "unexpected token EOF (1:3)", "the end counts as its last character"),
        ("a.", "unexpected end of expression (1:2)", "no name at all"),
        ("a.'b' c", "expected name (1:7)", "points behind, as the original does"),
        ("nil.a", 'unexpected token Operator(".") (1:4)', "nil has no parts"),
        (
            "a ?? b || c",
            "Operator (||) and coalesce expressions (??) cannot be mixed. Wrap either by parentheses. (1:8)",
            "",
        ),
        ("1 not == 2", 'unexpected token Operator("==") (1:7)', "only some operators are negated"),
        ("map(a, 1; 2)", "wrap predicate with brackets { and } (1:9)", "a sequence needs braces"),
        ("all(a)", "expected at least 2 arguments (1:6)", "a predicate is missing"),
        ("a | all()", "expected at least 1 arguments (1:9)", "the piped one does not count"),
        ("#", 'unexpected token Operator("#") (1:1)', "no predicate around it"),
        ("1 + if a {1} else {2}", 'unexpected token Operator("if") (1:5)', "a statement is no operand"),
        ("[1; 2]", 'unexpected token Operator(";") (1:3)', "no sequence between brackets"),
        ("{a:1, ,}", 'unexpected token Operator(",") (1:7)', "one comma"),
        (
            "{.a: 1}",
            KEY_FAULT + ' (unexpected token Operator(".")) (1:2)',
            "a strange key",
        ),
        ("1E", 'invalid float literal: strconv.ParseFloat: parsing "1E": invalid syntax (1:2)', "no exponent"),
        ('a b "', 'unexpected token Identifier("b") (1:3)', "an earlier error comes before a bad token"),
        ("let = 1", 'unexpected token Operator("=") (1:5)', "no name"),
    ],
)
def test_faults(text: str, message: str, because: str) -> None:
    assert fault(text) == message, because


def test_names_of_the_environment_hide_builtins() -> None:
    grammar = Grammar(overridden={"len", "all"})
    assert parse("len(a)", grammar) == Call(Identifier("len"), (A,))
    assert parse("all(a, b)", grammar) == Call(Identifier("all"), (A, B))
    assert parse("::all(a, #)", grammar) == Builtin("all", (A, Predicate(Pointer())))


def test_a_disabled_builtin_is_a_name() -> None:
    assert parse("::len(a)", Grammar(disabled={"len"})) == Call(Identifier("len"), (A,))


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("(a + b) * c", {"*": "(a + b) * c", "+": "a + b"}),
        ("a < b < c", {"&&": "a < b < c", "<": "b < c"}),
        ("x == a.b[1].c(2)", {"==": "x == a.b[1].c(2)"}),
    ],
)
def test_operators_know_their_text(text: str, spans: dict[str, str]) -> None:
    found = {node.operator: text[node.start : node.end] for node in walk(parse(text)) if isinstance(node, Binary)}
    assert found == spans


@pytest.mark.parametrize(
    ("text", "offset", "because"),
    [
        ("a + b", 2, "the operator"),
        ("a.bc", 2, "the name"),
        ("a[1]", 1, "the bracket"),
        ("a | len()", 4, "the function"),
        ("a ? b : c ", 9, "the token behind"),
        ("let x = 1; x", 4, "the name"),
        ("a not in b", 6, "the operator, not its negation"),
    ],
)
def test_errors_point_at(text: str, offset: int, because: str) -> None:
    assert parse(text).offset == offset, because


def test_long_chains_need_no_stack() -> None:
    grammar = Grammar(max_nodes=0)
    for operator in (" && ", " + ", " ?? "):
        tree = parse(operator.join(["a"] * 10_000), grammar)
        assert sum(1 for _ in walk(tree)) == 19_999
        assert tree == parse(operator.join(["a"] * 10_000), grammar)
    assert isinstance(parse("a" + ".b" * 10_000, grammar), MemberAccess)
    assert isinstance(parse("let a = 1; " * 3_000 + "a", grammar), Let)


def test_nesting_is_bounded() -> None:
    assert parse("(" * 100 + "a" + ")" * 100) == A
    for opening in ("(", "[", "-", "{a: ", "f(", "a[", "1 ** ", "a ? ", "map(a, "):
        assert fault(opening * 200).startswith("expression is nested too deeply (at most 150 levels)")


def test_a_deep_stack_gives_the_same_error() -> None:
    # Each level takes as many frames as the ladder of operators has steps.
    text = "1||1&&1==1..1+1*1**(" * 149
    assert fault(text).startswith("expression is nested too deeply")


def test_nodes_are_counted() -> None:
    assert fault("[1, 2, 3]", Grammar(max_nodes=3)) == (
        "compilation failed: expression exceeds maximum allowed nodes (1:9)"
    )
    assert fault(" + ".join(["a"] * 5_001)).startswith("compilation failed: expression exceeds maximum")


def test_the_text_is_bounded() -> None:
    assert fault("a" * 11, Grammar(max_length=10)) == "expression is too long (at most 10 characters)"


def test_what_sugar_repeats_is_counted_twice() -> None:
    text = "a"
    for _ in range(60):
        text = f"({text} ?: a)"
    assert fault(text).startswith("compilation failed: expression exceeds maximum allowed nodes")


BRACKETS = ["(", ")", "[", "]", "{", "}"]
MARKS = [",", ";", ":", "::", "?", "?.", "??", ".", "..", "|", "#", "=", "!", "<", "==", "+", "-", "**", "&&"]
WORDS = ["a", "len", "map", "not", "in", "matches", "let", "if", "else", "nil", "true", "$env", "#index"]
PIECES = st.sampled_from([*BRACKETS, *MARKS, *WORDS, "1", "1.5", "'x'", "`y`", "b'z'"])


@given(st.lists(PIECES, max_size=12).map(" ".join))
def test_any_tokens_are_parsed_or_refused(text: str) -> None:
    with suppress(ExprSyntaxError):
        assert all(0 <= node.start <= node.end <= len(text) for node in walk(parse(text)))
