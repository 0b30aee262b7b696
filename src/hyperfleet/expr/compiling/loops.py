"""How the builtins with a predicate are compiled: as loops in the same function, never as calls per element."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from hyperfleet.expr.compiling import emission as py
from hyperfleet.expr.compiling.emitter import EmittedLoop, Emitter
from hyperfleet.expr.compiling.folding import FIRST_MATCH, LAST_MATCH
from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.nodes import Binary, Integer
from hyperfleet.expr.runtime import numbers, values
from hyperfleet.expr.runtime.functions.collections import sort_by, sort_order
from hyperfleet.expr.runtime.loops import elements, group, loop_weight
from hyperfleet.expr.runtime.operations import steps
from hyperfleet.expr.runtime.values import Groups
from hyperfleet.expr.types import ANY, FLOAT, INT, Array, Struct

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from hyperfleet.expr.compiling.emission import Block
    from hyperfleet.expr.nodes import Builtin, ExprNode
    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.runtime.values import Value
    from hyperfleet.expr.types import Type


DEEPEST = 12
"""Loops within loops in one function; Python allows 20 nested blocks."""


MOST_COMPREHENSIONS = 32
"""Each is a scope of its own to Python, which compares it with all names around it: thousands take seconds."""


class LoopBody(NamedTuple):
    """The emitted body of a loop: the statements of a round, and the value of its predicate."""

    loop: EmittedLoop
    block: Block
    value: ast.expr


def emit_loop(emitter: Emitter, node: Builtin) -> ast.expr:
    """Emit a builtin with a predicate; deep inside of others, as a function of its own."""
    rule = LOOPS[node.name]
    if not emitter.loops or len(emitter.loops) % DEEPEST:
        return rule(emitter, node)
    identifier = emitter.fresh("f")
    with emitter.apart() as block:
        block.append(py.give(rule(emitter, node)))
    emitter.statement(py.function(identifier, (), block))
    return py.call(py.name(identifier), [], node.offset)


def _items(emitter: Emitter, node: Builtin) -> ast.expr:
    """Emit what a loop iterates over, and the charge for it."""
    collection = node.arguments[0]
    if isinstance(collection, Binary) and collection.operator == "..":
        bounds = emitter.operands((collection.left, collection.right))
        items = emitter.call(steps, [*bounds, emitter.account()], collection.offset)
    else:
        items = emitter.emit(collection)
        if _is_open(emitter, collection):
            items = emitter.call(elements, [items], node.offset)
    items = emitter.keep(items)
    emitter.pay_work(items, loop_weight(node), node.offset)
    return items


def _is_open(emitter: Emitter, collection: ExprNode) -> bool:
    """Tell whether what a loop iterates over is known only at run time."""
    return collection.type.kind != "array" or not emitter.is_sure(collection)


def _body(emitter: Emitter, node: Builtin, result: str, *, is_test: bool = False) -> LoopBody:
    """Emit the predicate of a loop; without one, the element itself counts."""
    items = node.arguments[0]
    loop = EmittedLoop(emitter.fresh("x"), emitter.fresh("i"), result, _is_open(emitter, items), emitter.is_data(items))
    emitter.loops.append(loop)
    with emitter.apart() as block:
        if len(node.arguments) > 1:
            predicate = node.arguments[1]
            value = emitter.emit(predicate)
            value = emitter.truth(predicate, value, node.offset) if is_test else value
        else:
            value = emitter.item(loop, node.offset)
            value = emitter.call(values.as_bool, [value], node.offset) if is_test else value
    emitter.loops.pop()
    return LoopBody(loop, block, value)


def _go(emitter: Emitter, body: LoopBody, items: ast.expr, offset: int, otherwise: Block | None = None) -> None:
    """Put a loop into the code, with an index if its body reads one; `otherwise` runs if nothing leaves it."""
    loop = body.loop
    if loop.reads_index:
        pairs = emitter.call(enumerate, [items], offset)
        emitter.statement(py.loop((loop.index, loop.item), pairs, body.block, otherwise))
    else:
        emitter.statement(py.loop((loop.item,), items, body.block, otherwise))


def _go_backwards(
    emitter: Emitter, body: LoopBody, items: ast.expr, offset: int, otherwise: Block | None = None
) -> None:
    """Put a loop into the code that starts at the end."""
    last = py.binary(emitter.call(len, [items], offset), ast.Sub(), py.constant(1), offset)
    places = emitter.call(range, [last, py.constant(-1), py.constant(-1)], offset)
    item = py.assign(body.loop.item, py.subscript(items, py.name(body.loop.index), offset))
    emitter.statement(py.loop((body.loop.index,), places, [item, *body.block], otherwise))


def _quantifier(*, found: bool, stops_at: bool) -> Callable[[Emitter, Builtin], ast.expr]:
    """Return the rule of a loop that stops at the first decisive element."""

    def emit(emitter: Emitter, node: Builtin) -> ast.expr:
        result = emitter.fresh("r")
        items = _items(emitter, node)
        body = _body(emitter, node, result, is_test=True)
        test = body.value if stops_at else py.negate(body.value)
        body.block.append(py.when(test, [py.assign(result, py.constant(found)), py.leave()]))
        emitter.statement(py.assign(result, py.constant(not found)))
        _go(emitter, body, items, node.offset)
        return py.name(result)

    return emit


def _emit_count(emitter: Emitter, node: Builtin) -> ast.expr:
    result = emitter.fresh("r")
    items = _items(emitter, node)
    body = _body(emitter, node, result, is_test=True)
    more = py.binary(py.name(result), ast.Add(), py.constant(1), node.offset)
    then: Block = [py.assign(result, more)]
    enough = node.arguments[2] if len(node.arguments) == 3 else None
    if isinstance(enough, Integer):
        then.append(py.when(py.compare(py.name(result), ast.GtE(), py.constant(enough.value)), [py.leave()]))
    body.block.append(py.when(body.value, then))
    emitter.statement(py.assign(result, py.constant(0)))
    _go(emitter, body, items, node.offset)
    return py.name(result)


def _emit_one(emitter: Emitter, node: Builtin) -> ast.expr:
    return py.compare(_emit_count(emitter, node), ast.Eq(), py.constant(1), node.offset)


def _emit_filter(emitter: Emitter, node: Builtin) -> ast.expr:
    result = emitter.fresh("r")
    items = _items(emitter, node)
    body = _body(emitter, node, result, is_test=True)
    return _collect(emitter, node, items, body, emitter.item(body.loop, node.offset), body.value)


def _emit_map(emitter: Emitter, node: Builtin) -> ast.expr:
    result = emitter.fresh("r")
    items = _items(emitter, node)
    body = _body(emitter, node, result)
    return _collect(emitter, node, items, body, body.value, None)


def _collect(
    emitter: Emitter, node: Builtin, items: ast.expr, body: LoopBody, item: ast.expr, test: ast.expr | None
) -> ast.expr:
    """Emit a loop that makes a list: a comprehension if its body is a mere expression."""
    result = body.loop.result
    must_loop = body.block or body.loop.reads_index or emitter.comprehensions >= MOST_COMPREHENSIONS
    if must_loop or _binds(item) or (test is not None and _binds(test)):
        addition = emitter.call(_append, [py.name(result), item], node.offset)
        last = py.discard(addition)
        body.block.append(last if test is None else py.when(test, [last]))
        emitter.statement(py.assign(result, py.make_list([])))
        _go(emitter, body, items, node.offset)
    else:
        emitter.comprehensions += 1
        emitter.statement(py.assign(result, py.comprehension(item, body.loop.item, items, test)))
    emitter.pay_memory(py.name(result), node.offset)
    return py.name(result)


def _append(items: list[Value], item: Value) -> None:
    items.append(item)


def _binds(value: ast.expr) -> bool:
    """Tell whether an expression sets names, which a comprehension would share with its surroundings."""
    return any(isinstance(part, ast.NamedExpr) for part in ast.walk(value))


def _finder(
    *, backwards: bool = False, is_index: bool = False, must_find: bool = False
) -> Callable[[Emitter, Builtin], ast.expr]:
    """Return the rule of a loop that looks for an element."""

    def emit(emitter: Emitter, node: Builtin) -> ast.expr:
        result = emitter.fresh("r")
        items = _items(emitter, node)
        body = _body(emitter, node, result, is_test=True)
        body.loop.reads_index |= is_index
        value = py.name(body.loop.index) if is_index else emitter.item(body.loop, node.offset)
        body.block.append(py.when(body.value, [py.assign(result, value), py.leave()]))
        missing = emitter.call(_fail, [py.constant("reflect: slice index out of range")], node.offset)
        emitter.statement(py.assign(result, py.constant(None)))
        go = _go_backwards if backwards else _go
        go(emitter, body, items, node.offset, [py.discard(missing)] if must_find else None)
        return py.name(result)

    return emit


def _fail(message: str) -> NoReturn:
    raise EvaluationFault(message)


def _emit_sum(emitter: Emitter, node: Builtin) -> ast.expr:
    """Emit a sum; integers wrap around once, at the end, which comes to the same."""
    result = emitter.fresh("r")
    items = _items(emitter, node)
    body = _body(emitter, node, result)
    summand = node.arguments[1].type if len(node.arguments) > 1 else _element_type(node)
    total = py.name(result)
    if summand in (INT, FLOAT) and not body.loop.is_open:
        step = py.binary(body.value, ast.Add(), total, node.offset)
    else:
        step = emitter.call(numbers.add, [body.value, total], node.offset)
    body.block.append(py.assign(result, step))
    emitter.statement(py.assign(result, py.constant(0)))
    _go(emitter, body, items, node.offset)
    return emitter.call(numbers.fit, [total], node.offset) if summand == INT else total


def _element_type(node: Builtin) -> Type:
    collection = node.arguments[0].type
    return collection.element if isinstance(collection, Array) else ANY


def _emit_group(emitter: Emitter, node: Builtin) -> ast.expr:
    result = emitter.fresh("r")
    items = _items(emitter, node)
    body = _body(emitter, node, result)
    key = body.value
    if isinstance(node.arguments[1].type, Struct):
        struct = emitter.shared(node.arguments[1].type)
        key = emitter.call(values.brand, [key, struct, emitter.account()], node.offset)
    item = emitter.item(body.loop, node.offset)
    addition = emitter.call(group, [py.name(result), key, item, emitter.account()], node.offset)
    body.block.append(py.discard(addition))
    emitter.statement(py.assign(result, emitter.call(Groups, [], node.offset)))
    _go(emitter, body, items, node.offset)
    return py.name(result)


def _emit_sort(emitter: Emitter, node: Builtin) -> ast.expr:
    result = emitter.fresh("r")
    items = _items(emitter, node)
    order: ast.expr = py.constant(False)
    if len(node.arguments) == 3:
        order = emitter.keep(emitter.call(sort_order, [emitter.emit(node.arguments[2])], node.offset))
    body = _body(emitter, node, result)
    ranked = py.make_tuple([body.value, emitter.item(body.loop, node.offset)])  # the predicate may fail first
    pairs = _collect(emitter, node, items, body, ranked, None)
    return emitter.call(_sorted, [emitter.account(), pairs, order], node.offset)


def _sorted(budget: Budget, pairs: list[tuple[Value, Value]], descending: bool) -> list[Value]:
    """Return the second of each pair in the order of the first."""
    return sort_by(budget, [item for _, item in pairs], [rank for rank, _ in pairs], descending=descending)


def _emit_reduce(emitter: Emitter, node: Builtin) -> ast.expr:
    """Emit a loop with a result that each round replaces, starting from a given value or the first element."""
    result = emitter.fresh("r")
    items = _items(emitter, node)
    start = emitter.emit(node.arguments[2]) if len(node.arguments) == 3 else None
    if start is not None:
        emitter.statement(py.assign(result, start))
    body = _body(emitter, node, result)
    body.block.append(py.assign(result, body.value))
    if start is None:
        _start_with_first(emitter, node, items, body)
        return py.name(result)
    _go(emitter, body, items, node.offset)
    return py.name(result)


def _start_with_first(emitter: Emitter, node: Builtin, items: ast.expr, body: LoopBody) -> None:
    """Put a loop into the code whose result starts as the first element, and that goes on with the second."""
    loop = body.loop
    first = emitter.call(_first, [items], node.offset)
    emitter.statement(py.assign(loop.item, first))
    emitter.statement(py.assign(loop.result, emitter.item(loop, node.offset)))
    places = emitter.call(range, [py.constant(1), emitter.call(len, [items], node.offset)], node.offset)
    item = py.assign(loop.item, py.subscript(items, py.name(loop.index), node.offset))
    emitter.statement(py.loop((loop.index,), places, [item, *body.block]))


def _first(items: list[Value]) -> Value:
    if not items:
        raise EvaluationFault("reduce of empty array with no initial value")
    return items[0]


LOOPS: dict[str, Callable[[Emitter, Builtin], ast.expr]] = {
    "all": _quantifier(found=False, stops_at=False),
    "none": _quantifier(found=False, stops_at=True),
    "any": _quantifier(found=True, stops_at=True),
    "one": _emit_one,
    "count": _emit_count,
    "filter": _emit_filter,
    "map": _emit_map,
    "find": _finder(),
    "findIndex": _finder(is_index=True),
    "findLast": _finder(backwards=True),
    "findLastIndex": _finder(backwards=True, is_index=True),
    FIRST_MATCH: _finder(must_find=True),
    LAST_MATCH: _finder(backwards=True, must_find=True),
    "sum": _emit_sum,
    "groupBy": _emit_group,
    "sortBy": _emit_sort,
    "reduce": _emit_reduce,
}
