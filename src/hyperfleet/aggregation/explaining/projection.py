"""The projection of an expression: the part of an adapter that the expression depends on.

Adapters with equal projections are interchangeable, so `remedies` need not try every one of fifty adapters. An
expression that may depend on the identity of an adapter has no projection; when in doubt, it has none.
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

# What a condition depends on in an adapter. It treats adapters with equal projections alike.
Projection: TypeAlias = Callable[[AdapterView], Hashable]

# Builtins for which the order of a list does not matter.
_COUNTING: Final = frozenset({"all", "any", "none", "one", "filter", "count", "len"})
_FIELDS: Final = frozenset(
    {"available", "applied", "health", "state", "reported", "current", "stale", "observedGeneration", "conditions"}
)
_COMPARISONS: Final = frozenset({"==", "!=", "in"})
_LITERALS: Final = (String, Integer, Float, Boolean)
_PLAIN: Final = (Let, Identifier, Pointer, Predicate, Binary, Unary, Chain, Conditional, ArrayLiteral, *_LITERALS)


def find_projection(tree: ExprNode) -> Projection | None:
    """Return the projection for adapters that the expression does not name; None: it may depend on anything."""
    nodes = list(walk(tree))
    if not all(
        _ignores_identity(node) and all(_is_used_without_identity(child, node) for child in node.children())
        for node in nodes
    ):
        return None
    fields = sorted({_key(node) for node in nodes if isinstance(node, MemberAccess) and node.base.type == ADAPTER})
    types = sorted({_key(node) for node in nodes if isinstance(node, MemberAccess) and node.type == CONDITION})
    literals = {node.value for node in nodes if isinstance(node, String)}

    def project(view: AdapterView) -> Hashable:
        entry = entry_of(view)
        seen = [entry[field] for field in fields if field != "conditions"]
        conditions = [entry["conditions"].get(type_, {}).get("status") for type_ in types]
        # All strings that the expression does not mention are equal to it.
        known = (value if not isinstance(value, str) or value in literals else "" for value in seen)
        return (*known, *conditions)

    return project


def _ignores_identity(node: ExprNode) -> bool:
    """Tell whether a node itself does not depend on names, positions or times of adapters."""
    match node:
        case Builtin(name=name):
            return name in _COUNTING
        case MemberAccess(base=base, key=String(value=key)):
            if base.type == ADAPTER:
                return key in _FIELDS
            return base.type != CONDITION or key == "status"
    return isinstance(node, _PLAIN)


def _is_used_without_identity(node: ExprNode, parent: ExprNode) -> bool:
    """Tell whether the value of a node is only counted, compared with literals, or accessed by key."""
    if isinstance(node, (*_LITERALS, Predicate)) or node.type in (BOOL, INT, FLOAT):
        return True
    if isinstance(parent, Chain):
        return True  # a wrapper; its own parent is checked too
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
    """Tell whether a node is an adapter, its conditions, or `adapters`: nothing else has known keys."""
    if node.type in (ADAPTER, CONDITION):
        return True
    return isinstance(node, MemberAccess) or (isinstance(node, Identifier) and node.name == ADAPTERS_BY_NAME)


def _key(member: MemberAccess) -> str:
    return member.key.value if isinstance(member.key, String) else ""
