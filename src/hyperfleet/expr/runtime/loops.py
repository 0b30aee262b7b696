"""What the builtins with a predicate iterate over, what a round costs, and how results are collected.

Shared by generated code and the plain evaluator, which write the loops themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.nodes import (
    ArrayLiteral,
    Binary,
    Builtin,
    Call,
    ExprNode,
    Identifier,
    MapLiteral,
    MemberAccess,
    Predicate,
)
from hyperfleet.expr.runtime.budget import look_up
from hyperfleet.expr.runtime.values import LISTS, Groups, StructValue, adopt, kind_name, type_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.runtime.values import Value

# A step is worth about 0.4 µs. What nodes cost, as multiples of the cheapest, was measured and rounded up; large
# operands are paid for on their own, by the functions that look at them.
_COST_PER_STEP = 6
_COSTS: dict[type[ExprNode], int] = {
    Binary: 2,
    MemberAccess: 2,
    Identifier: 2,
    ArrayLiteral: 4,
    MapLiteral: 12,
    Builtin: 8,
    Call: 64,
}
_COSTLY = {
    "date": 256,
    "timezone": 128,
    "toJSON": 64,
    "fromJSON": 64,
    "duration": 64,
    "matches": 64,
    "**": 48,
    "^": 48,
    "string": 16,
}


def loop_weight(node: Builtin) -> int:
    """Return the steps that one round of a loop costs: by the size of its body, without inner loops."""
    weight = _body_weight(node.arguments[1]) if len(node.arguments) > 1 else 1
    return weight + 2 if node.name in ("sortBy", "groupBy") else weight


def _body_weight(body: ExprNode) -> int:
    pending, cost = [body], 0
    while pending:
        node = pending.pop()
        cost += _cost(node)
        if not isinstance(node, Predicate) or node is body:
            pending.extend(node.children())
    return 1 + cost // _COST_PER_STEP


def _cost(node: ExprNode) -> int:
    name = node.name if isinstance(node, Builtin) else node.operator if isinstance(node, Binary) else ""
    return _COSTLY.get(name) or _COSTS.get(type(node), 1)


_FORBIDDEN = object()
"""Stands for an element of a map: one can loop over a map, but not look at its elements."""


def elements(collection: Value) -> Sequence[Value]:
    """Return what a loop over a collection of unknown type goes through."""
    given = adopt(collection)
    if isinstance(given, (*LISTS, bytes)):
        return given
    if isinstance(given, str):
        return given.encode("utf-8", "surrogateescape")
    if isinstance(given, dict) and not isinstance(given, StructValue):
        return [_FORBIDDEN] * len(given)
    kind = "zero" if given is None else kind_name(given)
    raise EvaluationFault(f"reflect: call of reflect.Value.Len on {kind} Value")


def element(item: Value) -> Value:
    """Return `#`, which must not be an element of a map."""
    if item is _FORBIDDEN:
        raise EvaluationFault("reflect: call of reflect.Value.Index on map Value")
    return item


def group(groups: Groups, key: Value, item: Value, budget: Budget) -> None:
    """Put an element into its group."""
    look_up(budget, key)
    try:
        found = groups.get(key)
    except EvaluationFault:
        if groups:
            raise
        raise EvaluationFault(
            f"hash of unhashable type: {type_name(key)}"
        ) from None  # so says the original of a first key
    if found is None:
        groups[key] = [item]
    else:
        found.append(item)
