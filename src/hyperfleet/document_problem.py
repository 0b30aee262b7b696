"""A problem of a document and its place: what a person needs to find and fix it.

Everything that checks documents makes these; `errors.DocumentError` carries them to the edge.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Level = Literal["error", "warning"]

# Fits on a usual screen; wrapping a longer line would misplace the caret.
SNIPPET_WIDTH = 96


class DocumentPlace(Struct, frozen=True, order=True):
    """Where something is written. `path` is a JSON pointer; `line` and `column` count from 1."""

    file: str
    line: int
    column: int
    path: str = ""

    def __str__(self) -> str:
        """Write the place as compilers do; editors and terminals turn that into a link."""
        return f"{self.file}:{self.line}:{self.column}"


class DocumentProblem(Struct, frozen=True, order=True):
    """One problem at one place. Problems sort by place; programs may depend on `code` only."""

    place: DocumentPlace
    message: str
    code: str
    level: Level = "error"
    snippet: str = ""

    def __str__(self) -> str:
        """Write `file:line:column: message`, then the lines of the snippet."""
        label = "" if self.level == "error" else f"{self.level}: "
        text = f"{self.place}: {label}{self.message}"
        return f"{text}\n{self.snippet}" if self.snippet else text


def has_errors(problems: tuple[DocumentProblem, ...]) -> bool:
    """Tell whether any problem is an error, not a warning."""
    return any(problem.level == "error" for problem in problems)


def draw_caret(line: str, column: int) -> str:
    """Show a line of source with a caret below its `column` (from 1), cut to what fits a screen."""
    start = max(0, column - SNIPPET_WIDTH // 2)
    shown = line[start : start + SNIPPET_WIDTH].replace("\t", " ")
    return f"    {shown.rstrip()}\n    {' ' * (column - 1 - start)}^"
