"""Places in a source text: from an offset to line, column and the line with a caret below it.

Lexer, parser, checker and the run time build their errors here, so that all look alike. Offsets count code points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from hyperfleet.errors import ExprError

if TYPE_CHECKING:
    from collections.abc import Sequence

E = TypeVar("E", bound=ExprError)

_WIDTH: Final = 140  # characters of a line that are shown
_BEFORE: Final = 100  # of them before the place, if it is far behind


def error_at(kind: type[E], text: str, offset: int, message: str) -> E:
    """Build an error of `kind` that points at `offset`; on an empty line there is nothing to point at."""
    offset = min(offset, len(text))
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", start)
    line = text[start:] if end < 0 else text[start:end]
    if not line:
        return kind(message)
    column = offset - start
    return kind(message, line=text.count("\n", 0, offset) + 1, column=column + 1, snippet=_snippet(line, column))


def _snippet(line: str, column: int) -> str:
    """Draw a line with a caret below a place; of a long line, the part around it."""
    start = max(0, min(column - _BEFORE, len(line) - _WIDTH))
    before = "…" if start else ""
    after = "…" if len(line) > start + _WIDTH else ""
    shown = before + line[start : start + _WIDTH].replace("\t", " ") + after
    return f"\n | {shown}\n | {'.' * (len(before) + column - start)}^"


def with_others(errors: Sequence[E]) -> E:
    """Return the first error, which carries the further ones."""
    first = errors[0]
    first.others = tuple(errors[1:])
    return first
