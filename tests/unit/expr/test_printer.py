"""Printing: one normal form, and reading it gives the same tree."""

from __future__ import annotations

from functools import reduce
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.expr.nodes import (
    ArrayLiteral,
    Binary,
    Boolean,
    Builtin,
    Bytes,
    Call,
    Chain,
    Conditional,
    ExprNode,
    Float,
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
)
from hyperfleet.expr.syntax.cursor import Grammar
from hyperfleet.expr.syntax.parser import parse
from hyperfleet.expr.syntax.precedence import BINARY, UNARY
from hyperfleet.expr.syntax.printer import format_tree


@pytest.mark.parametrize(
    ("text", "printed", "because"),
    [
        ("a+b*c", "a + b * c", "blanks around operators"),
        ("((a))+(b*c)", "a + b * c", "no needless parentheses"),
        ("(a+b)*c", "(a + b) * c", "needed ones stay"),
        ("a-(b-c)", "a - (b - c)", "to the right as well"),
        ("(a**b)**c", "(a ** b) ** c", "powers are from the right"),
        ("(-2)**2", "(-2) ** 2", "a sign before a power"),
        ("(a<b)<c", "(a < b) < c", "it would chain"),
        ("a<b<c", "a < b && b < c", "a chain is an and"),
        ("not (a in b)", "a not in b", "a negated operator"),
        ("!(a in b)", "!(a in b)", "but not for the other spelling"),
        ("-(not a)", "-(not a)", "a weaker sign inside"),
        ("(a ?? b) + c", "(a ?? b) + c", "mixing is an error"),
        ("a + (b ?? c)", "a + (b ?? c)", "clearer, if not needed"),
        ("a ?: b", "a ? a : b", "a short choice is a long one"),
        ("(a ? b : c) ? d : e", "(a ? b : c) ? d : e", "a choice in a test"),
        ("if a { b; c } else { d }", "a ? (b; c) : d", "a sequence in a branch"),
        ("let x = 1; let y = x; x; y", "let x = 1; let y = x; x; y", "statements"),
        ("f((let x = 1; x))", "f((let x = 1; x))", "an argument"),
        ('a["b"]["c d"][0]', 'a.b["c d"][0]', "names where they can be"),
        ('a?.b["c"]', 'a?.b["c"]', "a name would join the chain"),
        ("(nil).a", "(nil).a", "constants take no access"),
        ("xs | filter({.a > 1}) | map(#.b)", "map(filter(xs, .a > 1), .b)", "pipes are calls"),
        ("map(xs, {let y = #; y})", "map(xs, {let y = #; y})", "a predicate with statements"),
        ("map(xs, {{a: #}})", "map(xs, {{a: #}})", "a map in a predicate"),
        ("{'a': 1, 'b c': 2, in2: 3, 'in': 4, (k): 5}", '{a: 1, "b c": 2, in2: 3, "in": 4, (k): 5}', "keys"),
        (r"""'a\n"\x00\\'""", r'"a\n\"\u0000\\"', "strings"),
        (r"""b'a\xff"'""", r'b"a\xff\x22"', "bytes"),
        ("1_000 + 0x10 + 1e3", "1000 + 16 + 1000.0", "numbers"),
        ("a[1:][:2][:]", "a[1:][:2][:]", "slices"),
    ],
)
def test_normal_form(text: str, printed: str, because: str) -> None:
    tree = parse(text)
    assert format_tree(tree) == printed, because
    assert parse(printed) == tree, because


def test_a_hidden_builtin_is_named_as_such() -> None:
    grammar = Grammar(overridden={"len"})
    tree = parse("a[: ::len(b)] | len()", grammar)
    assert format_tree(tree, grammar.overridden) == "len(a[: ::len(b)])"
    assert parse(format_tree(tree, grammar.overridden), grammar) == tree


