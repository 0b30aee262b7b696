"""Trees like clusterctl's: a table whose first column is a tree, with long messages on several lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from hyperfleet.cli.output.colours import colour_of, paint
from hyperfleet.cli.output.table import Column, Look, width_of
from hyperfleet.cli.sanitizing import sanitize

_GAP: Final = "  "
_PIPED_WIDTH: Final = 140  # width of lines without a terminal
_LEAST: Final = 30  # minimum width of the last column


class TreeNode(Struct, frozen=True):
    """One row of a tree: its name, its cells (the last may be long), and its children."""

    name: str
    cells: Sequence[str] = ()
    children: Sequence[TreeNode] = ()


def write_tree(columns: Sequence[Column], root: TreeNode, look: Look) -> list[str]:
    """Return the lines of a tree; `columns` has the headings of the name and of the cells."""
    rows = list(_flatten(root, "", ""))
    blank = [""] * (len(columns) - 1)
    cells = [(first, rest, list(node.cells) or blank) for node, first, rest in rows]
    heads = [(columns[0].heading, "", [column.heading for column in columns[1:]])] if look.has_headers else []
    widths = [width_of(columns[0].heading) if look.has_headers else 0]
    widths[0] = max([widths[0], *(width_of(first) for first, _, _ in cells)])
    for index in range(len(columns) - 2):
        texts = [row[index] for _, _, row in [*heads, *cells]]
        widths.append(max(map(width_of, texts), default=0))
    layout = _Layout(columns, widths, look)
    lines = [line for first, rest, row in heads for line in layout.write(first, rest, row, is_head=True)]
    return lines + [line for first, rest, row in cells for line in layout.write(first, rest, row)]


def _flatten(node: TreeNode, first: str, rest: str) -> Iterator[tuple[TreeNode, str, str]]:
    """Yield every row with the prefix of its first line, and the prefix of its further lines."""
    below = "│ " if node.children else "  "
    yield node, first + node.name, rest + below
    last = len(node.children) - 1
    for index, child in enumerate(node.children):
        is_last = index == last
        yield from _flatten(child, rest + ("└─" if is_last else "├─"), rest + ("  " if is_last else "│ "))


class _Layout:
    """Writes rows in columns; the last one is wrapped, or put below the row in a narrow window."""

    def __init__(self, columns: Sequence[Column], widths: Sequence[int], look: Look) -> None:
        self._columns = columns
        self._widths = widths
        self._look = look
        taken = sum(widths) + len(_GAP) * len(widths)
        self._room = (look.width or _PIPED_WIDTH) - taken
        self._is_narrow = look.width is not None and self._room < _LEAST

    def write(self, first: str, rest: str, row: Sequence[str], *, is_head: bool = False) -> Iterator[str]:
        """Yield the lines of one row; `rest` is the prefix of further lines."""
        if self._is_narrow:
            yield from self._write_narrow(first, rest, row, is_head=is_head)
            return
        message = _wrap(row[-1], max(_LEAST, self._room))
        yield self._line([first, *row[:-1]], message[0] if message else "", is_head=is_head)
        for more in message[1:]:
            yield self._line([rest.rstrip(), *[""] * (len(self._widths) - 1)], more, is_head=is_head)

    def _write_narrow(self, first: str, rest: str, row: Sequence[str], *, is_head: bool) -> Iterator[str]:
        yield self._line([first, *row[:-1]], "", is_head=is_head)
        if not is_head:
            room = max(_LEAST, (self._look.width or 0) - width_of(rest))
            yield from (f"{rest}{line}" for line in _wrap(row[-1], room))

    def _line(self, cells: Sequence[str], message: str, *, is_head: bool) -> str:
        parts = []
        for text, width, column in zip(cells, self._widths, self._columns[:-1], strict=True):
            is_painted = self._look.has_colour and column.is_coloured and not is_head
            parts.append(paint(text, colour_of(text) if is_painted else None) + " " * (width - width_of(text)))
        return _GAP.join([*parts, message]).rstrip()


def _wrap(text: str, width: int) -> list[str]:
    """Wrap a message; its own line breaks are kept, and list items are indented."""
    lines = []
    for line in text.splitlines():
        clean = sanitize(line)
        indent = "  " if clean.lstrip().startswith("* ") else ""
        lines += textwrap.wrap(clean, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
    return lines
