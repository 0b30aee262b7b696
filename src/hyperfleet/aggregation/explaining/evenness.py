"""Which adapters are all the same to an expression? Those that it does not name and that look alike to it.

`dependencies` asks, so that `remedies` need not try every one of fifty adapters that may stand in for each other.
When in doubt the answer is that the expression can tell any two adapters apart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, TypeAlias

from hyperfleet.aggregation.adapters import AdapterView, entry_of
from hyperfleet.aggregation.vocabulary import ADAPTER, ADAPTERS_BY_NAME, CONDITION
from hyperfleet.expr.nodes import (
    ArrayLiteral,
    Binary,
    Boolean,
    Builtin,
    Chain,
    Conditional,
    ExprNode,
    Float,
    Identifier,
    Integer,
    Let,
    MemberAccess,
    Pointer,
    Predicate,
    String,
    Unary,
    walk,
)
from hyperfleet.expr.types import BOOL, FLOAT, INT, STRING, Array

# What a condition sees of an adapter; it cannot tell apart two adapters of which it sees the same.
Look: TypeAlias = Callable[[AdapterView], Hashable]

# Builtins for which the order of a list does not matter.
_COUNTING: Final = frozenset({"all", "any", "none", "one", "filter", "count", "len"})
_FIELDS: Final = frozenset(
    {"available", "applied", "health", "state", "reported", "current", "stale", "observedGeneration", "conditions"}
)
_COMPARISONS: Final = frozenset({"==", "!=", "in"})
_LITERALS: Final = (String, Integer, Float, Boolean)
_PLAIN: Final = (Let, Identifier, Pointer, Predicate, Binary, Unary, Chain, Conditional, ArrayLiteral, *_LITERALS)


def look_of(tree: ExprNode) -> Look | None:
    """Return what an expression sees of an adapter that it does not name; None: perhaps everything."""
    nodes = list(walk(tree))
    if not all(_is_even(node) and all(_is_used_evenly(child, node) for child in node.children()) for node in nodes):
        return None
    fields = sorted({_key(node) for node in nodes if isinstance(node, MemberAccess) and node.base.type == ADAPTER})
    types = sorted({_key(node) for node in nodes if isinstance(node, MemberAccess) and node.type == CONDITION})
    literals = {node.value for node in nodes if isinstance(node, String)}

    def look(view: AdapterView) -> Hashable:
        entry = entry_of(view)
        seen = [entry[field] for field in fields if field != "conditions"]
        conditions = [entry["conditions"].get(type_, {}).get("status") for type_ in types]
        # A text that the expression does not mention is like any other that it does not mention.
        told = (value if not isinstance(value, str) or value in literals else "" for value in seen)
        return (*told, *conditions)

    return look


def _is_even(node: ExprNode) -> bool:
    """Tell whether a node by itself leaves names, places and times of adapters alone."""
    match node:
        case Builtin(name=name):
            return name in _COUNTING
        case MemberAccess(base=base, key=String(value=key)):
            if base.type == ADAPTER:
                return key in _FIELDS
            return base.type != CONDITION or key == "status"
    return isinstance(node, _PLAIN)


def _is_used_evenly(node: ExprNode, parent: ExprNode) -> bool:
    """Tell whether what a node yields is only counted, compared with literals, or looked into."""
    if isinstance(node, (*_LITERALS, Predicate)) or node.type in (BOOL, INT, FLOAT):
        return True
    if isinstance(parent, Chain):
        return True  # a wrapper; its own parent is looked at too
    if node.type == STRING:
        return isinstance(parent, Binary) and parent.operator in _COMPARISONS and _has_literal(parent)
    if isinstance(node, ArrayLiteral):
        return all(isinstance(item, _LITERALS) for item in node.children())
    if isinstance(node.type, Array):
        return node.type.element == ADAPTER and isinstance(parent, Let | Builtin)
    return isinstance(parent, MemberAccess) and parent.base is node and _is_known_map(node)


def _has_literal(comparison: Binary) -> bool:
    return any(isinstance(side, String | ArrayLiteral) for side in comparison.children())


def _is_known_map(node: ExprNode) -> bool:
    """Tell whether one looks into an adapter, its conditions, or `adapters`: nothing else has known keys."""
    if node.type in (ADAPTER, CONDITION):
        return True
    return isinstance(node, MemberAccess) or (isinstance(node, Identifier) and node.name == ADAPTERS_BY_NAME)


def _key(member: MemberAccess) -> str:
    return member.key.value if isinstance(member.key, String) else ""
