"""Find where the values of a document are written, by JSON pointer.

For checks after binding: an unknown name, a duplicate type, a fault inside an expression. Nothing is stored per value:
a pointer is followed from the root on demand.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from hyperfleet.document_problem import DocumentPlace
from hyperfleet.documents.nodes import ListNode, MappingEntry, MappingNode, Node, ScalarNode, YamlDocument
from hyperfleet.documents.pointer import split
from hyperfleet.documents.reader import LINE_BREAK, locate

# Anchors and tags before a scalar, with the space and comments after them.
_PROPERTIES: Final = re.compile(r"(?:[&!]\S*\s+(?:#[^\r\n]*\s+)*)*")


# The escape character of a quoted scalar, by style.
_ESCAPES: Final = {"'": "'", '"': "\\"}


class Places(Struct, frozen=True):
    """The places of one document. A pointer to nothing yields the nearest enclosing place."""

    document: YamlDocument

    def value(self, pointer: str) -> DocumentPlace:
        """Return where the value at a pointer starts."""
        return self._place(self._follow(pointer)[1], pointer)

    def key(self, pointer: str) -> DocumentPlace:
        """Return where the key of the value at a pointer starts; a list item has none, so its value does."""
        entry, node = self._follow(pointer)
        return self._place(entry.key if entry else node, pointer)

    def is_given(self, pointer: str) -> bool:
        """Tell whether a value is written at a pointer, valid or not."""
        node: Node = self.document.root
        for token in split(pointer):
            step = _step(node, token)
            if step is None:
                return False
            node = step[1]
        return True

    def inside(self, pointer: str, line: int, column: int) -> DocumentPlace:
        """Return where a line and column (from 1) of the text at a pointer are written.

        Exact if the text before it is in the file literally, and in every line of a literal block (`|`); after an
        escape or a folded line it is the start of the scalar.
        """
        node = self._follow(pointer)[1]
        found = self._find_inside(node, line, column) if isinstance(node, ScalarNode) else None
        return DocumentPlace(self.document.file, *found, pointer) if found else self._place(node, pointer)

    def _follow(self, pointer: str) -> tuple[MappingEntry | None, Node]:
        entry, node = None, self.document.root
        for token in split(pointer):
            step = _step(node, token)
            if step is None:
                break
            entry, node = step
        return entry, node

    def _place(self, node: Node, pointer: str) -> DocumentPlace:
        return DocumentPlace(self.document.file, node.line, node.column, pointer)

    def _find_inside(self, node: ScalarNode, line: int, column: int) -> tuple[int, int] | None:
        source, lines = self.document.source, node.text.split("\n")
        if not (0 < line <= len(lines) and 0 < column <= len(lines[line - 1]) + 1):
            return None
        match = _PROPERTIES.match(source, node.offset)
        start = match.end() if match else node.offset
        if node.style == "|":
            return self._find_in_block(start, lines[line - 1], line, column)
        before = lines[0][: column - 1]
        escape = _ESCAPES.get(node.style)
        start += 1 if escape else 0
        if line > 1 or node.style == ">" or (escape and escape in before) or not source.startswith(before, start):
            return None
        return locate(source, start + len(before))

    def _find_in_block(self, start: int, text: str, line: int, column: int) -> tuple[int, int] | None:
        """Find a line of a literal block by its distance from the `|` above it."""
        header, _ = locate(self.document.source, start)
        lines = LINE_BREAK.split(self.document.source)
        if header + line > len(lines) or not lines[header + line - 1].endswith(text):
            return None
        indentation = len(lines[header + line - 1]) - len(text)
        return header + line, indentation + column


def _step(node: Node, token: str) -> tuple[MappingEntry | None, Node] | None:
    """Go one level down, or return None where there is nothing."""
    if isinstance(node, MappingNode):
        entry = node.find(token)
        return (entry, entry.value) if entry else None
    if isinstance(node, ListNode) and token in map(str, range(len(node.items))):
        return None, node.items[int(token)]
    return None
