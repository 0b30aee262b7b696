"""How operators are compiled: plain Python where static types decide, a call where they do not."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hyperfleet.expr.compiling import emission as py
from hyperfleet.expr.compiling.access import emit_chain
from hyperfleet.expr.compiling.emitter import Emitter, bound, fits, is_exact, is_short_literal
from hyperfleet.expr.nodes import ArrayLiteral, Binary, Chain, ExprNode, Integer, Nil, String, Unary
from hyperfleet.expr.runtime import numbers
from hyperfleet.expr.runtime.lookup import operation_of
from hyperfleet.expr.runtime.operations import search
from hyperfleet.expr.runtime.regex import PatternError, compile_pattern
from hyperfleet.expr.types import BOOL, FLOAT, INT, STRING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.nodes import Conditional

    Typed = Callable[[Emitter, Binary], ast.expr | None]

LONGEST = 100
"""Links of a chain in one Python expression; Python's compiler would run out of stack with thousands."""

SMALL_PATTERN = 64
"""Instructions of a pattern that costs about as much per character as other operations on text."""

_AND = frozenset({"and", "&&"})
_OR = frozenset({"or", "||"})


def emit_unary(emitter: Emitter, node: Unary) -> ast.expr:
    """Emit `!x`, `-x` or `+x`."""
    operand = emitter.emit(node.operand)
    if node.operator in ("!", "not"):
        return py.negate(emitter.truth(node.operand, operand, node.offset))
    if node.operator == "+":
        return operand
    if node.operand.type == FLOAT or (node.operand.type == INT and fits(bound(node.operand))):
        return py.minus(operand, node.offset)
    return emitter.call(numbers.negate, [operand], node.offset)


def emit_binary(emitter: Emitter, node: Binary) -> ast.expr:
    """Emit an operation; a long chain hangs to the left, so it is a loop."""
    chain = [node]
    while isinstance(chain[-1].left, Binary):
        chain.append(chain[-1].left)
    chain.reverse()
    value: ast.expr | None = None
    while chain:
        family = _family(chain[0])
        same = 1
        while family and same < len(chain) and _family(chain[same]) is family:
            same += 1
        links, chain = chain[:same], chain[same:]
        value = _emit_logic(emitter, links, value) if family else _emit_link(emitter, links[0], value)
        if len(chain) % LONGEST == LONGEST - 1:
            value = emitter.keep(value)
    if value is None:
        raise ValueError("a chain has at least one link")
    return value


def _family(node: Binary) -> frozenset[str] | None:
    """Return the spellings of a logical operator that can be written in one go."""
    return _AND if node.operator in _AND else _OR if node.operator in _OR else None


def _emit_link(emitter: Emitter, node: Binary, left: ast.expr | None) -> ast.expr:
    """Emit one operation; `left` is its left side if that was emitted already."""
    if node.operator == "??":
        return _emit_coalesce(emitter, node, left)
    if left is not None:
        emitter.knows(node.left, left)
    typed = _TYPED.get(node.operator)
    found = typed(emitter, node) if typed else None
    if found is None:
        operands = emitter.operands((node.left, node.right))
        found = emitter.call(operation_of(node), [*operands, emitter.account()], node.offset)
    return found


def _emit_logic(emitter: Emitter, links: list[Binary], first: ast.expr | None) -> ast.expr:
    """Emit `a && b && c`; every operand but the last must be a bool."""
    operator: ast.boolop = ast.And() if links[0].operator in _AND else ast.Or()
    left = first if first is not None else emitter.emit(links[0].left)
    values = [emitter.truth(links[0].left, left, links[0].offset)]
    result: str | None = None
    for place, link in enumerate(links):
        with emitter.apart() as branch:
            value = emitter.emit(link.right)
            if place + 1 < len(links):
                value = emitter.truth(link.right, value, links[place + 1].offset)
        if not branch:
            values.append(value)
            continue
        # The operand needs statements: what comes before decides whether they run.
        result = result or emitter.fresh("r")
        branch.append(py.assign(result, value))
        emitter.statement(py.assign(result, _joined(operator, values)))
        test = py.name(result)
        emitter.statement(py.when(test if isinstance(operator, ast.And) else py.negate(test), branch))
        values = [py.name(result)]
    return _joined(operator, values)


