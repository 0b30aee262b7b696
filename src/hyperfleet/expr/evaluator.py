"""The plain evaluator: walks the tree, with one small method for each kind of node.

It is slower than generated code and easier to verify. Tests compare the compiler with it, `explain` records it, and a
program falls back to it when values do not have their declared types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hyperfleet.expr.compiling.folding import FIRST_MATCH, IN_RANGE, LAST_MATCH, is_constant
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
from hyperfleet.expr.runtime import access, numbers, values
from hyperfleet.expr.runtime.arity import BRANDED, misfit
from hyperfleet.expr.runtime.budget import allocate, look_up, read_arguments, spend
from hyperfleet.expr.runtime.functions import FUNCTIONS
from hyperfleet.expr.runtime.functions.collections import sort_by, sort_order
from hyperfleet.expr.runtime.lookup import call_of, fetch_typed, operation_of, read_name, whole_environment
from hyperfleet.expr.runtime.loops import element, elements, group, loop_weight
from hyperfleet.expr.runtime.values import Groups, Value, as_bool, is_nil
from hyperfleet.expr.scopes import NameScope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.types import Schema

    Method = Callable[[Any, Any], Value]


UNSUPPORTED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What Python raises for unexpected values, such as integers beyond a float or half a character."""
UNSUPPORTED_VALUE = "unsupported value: not of the type that is declared for it"
"""The message for them: Python's own text would describe our code, not the expression."""


class Skip(Exception):  # noqa: N818 - control flow: a `?.` found nil, so the rest of its chain is not evaluated
    """Leaves a chain."""


class Round:
    """One loop in progress: its elements, its position and its result so far."""

    __slots__ = ("index", "items", "result")

    def __init__(self, items: Any, result: Value = None) -> None:
        """Start at the first element."""
        self.items = items
        self.index = 0
        self.result = result

    def go(self, start: int = 0, *, backwards: bool = False) -> Iterator[int]:
        """Go through the elements, yielding the place of the current one."""
        places = range(start, len(self.items))
        for place in reversed(places) if backwards else places:
            self.index = place
            yield place


