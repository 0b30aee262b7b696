"""Faults of the texts in an adapter file: what is wrong with a template, a field path or an expression, and where.

A text that is wrong is an expected result, so faults are values. Inside a stage `FaultSignal` carries one to the front
door of its package; it never leaves the package. Messages name types and names, never values: those may be secret.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from hyperfleet.document_problem import DocumentProblem, draw_caret
from hyperfleet.documents import Places
from hyperfleet.errors import shorten_message


class SourceFault(Struct, frozen=True, order=True):
    """One fault of a text. `line` and `column` count from 1, in characters of the text."""

    line: int
    column: int
    message: str
    snippet: str = ""


class FaultSignal(Exception):  # noqa: N818 - an internal signal; it becomes a SourceFault
    """Something is wrong at an offset of the text."""

    def __init__(self, offset: int, message: str) -> None:
        """Keep the place and the text for people."""
        self.offset = offset
        self.message = message
        super().__init__(message)


def make_fault(source: str, offset: int, message: str) -> SourceFault:
    """Place a message in a text."""
    offset = min(max(offset, 0), len(source))
    start = source.rfind("\n", 0, offset) + 1
    end = source.find("\n", start)
    line = source[start:] if end < 0 else source[start:end]
    column = offset - start + 1
    snippet = draw_caret(line, column) if line.strip() else ""
    shown = snippet.encode("utf-8", "replace").decode()  # halves of characters cannot be printed
    return SourceFault(source.count("\n", 0, offset) + 1, column, shorten_message(message), shown)


def place_source_faults(
    faults: Iterable[SourceFault], places: Places, pointer: str, code: str
) -> list[DocumentProblem]:
    """Turn the faults of a text that is written at a pointer of a document into problems of that document."""
    return [
        DocumentProblem(places.inside(pointer, each.line, each.column), each.message, code, snippet=each.snippet)
        for each in faults
    ]
