"""The tokens of an expression; strings are known, so that a `??` inside of one is text."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from hyperfleet.adapter.faults import FaultSignal

DialectTokenKind = Literal["name", "number", "string", "mark", "end"]

_BLANKS: Final = re.compile(r"\s*")
_TOKENS: Final[tuple[tuple[DialectTokenKind, re.Pattern[str]], ...]] = (
    ("number", re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")),
    ("name", re.compile(r"[A-Za-z_]\w*")),
    ("string", re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")),
    ("mark", re.compile(r"\?\?|\?\.|\[\?|&&|\|\||[=!<>]=|[.\[\]()?:!<>@,-]")),
)
_HINTS: Final = {
    "=": "; equality is ==",
    "&": "; and is &&",
    "|": "; or is ||",
    "'": ": the string is not closed",
    '"': ": the string is not closed",
    "+": "; there is no arithmetic, CEL has it",
    "*": "; there is no arithmetic, CEL has it",
    "/": "; there is no arithmetic, CEL has it",
    "{": "; there are no templates in expressions",
}
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "/": "/"}


class DialectToken(NamedTuple):
    """A token and where it begins."""

    kind: DialectTokenKind
    offset: int
    text: str


def tokenize(source: str) -> list[DialectToken]:
    """Cut an expression into tokens; the last one is the end."""
    tokens: list[DialectToken] = []
    at = _skip_blanks(source, 0)
    while at < len(source):
        token = _read_token(source, at)
        tokens.append(token)
        at = _skip_blanks(source, at + len(token.text))
    return [*tokens, DialectToken("end", len(source.rstrip()), "the end of the expression")]


def _skip_blanks(source: str, at: int) -> int:
    found = _BLANKS.match(source, at)
    return found.end() if found else at


def _read_token(source: str, at: int) -> DialectToken:
    for kind, pattern in _TOKENS:
        found = pattern.match(source, at)
        if found:
            return DialectToken(kind, at, found[0])
    character = source[at]
    raise FaultSignal(at, f"unexpected {character}{_HINTS.get(character, '')}")


def read_text(token: DialectToken) -> str:
    """Return the text of a string."""

    def replace(escape: re.Match[str]) -> str:
        if escape[1]:
            return chr(int(escape[1], 16))
        if escape[2] not in _ESCAPED:
            raise FaultSignal(token.offset + 1 + escape.start(), f"{escape[0]} is not an escape")
        return _ESCAPED[escape[2]]

    return _ESCAPE.sub(replace, token.text[1:-1])


def read_number(token: DialectToken) -> int | float:
    """Return a number; a whole one has at most 64 bits."""
    text = token.text
    if len(text) > 40:
        raise FaultSignal(token.offset, "the number has too many digits")
    number = float(text) if re.search("[.eE]", text) else int(text)
    if abs(number) >= 2**63 if isinstance(number, int) else number == float("inf"):
        raise FaultSignal(token.offset, f"{text} does not fit into 64 bits")
    return number
