"""Plain tables like kubectl's: left aligned, three blanks between columns, no borders.

Terminals and pipes get the same table; on a terminal there are colours, and an elastic last column is cut to the width
of the window.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from hyperfleet.cli.output.colours import colour_of, paint
from hyperfleet.cli.sanitizing import sanitize

GAP: Final = "   "
NONE: Final = "<none>"
_LEAST: Final = 20  # minimum width of the cut column


class Column(Struct, frozen=True):
    """One column: its heading and how to show it."""

    heading: str
    is_wide: bool = False  # only with -o wide
    is_coloured: bool = False  # by its value
    is_elastic: bool = False  # cut to the window if it is the last column


class Look(Struct, frozen=True):
    """How to show tables."""

    has_colour: bool = False
    width: int | None = None  # of the window; None: no window, so nothing is cut
    has_headers: bool = True
    is_wide: bool = False


def write_table(columns: Sequence[Column], rows: Iterable[Sequence[str]], look: Look) -> list[str]:
    """Return the lines of a table; every row has one cell per column, including hidden columns."""
    return RunningTable(columns, look).add(rows)


class RunningTable:
    """A growing table: later rows use the same columns, which only get wider."""

    def __init__(self, columns: Sequence[Column], look: Look) -> None:
        """Begin without rows."""
        self._shown = [index for index, column in enumerate(columns) if look.is_wide or not column.is_wide]
        self._columns = [columns[index] for index in self._shown]
        self._look = look
        self._widths = [0] * len(self._shown)
        self._has_headers = look.has_headers

    def add(self, rows: Iterable[Sequence[str]]) -> list[str]:
        """Return the lines of more rows; the first call also returns the headings."""
        heads = [[column.heading for column in self._columns]] if self._has_headers else []
        self._has_headers = False
        cells = [[_one_line(row[index]) for index in self._shown] for row in rows]
        columns = zip(*heads, *cells, strict=True)
        wanted = [max(map(width_of, column), default=0) for column in columns] or self._widths
        self._widths = [max(pair) for pair in zip(self._widths, wanted, strict=True)]
        plain = Look(width=self._look.width)
        return [
            *(_write_row(head, self._columns, self._widths, plain) for head in heads),
            *(_write_row(row, self._columns, self._widths, self._look) for row in cells),
        ]


def width_of(text: str) -> int:
    """Return the width of a text on a terminal."""
    return len(text) if text.isascii() else sum(map(_width_of_character, text))


def cut(text: str, width: int) -> str:
    """Cut a text to a width, with an ellipsis."""
    if width_of(text) <= width:
        return text
    taken, room = [], width - 1
    for character in text:
        room -= _width_of_character(character)
        if room < 0:
            break
        taken.append(character)
    return "".join(taken).rstrip() + "…"


def _write_row(row: Sequence[str], columns: Sequence[Column], widths: Sequence[int], look: Look) -> str:
    return GAP.join(_lay_out(row, columns, widths, look)).rstrip()


def _lay_out(row: Sequence[str], columns: Sequence[Column], widths: Sequence[int], look: Look) -> Iterator[str]:
    last = len(row) - 1
    for index, (text, column, width) in enumerate(zip(row, columns, widths, strict=True)):
        shown = text
        if index == last and column.is_elastic and look.width is not None:
            taken = sum(widths[:last]) + len(GAP) * last
            shown = cut(text, max(_LEAST, look.width - taken))
        padding = "" if index == last else " " * (width - width_of(shown))
        yield paint(shown, colour_of(shown) if look.has_colour and column.is_coloured else None) + padding


def _one_line(text: str) -> str:
    """Put a cell on one line, without control characters."""
    return sanitize(" ".join(text.split()) if not text.isprintable() else text) or NONE


def _width_of_character(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
