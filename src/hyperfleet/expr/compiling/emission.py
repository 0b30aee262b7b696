"""The Python syntax that the compiler emits, and nothing besides it.

There is no way to write an attribute of a value, an import, or a name that comes from a source: only constants,
generated names, subscripts, operators and calls of functions from a fixed list. Every node carries the offset of
its place in the expression as its column; that is how a run-time error finds its way back (see `program`).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Block = list[ast.stmt]

ENVIRONMENT = "E"
ACCOUNT = "B"
SHARED = "S"
FILE = "<expr>"

_LOAD = ast.Load()
_STORE = ast.Store()


class Position(TypedDict):
    """The attributes of a node for its position."""

    lineno: int
    col_offset: int
    end_lineno: int
    end_col_offset: int


def at(offset: int) -> Position:
    """Return the position for an offset of the expression."""
    return {"lineno": 1, "col_offset": offset, "end_lineno": 1, "end_col_offset": offset}


NOWHERE = at(0)


def name(identifier: str) -> ast.expr:
    """Read a generated name."""
    return ast.Name(identifier, _LOAD, **NOWHERE)


def constant(value: str | bytes | float | None) -> ast.expr:
    """Write a literal: nil, a bool, a number, a string or bytes."""
    return ast.Constant(value, **NOWHERE)


def assign(identifier: str, value: ast.expr) -> ast.stmt:
    """Set a generated name."""
    return ast.Assign([ast.Name(identifier, _STORE, **NOWHERE)], value, **NOWHERE)


def bind(identifier: str, value: ast.expr) -> ast.expr:
    """Set a generated name within an expression."""
    return ast.NamedExpr(ast.Name(identifier, _STORE, **NOWHERE), value, **NOWHERE)


def subscript(base: ast.expr, key: ast.expr, offset: int) -> ast.expr:
    """Read `base[key]`."""
    return ast.Subscript(base, key, _LOAD, **at(offset))


def call(function: ast.expr, arguments: Iterable[ast.expr], offset: int) -> ast.expr:
    """Call a function."""
    return ast.Call(function, list(arguments), [], **at(offset))


def binary(left: ast.expr, operator: ast.operator, right: ast.expr, offset: int) -> ast.expr:
    """Write an arithmetic operation."""
    return ast.BinOp(left, operator, right, **at(offset))


def compare(left: ast.expr, operator: ast.cmpop, right: ast.expr, offset: int = 0) -> ast.expr:
    """Write a comparison."""
    return ast.Compare(left, [operator], [right], **at(offset))


def within(low: int, value: ast.expr, high: int) -> ast.expr:
    """Write `low <= value <= high`."""
    return ast.Compare(constant(low), [ast.LtE(), ast.LtE()], [value, constant(high)], **NOWHERE)


def logic(operator: ast.boolop, operands: list[ast.expr]) -> ast.expr:
    """Write `a and b and …`."""
    return ast.BoolOp(operator, operands, **NOWHERE)


def either(test: ast.expr, then: ast.expr, otherwise: ast.expr) -> ast.expr:
    """Write a conditional expression."""
    return ast.IfExp(test, then, otherwise, **NOWHERE)


_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}  # not the orders: of `<` and `>=` neither holds for NaN


def negate(test: ast.expr) -> ast.expr:
    """Write the negation of a boolean."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITES:
        opposite = _OPPOSITES[type(test.ops[0])]()
        return ast.Compare(test.left, [opposite], test.comparators, **at(test.col_offset))
    return ast.UnaryOp(ast.Not(), test, **at(test.col_offset))


def minus(operand: ast.expr, offset: int) -> ast.expr:
    """Write `-operand`."""
    return ast.UnaryOp(ast.USub(), operand, **at(offset))


def make_list(items: list[ast.expr]) -> ast.expr:
    """Write a list."""
    return ast.List(items, _LOAD, **NOWHERE)


def make_set(items: list[ast.expr]) -> ast.expr:
    """Write a set of constants, which Python keeps as one constant."""
    return ast.Set(items, **NOWHERE)


def make_tuple(items: list[ast.expr]) -> ast.expr:
    """Write a tuple."""
    return ast.Tuple(items, _LOAD, **NOWHERE)


def comprehension(result: ast.expr, item: str, items: ast.expr, test: ast.expr | None) -> ast.expr:
    """Write `[result for item in items if test]`."""
    target = ast.Name(item, _STORE, **NOWHERE)
    clause = ast.comprehension(target, items, [test] if test is not None else [], 0)
    return ast.ListComp(result, [clause], **NOWHERE)


def when(test: ast.expr, then: Block, otherwise: Block | None = None) -> ast.stmt:
    """Write `if test: … else: …`."""
    return ast.If(test, then, otherwise or [], **NOWHERE)


def loop(targets: tuple[str, ...], items: ast.expr, body: Block, otherwise: Block | None = None) -> ast.stmt:
    """Write `for a, b in items: … else: …`."""
    names: list[ast.expr] = [ast.Name(target, _STORE, **NOWHERE) for target in targets]
    target = names[0] if len(names) == 1 else ast.Tuple(names, _STORE, **NOWHERE)
    return ast.For(target, items, body, otherwise or [], **NOWHERE)


def leave() -> ast.stmt:
    """Write `break`."""
    return ast.Break(**NOWHERE)


def discard(value: ast.expr) -> ast.stmt:
    """Evaluate something only for its faults."""
    return ast.Expr(value, **NOWHERE)


def give(value: ast.expr) -> ast.stmt:
    """Write `return value`."""
    return ast.Return(value, **NOWHERE)


def function(identifier: str, parameters: tuple[str, ...], body: Block, *, optional: int = 0) -> ast.stmt:
    """Write a function; its last `optional` parameters may be left out and are nil then."""
    arguments = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(parameter, **NOWHERE) for parameter in parameters],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[constant(None)] * optional,
    )
    return ast.FunctionDef(identifier, arguments, body, [], **NOWHERE)


def guarded(body: Block, caught: str, handler: Callable[[str], Block]) -> ast.stmt:
    """Write `try: body except caught as error: handler`."""
    error = "error"
    clause = ast.ExceptHandler(name(caught), error, handler(error), **NOWHERE)
    return ast.Try(body, [clause], [], [], **NOWHERE)


def load(definition: ast.stmt, identifier: str, namespace: dict[str, object]) -> Callable[..., object]:
    """Turn the definition of a function into the function. Python's own builtins are out of its reach."""
    code = compile(ast.Module([definition], []), FILE, "exec", dont_inherit=True, optimize=2)
    scope: dict[str, object] = {**namespace, "__builtins__": {}}
    exec(code, scope)  # noqa: S102 - this is the compiler; see the module docstring for what it can emit
    made = scope[identifier]
    if not callable(made):
        raise TypeError(f"{identifier} is no function")
    return made