def _joined(operator: ast.boolop, values: list[ast.expr]) -> ast.expr:
    return py.logic(operator, values) if len(values) > 1 else values[0]


def _emit_coalesce(emitter: Emitter, node: Binary, left: ast.expr | None) -> ast.expr:
    """Emit `a ?? b`."""
    value = emitter.keep(left if left is not None else _emit_side(emitter, node.left))
    test = emitter.nil_test(node.left, value)
    return emit_either(emitter, test, node.right, value, emit=_emit_side)


def _emit_side(emitter: Emitter, node: ExprNode) -> ast.expr:
    """Emit a side of `??`, where a nil list stays nil."""
    return emit_chain(emitter, node, plain=False) if isinstance(node, Chain) else emitter.emit(node)


def emit_either(
    emitter: Emitter,
    test: ast.expr,
    then: ExprNode,
    otherwise: ExprNode | ast.expr,
    emit: Callable[[Emitter, ExprNode], ast.expr] = Emitter.emit,
) -> ast.expr:
    """Emit one of two branches, as an expression if neither needs statements."""
    with emitter.apart() as first:
        yes = emit(emitter, then)
    with emitter.apart() as second:
        no = emitter.emit(otherwise) if isinstance(otherwise, ExprNode) else otherwise
    if not first and not second:
        return py.either(test, yes, no)
    result = emitter.fresh("r")
    first.append(py.assign(result, yes))
    second.append(py.assign(result, no))
    emitter.statement(py.when(test, first, second))
    return py.name(result)


def emit_conditional(emitter: Emitter, node: Conditional) -> ast.expr:
    """Emit `a ? b : c`."""
    test = emitter.truth(node.test, emitter.emit(node.test), node.offset)
    return emit_either(emitter, test, node.then, node.otherwise)


# Operators whose operands have types that Python treats alike. Each returns None where they have not.


def _equality(emitter: Emitter, node: Binary) -> ast.expr | None:
    operator: ast.cmpop = ast.Eq() if node.operator == "==" else ast.NotEq()
    if isinstance(node.left, Nil) or isinstance(node.right, Nil):
        other = node.right if isinstance(node.left, Nil) else node.left
        test = emitter.nil_test(other, emitter.emit(other))
        return test if node.operator == "==" else py.negate(test)
    if node.left.type == node.right.type and not (emitter.is_sure(node.left) and emitter.is_sure(node.right)):
        return None
    if node.left.type == node.right.type == BOOL or _are_short(emitter, node):
        left, right = emitter.operands((node.left, node.right))
        return py.compare(left, operator, right, node.offset)
    return _numeric(emitter, node, operator)


def _are_short(emitter: Emitter, node: Binary) -> bool:
    """Tell whether both are strings, and comparing them cannot take long however often it is done."""
    if not node.left.type == node.right.type == STRING:
        return False
    if is_short_literal(node.left) or is_short_literal(node.right):
        return True
    return _is_read_once(emitter, node.left) and _is_read_once(emitter, node.right)


