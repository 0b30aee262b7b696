"""From a checked tree to a Python function.

`compile` calls `compile_tree` last. Each kind of node has one rule, here or in the sibling modules; types decide which
Python a rule emits. `emission` limits what it can emit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.expr.compiling import emission as py
from hyperfleet.expr.compiling.access import (
    emit_call,
    emit_chain,
    emit_identifier,
    emit_let,
    emit_member,
    emit_pointer,
    emit_slice,
    open_environment,
)
from hyperfleet.expr.compiling.emitter import Emitter
from hyperfleet.expr.compiling.folding import IN_RANGE, is_constant
from hyperfleet.expr.compiling.loops import LOOPS, emit_loop
from hyperfleet.expr.compiling.operators import emit_binary, emit_conditional, emit_unary
from hyperfleet.expr.faults import EvaluationFault
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
    Pointer,
    Predicate,
    Sequence,
    Slice,
    String,
    Unary,
)
from hyperfleet.expr.runtime import values
from hyperfleet.expr.runtime.arity import BRANDED, misfit
from hyperfleet.expr.runtime.budget import allocate, look_up
from hyperfleet.expr.runtime.casts import cast_to
from hyperfleet.expr.runtime.functions import FUNCTIONS
from hyperfleet.expr.runtime.values import has_structs
from hyperfleet.expr.types import FLOAT

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Mapping
    from typing import NoReturn, Protocol

    from hyperfleet.expr.compiling.emitter import Rule
    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.runtime.values import Value
    from hyperfleet.expr.types import Schema, Type

    class Evaluate(Protocol):
        """Evaluates a program, paying from an account of its own, or from the one that is given."""

        def __call__(self, values: Mapping[str, Value], budget: Budget | None = None, /) -> Value: ...


_ENTRY = "evaluate"


def compile_tree(
    tree: ExprNode,
    schema: Schema | None,
    *,
    expect: Type | None,
    limits: tuple[int, int],
    now: Callable[..., Value],
    recover: Callable[[Mapping[str, Value], Exception, Budget | None], Value],
) -> Evaluate:
    """Return a function of the environment; its failures go to `recover`, which returns the result or raises.

    `recover` gets the environment, the failure, and what is left of the account if one was opened.
    """
    emitter = Emitter(_RULES, schema, *limits)
    emitter.namespace["h_now"] = now
    result = _cast(emitter, tree, emitter.emit(tree), expect)
    opening = emitter.open_account()
    body = [*opening, *open_environment(emitter), *emitter.block, py.give(result)]
    emitter.namespace |= {"recover": recover, "Failure": Exception}
    account = py.name(py.ACCOUNT) if emitter.has_account else py.name(py.SHARED)
    guarded = py.guarded(body, "Failure", lambda error: [_recovery(py.name(error), account)])
    entry = py.function(_ENTRY, (py.ENVIRONMENT, py.SHARED), [guarded], optional=1)
    return py.load(entry, _ENTRY, emitter.namespace)


def _recovery(error: ast.expr, account: ast.expr) -> ast.stmt:
    return py.give(py.call(py.name("recover"), [py.name(py.ENVIRONMENT), error, account], 0))


def _cast(emitter: Emitter, tree: ExprNode, value: ast.expr, expect: Type | None) -> ast.expr:
    """Convert the result to the expected type, if the checker could not prove it."""
    if expect is None or (tree.type == expect and emitter.is_sure(tree)):
        return value
    cast = cast_to(expect)
    return emitter.call(cast, [value], 0) if cast is not None else value


def _emit_literal(_: Emitter, node: Integer | Float | Boolean | String | Bytes) -> ast.expr:
    if isinstance(node, Integer) and node.type == FLOAT:
        return py.constant(float(node.value))
    return py.constant(node.value)


def _emit_sequence(emitter: Emitter, node: Sequence) -> ast.expr:
    *before, last = node.items
    for item in before:
        emitter.statement(py.discard(emitter.emit(item)))
    return emitter.emit(last)


def _emit_array(emitter: Emitter, node: ArrayLiteral) -> ast.expr:
    items = emitter.operands(node.items)
    if emitter.is_cheap or is_constant(node):
        return py.make_list(items)
    return emitter.call(_paid, [emitter.account(), py.make_list(items)], node.offset)


def _paid(budget: Budget, made: Value) -> Value:
    """Return a list or map, having paid for its memory."""
    allocate(budget, len(made))
    return made


def _emit_map(emitter: Emitter, node: MapLiteral) -> ast.expr:
    """Emit a map; of equal keys the first one counts."""
    parts = emitter.operands(part for pair in node.pairs for part in (pair.key, pair.value))
    if not emitter.is_cheap:
        count = py.constant(len(node.pairs))
        parts = [emitter.keep(part) for part in parts]
        emitter.pay(allocate, count, node.offset)
    if all(isinstance(pair.key, String) for pair in node.pairs):
        return emitter.call(_make_map, parts, node.offset)
    return emitter.call(_make_paid_map, [emitter.account(), *parts], node.offset)


def _make_paid_map(budget: Budget, *parts: Value) -> dict[str, Value]:
    """Return a map of keys that were computed, which may be long."""
    for key in parts[::2]:
        look_up(budget, key)
    return _make_map(*parts)


def _make_map(*parts: Value) -> dict[str, Value]:
    made: dict[str, Value] = {}
    for place in range(0, len(parts), 2):
        made.setdefault(values.as_string(parts[place]), parts[place + 1])
    return made


def _emit_builtin(emitter: Emitter, node: Builtin) -> ast.expr:
    if node.name in LOOPS:
        return emit_loop(emitter, node)
    if node.name == IN_RANGE:
        return _emit_in_range(emitter, *node.arguments)
    if wrong := misfit(node):
        return emitter.call(_fail, [py.constant(wrong)], node.offset)
    arguments = emitter.operands(node.arguments)
    if node.name == "len" and node.arguments[0].type.kind in ("array", "map", "string"):
        return emitter.call(len, arguments, node.offset)
    if node.name in BRANDED:
        arguments = [_branded(emitter, node.arguments[0], arguments[0])]
    if node.name == "now":
        return py.call(py.name("h_now"), arguments, node.offset)
    return emitter.call(FUNCTIONS[node.name], [emitter.account(), *arguments], node.offset)


def _branded(emitter: Emitter, node: ExprNode, value: ast.expr) -> ast.expr:
    """Emit a struct value."""
    if not has_structs(node.type):
        return value
    return emitter.call(values.brand, [value, emitter.shared(node.type), emitter.account()], node.offset)


def _fail(message: str) -> NoReturn:
    raise EvaluationFault(message)


def _emit_in_range(emitter: Emitter, number: ExprNode, low: ExprNode, high: ExprNode) -> ast.expr:
    """Emit `number in low..high`, the bounds of which are literals."""
    value = emitter.emit(number)
    if isinstance(low, Integer) and isinstance(high, Integer):
        return py.within(low.value, value, high.value)
    raise TypeError("folding makes this of literals only")


_RULES: dict[type[ExprNode], Rule] = {
    Nil: lambda _, __: py.constant(None),
    Integer: _emit_literal,
    Float: _emit_literal,
    Boolean: _emit_literal,
    String: _emit_literal,
    Bytes: _emit_literal,
    Identifier: emit_identifier,
    Pointer: emit_pointer,
    Let: emit_let,
    Unary: emit_unary,
    Binary: emit_binary,
    Conditional: emit_conditional,
    Sequence: _emit_sequence,
    ArrayLiteral: _emit_array,
    MapLiteral: _emit_map,
    Chain: emit_chain,
    MemberAccess: emit_member,
    Slice: emit_slice,
    Call: emit_call,
    Builtin: _emit_builtin,
    Predicate: lambda emitter, node: emitter.emit(node.body),
}
