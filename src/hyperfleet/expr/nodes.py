"""The syntax tree: one class for each kind of node.

The parser builds it, the checker sets `type`, folding makes a simpler one, and compiler, evaluator and printer
read it. Nodes hold no behaviour beyond comparing; that and `walk` are iterative, so a chain of 10,000 `&&` is safe.

Sugar is gone after parsing: `a < b < c` is `a < b && b < c`, `a not in b` is `not (a in b)`, `a ?: b` is
`a ? a : b`, `if` is `Conditional`, a pipe is a call, `.name` in a predicate is a `MemberAccess` of a `Pointer`.
A node that desugaring needs twice (`b` and `a` above) is the same object in both places; the parser's node budget
counts it twice, so walking every occurrence stays within that budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hyperfleet.expr.types import ANY, Type

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True, eq=False, kw_only=True)
class ExprNode:
    """What every node has besides its own parts; none of it counts when trees are compared.

    `offset` is the place that errors name (for `a + b` the operator); `start:end` is the node's whole text.
    All three count code points of the source.
    """

    offset: int = 0
    start: int = 0
    end: int = 0
    type: Type = ANY

    def children(self) -> tuple[ExprNode, ...]:
        """Return the nodes directly below, in source order."""
        return ()

    def label(self) -> object:
        """Return what distinguishes this node from others of its class besides its children."""
        return None

    def __eq__(self, other: object) -> bool:
        """Tell whether both trees say the same, wherever they stand in a source."""
        if not isinstance(other, ExprNode):
            return NotImplemented
        pending: list[tuple[ExprNode, ExprNode]] = [(self, other)]
        while pending:
            mine, theirs = pending.pop()
            if mine is theirs:
                continue
            if mine.__class__ is not theirs.__class__ or mine.label() != theirs.label():
                return False
            below, beside = mine.children(), theirs.children()
            if len(below) != len(beside):
                return False
            pending.extend(zip(below, beside, strict=True))
        return True

    # Nodes are mutable (the checker annotates them), so they cannot be keys.
    __hash__ = None  # type: ignore[assignment]  # the documented way to make a class unhashable


def walk(root: ExprNode) -> Iterator[ExprNode]:
    """Yield every node of a tree, parents before children, in source order."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(node.children()))


@dataclass(slots=True, eq=False)
class Nil(ExprNode):
    """`nil`."""


@dataclass(slots=True, eq=False)
class Identifier(ExprNode):
    """A name: a `let` variable, a part of the environment, a function, or `$env`."""

    name: str

    def label(self) -> object:
        """Compare by name."""
        return self.name


@dataclass(slots=True, eq=False)
class Integer(ExprNode):
    """An integer literal, within int64."""

    value: int

    def label(self) -> object:
        """Compare by value."""
        return self.value


@dataclass(slots=True, eq=False)
class Float(ExprNode):
    """A floating-point literal."""

    value: float

    def label(self) -> object:
        """Compare by value, and by sign for zero."""
        return repr(self.value)


@dataclass(slots=True, eq=False)
class Boolean(ExprNode):
    """`true` or `false`."""

    value: bool

    def label(self) -> object:
        """Compare by value."""
        return self.value


@dataclass(slots=True, eq=False)
class String(ExprNode):
    """A string literal, unescaped; also the name in `base.name`."""

    value: str

    def label(self) -> object:
        """Compare by value."""
        return self.value


@dataclass(slots=True, eq=False)
class Bytes(ExprNode):
    """A bytes literal, unescaped."""

    value: bytes

    def label(self) -> object:
        """Compare by value."""
        return self.value


@dataclass(slots=True, eq=False)
class Unary(ExprNode):
    """`-x`, `+x`, `!x`, `not x`; the operator is spelled as in the source."""

    operator: str
    operand: ExprNode

    def children(self) -> tuple[ExprNode, ...]:
        """Return the operand."""
        return (self.operand,)

    def label(self) -> object:
        """Compare by operator."""
        return self.operator


@dataclass(slots=True, eq=False)
class Binary(ExprNode):
    """`left operator right`; the operator is spelled as in the source (`and` is not `&&`)."""

    operator: str
    left: ExprNode
    right: ExprNode

    def children(self) -> tuple[ExprNode, ...]:
        """Return both operands."""
        return (self.left, self.right)

    def label(self) -> object:
        """Compare by operator."""
        return self.operator