class Evaluator:
    """One evaluation: the environment, the account, and what is in scope.

    For a round of a loop it pays `slowness` times what generated code pays, because it takes so much longer.
    """

    slowness = 8

    def __init__(
        self, environment: Mapping[str, Value], schema: Schema | None, budget: Budget, now: Callable[..., Value]
    ) -> None:
        """Evaluate against `environment`, paying from `budget`; `now` is the builtin of that name."""
        self.whole = whole_environment(environment, schema)
        self.budget = budget
        self.now = now
        self.variables: NameScope[Value] = NameScope()
        self.rounds: list[Round] = []

    def visit(self, node: ExprNode) -> Value:
        """Return the value of a node; add its place to a fault."""
        try:
            return self.dispatch(node)
        except EvaluationFault as fault:
            if fault.offset is None:
                fault.offset = node.offset
            raise

    def dispatch(self, node: ExprNode) -> Value:
        """Evaluate a node by the method for its kind."""
        return _VISITORS[type(node)](self, node)

    # Names

    def identifier(self, node: Identifier) -> Value:
        """Look up a name: the innermost variable, or the environment."""
        if node.name in self.variables:
            return self.variables[node.name]
        if node.name == "$env":
            return self.whole
        return read_name(self.whole, node.name)

    def pointer(self, node: Pointer) -> Value:
        """Look up `#`, `#index` or `#acc` of the innermost loop."""
        current = self.rounds[-1]
        if node.name == "index":
            return current.index
        return current.result if node.name == "acc" else element(current.items[current.index])

    def let(self, node: Let) -> Value:
        """Evaluate the body of a declaration with its variable in scope; a long row of them is a loop."""
        depth = len(self.variables)
        body: ExprNode = node
        while isinstance(body, Let):
            self.variables.declare(body.name, self.visit(body.value))
            body = body.body
        result = self.visit(body)
        self.variables.leave(depth)
        return result

    # Operators

    def unary(self, node: Unary) -> Value:
        """Negate a boolean or a number; `+` returns its operand."""
        operand = self.visit(node.operand)
        if node.operator in ("!", "not"):
            return not as_bool(operand)
        return numbers.negate(operand) if node.operator == "-" else operand

    def binary(self, node: Binary) -> Value:
        """Evaluate an operation; a long chain hangs to the left, so it is a loop."""
        chain: list[Binary] = [node]
        while isinstance(chain[-1].left, Binary):
            chain.append(chain[-1].left)
        value = self.visit(chain[-1].left)
        for link in reversed(chain):
            value = self.operation(link, value)
        return value

    def operation(self, node: Binary, left: Value) -> Value:
        """Evaluate one link of a chain, whose left side is known."""
        try:
            lazy = _LAZY.get(node.operator)
            if lazy is not None:
                return lazy(self, left, node)
            return operation_of(node)(left, self.visit(node.right), self.budget)
        except EvaluationFault as fault:
            if fault.offset is None:
                fault.offset = node.offset
            raise

    def conjunction(self, left: Value, node: Binary) -> Value:
        """Evaluate the right side of `and` only if the left side is true."""
        return self.visit(node.right) if as_bool(left) else left

    def disjunction(self, left: Value, node: Binary) -> Value:
        """Evaluate the right side of `or` only if the left side is false."""
        return left if as_bool(left) else self.visit(node.right)

    def coalesce(self, left: Value, node: Binary) -> Value:
        """Evaluate the right side of `??` only if the left side is nil."""
        if not is_nil(left):
            return left
        return self.links(node.right) if isinstance(node.right, Chain) else self.visit(node.right)

    def conditional(self, node: Conditional) -> Value:
        """Evaluate one of two branches."""
        return self.visit(node.then if as_bool(self.visit(node.test)) else node.otherwise)

    def sequence(self, node: Sequence) -> Value:
        """Evaluate all items; the last one counts."""
        return [self.visit(item) for item in node.items][-1]

    # Literals

    def array(self, node: ArrayLiteral) -> Value:
        """Make a list."""
        items = [self.visit(item) for item in node.items]
        if not is_constant(node):
            allocate(self.budget, len(items))
        return items

    def map(self, node: MapLiteral) -> Value:
        """Make a map; of equal keys the first one counts."""
        pairs = [(self.visit(pair.key), self.visit(pair.value)) for pair in node.pairs]
        allocate(self.budget, len(pairs))
        result: dict[Value, Value] = {}
        for key, value in pairs:
            look_up(self.budget, key)
            result.setdefault(values.as_string(key), value)
        return result

    # Accesses

    def chain(self, node: Chain) -> Value:
        """Evaluate accesses with `?.`; nil of any type is plain nil then."""
        value = self.links(node)
        return None if is_nil(value) else value

    def links(self, node: Chain) -> Value:
        """Evaluate accesses until a `?.` finds nil."""
        try:
            return self.visit(node.body)
        except Skip:
            return None

    def member(self, node: MemberAccess) -> Value:
        """Access a member of a value."""
        base = self.visit(node.base)
        if node.optional and is_nil(base):
            raise Skip
        return fetch_typed(base, self.visit(node.key), node, self.budget)

    def slice(self, node: Slice) -> Value:
        """Cut a piece out of a list or string."""
        base = self.visit(node.base)
        upper = self.visit(node.upper) if node.upper is not None else access.byte_length(base, self.budget)
        lower = self.visit(node.lower) if node.lower is not None else 0
        return access.cut(base, upper, lower, self.budget)

    def call(self, node: Call) -> Value:
        """Call a function; nil stands for the zero value of a parameter."""
        arguments = [self.visit(argument) for argument in node.arguments]
        read_arguments(self.budget, arguments)
        return call_of(node)(self.visit(node.callee), *arguments)

    # Functions of the language

    def builtin(self, node: Builtin) -> Value:
        """Call a function of the language."""
        if node.name == IN_RANGE:
            return self.in_range(*node.arguments)
        loop = _LOOPS.get(node.name)
        if loop is not None:
            return loop(self, node)
        if wrong := misfit(node):
            raise EvaluationFault(wrong)
        arguments = [self.visit(argument) for argument in node.arguments]
        if node.name in BRANDED:
            arguments = [values.brand(arguments[0], node.arguments[0].type, self.budget)]
        if node.name == "now":
            return self.now(*arguments)
        return FUNCTIONS[node.name](self.budget, *arguments)

    def in_range(self, number: ExprNode, low: ExprNode, high: ExprNode) -> bool:
        """Tell whether a number lies within a range, which needs no list."""
        value = self.visit(number)
        return values.more_or_equal(value, self.visit(low)) and values.less_or_equal(value, self.visit(high))

    def start(self, node: Builtin, result: Value = None) -> Round:
        """Begin a loop: evaluate its collection and charge for it."""
        items = elements(self.visit(node.arguments[0]))
        spend(self.budget, len(items) * loop_weight(node) * self.slowness)
        return Round(items, result)

    def body(self, node: Builtin, current: Round) -> Value:
        """Return the value of a loop's predicate in the current round; without one, the element itself."""
        self.rounds.append(current)
        try:
            return self.visit(node.arguments[1]) if len(node.arguments) > 1 else element(current.items[current.index])
        finally:
            self.rounds.pop()

    def tests(self, node: Builtin, current: Round, *, backwards: bool = False) -> Iterator[bool]:
        """Yield for each round whether the predicate holds."""
        for _ in current.go(backwards=backwards):
            yield as_bool(self.body(node, current))

    def all(self, node: Builtin) -> bool:
        """Tell whether the predicate holds for every element."""
        return all(self.tests(node, self.start(node)))

    def none(self, node: Builtin) -> bool:
        """Tell whether the predicate holds for no element."""
        return not any(self.tests(node, self.start(node)))

    def any(self, node: Builtin) -> bool:
        """Tell whether the predicate holds for some element."""
        return any(self.tests(node, self.start(node)))

    def one(self, node: Builtin) -> bool:
        """Tell whether the predicate holds for exactly one element."""
        return sum(self.tests(node, self.start(node))) == 1

    def count(self, node: Builtin) -> int:
        """Count the elements for which the predicate holds, until there are enough."""
        enough = node.arguments[2] if len(node.arguments) == 3 else None
        found = 0
        for holds in self.tests(node, self.start(node)):
            found += holds
            if isinstance(enough, Integer) and found >= enough.value:
                break
        return found

    def filter(self, node: Builtin) -> Value:
        """Return the elements for which the predicate holds."""
        current = self.start(node)
        found = [element(current.items[current.index]) for holds in self.tests(node, current) if holds]
        allocate(self.budget, len(found))
        return found

    def map_each(self, node: Builtin) -> Value:
        """Return what the predicate makes of every element."""
        current = self.start(node)
        found = [self.body(node, current) for _ in current.go()]
        allocate(self.budget, len(found))
        return found

    def find(self, node: Builtin) -> Value:
        """Return the first or last element, or its index, for which the predicate holds."""
        current = self.start(node)
        for holds in self.tests(node, current, backwards=node.name in ("findLast", "findLastIndex", LAST_MATCH)):
            if holds:
                is_index = node.name in ("findIndex", "findLastIndex")
                return current.index if is_index else element(current.items[current.index])
        if node.name in (FIRST_MATCH, LAST_MATCH):
            raise EvaluationFault("reflect: slice index out of range")
        return None

    def sum(self, node: Builtin) -> Value:
        """Add up what the predicate makes of every element."""
        current = self.start(node, 0)
        for _ in current.go():
            current.result = numbers.add(self.body(node, current), current.result)
        return current.result

    def group_by(self, node: Builtin) -> Value:
        """Return the elements in groups, by what the predicate makes of them."""
        current = self.start(node, Groups())
        for _ in current.go():
            key = values.brand(self.body(node, current), node.arguments[1].type, self.budget)
            group(current.result, key, element(current.items[current.index]), self.budget)
        return current.result

    def sort_by(self, node: Builtin) -> Value:
        """Return the elements in the order of what the predicate makes of them."""
        current = self.start(node)
        descending = sort_order(self.visit(node.arguments[2])) if len(node.arguments) == 3 else False
        pairs = [(self.body(node, current), element(current.items[current.index])) for _ in current.go()]
        found = sort_by(self.budget, [item for _, item in pairs], [rank for rank, _ in pairs], descending=descending)
        allocate(self.budget, len(found))
        return found

    def reduce(self, node: Builtin) -> Value:
        """Return what the predicate makes of all elements, one after the other."""
        current = self.start(node)
        start = 0
        if len(node.arguments) == 3:
            current.result = self.visit(node.arguments[2])
        elif not current.items:
            raise EvaluationFault("reduce of empty array with no initial value")
        else:
            current.result, start = element(current.items[0]), 1
        for _ in current.go(start):
            current.result = self.body(node, current)
        return current.result


