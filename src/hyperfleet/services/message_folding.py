"""Folds messages: numbers, addresses, ids and names become placeholders, so that messages of one cause are equal.

    Job dns-7f9c6d5b8-x2k4j of "payments" failed after 3 attempts: no route to 10.0.12.7
    Job <id> of <name> failed after <n> attempts: no route to <ip>

`failures` groups by folded messages. Words with digits in them (`eu-west-1`, `route53`, `m5.xlarge`) stay, because
they distinguish causes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

MAX_CHARACTERS: Final = 500  # of a message; what comes later seldom distinguishes causes

# The most specific first; later patterns do not match inside placeholders.
_FOLDS: Final = (
    ("<name>", r'"[^"\n]*"|`[^`\n]*`|«[^»\n]*»|“[^”\n]*”' + r"|(?<![^\W_])'[^'\n]*'(?![^\W_])"),
    ("<time>", r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[-+]\d\d:?\d\d)?"),
    ("<id>", r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"),
    ("<ip>", r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?(?::\d{1,5})?(?![\w.]*\w)"),
    ("<ip>", r"(?<![\w:])(?=[a-fA-F:]*\d)(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?:/\d{1,3})?(?![\w:])"),
    ("<hex>", r"\b0[xX][0-9a-fA-F]+\b|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b"),
    ("<id>", r"\b[a-z][a-z0-9]*(?:-[a-z0-9]+)*-(?=[a-z]*\d)[a-z0-9]{5,}(?:-[a-z0-9]+)*\b"),
    ("<n>", r"(?<![\w.-])(?:\d+(?:\.\d+)?(?:ms|us|µs|ns|[smhd])){2,}(?!\w)"),
    ("<n>", r"(?<![\w.-])[-+]?\d+(?:[.,]\d+)*(?=(?:[a-zA-Zµ]{1,3}|%)?(?!\w))"),
)
_FOLD: Final = re.compile("|".join(f"(?P<f{place}>{pattern})" for place, (_, pattern) in enumerate(_FOLDS)))
_WORD: Final = re.compile(r"[\w-]+")  # all that names are made of
_BLANKS: Final = re.compile(r"\s+")


def fold_message(message: str, names: Iterable[str] = ()) -> str:
    """Replace everything in which messages of one cause differ; `names` are those of the resource itself."""
    text = _BLANKS.sub(" ", message[:MAX_CHARACTERS]).strip()
    known = {name for name in names if name and name in text}
    if known:
        text = _WORD.sub(lambda word: "<name>" if word[0] in known else word[0], text)
    return _FOLD.sub(_placeholder, text)


def _placeholder(match: re.Match[str]) -> str:
    return _FOLDS[int((match.lastgroup or "f0")[1:])][0]
