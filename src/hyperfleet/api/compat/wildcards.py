"""LIKE patterns: `%` is any text, `_` any character, and a backslash escapes the next character.

A pattern is matched piece by piece between its `%`, each as early as possible: as one regular expression, many `%`
could take exponential time.
"""

from __future__ import annotations

import re
from typing import Final

_ANY_TEXT: Final = "%"
_ANY_CHARACTER: Final = "_"


def matches(text: str, pattern: str, *, ignores_case: bool = False) -> bool:
    """Return whether a text matches a pattern."""
    flags = re.DOTALL | (re.IGNORECASE if ignores_case else 0)
    first, *others = _split(pattern)
    start = re.compile(first.expression, flags).match(text)
    if start is None:
        return False
    if not others:
        return start.end() == len(text)
    *middle, last = others
    at = start.end()
    for piece in middle:
        found = re.compile(piece.expression, flags).search(text, at)
        if found is None:
            return False
        at = found.end()
    tail = len(text) - last.length
    return tail >= at and re.compile(last.expression, flags).match(text, tail) is not None


class _Piece:
    """The part between two `%`; everything it matches has the same length."""

    def __init__(self) -> None:
        self.expression = ""
        self.length = 0

    def add(self, expression: str) -> None:
        self.expression += expression
        self.length += 1


def _split(pattern: str) -> list[_Piece]:
    """Split a pattern at its `%`; the first piece always exists but may be empty."""
    pieces = [_Piece()]
    characters = iter(pattern)
    for character in characters:
        if character == _ANY_TEXT:
            pieces.append(_Piece())
        elif character == _ANY_CHARACTER:
            pieces[-1].add(".")
        else:
            pieces[-1].add(re.escape(next(characters, "\\") if character == "\\" else character))
    return pieces
