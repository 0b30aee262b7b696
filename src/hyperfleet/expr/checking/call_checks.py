"""The checker's rules for calls: of functions and methods, of builtins, of builtins with a predicate.

`checker` lists them in its table. What fits what is decided in `calls` and `predicates`; here arguments are
checked in the order in which the original reports errors, and messages get their places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperfleet.expr.checking.accesses import check_get
from hyperfleet.expr.checking.calls import Misfit, builtin_call_type, call_type
from hyperfleet.expr.checking.compatibility import is_any, is_assignable, is_nil, printed, through
from hyperfleet.expr.checking.predicates import LOOPS, element_of
from hyperfleet.expr.nodes import Binary, Identifier, Integer, MemberAccess, String, Unary
from hyperfleet.expr.signatures import OVERLOADS
from hyperfleet.expr.types import FLOAT, INT, UNKNOWN, Func, Type

if TYPE_CHECKING:
    from hyperfleet.expr.checking.walker import Walker
    from hyperfleet.expr.nodes import Builtin, Call, ExprNode, Predicate


class _Arguments:
    """The arguments of a call, each checked on first use."""

    def __init__(self, walker: Walker, nodes: tuple[ExprNode, ...]) -> None:
        self._walker = walker
        self._nodes = nodes
        self._seen = 0

    def __len__(self) -> int:
        return len(self._nodes)

    def type_of(self, index: int) -> Type:
        while self._seen <= index:
            self._walker.visit(self._nodes[self._seen])
            self._seen += 1
        return self._nodes[index].type

    def make_float(self, index: int) -> None:
        _make_float(self._nodes[index])

    def rest(self) -> tuple[ExprNode, ...]:
        """Return the arguments that have not been checked yet."""
        return self._nodes[self._seen :]


def _make_float(node: ExprNode) -> bool:
    """Type the integer literals of a sum or product as floating-point; tell whether there are any."""
    is_float = isinstance(node, Integer)
    if isinstance(node, Unary):
        is_float = _make_float(node.operand)
    elif isinstance(node, Binary) and node.operator in ("+", "-", "*"):
        is_float = _make_float(node.left) | _make_float(node.right)
    if is_float:
        node.type = FLOAT
    return is_float


def check_call(walker: Walker, node: Call) -> Type:
    """Check a call of something that is not a builtin; the arguments of an unknown function are not checked."""
    callee = node.callee
    if isinstance(callee, Identifier) and callee.name == "$env":
        walker.error(node, f"{walker.environment.name} is not callable")
        walker.search(node.arguments)
        return UNKNOWN
    before = len(walker.errors)
    found = walker.visit(callee)
    if isinstance(found, Func):
        arguments = _Arguments(walker, node.arguments)
        return _called(walker, node, call_type(_name_of(callee), found, arguments), arguments)
    if is_nil(found):
        walker.error(node, f"{_name_of(callee)} is nil; cannot call nil as function")
    elif not is_any(found):
        walker.error(node, f"{found.name} is not callable")
    if len(walker.errors) > before:
        walker.search(node.arguments)
    else:
        walker.annotate(node.arguments)
    return UNKNOWN


def _called(walker: Walker, node: Call | Builtin, found: Type | Misfit, arguments: _Arguments) -> Type:
    if not isinstance(found, Misfit):
        return found
    walker.error(node if found.argument is None else node.arguments[found.argument], found.message)
    walker.search(arguments.rest())
    return UNKNOWN


def check_builtin(walker: Walker, node: Builtin) -> Type:
    """Check a call of a function of the language."""
    if node.name in LOOPS:
        return _loop(walker, node)
    if node.name == "get":
        return check_get(walker, node)
    arguments = _Arguments(walker, node.arguments)
    return _called(walker, node, builtin_call_type(node.name, arguments), arguments)


def _loop(walker: Walker, node: Builtin) -> Type:
    """Check a builtin with a predicate, which sees the elements of the first argument."""
    collection = through(walker.visit(node.arguments[0]))
    before = len(walker.errors)
    if collection.kind not in ("array", "any"):
        walker.error(node.arguments[0], f"builtin {node.name} takes only array (got {collection.name})")
        collection = UNKNOWN
    loop = LOOPS[node.name]
    if len(node.arguments) == 1:
        found = INT if node.name == "count" else element_of(collection)
        return UNKNOWN if len(walker.errors) > before else found
    walker.loops.append((collection, loop.pointers))
    body = walker.visit(node.arguments[1])
    walker.loops.pop()
    if len(node.arguments) == 3 and not _is_third(walker, node.name, node.arguments[2]):
        return UNKNOWN
    if len(walker.errors) > before:
        return UNKNOWN
    if is_nil(body):
        return _no_result(walker, node, collection)
    if loop.wants_bool and body.kind not in ("bool", "any"):
        message = f"predicate should return boolean (got {printed(body).name})"
        return walker.error(node.arguments[1], message)
    return loop.result(collection, body)


def _is_third(walker: Walker, name: str, node: ExprNode) -> bool:
    """Check the order of `sortBy`, or the start of `reduce`."""
    found = walker.visit(node)
    if name != "sortBy" or found.kind in ("string", "any"):
        return True
    walker.error(node, f"sortBy order argument must be a string (got {found.name})")
    return False


def _no_result(walker: Walker, node: Builtin, collection: Type) -> Type:
    """Refuse a predicate that is always nil; the original sees `sum` as an ordinary call then."""
    if node.name != "sum":
        inputs = "two" if node.name == "reduce" else "one"
        return walker.error(node.arguments[1], f"predicate should has {inputs} input and one output param")
    array, test = OVERLOADS["sum"][0].parameters
    given, wanted, at = "func(interface {})", test, 1
    if not is_any(collection) and not is_assignable(collection, array):
        given, wanted, at = collection.name, array, 0
    return walker.error(node.arguments[at], f"cannot use {given} as argument (type {wanted.name}) to call sum ")


def check_predicate(walker: Walker, node: Predicate) -> Type:
    """Check the body of a predicate."""
    return walker.visit(node.body)


def _name_of(callee: ExprNode) -> str:
    """Return the name of what is called."""
    if isinstance(callee, Identifier):
        return callee.name
    if isinstance(callee, MemberAccess) and isinstance(callee.key, String):
        return callee.key.value
    return "function"
