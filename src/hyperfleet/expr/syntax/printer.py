"""A tree back to text, in one normal form: parsing the text gives the same tree.

Tools call `format_tree` to show rules and to compare them. Sugar that the tree has lost stays lost (`a | f()` prints
as `f(a)`), except `a not in b`. Parentheses stand where the tree needs them, and around `??` for clarity.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

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
    Pair,
    Pointer,
    Predicate,
    Sequence,
    Slice,
    String,
    Unary,
)
from hyperfleet.expr.syntax.lexer import WORD_OPERATORS, is_word
from hyperfleet.expr.syntax.precedence import BINARY, COMPARISONS, NEGATABLE, RIGHT_ASSOCIATIVE, UNARY

if TYPE_CHECKING:
    from collections.abc import Collection

_OPEN = (Let, Sequence)
_ACCESSIBLE = (Identifier, String, Bytes, Pointer, ArrayLiteral, MapLiteral, Builtin, Call, MemberAccess, Slice, Chain)


def format_tree(tree: ExprNode, overridden: Collection[str] = frozenset()) -> str:
    """Return the text of a tree; builtins that are `overridden` in its grammar are written `::name`."""
    return _Printer(overridden).text(tree)


class _Printer:
    def __init__(self, overridden: Collection[str]) -> None:
        self.overridden = overridden

    def text(self, node: ExprNode) -> str:
        """Return the text of a node without regard to what is around it."""
        return _WRITERS[node.__class__](self, node)

    def closed(self, node: ExprNode) -> str:
        """Return the text of a node between commas, brackets or colons."""
        return self.grouped(node, not isinstance(node, _OPEN))

    def grouped(self, node: ExprNode, is_clear: bool) -> str:
        """Return the text of a node, in parentheses unless it is clear without."""
        text = self.text(node)
        return text if is_clear else f"({text})"

    # Operators

    def unary(self, node: Unary) -> str:
        """Write `-x`, `!x`, `not x`, `a not in b`."""
        if _operation(node) is not None:
            return self.operations(node)
        is_clear = _strength(node.operand) >= UNARY[node.operator] and not _is_coalesce(node.operand)
        operand = self.grouped(node.operand, is_clear)
        return f"not {operand}" if node.operator == "not" else f"{node.operator}{operand}"

    def operations(self, node: ExprNode) -> str:
        """Write `a op b`; a long chain hangs to the left, so this is a loop."""
        parts: list[str] = []
        operation = _operation(node)
        while operation is not None:
            right, left = operation.right, operation.left
            parts.append(f" {operation.spelling} {self.grouped(right, _is_clear_right(operation))}")
            inner = _operation(left)
            if inner is None or not _is_clear_left(operation, inner):
                parts.append(self.grouped(left, inner is None and _strength(left) > BINARY[operation.operator]))
                break
            operation = inner
        return "".join(reversed(parts))

    def conditional(self, node: Conditional) -> str:
        """Write `test ? then : otherwise`."""
        test = self.grouped(node.test, _strength(node.test) > 0)
        return f"{test} ? {self.closed(node.then)} : {self.closed(node.otherwise)}"

    # Names and statements

    def let(self, node: Let) -> str:
        """Write declarations and what they are for."""
        parts: list[str] = []
        body: ExprNode = node
        while isinstance(body, Let):
            parts.append(f"let {body.name} = {self.closed(body.value)}; ")
            body = body.body
        return "".join(parts) + self.text(body)

    def sequence(self, node: Sequence) -> str:
        """Write `a; b; c`; only the last may be a declaration, which takes all that follows."""
        *first, last = node.items
        texts = [self.closed(item) for item in first]
        texts.append(f"({self.text(last)})" if isinstance(last, Sequence) else self.text(last))
        return "; ".join(texts)

    # Literals

    def array(self, node: ArrayLiteral) -> str:
        """Write `[a, b]`."""
        return f"[{self.listed(node.items)}]"

    def map(self, node: MapLiteral) -> str:
        """Write `{a: 1, b: 2}`."""
        return f"{{{self.listed(node.pairs)}}}"

    def pair(self, node: Pair) -> str:
        """Write `key: value`."""
        if not isinstance(node.key, String):
            key = f"({self.text(node.key)})"
        elif _is_name(node.key.value) and node.key.value not in WORD_OPERATORS:
            key = node.key.value
        else:
            key = _quoted(node.key.value)
        return f"{key}: {self.closed(node.value)}"

    def listed(self, nodes: tuple[ExprNode, ...]) -> str:
        """Write nodes with commas between them."""
        return ", ".join(self.closed(node) for node in nodes)

    # Calls

    def builtin(self, node: Builtin) -> str:
        """Write `name(a, b)`."""
        prefix = "::" if node.name in self.overridden else ""
        return f"{prefix}{node.name}({self.listed(node.arguments)})"

    def predicate(self, node: Predicate) -> str:
        """Write a predicate, in braces where it needs them."""
        text = self.text(node.body)
        return f"{{{text}}}" if isinstance(node.body, _OPEN) or text.startswith("{") else text

    # Accesses

    def accesses(self, node: ExprNode) -> str:
        """Write a base and the accesses behind it; a loop, because they may be many."""
        suffixes: list[str] = []
        while True:
            if isinstance(node, Chain):
                node = node.body
            elif isinstance(node, MemberAccess):
                suffixes.append(self.member(node))
                node = node.base
            elif isinstance(node, Slice):
                suffixes.append(self.slice(node))
                node = node.base
            elif isinstance(node, Call) and isinstance(node.callee, MemberAccess):
                suffixes.append(f"({self.listed(node.arguments)})")
                node = node.callee
            else:
                break
        return self._base(node, suffixes[-1]) + "".join(reversed(suffixes)) if suffixes else self.text(node)

    def _base(self, node: ExprNode, suffix: str) -> str:
        if isinstance(node, Pointer) and not node.name and suffix.startswith("."):
            return ""  # `.name` is `#.name`
        text = self.text(node)
        return text if isinstance(node, _ACCESSIBLE) else f"({text})"

    def member(self, node: MemberAccess) -> str:
        """Write `.name`, or `[key]` where a name would join the chain before it."""
        if isinstance(node.key, String) and _is_name(node.key.value) and not isinstance(node.base, Chain):
            return f"{'?.' if node.optional else '.'}{node.key.value}"
        return f"{'?.' if node.optional else ''}[{self.closed(node.key)}]"

    def slice(self, node: Slice) -> str:
        """Write `[a:b]`."""
        lower, upper = (
            "" if bound is None else self.grouped(bound, _strength(bound) > 0) for bound in (node.lower, node.upper)
        )
        return f"[{lower}:{' ' if upper.startswith(':') else ''}{upper}]"

    def call(self, node: Call) -> str:
        """Write a call of a name, or of a method."""
        if isinstance(node.callee, MemberAccess):
            return self.accesses(node)
        return f"{self.text(node.callee)}({self.listed(node.arguments)})"


class _Operation(NamedTuple):
    """A binary operation, perhaps with a `not` that belongs to its operator."""

    operator: str
    spelling: str
    left: ExprNode
    right: ExprNode


def _operation(node: ExprNode) -> _Operation | None:
    """Return a node as a binary operation, or None when it prints otherwise."""
    if isinstance(node, Binary):
        return _Operation(node.operator, node.operator, node.left, node.right)
    if isinstance(node, Unary) and node.operator == "not":
        inner = node.operand
        if isinstance(inner, Binary) and inner.operator in NEGATABLE:
            return _Operation(inner.operator, f"not {inner.operator}", inner.left, inner.right)
    return None


def _strength(node: ExprNode) -> int:
    """Return how strong the outermost part of a node binds."""
    operation = _operation(node)
    if operation is not None:
        return BINARY[operation.operator]
    if isinstance(node, Unary):
        return UNARY[node.operator]
    if isinstance(node, Integer | Float) and node.value < 0:  # only folding makes them
        return UNARY["-"]
    return 0 if isinstance(node, (Conditional, *_OPEN)) else 1000


def _is_coalesce(node: ExprNode) -> bool:
    return isinstance(node, Binary) and node.operator == "??"


def _is_clear_left(outer: _Operation, inner: _Operation) -> bool:
    """Tell whether an operation is read as the left operand of another without parentheses."""
    if "??" in (outer.operator, inner.operator):
        return outer.operator == inner.operator  # mixing them is an error
    if outer.operator in COMPARISONS and inner.operator in COMPARISONS:
        return False  # they would chain
    strength, wanted = BINARY[inner.operator], BINARY[outer.operator]
    return strength > wanted or (strength == wanted and outer.operator not in RIGHT_ASSOCIATIVE)


def _is_clear_right(outer: _Operation) -> bool:
    """Tell whether the right operand is read as such without parentheses."""
    if _is_coalesce(outer.right):
        return False
    strength, wanted = _strength(outer.right), BINARY[outer.operator]
    is_same = isinstance(outer.right, Binary) and outer.operator in RIGHT_ASSOCIATIVE
    return strength > wanted or (strength == wanted and is_same)


def _is_name(text: str) -> bool:
    """Tell whether a text can stand behind a dot."""
    return bool(text) and all(map(is_word, text)) and not text[0].isdecimal()


def _quoted(text: str) -> str:
    return '"' + _UNSAFE.sub(lambda found: _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}", text) + '"'


def _quoted_bytes(value: bytes) -> str:
    shown = (chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\x{byte:02x}" for byte in value)
    return f'b"{"".join(shown)}"'


_UNSAFE = re.compile(r'["\\\x00-\x1f\x7f]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}

_WRITERS: dict[type[ExprNode], Callable[[_Printer, Any], str]] = {
    Nil: lambda _, node: "nil",
    Identifier: lambda _, node: node.name,
    Integer: lambda _, node: str(node.value),
    Float: lambda _, node: repr(node.value),
    Boolean: lambda _, node: "true" if node.value else "false",
    String: lambda _, node: _quoted(node.value),
    Bytes: lambda _, node: _quoted_bytes(node.value),
    Pointer: lambda _, node: f"#{node.name}",
    Unary: _Printer.unary,
    Binary: _Printer.operations,
    Conditional: _Printer.conditional,
    Let: _Printer.let,
    Sequence: _Printer.sequence,
    ArrayLiteral: _Printer.array,
    MapLiteral: _Printer.map,
    Pair: _Printer.pair,
    Builtin: _Printer.builtin,
    Predicate: _Printer.predicate,
    Call: _Printer.call,
    MemberAccess: _Printer.accesses,
    Slice: _Printer.accesses,
    Chain: _Printer.accesses,
}