_LAZY: dict[str, Callable[[Evaluator, Value, Binary], Value]] = {
    "and": Evaluator.conjunction,
    "&&": Evaluator.conjunction,
    "or": Evaluator.disjunction,
    "||": Evaluator.disjunction,
    "??": Evaluator.coalesce,
}

_LOOPS: dict[str, Callable[[Evaluator, Builtin], Value]] = {
    "all": Evaluator.all,
    "none": Evaluator.none,
    "any": Evaluator.any,
    "one": Evaluator.one,
    "count": Evaluator.count,
    "filter": Evaluator.filter,
    "map": Evaluator.map_each,
    "find": Evaluator.find,
    "findIndex": Evaluator.find,
    "findLast": Evaluator.find,
    "findLastIndex": Evaluator.find,
    FIRST_MATCH: Evaluator.find,
    LAST_MATCH: Evaluator.find,
    "sum": Evaluator.sum,
    "groupBy": Evaluator.group_by,
    "sortBy": Evaluator.sort_by,
    "reduce": Evaluator.reduce,
}

_VISITORS: dict[type[ExprNode], Method] = {
    Nil: lambda _, __: None,
    Integer: lambda _, node: float(node.value) if node.type.kind == "float" else node.value,
    Float: lambda _, node: node.value,
    Boolean: lambda _, node: node.value,
    String: lambda _, node: node.value,
    Bytes: lambda _, node: node.value,
    Identifier: Evaluator.identifier,
    Pointer: Evaluator.pointer,
    Let: Evaluator.let,
    Unary: Evaluator.unary,
    Binary: Evaluator.binary,
    Conditional: Evaluator.conditional,
    Sequence: Evaluator.sequence,
    ArrayLiteral: Evaluator.array,
    MapLiteral: Evaluator.map,
    Chain: Evaluator.chain,
    MemberAccess: Evaluator.member,
    Slice: Evaluator.slice,
    Call: Evaluator.call,
    Builtin: Evaluator.builtin,
    Predicate: lambda evaluator, node: evaluator.visit(node.body),
}