def test_long_chains_need_no_stack() -> None:
    text = " && ".join(["a"] * 10_000)
    assert format_tree(parse(text, Grammar(max_nodes=0))) == text
    text = "a" + ".b" * 4_000
    assert format_tree(parse(text)) == text


# Trees as the parser can make them.

Step: TypeAlias = tuple[str, ExprNode | None, ExprNode | None, bool]

names = st.sampled_from(["a", "b", "größe", "$x", "not1"])
leaves = st.one_of(
    st.builds(Nil),
    st.builds(Boolean, st.booleans()),
    st.builds(Integer, st.integers(0, 2**63 - 1)),
    st.builds(Float, st.floats(0, allow_infinity=False, allow_nan=False)),
    st.builds(String, st.text(max_size=4)),
    st.builds(Bytes, st.binary(max_size=4)),
    st.builds(Identifier, names),
)
pointers = st.builds(Pointer, st.sampled_from(["", "index", "acc"]))
operators = st.sampled_from(sorted(BINARY.keys() - {"|"}))


def take_step(base: ExprNode, step: Step) -> ExprNode:
    """Make an access as the parser does: a name goes on with the chain before it, a bracket does not."""
    kind, first, second, optional = step
    if kind == "slice":
        return Slice(base, first, second)
    if kind == "key":
        assert first is not None
        member = MemberAccess(base, first, optional)
        return Chain(member) if optional else member
    inner = base.body if isinstance(base, Chain) else base
    node: ExprNode = MemberAccess(inner, String(kind), optional, is_method=second is not None)
    if second is not None:
        node = Call(node, (second,))
    return Chain(node) if optional or isinstance(base, Chain) else node


def accesses(nodes: st.SearchStrategy[ExprNode]) -> st.SearchStrategy[ExprNode]:
    maybe = st.one_of(st.none(), nodes)
    steps = st.one_of(
        st.tuples(st.sampled_from(["a", "in", "not"]), st.none(), maybe, st.booleans()),
        st.tuples(st.just("key"), nodes, st.none(), st.booleans()),
        st.tuples(st.just("slice"), maybe, maybe, st.just(False)),
    )
    return st.builds(lambda base, found: reduce(take_step, found, base), nodes, st.lists(steps, max_size=3))


def tuples_of(nodes: st.SearchStrategy[ExprNode], least: int = 0) -> st.SearchStrategy[tuple[ExprNode, ...]]:
    return st.lists(nodes, min_size=least, max_size=3).map(tuple)


def composed(nodes: st.SearchStrategy[ExprNode]) -> st.SearchStrategy[ExprNode]:
    pairs = st.builds(Pair, nodes, nodes)
    predicates = st.builds(Predicate, nodes)
    return st.one_of(
        st.builds(Unary, st.sampled_from(sorted(UNARY)), nodes),
        st.builds(Binary, operators, nodes, nodes),
        st.builds(Binary, operators, nodes, nodes),
        st.builds(Conditional, nodes, nodes, nodes),
        st.builds(ArrayLiteral, tuples_of(nodes)),
        st.builds(MapLiteral, st.lists(pairs, max_size=2).map(tuple)),
        st.builds(Sequence, tuples_of(nodes, 2)),
        st.builds(Let, names, nodes, nodes),
        st.builds(Builtin, st.just("len"), tuples_of(nodes)),
        st.builds(Call, st.builds(Identifier, names), tuples_of(nodes)),
        st.builds(lambda array, test: Builtin("all", (array, test)), nodes, predicates),
        accesses(nodes),
    )


inside_a_predicate = st.recursive(st.one_of(leaves, pointers), composed, max_leaves=12)
trees = st.builds(lambda body: Builtin("map", (Identifier("xs"), Predicate(body))), inside_a_predicate)


@given(trees)
def test_reading_what_was_printed_gives_the_same_tree(tree: ExprNode) -> None:
    printed = format_tree(tree)
    assert parse(printed) == tree
    assert format_tree(parse(printed)) == printed
