"""The state of one compilation, and how values flow through the code it emits.

A rule for a node returns a Python expression and may put statements before it (`statement`). `operands` keeps the
order of evaluation when a later operand needs statements; `apart` collects what belongs into a branch.
"""

from __future__ import annotations

import ast
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hyperfleet.expr.compiling import emission as py
from hyperfleet.expr.compiling.folding import IN_RANGE
from hyperfleet.expr.nodes import (
    ArrayLiteral,
    Binary,
    Boolean,
    Builtin,
    Conditional,
    ExprNode,
    Float,
    Identifier,
    Integer,
    MemberAccess,
    Pointer,
    Predicate,
    Slice,
    String,
    Unary,
)
from hyperfleet.expr.runtime.budget import allocate, open_budget, reopen, spend
from hyperfleet.expr.runtime.loops import element
from hyperfleet.expr.runtime.regex import ALLOWANCE
from hyperfleet.expr.runtime.values import as_bool, is_nil
from hyperfleet.expr.scopes import NameScope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hyperfleet.expr.compiling.emission import Block
    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.types import Schema

    Rule = Callable[["Emitter", Any], ast.expr]

SMALL = 64
"""Elements of a list that need no payment outside of other loops: looping over it costs less than paying."""

SHORT_TEXT = 256
"""Characters of a literal that any text is compared with for free."""

_LARGEST = 2**63 - 1
_EXACT_FLOAT = 2**53
_SIZE = 2**40  # no length or index is larger


@dataclass(slots=True)
class EmittedLoop:
    """A loop whose body is being emitted: the names of `#`, `#index` and `#acc`, and which of them it reads."""

    item: str
    index: str
    result: str
    is_open: bool
    is_data: bool
    reads_index: bool = False
    reads_item: bool = False


