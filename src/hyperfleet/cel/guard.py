"""Refuse expressions that compile, and would crash the process or fail on every value.

- The engine ends the process when a function of ours gets a map that contains an optional value. So an optional may
  only be used where it is opened: it may not be an item, a value of a map, or an argument.
- The engine does not look at a regular expression before it runs.
"""

from __future__ import annotations

from typing import Final

import re2

from hyperfleet.cel.faults import CelFault, make_fault
from hyperfleet.cel.tree import CheckedTree, Node

# The arguments that may be optional, by function; a target counts as the first one.
_OPENING: Final[dict[str, frozenset[int]]] = {
    "_?._": frozenset({0}),
    "_[?_]": frozenset({0}),
    "_[_]": frozenset({0}),
    "_?_:_": frozenset({1, 2}),
    "orValue": frozenset({0}),
    "or": frozenset({0, 1}),
    "hasValue": frozenset({0}),
    "value": frozenset({0}),
    "_==_": frozenset({0, 1}),
    "_!=_": frozenset({0, 1}),
}
# The functions whose value is optional whatever the type says: for a dynamic operand the checker does not know it.
_MAKING: Final = frozenset({"_?._", "_[?_]", "or"})
_KEEPING: Final = frozenset({"_[_]", "_?_:_"})  # optional if such an argument is
_NONE: Final[frozenset[int]] = frozenset()
_OPTIONAL_MESSAGE: Final = (
    "an optional value cannot be used here; open it with .orValue(…), or write ?item in a list or map"
)


def find_hazards(tree: CheckedTree, source: str) -> tuple[CelFault, ...]:
    """Return every fault that the engine does not find."""
    search = _HazardSearch(tree, source)
    if search.visit(tree.root, frozenset()) and not tree.is_optional(tree.root):
        search.report(tree.root, "the result is an optional value; end it with .orValue(…)")
    return tuple(sorted(set(search.faults)))


class _HazardSearch:
    """Follows optional values through a tree: which nodes may have one, and where it is misused."""

    def __init__(self, tree: CheckedTree, source: str) -> None:
        self.faults: list[CelFault] = []
        self._tree = tree
        self._source = source

    def visit(self, node: Node, optional_names: frozenset[str]) -> bool:
        """Report the faults of a node and all below it; tell whether its value may be optional."""
        if node.kind == "comprehension":
            return self._visit_comprehension(node, optional_names)
        found = [self.visit(child, optional_names) for child in node.children]
        match node.kind:
            case "call":
                return self._visit_call(node, found)
            case "list" | "map":
                self._refuse(
                    node, [flag and not open_ for flag, open_ in zip(found, node.is_optional_child, strict=True)]
                )
                return False
            case "ident":
                return node.name in optional_names or self._tree.is_optional(node)
            case "select":
                return found[0] or self._tree.is_optional(node)
        return False

    def _visit_call(self, node: Node, found: list[bool]) -> bool:
        allowed = _OPENING.get(node.name, _NONE)
        self._refuse(node, [flag and index not in allowed for index, flag in enumerate(found)])
        if node.name == "matches" and node.children[-1].kind == "text":
            message = _find_pattern_fault(node.children[-1].name)
            if message:
                self.report(node.children[-1], message)
        is_kept = node.name in _KEEPING and any(found)
        return node.name in _MAKING or is_kept or self._tree.is_optional(node)

    def _visit_comprehension(self, node: Node, optional_names: frozenset[str]) -> bool:
        """Follow a value that a name holds; `cel.bind` is a comprehension over nothing."""
        range_, first, condition, step, result = node.children
        item, *others = node.bound
        self.visit(range_, optional_names)
        inner = optional_names - {item, *others}  # containers hold no optional values: an item is none
        if self.visit(first, optional_names):
            inner |= {*others}
        self.visit(condition, inner)
        if self.visit(step, inner):
            inner |= {*others}
        return self.visit(result, inner)

    def _refuse(self, node: Node, flags: list[bool]) -> None:
        for child, is_misused in zip(node.children, flags, strict=True):
            if is_misused:
                self.report(child, _OPTIONAL_MESSAGE)

    def report(self, node: Node, message: str) -> None:
        """Place a fault at a node."""
        before = self._source[: self._tree.offsets.get(node.id, 0)]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        self.faults.append(make_fault(self._source, line, column, message))


def _find_pattern_fault(pattern: str) -> str:
    options = re2.Options()
    options.log_errors = False  # it would write to standard error
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0] if error.args else ""
        return (
            f"the regular expression is not valid: {text.decode(errors='replace') if isinstance(text, bytes) else text}"
        )
    return ""
