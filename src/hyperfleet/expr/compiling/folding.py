"""A simpler tree that means the same: constants are computed, and some patterns are written more cheaply.

Called by `compile` between checker and compiler. The original does the same, and it is visible: `x && false` is
false even if `x` fails, `7 % 0` does not compile, `n in 1..1000000` makes no list. So this is part of the
language, not an optimisation. The tree of the parser is not changed.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, TypeVar

from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.nodes import (
    ArrayLiteral,
    Binary,
    Boolean,
    Builtin,
    Call,
    Chain,
    Conditional,
    ExprNode,
    Float,
    Integer,
    Let,
    MapLiteral,
    MemberAccess,
    Pair,
    Pointer,
    Predicate,
    Sequence,
    Slice,
    String,
    Unary,
    walk,
)
from hyperfleet.expr.runtime.numbers import add, divide, modulo, multiply, negate, power, subtract, wrap
from hyperfleet.expr.types import ANY, BOOL, FLOAT, INT, STRING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.types import Type

N = TypeVar("N", bound=ExprNode)

CONSTANTS = (Integer, Float, String, Boolean)

# The parts of a node that are nodes, or tuples of nodes.
_PARTS: dict[type[ExprNode], tuple[str, ...]] = {
    Unary: ("operand",),
    Binary: ("left", "right"),
    Chain: ("body",),
    MemberAccess: ("base", "key"),
    Slice: ("base", "lower", "upper"),
    Call: ("callee", "arguments"),
    Builtin: ("arguments",),
    Predicate: ("body",),
    Conditional: ("test", "then", "otherwise"),
    Let: ("value", "body"),
    Sequence: ("items",),
    ArrayLiteral: ("items",),
    Pair: ("key", "value"),
    MapLiteral: ("pairs",),
}


def fold(tree: ExprNode) -> ExprNode:
    """Compute what is constant. Raises an `EvaluationFault` with its place for what cannot be computed."""
    return _rebuild(tree, _fold_one)


def simplify(tree: ExprNode) -> ExprNode:
    """Write patterns more cheaply; expects a folded tree."""
    return _rebuild(tree, _simplify_one)


def _rebuild(node: ExprNode, rule: Callable[[ExprNode], ExprNode]) -> ExprNode:
    """Apply a rule to every node, from the leaves up. Long chains hang to the left, so those are a loop."""
    chain: list[Binary] = []
    while isinstance(node, Binary):
        chain.append(node)
        node = node.left
    result = _rebuild_row(node, rule) if isinstance(node, Let) else rule(_rebuild_parts(node, rule))
    for link in reversed(chain):
        right = _rebuild(link.right, rule)
        if result is not link.left or right is not link.right:
            link = _changed(link, left=result, right=right)  # noqa: PLW2901 - from here on the new one counts
        result = rule(link)
    return result


def _rebuild_row(node: Let, rule: Callable[[ExprNode], ExprNode]) -> ExprNode:
    """Apply a rule to a row of declarations, which may be long."""
    row: list[tuple[Let, ExprNode]] = []
    body: ExprNode = node
    while isinstance(body, Let):
        row.append((body, _rebuild(body.value, rule)))
        body = body.body
    result = _rebuild(body, rule)
    for declaration, value in reversed(row):
        is_same = value is declaration.value and result is declaration.body
        result = rule(declaration if is_same else _changed(declaration, value=value, body=result))
    return result


def _rebuild_parts(node: ExprNode, rule: Callable[[ExprNode], ExprNode]) -> ExprNode:
    changes: dict[str, object] = {}
    for name in _PARTS.get(type(node), ()):
        part: ExprNode | tuple[ExprNode, ...] | None = getattr(node, name)
        if isinstance(part, tuple):
            items = tuple(_rebuild(item, rule) for item in part)
            if any(item is not before for item, before in zip(items, part, strict=True)):
                changes[name] = items
        elif part is not None and (new := _rebuild(part, rule)) is not part:
            changes[name] = new
    return _changed(node, **changes) if changes else node


def _changed(node: N, **changes: object) -> N:
    """Return a copy of a node with other parts."""
    result = copy.copy(node)
    for name, value in changes.items():
        setattr(result, name, value)
    return result


def _placed(node: N, at: ExprNode, of: Type) -> N:
    """Put a new node in the place of another."""
    node.offset, node.start, node.end, node.type = at.offset, at.start, at.end, of
    return node


def _constant(value: object, at: ExprNode) -> ExprNode:
    """Return the literal of a value, in the place of a node."""
    if isinstance(value, bool):
        return _placed(Boolean(value), at, BOOL)
    if isinstance(value, int):
        return _placed(Integer(value), at, INT)
    if isinstance(value, float):
        return _placed(Float(value), at, FLOAT)
    return _placed(String(str(value)), at, STRING)


def _fold_one(node: ExprNode) -> ExprNode:
    if isinstance(node, Integer) and node.type.kind == "float":
        return _constant(float(node.value), node)  # an integer literal where a float is wanted
    if isinstance(node, Unary):
        return _fold_unary(node)
    if isinstance(node, Binary):
        return _fold_binary(node)
    if isinstance(node, Builtin) and node.name == "filter":
        return _merge_filters(node)
    return node


def _fold_unary(node: Unary) -> ExprNode:
    operand = node.operand
    if isinstance(operand, Boolean) and node.operator in ("!", "not"):
        return _constant(not operand.value, node)
    if isinstance(operand, (Integer, Float)) and node.operator in ("-", "+"):
        return _constant(negate(operand.value) if node.operator == "-" else operand.value, node)
    return node


_ARITHMETIC = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "**": power,
    "^": power,
}


def _fold_binary(node: Binary) -> ExprNode:
    """Compute an operation on literals, and `and`/`or` if one side decides it."""
    left, right, operator = node.left, node.right, node.operator
    if operator in ("and", "&&", "or", "||"):
        return _fold_logic(node, neutral=operator in ("and", "&&"))
    if operator == "%" and isinstance(left, Integer) and isinstance(right, Integer):
        return _fold_modulo(node, left, right)
    if operator in _ARITHMETIC and isinstance(left, (Integer, Float)) and isinstance(right, (Integer, Float)):
        return _constant(_ARITHMETIC[operator](left.value, right.value), node)
    if isinstance(left, (Integer, String, Boolean)) and type(left) is type(right):
        return _fold_alike(node, left.value, right.label())
    return node


def _fold_alike(node: Binary, left: object, right: object) -> ExprNode:
    if node.operator == "==":
        return _constant(left == right, node)
    if node.operator == "+" and isinstance(left, str):
        return _constant(left + str(right), node)
    return node


def _fold_modulo(node: Binary, left: Integer, right: Integer) -> ExprNode:
    if right.value == 0:
        fault = EvaluationFault("integer divide by zero")
        fault.offset = node.offset
        raise fault
    return _constant(modulo(left.value, right.value), node)


def _fold_logic(node: Binary, *, neutral: bool) -> ExprNode:
    """Drop a side without effect; a literal of the other value decides the result."""
    for literal, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(literal, Boolean) and literal.value is neutral:
            return _placed(copy.copy(other), node, other.type)
    if isinstance(node.left, Boolean) or isinstance(node.right, Boolean):
        return _constant(not neutral, node)
    return node


def _merge_filters(node: Builtin) -> ExprNode:
    """`filter(filter(x, p), q)` is `filter(x, p && q)`."""
    inner, outer = node.arguments
    if not (isinstance(inner, Builtin) and inner.name == "filter" and isinstance(outer, Predicate)):
        return node
    items, predicate = inner.arguments
    if not isinstance(predicate, Predicate):
        return node
    both = _fold_binary(Binary("&&", predicate.body, outer.body, type=BOOL))
    return _changed(node, arguments=(items, _changed(outer, body=both)))


def _simplify_one(node: ExprNode) -> ExprNode:
    if isinstance(node, Binary):
        return _simplify_binary(node)
    if isinstance(node, MemberAccess):
        return _simplify_member(node)
    if isinstance(node, Builtin):
        simpler = _SIMPLER.get(node.name)
        return simpler(node) if simpler else node
    return node


def _simplify_binary(node: Binary) -> ExprNode:
    if (
        node.operator == "in"
        and node.left.type == INT
        and isinstance(node.right, Binary)
        and node.right.operator == ".."
    ):
        low, high = node.right.left, node.right.right
        if isinstance(low, Integer) and isinstance(high, Integer):
            return _placed(Builtin(IN_RANGE, (node.left, low, high)), node, BOOL)
    if _is_loop(node.left, "count") and isinstance(node.right, Integer):
        return _simplify_count(node, node.left, node.right.value)
    return node


def _is_loop(node: ExprNode, name: str) -> bool:
    return isinstance(node, Builtin) and node.name == name and len(node.arguments) == 2


def _simplify_count(node: Binary, count: ExprNode, number: int) -> ExprNode:
    """Stop counting when the comparison is decided: `count(…) > 0` is `any(…)`, others need so many."""
    enough = {">": number + 1, ">=": number, "<": number, "<=": number + 1}.get(node.operator, 0)
    if (node.operator, enough) in ((">", 1), (">=", 1)):
        return _placed(_changed(count, name="any"), node, BOOL)
    if enough <= 1 or not isinstance(count, Builtin):
        return node
    return _changed(node, left=_changed(count, arguments=(*count.arguments, Integer(enough, type=INT))))


def _simplify_member(node: MemberAccess) -> ExprNode:
    """`filter(…)[0]` and `filter(…)[-1]` need not look at more than they return."""
    if node.optional or not _is_loop(node.base, "filter") or not isinstance(node.key, Integer):
        return node
    name = {0: FIRST_MATCH, -1: LAST_MATCH}.get(node.key.value)
    return _placed(_changed(node.base, name=name), node, node.type) if name else node


# Builtins that no source can name: what patterns are simplified to.
FIRST_MATCH = "filter()[0]"
LAST_MATCH = "filter()[-1]"
IN_RANGE = "in .."


def _simplify_length(node: Builtin) -> ExprNode:
    inner = node.arguments[0]
    return _placed(_changed(inner, name="count"), node, node.type) if _is_loop(inner, "filter") else node


def _simplify_first(node: Builtin) -> ExprNode:
    inner = node.arguments[0]
    return _placed(_changed(inner, name="find"), node, node.type) if _is_loop(inner, "filter") else node


def _simplify_last(node: Builtin) -> ExprNode:
    inner = node.arguments[0]
    return _placed(_changed(inner, name="findLast"), node, node.type) if _is_loop(inner, "filter") else node


def _simplify_map(node: Builtin) -> ExprNode:
    """The original does `map(filter(…), …)` in one loop, at the place of the `map`, unless an index is asked for."""
    inner, predicate = node.arguments
    if not _is_loop(inner, "filter") or any(
        isinstance(part, Pointer) and part.name == "index" for part in walk(predicate)
    ):
        return node
    return _changed(node, arguments=(_changed(inner, offset=node.offset), predicate))


def _simplify_sum(node: Builtin) -> ExprNode:
    """Sum without making a list first."""
    items = node.arguments[0]
    if isinstance(items, Binary) and items.operator == "..":
        return _sum_range(node, items)
    if len(node.arguments) == 1 and _is_loop(items, "map"):
        return _changed(node, arguments=items.children())
    if len(node.arguments) == 1 and isinstance(items, ArrayLiteral) and 1 < len(items.items) <= _MOST_SUMMANDS:
        return node if is_constant(items) else _sum_of(node, items)
    return node


_MOST_SUMMANDS = 60  # each one nests deeper


def _sum_of(node: Builtin, literal: ArrayLiteral) -> ExprNode:
    """`sum([a, b, c])` is `a + (b + c)`, which also decides how floats are rounded."""
    *before, total = literal.items
    for item in reversed(before):
        total = Binary("+", item, total, type=ANY)
    return _placed(total, node, node.type)


def _sum_range(node: Builtin, items: Binary) -> ExprNode:
    """`sum(m..n)` of literals has a formula, also if each number is multiplied or shifted by a literal first."""
    low, high = items.left, items.right
    if not (isinstance(low, Integer) and isinstance(high, Integer) and high.value >= low.value):
        return node
    factor_and_shift = _linear(node.arguments[1]) if len(node.arguments) == 2 else (1, 0)
    if factor_and_shift is None:
        return node
    factor, shift = factor_and_shift
    count = wrap(high.value - low.value + 1)
    product = wrap(count * wrap(low.value + high.value))
    total = -(-product // 2) if product < 0 else product // 2
    return _constant(wrap(factor * total + shift * count), node)


def _linear(node: ExprNode) -> tuple[int, int] | None:
    """Return `(a, b)` if a predicate says `a * # + b` in the fewest words."""
    body = node.body if isinstance(node, Predicate) else node
    if _is_element(body):
        return 1, 0
    if not isinstance(body, Binary) or body.operator not in ("+", "-", "*"):
        return None
    left, right = body.left, body.right
    if _is_element(left) and isinstance(right, Integer):
        return {"*": (right.value, 0), "+": (1, right.value), "-": (1, -right.value)}[body.operator]
    if isinstance(left, Integer) and _is_element(right):
        return {"*": (left.value, 0), "+": (1, left.value), "-": (-1, left.value)}[body.operator]
    return None


def _is_element(node: ExprNode) -> bool:
    return isinstance(node, Pointer) and not node.name


_SIMPLER: dict[str, Callable[[Builtin], ExprNode]] = {
    "len": _simplify_length,
    "first": _simplify_first,
    "last": _simplify_last,
    "map": _simplify_map,
    "sum": _simplify_sum,
}


def is_constant(node: ArrayLiteral) -> bool:
    """Tell whether a list literal holds only literals; the original makes it once, so it costs no memory."""
    return bool(node.items) and all(isinstance(item, CONSTANTS) for item in node.items)
