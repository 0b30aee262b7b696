"""Set the type of every node of a tree, or report all errors that can be found without guessing.

`compile` calls `check` after parsing. Each node gets its `type`; a node in error counts as unknown, so that
one mistake is reported once. The first error is the original's, and it carries the further ones. The rules are in
`operators`, `calls` and `predicates`; this module walks the tree and places the messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hyperfleet.errors import ExprTypeError
from hyperfleet.expr.checking.accesses import check_chain, check_member, check_slice
from hyperfleet.expr.checking.call_checks import check_builtin, check_call, check_predicate
from hyperfleet.expr.checking.compatibility import is_any, is_assignable, is_nil, is_number, rough_kind, through
from hyperfleet.expr.checking.operators import binary_type, unary_type
from hyperfleet.expr.checking.predicates import element_of
from hyperfleet.expr.checking.walker import Walker
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
from hyperfleet.expr.runtime.regex import REFUSAL, PatternError, compile_pattern
from hyperfleet.expr.source import with_others
from hyperfleet.expr.types import (
    ANY,
    ANY_ARRAY,
    ANY_MAP,
    BOOL,
    BYTES,
    FLOAT,
    INT,
    NIL,
    STRING,
    UNKNOWN,
    Array,
    Type,
    untyped_array,
)

if TYPE_CHECKING:
    from hyperfleet.expr.checking.environment import Environment


def check(
    tree: ExprNode, text: str, environment: Environment, *, expect: Type | None = None, allow_any: bool = True
) -> Type:
    """Set the type of every node and return that of the tree; raise `ExprTypeError` when it has none.

    The result must be of the kind of `expect`, any number for a number; an open type will do if `allow_any`.
    """
    walker = Walker(text, environment, _RULES)
    try:
        found = walker.visit(tree)
    except RecursionError:  # the parser bounds nesting, but not chains of accesses and pipes
        raise ExprTypeError("expression is nested too deeply") from None
    if walker.errors:
        raise with_others(walker.errors)
    if expect is not None and not _is_expected(found, expect, allow_any=allow_any):
        raise ExprTypeError(f"expected {_KIND_NAMES.get(expect.kind, expect.name)}, but got {found.name}")
    return ANY if is_any(found) else found


_KIND_NAMES = {"array": "slice", "map": "map", "struct": "struct", "func": "func"}


def _is_expected(found: Type, expect: Type, *, allow_any: bool) -> bool:
    if allow_any and is_any(found):
        return True
    return is_number(found) if is_number(expect) else found.kind == expect.kind


def _check_identifier(walker: Walker, node: Identifier) -> Type:
    """Find a name: a variable, a part of the environment, a function."""
    if node.name in walker.variables:
        return walker.variables[node.name]
    if node.name == "$env":
        return UNKNOWN
    declared = walker.environment.variable(node.name) or walker.environment.function(node.name)
    return declared or walker.undeclared(node, node.name)


def _check_pointer(walker: Walker, node: Pointer) -> Type:
    """Find the type of `#` or `#name`."""
    if not walker.loops:
        return walker.error(node, "cannot use pointer accessor outside predicate")
    collection, pointers = walker.loops[-1]
    if not node.name:
        return element_of(collection)
    if node.name in pointers:
        return pointers[node.name]
    return walker.error(node, f"unknown pointer #{node.name}")


def _check_let(walker: Walker, node: Let) -> Type:
    """Check a declaration, and its body with the variable in scope."""
    depth = len(walker.variables)
    body: ExprNode = node
    while isinstance(body, Let):
        if (reason := _cannot_declare(walker, body.name)) is not None:
            walker.error(body, f"cannot redeclare {reason}{body.name}")
        walker.variables.declare(body.name, walker.visit(body.value))
        body = body.body
    found = walker.visit(body)
    walker.variables.leave(depth)
    while isinstance(node.body, Let):
        node = node.body
        node.type = found
    return found


def _cannot_declare(walker: Walker, name: str) -> str | None:
    """Return what a name already is, as error texts put it, or None when it is free."""
    if walker.environment.variable(name) is not None:
        return ""
    if name in walker.environment.functions:
        return "function "
    if walker.environment.has_builtin(name):
        return "builtin "
    return "variable " if name in walker.variables else None


def _check_unary(walker: Walker, node: Unary) -> Type:
    """Check `op x`."""
    found = unary_type(node.operator, through(walker.visit(node.operand)))
    return walker.error(node, found) if isinstance(found, str) else found


def _check_binary(walker: Walker, node: Binary) -> Type:
    """Check `a op b`; a long chain hangs to the left, so this is a loop."""
    chain = [node]
    while isinstance(chain[-1].left, Binary):
        chain.append(chain[-1].left)
    left = walker.visit(chain[-1].left)
    while chain:
        link = chain.pop()
        left = link.type = _operation(walker, link, through(left), through(walker.visit(link.right)))
    return left


def _operation(walker: Walker, node: Binary, left: Type, right: Type) -> Type:
    if node.operator == "matches" and isinstance(node.right, String) and (wrong := _cannot_match(walker, node.right)):
        return walker.error(node, wrong)
    found = binary_type(node.operator, left, right)
    return walker.error(node, found) if isinstance(found, str) else found


def _cannot_match(walker: Walker, node: String) -> str:
    """Return what is wrong with a constant pattern, which must be good and affordable, or nothing."""
    if walker.patterns <= 0:
        return "error parsing regexp: expression too large"
    try:
        walker.patterns -= compile_pattern(node.value).price()
    except PatternError as error:
        walker.patterns -= REFUSAL
        return str(error)
    return ""


def _check_conditional(walker: Walker, node: Conditional) -> Type:
    """Check `test ? then : otherwise`; the branches agree on a type, or it is unknown."""
    test = through(walker.visit(node.test))
    if test.kind not in ("bool", "any"):
        walker.error(node.test, f"non-bool expression (type {test.name}) used as condition")
        walker.search((node.then, node.otherwise))
        return UNKNOWN
    return _common(walker.visit(node.then), walker.visit(node.otherwise))


def _check_sequence(walker: Walker, node: Sequence) -> Type:
    """Check all items; the last one counts."""
    return [walker.visit(item) for item in node.items][-1]


def _check_array(walker: Walker, node: ArrayLiteral) -> Type:
    """Check `[…]`; elements of one kind make an array of the last one's type."""
    types = [walker.visit(item) for item in node.items]
    if len({rough_kind(found) for found in types}) > 1:
        return ANY_ARRAY
    return untyped_array(types[-1] if types else UNKNOWN)


