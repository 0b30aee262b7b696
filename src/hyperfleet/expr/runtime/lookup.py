"""What static types add to values at run time: which functions are declared, which structs plain dicts are, which
operators may insist on a type.

Shared by the plain evaluator and generated code; the former asks for every node, the latter where it must.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.expr.faults import EvaluationFault
from hyperfleet.expr.nodes import MemberAccess
from hyperfleet.expr.runtime import access, values
from hyperfleet.expr.runtime.budget import look_up
from hyperfleet.expr.runtime.operations import OPERATIONS, STRICT
from hyperfleet.expr.runtime.values import Function, StructValue
from hyperfleet.expr.types import ANY, Func, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hyperfleet.expr.nodes import Binary, Call, ExprNode
    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.runtime.operations import Operation
    from hyperfleet.expr.runtime.values import Value
    from hyperfleet.expr.types import Schema, Type


def operation_of(node: Binary) -> Operation:
    """Return what an operator does; `==` insists on what the checker promised, as the original does."""
    promised = node.left.type if node.left.type == node.right.type else ANY
    return STRICT.get((node.operator, promised.name), OPERATIONS[node.operator])


def call_of(node: Call) -> Callable[..., Value]:
    """Return how a function is called: what the checker knows of it, the call insists on."""
    if not isinstance(node.callee.type, Func):
        return access.call
    return access.call_native if is_native(node.callee) else access.call_declared


def is_native(callee: ExprNode) -> bool:
    """Tell whether a callee is a method of a time or a duration."""
    return isinstance(callee, MemberAccess) and callee.base.type.kind in ("time", "duration")


def whole_environment(environment: Mapping[str, Value], schema: Schema | None) -> Value:
    """Return `$env`: the environment, in which a host's callables are functions where they are declared as such."""
    functions = {name: of for name, of in (schema or {}).items() if isinstance(of, Func)}
    wrapped = {name: as_function(environment.get(name), of) for name, of in functions.items()}
    return {**environment, **wrapped} if wrapped else environment


def read_name(environment: Mapping[str, Value], name: str) -> Value:
    """Return what the environment has under a name; a struct must have it, a map need not."""
    return access.fetch_field(environment, name) if isinstance(environment, StructValue) else environment.get(name)


def as_function(value: Value, declared: Type) -> Value:
    """Return what a name stands for; a host's callable counts as a function only where one is declared."""
    if isinstance(declared, Func) and callable(value) and not isinstance(value, Function):
        return Function(value, declared)
    return value


def fetch_or_zero(mapping: Value, key: str, declared: Type) -> Value:
    """Return an entry of a dict, or else a new zero value: the caller may change what is returned."""
    found = dict.get(mapping, key, _ABSENT)
    return values.zero(declared) if found is _ABSENT else found


_ABSENT = object()


def fetch_typed(base: Value, key: Value, node: MemberAccess, budget: Budget) -> Value:
    """Return `base[key]` by what the static type of the base knows and its value does not: structs and zeros."""
    declared = node.base.type
    if isinstance(declared, Struct) and base is None:
        raise EvaluationFault(f"cannot get {key} from <nil>")
    if isinstance(declared, Struct) and isinstance(base, dict) and not isinstance(base, StructValue):
        base = StructValue(declared, base)
    if isinstance(declared, Map) and type(base) is dict:
        look_up(budget, key)
    if isinstance(declared, Map) and type(base) is dict and key not in base and declared.key.kind != "any":
        access.fetch_entry(base, key)  # refuses a key of the wrong type
        return values.zero(declared.value)
    return as_function(access.fetch(base, key, budget), node.type)