@dataclass(slots=True, eq=False)
class Chain(ExprNode):
    """Accesses with at least one `?.`: when its base is nil, all of `body` is nil."""

    body: ExprNode

    def children(self) -> tuple[ExprNode, ...]:
        """Return the accesses."""
        return (self.body,)


@dataclass(slots=True, eq=False)
class MemberAccess(ExprNode):
    """`base.name` and `base[key]`; `optional` with `?.`, `is_method` when the name is called."""

    base: ExprNode
    key: ExprNode
    optional: bool = False
    is_method: bool = False

    def children(self) -> tuple[ExprNode, ...]:
        """Return base and key."""
        return (self.base, self.key)

    def label(self) -> object:
        """Compare by the two flags."""
        return (self.optional, self.is_method)


@dataclass(slots=True, eq=False)
class Slice(ExprNode):
    """`base[lower:upper]`; an absent bound is None."""

    base: ExprNode
    lower: ExprNode | None
    upper: ExprNode | None

    def children(self) -> tuple[ExprNode, ...]:
        """Return the base and the bounds that are there."""
        return tuple(node for node in (self.base, self.lower, self.upper) if node is not None)

    def label(self) -> object:
        """Compare by which bounds are there."""
        return (self.lower is None, self.upper is None)


@dataclass(slots=True, eq=False)
class Call(ExprNode):
    """A call of a function or method of the environment, or of a `let` variable; see `Builtin`."""

    callee: ExprNode
    arguments: tuple[ExprNode, ...]

    def children(self) -> tuple[ExprNode, ...]:
        """Return callee and arguments."""
        return (self.callee, *self.arguments)


@dataclass(slots=True, eq=False)
class Builtin(ExprNode):
    """A call of a function of the language; the argument of a predicate position is a `Predicate`."""

    name: str
    arguments: tuple[ExprNode, ...]

    def children(self) -> tuple[ExprNode, ...]:
        """Return the arguments."""
        return self.arguments

    def label(self) -> object:
        """Compare by name."""
        return self.name


@dataclass(slots=True, eq=False)
class Predicate(ExprNode):
    """What a builtin evaluates once for each element. Its `type` is the type of its result."""

    body: ExprNode

    def children(self) -> tuple[ExprNode, ...]:
        """Return the body."""
        return (self.body,)


@dataclass(slots=True, eq=False)
class Pointer(ExprNode):
    """Inside a predicate: `#` (no name), `#index` or `#acc`."""

    name: str = ""

    def label(self) -> object:
        """Compare by name."""
        return self.name


@dataclass(slots=True, eq=False)
class Conditional(ExprNode):
    """`test ? then : otherwise`, in all its spellings."""

    test: ExprNode
    then: ExprNode
    otherwise: ExprNode

    def children(self) -> tuple[ExprNode, ...]:
        """Return test and branches."""
        return (self.test, self.then, self.otherwise)


@dataclass(slots=True, eq=False)
class Let(ExprNode):
    """`let name = value; body`."""

    name: str
    value: ExprNode
    body: ExprNode

    def children(self) -> tuple[ExprNode, ...]:
        """Return value and body."""
        return (self.value, self.body)

    def label(self) -> object:
        """Compare by name."""
        return self.name


@dataclass(slots=True, eq=False)
class Sequence(ExprNode):
    """`a; b; c`: all are evaluated, the last one counts."""

    items: tuple[ExprNode, ...]

    def children(self) -> tuple[ExprNode, ...]:
        """Return the items."""
        return self.items


@dataclass(slots=True, eq=False)
class ArrayLiteral(ExprNode):
    """`[a, b, c]`."""

    items: tuple[ExprNode, ...]

    def children(self) -> tuple[ExprNode, ...]:
        """Return the items."""
        return self.items


@dataclass(slots=True, eq=False)
class Pair(ExprNode):
    """`key: value` in a map literal; a plain key is a `String`."""

    key: ExprNode
    value: ExprNode

    def children(self) -> tuple[ExprNode, ...]:
        """Return key and value."""
        return (self.key, self.value)


@dataclass(slots=True, eq=False)
class MapLiteral(ExprNode):
    """`{a: 1, "b": 2, (c): 3}`."""

    pairs: tuple[Pair, ...]

    def children(self) -> tuple[ExprNode, ...]:
        """Return the pairs."""
        return self.pairs
