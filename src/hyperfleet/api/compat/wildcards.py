"""LIKE patterns: `%` is any text, `_` any character, and a backslash takes what follows as it is.

A pattern is looked for piece by piece between its `%`, each as early as it can be: as one regular expression, many `%`
could take for ever.
"""

from __future__ import annotations

import re
from typing import Final

_ANY_TEXT: Final = "%"
_ANY_CHARACTER: Final = "_"


def matches(text: str, pattern: str, *, ignores_case: bool = False) -> bool:
    """Tell whether a text is as a pattern says."""
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
    """What stands between two `%`; all that it matches is of one length."""

    def __init__(self) -> None:
        self.expression = ""
        self.length = 0

    def add(self, expression: str) -> None:
        self.expression += expression
        self.length += 1


def _split(pattern: str) -> list[_Piece]:
    """Take a pattern apart at its `%`; there is always a first piece, though it may be empty."""
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
