"""The checked tree of an expression: what it calls, with which types, and where.

The engine gives its tree only as a serialized `cel.expr.CheckedExpr`. This reads the few fields that checks need, as
the protobuf package is not installed; the numbers are those of cel-spec's `syntax.proto` and `checked.proto`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

OPTIONAL: Final = "optional_type"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Node(Struct, frozen=True):
    """One node of a tree. `name` is the function of a call, the name of a variable or the value of a text."""

    id: int
    kind: str  # ident, select, test (as `has` does), call, list, map, comprehension, text, other
    name: str = ""
    children: tuple[Node, ...] = ()
    is_optional_child: tuple[bool, ...] = ()  # of a list or map: the child is written as `?child`
    bound: tuple[str, ...] = ()  # the names that a comprehension binds: of an item, then of the result so far


class VariableReference(Struct, frozen=True):
    """A variable, the member that is selected from it (empty: the whole is used), and the offset of its name."""

    variable: str
    member: str
    offset: int


class CheckedTree(Struct, frozen=True):
    """The tree, the ids of nodes whose type is optional, and the offset of every node."""

    root: Node
    optional_ids: frozenset[int]
    offsets: dict[int, int]

    @property
    def variables(self) -> frozenset[str]:
        """Return the variables of the environment that the expression uses."""
        return frozenset(_free_names(self.root, frozenset()))

    @property
    def fields(self) -> frozenset[str]:
        """Return the names of all fields that the expression selects."""
        selected = {node.name for node in walk(self.root) if node.kind in ("select", "test")}
        optional = {
            node.children[1].name for node in walk(self.root) if node.name == "_?._" and node.children[1].kind == "text"
        }
        return frozenset(selected | optional)

    @property
    def uses(self) -> tuple[VariableReference, ...]:
        """Return every use of a variable of the environment, with the member that is selected from it."""
        return tuple(_uses(self.root, frozenset(), self.offsets))

    def is_optional(self, node: Node) -> bool:
        """Tell whether the type of a node is optional."""
        return node.id in self.optional_ids


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all below it. The engine allows 32 levels as written, so recursion is bounded."""
    yield node
    for child in node.children:
        yield from walk(child)


def read_tree(data: bytes) -> CheckedTree:
    """Read a serialized `CheckedExpr`, which comes inside an `Any`; raise ValueError for anything else."""
    outer = dict(_fields(data))
    if not _text(outer.get(1, b"")).endswith("CheckedExpr"):
        raise ValueError("the engine's tree has another format")
    root = Node(0, "other")
    optional_ids: set[int] = set()
    offsets: dict[int, int] = {}
    for number, value in _fields(_message(outer.get(2, b""))):
        if number == 3:  # type_map
            entry = dict(_fields(_message(value)))
            if _is_optional_type(_message(entry.get(2, b""))):
                optional_ids.add(_number(entry.get(1, 0)))
        elif number == 4:
            root = _read_node(_message(value))
        elif number == 5:  # source_info
            for inner, content in _fields(_message(value)):
                if inner == 4:  # positions
                    entry = dict(_fields(_message(content)))
                    offsets[_number(entry.get(1, 0))] = _number(entry.get(2, 0))
    return CheckedTree(root, frozenset(optional_ids), offsets)


def _free_names(node: Node, bound: frozenset[str]) -> Iterator[str]:
    if node.kind == "ident" and node.name not in bound:
        yield node.name
    inner = bound.union(node.bound)
    for child in node.children:
        yield from _free_names(child, inner)


_SELECTIONS: Final = ("_?._", "_[_]", "_[?_]")  # with the member as a text


def _uses(node: Node, bound: frozenset[str], offsets: dict[int, int]) -> Iterator[VariableReference]:
    member = ""
    if node.kind in ("select", "test"):
        member = node.name
    elif node.name in _SELECTIONS and len(node.children) > 1 and node.children[1].kind == "text":
        member = node.children[1].name
    inner = bound.union(node.bound)
    for child in node.children:
        if child.kind == "ident" and member and child is node.children[0]:
            if child.name not in inner:
                yield VariableReference(child.name, member, offsets.get(child.id, 0))
        else:
            yield from _uses(child, inner, offsets)
    if node.kind == "ident" and node.name not in bound:
        yield VariableReference(node.name, "", offsets.get(node.id, 0))


def _is_optional_type(data: bytes) -> bool:
    for number, value in _fields(data):
        if number == 14:  # abstract_type
            return dict(_fields(_message(value))).get(1) == OPTIONAL.encode()
    return False


def _read_node(data: bytes) -> Node:
    id_, kind, content = 0, 0, b""
    for number, value in _fields(data):
        if number == 2:
            id_ = _number(value)
        else:
            kind, content = number, _message(value)
    match kind:
        case 3:
            return Node(id_, "text", _text(dict(_fields(content)).get(6, b""))) if content else Node(id_, "other")
        case 4:
            return Node(id_, "ident", _text(dict(_fields(content)).get(1, b"")).lstrip("."))
        case 5:
            return _read_select(id_, content)
        case 6:
            return _read_call(id_, content)
        case 7:
            return _read_list(id_, content)
        case 8:
            return _read_map(id_, content)
        case 9:
            return _read_comprehension(id_, content)
    return Node(id_, "other")


def _read_select(id_: int, data: bytes) -> Node:
    fields = dict(_fields(data))
    kind = "test" if fields.get(3) else "select"
    return Node(id_, kind, _text(fields.get(2, b"")), (_read_node(_message(fields.get(1, b""))),))


def _read_call(id_: int, data: bytes) -> Node:
    name, children = "", []
    for number, value in _fields(data):
        if number == 2:
            name = _text(value)
        else:  # the target comes before the arguments
            children.append(_read_node(_message(value)))
    return Node(id_, "call", name, tuple(children))


def _read_list(id_: int, data: bytes) -> Node:
    children, optional = [], set()
    for number, value in _fields(data):
        if number == 1:
            children.append(_read_node(_message(value)))
        elif isinstance(value, int):
            optional.add(value)
        else:
            optional.update(_packed(value))
    return Node(id_, "list", "", tuple(children), tuple(index in optional for index in range(len(children))))


def _read_map(id_: int, data: bytes) -> Node:
    children, flags = [], []
    for number, value in _fields(data):
        if number == 2:
            entry = dict(_fields(_message(value)))
            for inner in (3, 4):  # key, value
                if inner in entry:
                    children.append(_read_node(_message(entry[inner])))
                    flags.append(inner == 4 and bool(entry.get(5)))
    return Node(id_, "map", "", tuple(children), tuple(flags))


def _read_comprehension(id_: int, data: bytes) -> Node:
    """Read a comprehension: its range, first result, condition, step and result."""
    children, bound = [], []
    for number, value in _fields(data):
        if number in (1, 3, 8):  # iter_var, accu_var, iter_var2
            bound.append(_text(value))
        else:
            children.append(_read_node(_message(value)))
    return Node(id_, "comprehension", "", tuple(children), (), tuple(bound))


# ── the wire format of protobuf ──────────────────────────────────────────────────────────────────────────────────────


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire_type == _BYTES:
            length, position = _varint(data, position)
        else:
            length = 8 if wire_type == _FIXED64 else 4
        yield number, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _packed(data: bytes) -> Iterator[int]:
    position = 0
    while position < len(data):
        value, position = _varint(data, position)
        yield value


def _message(value: int | bytes) -> bytes:
    return value if isinstance(value, bytes) else b""


def _number(value: int | bytes) -> int:
    return value if isinstance(value, int) else 0


def _text(value: int | bytes) -> str:
    return _message(value).decode("utf-8", "replace")
