"""The checker's rules for accesses: `base.name`, `base[key]`, `base[a:b]`, `get(base, key)`.

`checker` lists them in its table. A part of an unknown value is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.expr.checking.compatibility import is_any, is_assignable, is_integer, is_nil, through
from hyperfleet.expr.nodes import Identifier, String
from hyperfleet.expr.signatures import METHODS
from hyperfleet.expr.types import UNKNOWN, Array, Func, Map, Nullable, Struct, Type

if TYPE_CHECKING:
    from hyperfleet.expr.checking.walker import Walker
    from hyperfleet.expr.nodes import Builtin, Chain, ExprNode, MemberAccess, Slice


def check_chain(walker: Walker, node: Chain) -> Type:
    """Check accesses with `?.`."""
    return walker.visit(node.body)


def check_member(walker: Walker, node: MemberAccess) -> Type:
    """Check `base.name` and `base[key]`."""
    if isinstance(node.base, Identifier) and node.base.name == "$env":
        return _environment_member(walker, node)
    base, key = walker.visit(node.base), walker.visit(node.key)
    if is_any(base):
        return UNKNOWN
    name = node.key.value if isinstance(node.key, String) else None
    if name is not None:
        if is_nil(base):
            return walker.error(node, f"type nil has no field {name}")
        if method := _method(base, name):
            return method
    return _part(walker, node, through(base), key, name)


def _environment_member(walker: Walker, node: MemberAccess) -> Type:
    """Check `$env.name`; with `?.` the name need not exist."""
    if not isinstance(node.key, String):
        walker.annotate((node.key,))
        return UNKNOWN
    name = node.key.value
    declared = walker.environment.variable(name)
    if declared is not None or node.optional:
        return declared or UNKNOWN
    return walker.undeclared(node, name)


def _part(walker: Walker, node: MemberAccess, base: Type, key: Type, name: str | None) -> Type:
    """Return the type of a part of a map, an array or a struct."""
    if isinstance(base, Map):
        return _entry(walker, node, base, key, name)
    if isinstance(base, Array):
        if is_integer(through(key)) or is_any(through(key)):
            return base.element
        got = through(key).name
        return walker.error(node.key, f"array elements can only be selected using an integer (got {got})")
    if name is None:
        return walker.error(node, f"type {base.name}[{key.name}] is undefined")
    if isinstance(base, Struct) and name in base.fields:
        return base.fields[name]
    return walker.error(node, f"type {base.name} has no {'method' if node.is_method else 'field'} {name}")


def _entry(walker: Walker, node: MemberAccess, base: Map, key: Type, name: str | None) -> Type:
    if not is_assignable(key, base.key) and is_assignable(through(key), base.key):
        key = through(key)
    if not is_assignable(key, base.key) and not is_any(key):
        return walker.error(node.key, f"cannot use {key.name} to get an element from {base.name}")
    if name is not None and base.fields is not None:
        if name in base.fields:
            return base.fields[name]
        if base.strict:
            return walker.error(node.key, f"unknown field {name}")
    return base.value


def check_slice(walker: Walker, node: Slice) -> Type:
    """Check `base[lower:upper]`; of an unknown base not the bounds either, which the original does not look at."""
    base = walker.visit(node.base)
    if is_any(base):
        walker.annotate((node.lower, node.upper))
        return UNKNOWN
    if base.kind not in ("string", "array"):
        walker.error(node, f"cannot slice {base.name}")
        walker.search((node.lower, node.upper))
        return UNKNOWN
    bounds = [bound for bound in (node.lower, node.upper) if bound is not None]
    wrong = [bound for bound in bounds if not _is_bound(walker, bound)]
    return UNKNOWN if wrong else base


def _is_bound(walker: Walker, node: ExprNode) -> bool:
    found = through(walker.visit(node))
    if is_integer(found) or is_any(found):
        return True
    walker.error(node, f"non-integer slice index {found.name}")
    return False


def check_get(walker: Walker, node: Builtin) -> Type:
    """Check `get(base, key)`, which is nil where a subscript fails."""
    if len(node.arguments) != 2:
        walker.error(node, f"invalid number of arguments (expected 2, got {len(node.arguments)})")
        walker.search(node.arguments)
        return UNKNOWN
    source, key_node = node.arguments
    base, key = walker.visit(source), through(walker.visit(key_node))
    if isinstance(source, Identifier) and source.name == "$env":
        name = key_node.value if isinstance(key_node, String) else ""
        return walker.environment.variable(name) or UNKNOWN
    if isinstance(base, Array):
        if is_integer(key) or is_any(key):
            return base.element
        return walker.error(key_node, f"non-integer slice index {key.name}")
    if isinstance(base, Map):
        if is_assignable(key, base.key) or is_any(key):
            return base.value
        return walker.error(key_node, f"cannot use {key.name} to get an element from {base.name}")
    return UNKNOWN if is_any(base) else walker.error(source, f"type {base.name} does not support indexing")


def _method(base: Type, name: str) -> Func | None:
    """Find a method of a struct, or of a type that comes with the language."""
    target = through(base)
    if isinstance(target, Struct) and name in target.methods:
        return target.methods[name].signature
    known = METHODS.get(base.name) or (METHODS.get(target.name) if isinstance(base, Nullable) else None)
    return known.get(name) if known else None