_ORDERS: dict[str, type[ast.cmpop]] = {"<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE}


def _order(emitter: Emitter, node: Binary) -> ast.expr | None:
    operator = _ORDERS[node.operator]()
    if _are_short(emitter, node):
        left, right = emitter.operands((node.left, node.right))
        return py.compare(left, operator, right, node.offset)
    return _numeric(emitter, node, operator)


def _numeric(emitter: Emitter, node: Binary, operator: ast.cmpop) -> ast.expr | None:
    """Compare two numbers; an integer and a float as floats."""
    if not _are_numbers(node):
        return None
    left, right = emitter.operands((node.left, node.right))
    if node.left.type != node.right.type:
        left, right = _as_float(emitter, node.left, left), _as_float(emitter, node.right, right)
    return py.compare(left, operator, right, node.offset)


def _are_numbers(node: Binary) -> bool:
    return node.left.type in (INT, FLOAT) and node.right.type in (INT, FLOAT)


def _as_float(emitter: Emitter, node: ExprNode, value: ast.expr) -> ast.expr:
    """Make an integer a float, where Python would take it more exactly than the original."""
    return value if node.type == FLOAT or is_exact(node) else emitter.call(float, [value], node.offset)


_ARITHMETIC: dict[str, type[ast.operator]] = {"+": ast.Add, "-": ast.Sub, "*": ast.Mult}


def _arithmetic(emitter: Emitter, node: Binary) -> ast.expr | None:
    if not _are_numbers(node):
        return None
    left, right = emitter.operands((node.left, node.right))
    result = py.binary(left, _ARITHMETIC[node.operator](), right, node.offset)
    if FLOAT in (node.left.type, node.right.type) or fits(_bound_of(node)):
        return result
    kept = emitter.fresh("t")
    test = py.within(numbers.SMALLEST, py.bind(kept, result), numbers.LARGEST)
    return py.either(test, py.name(kept), emitter.call(numbers.fit, [py.name(kept)], node.offset))


def _bound_of(node: Binary) -> int:
    left, right = bound(node.left), bound(node.right)
    return left * right if node.operator == "*" else left + right


def _division(emitter: Emitter, node: Binary) -> ast.expr | None:
    """Divide by a literal that is not zero without asking."""
    if not (_are_numbers(node) and isinstance(node.right, Integer) and node.right.value and is_exact(node.right)):
        return None
    left, right = emitter.operands((node.left, node.right))
    return py.binary(_as_float(emitter, node.left, left), ast.Div(), right, node.offset)


def _membership(emitter: Emitter, node: Binary) -> ast.expr | None:
    """Look a string or an integer up in a list of literals of its type, or a string in a map."""
    is_map = node.right.type.kind == "map" and node.right.type.name.startswith("map[string]")
    if node.left.type == STRING and is_map and (emitter.is_data(node.right) or is_short_literal(node.left)):
        left, right = emitter.operands((node.left, node.right))
        return py.compare(left, ast.In(), right, node.offset)
    wanted = String if node.left.type == STRING else Integer if node.left.type == INT else None
    if wanted is None or not isinstance(node.right, ArrayLiteral) or not node.right.items:
        return None
    if not all(isinstance(item, wanted) and item.type == node.left.type for item in node.right.items):
        return None
    if wanted is String and not all(map(is_short_literal, node.right.items)):
        return None
    left = emitter.emit(node.left)
    return py.compare(left, ast.In(), py.make_set([emitter.emit(item) for item in node.right.items]), node.offset)


def _contains(emitter: Emitter, node: Binary) -> ast.expr | None:
    """Search the environment's own texts without paying; a loop would do that too often."""
    if not (node.left.type == STRING and isinstance(node.right, String) and _is_read_once(emitter, node.left)):
        return None
    left, right = emitter.operands((node.left, node.right))
    return py.compare(right, ast.In(), left, node.offset)


def _matches(emitter: Emitter, node: Binary) -> ast.expr | None:
    """Match against a literal pattern, which is compiled once if the allowance for all of them suffices."""
    if not isinstance(node.right, String) or emitter.patterns <= 0:
        return None
    try:
        pattern = compile_pattern(node.right.value)
    except PatternError:
        return None  # folding made it from constants; it fails at run time
    emitter.patterns -= pattern.price()
    text = emitter.emit(node.left)
    if pattern.size <= SMALL_PATTERN and node.left.type == STRING and _is_read_once(emitter, node.left):
        return py.call(emitter.shared(pattern.search), [text], node.offset)
    return emitter.call(search, [text, emitter.shared(pattern), emitter.account()], node.offset)


def _is_read_once(emitter: Emitter, node: ExprNode) -> bool:
    """Tell whether a text is the environment's own and not looked at in a loop, so that it need not be paid for."""
    return not emitter.loops and emitter.is_data(node)


_TYPED: dict[str, Typed] = {
    "==": _equality,
    "!=": _equality,
    **dict.fromkeys(_ORDERS, _order),
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    "/": _division,
    "in": _membership,
    "contains": _contains,
    "matches": _matches,
}
