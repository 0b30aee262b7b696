"""Tell the contract's dialect from CEL."""

from __future__ import annotations

import re
from typing import Final, Literal

from hyperfleet.adapter.dialect.program import parse_dialect

# What CEL refuses, outside of strings: `??`, `?.`, `@` and nil as a value. `[?0]` and `.?` are CEL.
_STRING: Final = r"[rR]?(?:\"\"\".*?\"\"\"|'''.*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
_SIGN: Final = re.compile(rf"(?:{_STRING})|//[^\n]*|(?P<sign>\?\?|\?\.(?!\d)|@|(?<![\w.])nil(?!\w))", re.DOTALL)


def is_dialect(text: str) -> bool:
    """Tell whether an expression has a sign that CEL does not know."""
    return any(found["sign"] for found in _SIGN.finditer(text))


def choose_language(text: str, *, is_contract_block: bool) -> Literal["dialect", "cel"]:
    """Choose how to evaluate an expression.

    In the contract's block everything that can be is dialect: `a.status.readyReplicas > 0` fails in CEL while there is
    no status. Elsewhere, and for anything that calls a function, it is CEL unless a sign says otherwise.
    """
    if is_dialect(text) or (is_contract_block and parse_dialect(text).program is not None):
        return "dialect"
    return "cel"