@dataclass(slots=True)
class Emitter:
    """One compilation. `cells` and `steps` fill the account of an evaluation."""

    rules: dict[type[ExprNode], Rule]
    schema: Schema | None
    cells: int
    steps: int
    namespace: dict[str, object] = field(default_factory=dict)
    helpers: dict[Callable[..., object], str] = field(default_factory=dict)
    variables: NameScope[str] = field(default_factory=NameScope)
    loops: list[EmittedLoop] = field(default_factory=list)
    block: Block = field(default_factory=list)
    emitted: dict[int, ast.expr] = field(default_factory=dict)
    needs_account: bool = False
    may_need_account: bool = False
    late: dict[Callable[[Budget, int], None], Callable[[Budget | None, int], Budget]] = field(default_factory=dict)
    patterns: int = ALLOWANCE
    comprehensions: int = 0
    whole: str = ""
    _made: int = 0

    def emit(self, node: ExprNode) -> ast.expr:
        """Return the Python expression of a node, with the statements it needs put before."""
        known = self.emitted.pop(id(node), None) if self.emitted else None
        return known if known is not None else self.rules[type(node)](self, node)

    def knows(self, node: ExprNode, value: ast.expr) -> None:
        """Record that a node has been emitted; its next use gets this value."""
        self.emitted[id(node)] = value

    def fresh(self, prefix: str) -> str:
        """Return a name that is used nowhere else."""
        self._made += 1
        return f"{prefix}{self._made}"

    def helper(self, function: Callable[..., object]) -> ast.expr:
        """Read a function of the run time."""
        identifier = self.helpers.get(function)
        if identifier is None:
            identifier = self.helpers[function] = self.fresh("h")
            self.namespace[identifier] = function
        return py.name(identifier)

    def shared(self, value: object) -> ast.expr:
        """Read a value that is made once, at compile time."""
        identifier = self.fresh("k")
        self.namespace[identifier] = value
        return py.name(identifier)

    def call(self, function: Callable[..., object], arguments: Iterable[ast.expr], offset: int) -> ast.expr:
        """Call a function of the run time."""
        return py.call(self.helper(function), arguments, offset)

    def account(self) -> ast.expr:
        """Read the account of the evaluation."""
        self.needs_account = True
        return py.name(py.ACCOUNT)

    def statement(self, statement: ast.stmt) -> None:
        """Put a statement before the expression that is being emitted."""
        self.block.append(statement)

    def keep(self, value: ast.expr) -> ast.expr:
        """Return an expression that can be read repeatedly without evaluating `value` again."""
        if isinstance(value, (ast.Constant, ast.Name)):
            return value
        identifier = self.fresh("t")
        self.statement(py.assign(identifier, value))
        return py.name(identifier)

    @contextmanager
    def apart(self) -> Iterator[Block]:
        """Collect the statements of a branch, to be placed elsewhere."""
        outer, self.block = self.block, []
        branch = self.block
        try:
            yield branch
        finally:
            self.block = outer

    def operands(self, nodes: Iterable[ExprNode]) -> list[ast.expr]:
        """Emit several nodes, evaluated in order even if a later one needs statements."""
        found: list[ast.expr] = []
        kept = 0
        for node in nodes:
            block, before = self.block, len(self.block)
            value = self.emit(node)
            if len(block) > before:
                inner, self.block = self.block, block
                late = block[before:]
                del block[before:]
                found[kept:] = [self.keep(earlier) for earlier in found[kept:]]
                kept = len(found)
                block.extend(late)
                self.block = inner
            found.append(value)
        return found

    def item(self, loop: EmittedLoop, offset: int) -> ast.expr:
        """Read `#`; of a collection that may be a map, it may turn out to be out of reach."""
        loop.reads_item = True
        value = py.name(loop.item)
        return self.call(element, [value], offset) if loop.is_open else value

    def is_sure(self, node: ExprNode) -> bool:
        """Tell whether a value is certainly of its static type: the checker also types what may turn out to be nil."""
        if isinstance(node, Binary):
            return self._is_sure_operation(node)
        if isinstance(node, Builtin):
            return node.name in _SURE
        if isinstance(node, Identifier):
            return node.name not in self.variables
        if isinstance(node, Conditional):
            return all(branch.type == node.type and self.is_sure(branch) for branch in (node.then, node.otherwise))
        if isinstance(node, Predicate):
            return self.is_sure(node.body)
        if isinstance(node, Slice):
            return self.is_sure(node.base)
        return isinstance(node, (Integer, Float, Boolean, String, ArrayLiteral, Unary, MemberAccess)) or _is_element(
            node
        )

    def is_data(self, node: ExprNode) -> bool:
        """Tell whether a value is the environment's own: what a host hands in, an expression cannot make larger."""
        while isinstance(node, MemberAccess) and not node.optional:
            node = node.base
        if isinstance(node, Identifier):
            return node.name not in self.variables
        return _is_element(node) and self.loops[-1].is_data

    def _is_sure_operation(self, node: Binary) -> bool:
        """Tell it of an operation; the right side of `and` and `or` is not looked at when it is evaluated."""
        if node.operator in ("and", "&&", "or", "||"):
            return node.right.type.kind == "bool" and self.is_sure(node.right)
        if node.operator in ("+", "-", "*", "??"):
            return self.is_sure(node.left) and self.is_sure(node.right)
        return True

    def truth(self, node: ExprNode, value: ast.expr, offset: int) -> ast.expr:
        """Return a value that must be a bool; checked at run time if its type does not say so."""
        is_bool = node.type.kind == "bool" and self.is_sure(node)
        return value if is_bool else self.call(as_bool, [value], offset)

    def nil_test(self, node: ExprNode, value: ast.expr) -> ast.expr:
        """Tell whether the value of a node is nil."""
        if isinstance(value, ast.Constant):
            return py.constant(value.value is None)
        if node.type.kind in ("any", "array", "map", "nil"):
            return self.call(is_nil, [value], node.offset)
        return py.compare(value, ast.Is(), py.constant(None))

    # Charging

    @property
    def is_cheap(self) -> bool:
        """Tell whether small things need no payment here: outside of loops, with an account that is not tiny."""
        return not self.loops and self.cells > 1000 * SMALL and self.steps > 10 * SMALL

    def pay(self, function: Callable[[Budget, int], None], size: ast.expr, offset: int) -> None:
        """Pay for `size` cells or steps."""
        self.statement(py.discard(self.call(function, [self.account(), size], offset)))

    def pay_memory(self, items: ast.expr, offset: int) -> None:
        """Pay for the memory of a list that was made."""
        size = self.call(len, [items], offset)
        if not self.is_cheap:
            self.pay(allocate, size, offset)
            return
        self._pay_if_large(allocate, size, SMALL, offset)

    def pay_work(self, items: ast.expr, weight: int, offset: int) -> None:
        """Pay for going through a list, `weight` steps for each element."""
        size = self.call(len, [items], offset)
        if not self.is_cheap:
            steps = size if weight == 1 else py.binary(size, ast.Mult(), py.constant(weight), offset)
            self.pay(spend, steps, offset)
            return
        self._pay_if_large(spend, size, SMALL // weight, offset, weight)

    def _pay_if_large(
        self, function: Callable[[Budget, int], None], size: ast.expr, free: int, offset: int, weight: int = 1
    ) -> None:
        """Pay only beyond a free size; the account is made then, if nothing else needs one."""
        self.may_need_account = True
        kept = self.fresh("n")
        amount = py.binary(py.name(kept), ast.Mult(), py.constant(weight), offset)
        payment = self.call(self._late(function), [py.name(py.ACCOUNT), amount], offset)
        test = py.compare(py.bind(kept, size), ast.Gt(), py.constant(free))
        self.statement(py.when(test, [py.assign(py.ACCOUNT, payment)]))

    def _late(self, function: Callable[[Budget, int], None]) -> Callable[[Budget | None, int], Budget]:
        """Return what pays from an account that is opened with the first payment."""
        known = self.late.get(function)
        if known is None:
            known = self.late[function] = _paying_late(function, self.cells, self.steps)
        return known

    @property
    def has_account(self) -> bool:
        """Tell whether the code so far keeps an account."""
        return self.needs_account or self.may_need_account

    def open_account(self) -> Block:
        """Return the statements that open the account, as far as it is needed."""
        if self.needs_account:
            limits = [py.constant(limit) for limit in open_budget(self.cells, self.steps)]
            return [py.assign(py.ACCOUNT, py.logic(ast.Or(), [self._shared_account(), py.make_list(limits)]))]
        return [py.assign(py.ACCOUNT, self._shared_account())] if self.has_account else []

    def _shared_account(self) -> ast.expr:
        """Read the account that the caller gave, if any."""
        given = py.name(py.SHARED)
        return py.logic(ast.And(), [given, self.call(reopen, [given, py.constant(self.cells)], 0)])


def _paying_late(
    function: Callable[[Budget, int], None], cells: int, steps: int
) -> Callable[[Budget | None, int], Budget]:
    def pay(budget: Budget | None, size: int) -> Budget:
        account = budget if budget is not None else open_budget(cells, steps)
        function(account, size)
        return account

    return pay


# Functions whose result is certainly of the type that the checker says.
_SURE = frozenset(
    {"all", "none", "any", "one", "count", "len", "type", "string", "upper", "lower", "trim", "join", "replace"}
    | {"indexOf", "lastIndexOf", "hasPrefix", "hasSuffix", "repeat", "trimPrefix", "trimSuffix", "int", "float"}
    | {
        IN_RANGE,
        "filter",
        "map",
        "sortBy",
        "sort",
        "reverse",
        "uniq",
        "concat",
        "flatten",
        "keys",
        "values",
        "toPairs",
        "split",
    }
)


def is_short_literal(node: ExprNode) -> bool:
    """Tell whether a node is a text so short that comparing any other with it costs nothing worth counting."""
    return isinstance(node, String) and len(node.value) <= SHORT_TEXT


def _is_element(node: ExprNode) -> bool:
    return isinstance(node, Pointer) and node.name != "acc"


def bound(node: ExprNode) -> int:
    """Return how large the absolute value of an integer can get, as far as the tree shows."""
    if isinstance(node, Integer):
        return abs(node.value)
    if isinstance(node, Builtin) and node.name in ("len", "count", "indexOf", "lastIndexOf"):
        return _SIZE
    if isinstance(node, Pointer) and node.name == "index":
        return _SIZE
    if isinstance(node, Unary):
        return bound(node.operand)
    if isinstance(node, Binary) and node.operator in ("+", "-") and not isinstance(node.left, Binary):
        return bound(node.left) + bound(node.right)
    return _LARGEST + 1


def fits(size: int) -> bool:
    """Tell whether numbers up to `size` stay within an int64."""
    return size <= _LARGEST


def is_exact(node: ExprNode) -> bool:
    """Tell whether an integer is the same number as a float."""
    return bound(node) <= _EXACT_FLOAT
