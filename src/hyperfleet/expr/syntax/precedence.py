"""How strong operators bind; the parser reads by it and the printer sets parentheses by it."""

from __future__ import annotations

UNARY = {"not": 50, "!": 50, "-": 90, "+": 90}
BINARY = {
    "|": 0,
    **dict.fromkeys(("or", "||"), 10),
    **dict.fromkeys(("and", "&&"), 15),
    **dict.fromkeys(("==", "!=", "<", ">", ">=", "<="), 20),
    **dict.fromkeys(("in", "matches", "contains", "startsWith", "endsWith"), 20),
    "..": 25,
    **dict.fromkeys(("+", "-"), 30),
    **dict.fromkeys(("*", "/", "%"), 60),
    **dict.fromkeys(("**", "^"), 100),
    "??": 500,
}

RIGHT_ASSOCIATIVE = frozenset({"**", "^"})
COMPARISONS = frozenset({"<", ">", ">=", "<="})
"""Operators that chain: `a < b < c` is `a < b && b < c`."""
NEGATABLE = frozenset({"in", "matches", "contains", "startsWith", "endsWith"})
"""Operators that may have `not` before them."""