def _check_map(walker: Walker, node: MapLiteral) -> Type:
    """Check `{…}`."""
    for pair in node.pairs:
        walker.visit(pair)
    return ANY_MAP


def _check_pair(walker: Walker, node: Pair) -> Type:
    """Check `key: value`."""
    walker.visit(node.key)
    walker.visit(node.value)
    return NIL


def _common(then: Type, otherwise: Type) -> Type:
    """Return the type of a choice between two."""
    if is_nil(then):
        return NIL if is_nil(otherwise) else otherwise
    if is_nil(otherwise):
        return then
    if not is_assignable(then, otherwise):
        return UNKNOWN
    if isinstance(then, Array) and isinstance(otherwise, Array):
        first, second = then.element, otherwise.element
        if not (is_assignable(first, second) and is_assignable(second, first)):
            return ANY_ARRAY
    return then


def _constant(found: Type) -> Callable[[Walker, Any], Type]:
    return lambda _walker, _node: found


_RULES: dict[type[ExprNode], Callable[[Walker, Any], Type]] = {
    Nil: _constant(NIL),
    Integer: _constant(INT),
    Float: _constant(FLOAT),
    Boolean: _constant(BOOL),
    String: _constant(STRING),
    Bytes: _constant(BYTES),
    Identifier: _check_identifier,
    Pointer: _check_pointer,
    Let: _check_let,
    Unary: _check_unary,
    Binary: _check_binary,
    Conditional: _check_conditional,
    Sequence: _check_sequence,
    ArrayLiteral: _check_array,
    MapLiteral: _check_map,
    Pair: _check_pair,
    Chain: check_chain,
    MemberAccess: check_member,
    Slice: check_slice,
    Call: check_call,
    Builtin: check_builtin,
    Predicate: check_predicate,
}
