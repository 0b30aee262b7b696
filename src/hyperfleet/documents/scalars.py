"""Resolve YAML scalars by the core schema of YAML 1.2 (so `yes`, `1_000` and dates are text).

The reader calls this instead of the library's own resolver, which mixes in rules of YAML 1.1.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from hyperfleet.documents.nodes import Plain

# Python refuses to convert more than 4300 digits; real numbers do not need even 100.
MAX_DIGITS: Final = 100

_CONSTANTS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

_NUMBERS: Final[tuple[tuple[re.Pattern[str], Callable[[str], int | float]], ...]] = (
    (re.compile(r"[-+]?[0-9]+"), int),
    (re.compile(r"0o[0-7]+"), lambda text: int(text[2:], 8)),
    (re.compile(r"0x[0-9a-fA-F]+"), lambda text: int(text[2:], 16)),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
    (re.compile(r"[-+]?\.(inf|Inf|INF)"), lambda text: float(text.replace(".", ""))),
    (re.compile(r"\.(nan|NaN|NAN)"), lambda text: float("nan")),
)


def resolve_plain(text: str) -> Plain:
    """Return the value of a plain scalar; raise ValueError for an absurdly long number."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "-+.0123456789":
        return text
    for pattern, convert in _NUMBERS:
        if pattern.fullmatch(text):
            if len(text) > MAX_DIGITS:
                raise ValueError(f"a number has at most {MAX_DIGITS} digits, this one has {len(text)}")
            return convert(text)
    return text


# Explicit tags that a document may use, and the Python types of their values.
TAGS: Final[dict[str, tuple[type, ...]]] = {
    "tag:yaml.org,2002:null": (type(None),),
    "tag:yaml.org,2002:bool": (bool,),
    "tag:yaml.org,2002:int": (int,),
    "tag:yaml.org,2002:float": (float, int),
}
TEXT_TAGS: Final = ("tag:yaml.org,2002:str", "!")


def resolve_tagged(tag: str, text: str) -> Plain:
    """Return the value of a scalar with an explicit tag; raise ValueError if the tag does not fit."""
    if tag in TEXT_TAGS:
        return text
    short = tag.replace("tag:yaml.org,2002:", "!!")
    if tag not in TAGS:
        raise ValueError(f"the tag {short} is not supported here")
    value = resolve_plain(text)
    if type(value) not in TAGS[tag]:
        raise ValueError(f'the tag {short} does not fit "{text}"')
    return float(value) if tag.endswith(":float") and isinstance(value, int) else value
