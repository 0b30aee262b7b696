"""The English plural of a kind, for messages about several objects.

Kinds are CamelCase: only their last word is inflected (`MachinePolicy`, `MachinePolicies`).
"""

from __future__ import annotations

import re
from typing import Final

_LAST_WORD: Final = re.compile(r"[A-Z]?[^A-Z]*\Z")

_IRREGULAR: Final = {
    "Alias": "Aliases",
    "Analysis": "Analyses",
    "Basis": "Bases",
    "Bus": "Buses",
    "Child": "Children",
    "Equipment": "Equipment",
    "Index": "Indices",
    "Information": "Information",
    "Matrix": "Matrices",
    "Person": "People",
    "Status": "Statuses",
}

# The first ending that fits decides: (ending, how much of it goes, what comes instead).
_ENDINGS: Final = (
    (("ay", "ey", "oy", "uy"), 0, "s"),
    (("y",), 1, "ies"),
    (("ss", "sh", "ch", "x"), 0, "es"),
    (("s",), 0, ""),  # a plural already
    (("",), 0, "s"),
)


def pluralize(kind: str) -> str:
    """Return the plural of a kind."""
    match = _LAST_WORD.search(kind)
    word = match.group() if match else ""
    return kind.removesuffix(word) + (_IRREGULAR.get(word) or _inflect(word))


def _inflect(word: str) -> str:
    cut, ending = next((cut, ending) for endings, cut, ending in _ENDINGS if word.endswith(endings))
    return word[: len(word) - cut] + ending
