"""A template as pieces: the text between actions, and the tokens of each action.

The first stage; the parser calls `cut`. A fault ends its action only: the pieces after it are cut as usual, so that all
faults of a template are found at once.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from hyperfleet.adapter.faults import FaultSignal

TokenKind = Literal[
    "space", "dot", "field", "variable", "word", "number", "character", "string", "raw", "declare", "mark"
]

_SPACES: Final = " \t\r\n"
_CLOSE: Final = re.compile(r"[ \t\r\n]-\}\}|\}\}")
_TRIMMED_CLOSE: Final = re.compile(r"[ \t\r\n]-\}\}")
_OPEN: Final = re.compile(r"\{\{(-(?=[ \t\r\n]))?")
_NUMBER: Final = (
    r"[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?|0[oO][0-7_]*|0[bB][01_]*"
    r"|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)i?"
)
_TOKENS: Final[tuple[tuple[TokenKind, str], ...]] = (
    ("space", r"[ \t\r\n]+"),
    ("number", r"(?=[+-]|\.?[0-9])" + _NUMBER),
    ("field", r"\.\w+"),
    ("dot", r"\."),
    ("variable", r"\$\w*"),
    ("word", r"\w+"),
    ("string", r'"(?:[^"\\\n]|\\[^\n])*"'),
    ("raw", r"`[^`]*`"),
    ("character", r"'(?:[^'\\\n]|\\[^\n])*'"),
    ("declare", r":="),
    ("mark", r"[=|(),]"),
)
_TOKEN: Final = re.compile("|".join(f"({pattern})" for _, pattern in _TOKENS))  # the number of the group is the kind
# What may follow a name; `$x+2` and `.a-b` are faults, not names.
_NAMES: Final = frozenset({"field", "dot", "variable", "word"})
_TERMINATORS: Final = frozenset(" \t\r\n.,|:)(")
MAX_FAULTS: Final = 20  # of one template; more are consequences of the first ones
_UNCLOSED: Final = {
    '"': "the string is not closed",
    "`": "the raw string is not closed",
    "'": "the character is not closed",
}


class Token(NamedTuple):
    """A token of an action."""

    kind: TokenKind
    offset: int
    text: str


class TextPiece(NamedTuple):
    """Text between actions, already trimmed."""

    offset: int
    text: str


class ActionPiece(NamedTuple):
    """An action: where its `{{` is, where its inside ends, its tokens and what is wrong with them."""

    offset: int
    end: int
    tokens: tuple[Token, ...]
    fault: FaultSignal | None = None


Piece = TextPiece | ActionPiece


def cut(source: str) -> list[Piece]:
    """Cut a template into pieces."""
    return _Cutter(source).cut()


class _Cutter:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._pieces: list[Piece] = []
        self._faults = 0

    def cut(self) -> list[Piece]:
        while self._at < len(self._source) and self._faults < MAX_FAULTS:
            opening = _OPEN.search(self._source, self._at)
            if opening is None:
                self._add_text(self._source[self._at :])
                break
            text = self._source[self._at : opening.start()]
            self._add_text(text.rstrip(_SPACES) if opening[1] else text)
            self._cut_action(opening)
        return self._pieces

    def _add_text(self, text: str) -> None:
        if text:
            self._pieces.append(TextPiece(self._at, text))

    def _cut_action(self, opening: re.Match[str]) -> None:
        start, self._at = opening.start(), opening.end()
        comment = self._at + 1 if opening[1] else self._at  # a trim marker has a space behind it
        tokens: list[Token] = []
        try:
            if self._source.startswith("/*", comment):
                self._skip_comment(comment, start)
                self._close()
                return
            self._read_tokens(tokens, start)
            self._pieces.append(ActionPiece(start, self._at, tuple(tokens)))
            self._close()
        except FaultSignal as fault:
            self._pieces.append(ActionPiece(start, fault.offset, tuple(tokens), fault))
            self._faults += 1
            self._recover(fault.offset)

    def _skip_comment(self, begin: int, start: int) -> None:
        end = self._source.find("*/", begin + 2)
        if end < 0:
            self._at = len(self._source)
            raise FaultSignal(start, "the comment is not closed: */ is missing")
        self._at = end + 2
        if not _CLOSE.match(self._source, self._at):
            raise FaultSignal(self._at, "only }} may follow a comment")

    def _read_tokens(self, tokens: list[Token], start: int) -> None:
        while not _CLOSE.match(self._source, self._at):
            if self._at >= len(self._source):
                raise FaultSignal(start, "the action is not closed: }} is missing")
            if self._source.startswith("{{", self._at):
                raise FaultSignal(start, "the action is not closed: there is another {{ before }}")
            tokens.append(self._read_token())

    def _read_token(self) -> Token:
        found = _TOKEN.match(self._source, self._at)
        if found and found.lastindex:
            kind, end = _TOKENS[found.lastindex - 1][0], found.end()
            if kind == "space" and _TRIMMED_CLOSE.match(self._source, end - 1):
                end -= 1  # the last blank belongs to the trim marker
            token = Token(kind, self._at, self._source[self._at : end])
            self._at = end
            self._check_end(token)
            return token
        character = self._source[self._at]
        if character in _UNCLOSED:
            raise FaultSignal(self._at, _UNCLOSED[character])
        raise FaultSignal(self._at, f"unexpected character {character!r}")

    def _check_end(self, token: Token) -> None:
        """Refuse what runs into the next token."""
        rest = self._source[self._at : self._at + 2]
        if token.kind in _NAMES and rest and rest[0] not in _TERMINATORS and rest != "}}":
            raise FaultSignal(self._at, f"unexpected character {rest[0]!r} after {token.text}")
        if token.kind == "number" and rest and (rest[0].isalnum() or rest[0] in "_+-"):
            raise FaultSignal(token.offset, f"{token.text}{rest[0]} is not a number")

    def _close(self) -> None:
        """Go behind the closing delimiter, and behind the blanks that its trim marker removes."""
        closing = _CLOSE.match(self._source, self._at)
        if closing is None:
            return
        self._at = closing.end()
        if len(closing[0]) > len("}}"):
            while self._at < len(self._source) and self._source[self._at] in _SPACES:
                self._at += 1

    def _recover(self, offset: int) -> None:
        """Go on after the action with a fault: behind its }}, or at the next {{ if that comes first."""
        begin = max(offset, self._at)
        closing, opening = self._source.find("}}", begin), self._source.find("{{", begin)
        if opening >= 0 and (opening < closing or closing < 0):
            self._at = opening
        else:
            self._at = closing + 2 if closing >= 0 else len(self._source)
