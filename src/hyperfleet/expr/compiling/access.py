"""How names, members, slices and calls are compiled."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hyperfleet.expr.compiling import emission as py
from hyperfleet.expr.compiling.emitter import is_short_literal
from hyperfleet.expr.nodes import Chain, ExprNode, Identifier, MemberAccess, Pointer, String
from hyperfleet.expr.runtime import access, values
from hyperfleet.expr.runtime.budget import CALLS, read_arguments
from hyperfleet.expr.runtime.lookup import (
    as_function,
    call_of,
    fetch_or_zero,
    fetch_typed,
    is_native,
    read_name,
    whole_environment,
)
from hyperfleet.expr.runtime.methods import METHODS
from hyperfleet.expr.runtime.values import Value, adopt, is_nil
from hyperfleet.expr.types import INT, STRING, Array, Func, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.expr.compiling.emitter import Emitter
    from hyperfleet.expr.nodes import Call, Let, Slice
    from hyperfleet.expr.runtime.budget import Budget


def emit_identifier(emitter: Emitter, node: Identifier) -> ast.expr:
    """Emit a name: a variable, the whole environment, or a part of it."""
    if node.name in emitter.variables:
        return py.name(emitter.variables[node.name])
    environment = py.name(py.ENVIRONMENT)
    if node.name == "$env":
        return _emit_environment(emitter)
    if emitter.schema is None or node.name not in emitter.schema:
        return emitter.call(read_name, [environment, py.constant(node.name)], node.offset)
    value = py.subscript(environment, py.constant(node.name), node.offset)
    declared = emitter.schema[node.name]
    if isinstance(declared, Func):
        return emitter.call(as_function, [value, emitter.shared(declared)], node.offset)
    return value


def _emit_environment(emitter: Emitter) -> ast.expr:
    """Emit `$env`, which is built once per evaluation."""
    if not any(isinstance(declared, Func) for declared in (emitter.schema or {}).values()):
        return py.name(py.ENVIRONMENT)
    emitter.whole = emitter.whole or emitter.fresh("w")
    return py.name(emitter.whole)


def open_environment(emitter: Emitter) -> list[ast.stmt]:
    """Return the statements that make `$env`, if it is used."""
    if not emitter.whole:
        return []
    parts = [py.name(py.ENVIRONMENT), emitter.shared(emitter.schema)]
    return [py.assign(emitter.whole, emitter.call(whole_environment, parts, 0))]


def emit_pointer(emitter: Emitter, node: Pointer) -> ast.expr:
    """Emit `#`, `#index` or `#acc`."""
    loop = emitter.loops[-1]
    if node.name == "index":
        loop.reads_index = True
        return py.name(loop.index)
    if node.name == "acc":
        return py.name(loop.result)
    return emitter.item(loop, node.offset)


def emit_let(emitter: Emitter, node: Let) -> ast.expr:
    """Emit a declaration and its body; iterative, for long chains of them."""
    depth = len(emitter.variables)
    body: ExprNode = node
    while isinstance(body, type(node)):
        variable = emitter.fresh("v")
        emitter.statement(py.assign(variable, emitter.emit(body.value)))
        emitter.variables.declare(body.name, variable)
        body = body.body
    result = emitter.keep(emitter.emit(body))
    emitter.variables.leave(depth)
    return result


def emit_chain(emitter: Emitter, node: Chain, *, plain: bool = True) -> ast.expr:
    """Emit accesses with `?.`: each one opens a branch that is taken if there is something to access.

    A nil of any type becomes plain nil, unless the caller looks for nil itself.
    """
    result = emitter.fresh("r")
    outer = emitter.block
    emitter.statement(py.assign(result, py.constant(None)))
    value = emitter.emit(node.body)
    if plain and node.body.type.kind in ("any", "array", "map"):
        value = emitter.call(_plain_nil, [value], node.offset)
    emitter.statement(py.assign(result, value))
    emitter.block = outer
    return py.name(result)


def _plain_nil(value: Value) -> Value:
    """Return nil for a nil list or map."""
    return None if is_nil(value) else value


def emit_member(emitter: Emitter, node: MemberAccess) -> ast.expr:
    """Emit `base.name` or `base[key]`."""
    if not node.optional:
        base, key = emitter.operands((node.base, node.key))
        return _fetch(emitter, node, base, key)
    base = emitter.keep(emitter.emit(node.base))
    branch: list[ast.stmt] = []
    emitter.statement(py.when(py.negate(emitter.nil_test(node.base, base)), branch))
    emitter.block = branch
    return _fetch(emitter, node, base, emitter.emit(node.key))


def _fetch(emitter: Emitter, node: MemberAccess, base: ast.expr, key: ast.expr) -> ast.expr:
    """Emit an access as the type of its base allows."""
    declared = node.base.type
    if isinstance(node.type, Func) or (isinstance(declared, Struct) and _may_be_nil(emitter, node.base)):
        return emitter.call(fetch_typed, [base, key, emitter.shared(node), emitter.account()], node.offset)
    if isinstance(declared, Struct) and isinstance(node.key, String) and node.key.value in declared.fields:
        return py.subscript(base, key, node.offset)
    if isinstance(declared, Map) and declared.key == STRING and node.key.type == STRING:
        if declared.total:
            return py.subscript(base, key, node.offset)
        if emitter.is_data(node.base) or is_short_literal(node.key):  # else the key may be long, and is paid for
            return _fetch_entry(emitter, declared, [base, key], node.offset)
    if isinstance(declared, Array) and node.key.type == INT:
        return emitter.call(access.fetch_item, [base, key], node.offset)
    if declared.kind == "any":
        return emitter.call(access.fetch, [base, key, emitter.account()], node.offset)
    return emitter.call(fetch_typed, [base, key, emitter.shared(node), emitter.account()], node.offset)


def _may_be_nil(emitter: Emitter, base: ExprNode) -> bool:
    """Tell whether a struct may be missing though the type says it is there: `find` finds nothing, for one."""
    if isinstance(base, Identifier):
        return base.name in emitter.variables
    return not isinstance(base, (MemberAccess, Pointer))


def _fetch_entry(emitter: Emitter, declared: Map, parts: list[ast.expr], offset: int) -> ast.expr:
    """Emit an access to a map of text keys, where a missing one reads as the zero value."""
    zero = values.zero(declared.value)
    if type(zero) in values.SIMPLE:
        return emitter.call(dict.get, [*parts, py.constant(zero)], offset)
    return emitter.call(fetch_or_zero, [*parts, emitter.shared(declared.value)], offset)


def emit_slice(emitter: Emitter, node: Slice) -> ast.expr:
    """Emit `base[lower:upper]`; the upper bound is evaluated first."""
    parts = [node.base, *(bound for bound in (node.upper, node.lower) if bound is not None)]
    base, *bounds = emitter.operands(parts)
    base = emitter.keep(base)
    if node.upper is not None:
        upper = bounds.pop(0)
    else:
        upper = emitter.call(access.byte_length, [base, emitter.account()], node.offset)
    lower = bounds.pop(0) if node.lower is not None else py.constant(0)
    return emitter.call(access.cut, [base, upper, lower, emitter.account()], node.offset)


def emit_call(emitter: Emitter, node: Call) -> ast.expr:
    """Emit a call; arguments are evaluated before what is called."""
    callee = node.callee
    if isinstance(callee, MemberAccess) and not callee.optional and is_native(callee):
        method = callee.key.value if isinstance(callee.key, String) else ""
        parts = emitter.operands((*node.arguments, callee.base))
        return emitter.call(_call_native, [emitter.account(), py.constant(method), *parts], node.offset)
    how = emitter.helper(call_of(node))
    parts = emitter.operands((*node.arguments, callee))
    return emitter.call(_call, [emitter.account(), how, *parts], node.offset)


def _call(budget: Budget, how: Callable[..., Value], *parts: Value) -> Value:
    """Call the function that comes after its arguments."""
    *arguments, function = parts
    read_arguments(budget, arguments)
    budget[CALLS] += 1
    return how(function, *arguments)


def _call_native(budget: Budget, name: str, *parts: Value) -> Value:
    """Call a method of a time or a duration, whichever class the host gave it; it comes after the arguments."""
    *arguments, receiver = parts
    read_arguments(budget, arguments)
    adopted = adopt(receiver)
    method = METHODS.get(type(adopted), {}).get(name)
    function = method.bind(adopted) if method is not None else access.fetch(adopted, name, budget)
    return access.call_native(function, *map(adopt, arguments))
