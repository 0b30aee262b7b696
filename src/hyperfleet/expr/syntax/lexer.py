"""Text to tokens, one at a time.

Only the parser calls this. Tokens are made lazily, so that an error later in the text does not hide an earlier
one of the parser, and a hostile text is not read further than its budget. String literals are in `literals`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from hyperfleet.errors import ExprSyntaxError
from hyperfleet.expr.source import error_at
from hyperfleet.expr.syntax.literals import go_quote, read_bytes, read_string

if TYPE_CHECKING:
    from collections.abc import Iterator

TokenKind: TypeAlias = Literal["Identifier", "Number", "String", "Bytes", "Operator", "Bracket", "EOF"]

WORD_OPERATORS = frozenset(
    {"in", "or", "and", "not", "matches", "contains", "startsWith", "endsWith", "let", "if", "else"}
)


class LexerToken(NamedTuple):
    """A piece of the text. The value of a literal is unescaped, and of bytes one character for each byte."""

    kind: TokenKind
    value: str
    offset: int
    end: int

    def __str__(self) -> str:
        """Return the token as error texts print it."""
        if not self.value:
            return self.kind
        value = self.value
        if self.kind == "Bytes":
            value = value.encode("latin-1").decode(errors="surrogateescape")
        return f"{self.kind}({go_quote(value)})"


def tokenize(text: str) -> Iterator[LexerToken]:
    """Yield the tokens of `text`, the last one of kind EOF; raise `ExprSyntaxError` at the first bad one."""
    position = 0
    while True:
        found = _TOKEN.match(text, position)
        if found is None:  # never: the pattern ends with a case for every character
            return
        group, start, position = found.lastgroup, found.start(found.lastindex or 0), found.end()
        if group in _WORDS:
            token = _word(text, start, position)
            position = token.end
            yield token
        elif group == "operator":
            yield LexerToken("Operator", text[start:position], start, position)
        elif group == "bracket":
            yield LexerToken("Bracket", text[start:position], start, position)
        elif group == "string":
            yield LexerToken("String", text[start + 1 : position - 1], start, position)
        elif group == "number":
            yield _number(text, start, position)
        elif group == "pointer":
            yield LexerToken("Operator", text[start:position], start, position)
            end = _word_end(text, position)
            if end > position:
                yield LexerToken("Identifier", text[position:end], position, end)
            position = end
        elif group == "eof":
            yield LexerToken("EOF", "", max(len(text) - 1, 0), len(text))
            return
        else:
            token = _rare(text, group, start, position)
            position = token.end
            yield token


def is_word(character: str) -> bool:
    """Tell whether a character may stand in a name: a letter, a decimal digit, `_` or `$`."""
    return character.isalpha() or character.isdecimal() or character in ("_", "$")


def _word_end(text: str, start: int) -> int:
    found = _WORD.match(text, start)
    if found is None:
        return start
    if found[0].isascii():
        return found.end()
    # The pattern takes every numeric character for part of a word, the language only decimal digits.
    return next((at for at in range(start, found.end()) if not is_word(text[at])), found.end())


def _word(text: str, start: int, end: int) -> LexerToken:
    value = text[start:end]
    if not value.isascii():
        end = _word_end(text, start)
        value = text[start:end]
        if not value:
            raise _unrecognized(text, start)
    kind: TokenKind = "Operator" if value in WORD_OPERATORS else "Identifier"
    return LexerToken(kind, value, start, end)


def _number(text: str, start: int, end: int) -> LexerToken:
    if end < len(text) and is_word(text[end]):
        raise error_at(ExprSyntaxError, text, end, f"bad number syntax: {go_quote(text[start : end + 1])}")
    return LexerToken("Number", text[start:end], start, end)


def _rare(text: str, group: str | None, start: int, end: int) -> LexerToken:
    """Read what needs more than the pattern, or is an error."""
    if group == "quote":
        value, end = read_string(text, start)
        return LexerToken("String", value, start, end)
    if group == "bytes":
        value, end = read_bytes(text, start)
        return LexerToken("Bytes", value, start, end)
    if group == "raw":
        return LexerToken("String", text[start + 1 : end - 1].replace("``", "`"), start, end)
    if group == "backtick":
        raise error_at(ExprSyntaxError, text, len(text), "literal not terminated")
    if group == "comment":
        raise error_at(ExprSyntaxError, text, len(text), "unclosed comment")
    raise _unrecognized(text, start)


def _unrecognized(text: str, offset: int) -> ExprSyntaxError:
    character = text[offset]
    shown = f" '{character}'" if character.isprintable() else ""
    return error_at(ExprSyntaxError, text, offset, f"unrecognized character: U+{ord(character):04X}{shown}")


def _digits(prefix: str, digits: str) -> str:
    """Return the pattern of a number: a second dot after the first belongs to a range operator."""
    return rf"{prefix}[{digits}]*(?:\.(?!\.)[{digits}]*)?(?:[eE][+-]?[{digits}]*)?"


_WORDS = frozenset({"word", "foreign"})  # the latter begins with a letter that is not ASCII
_WORD = re.compile(r"[$\w]+")
_TOKEN = re.compile(
    rf"""
    (?: [\t\n\v\f\r\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]++
      | //[^\n]*
      | /\*(?s:.*?)\*/
    )*+
    (?:
      (?P<word> (?![bB]["']) [A-Za-z_$][$\w]*+ )
    | (?P<bracket> [()\[\]{{}}] )
    | (?P<string> "[^"\\\n\r]*+" | '[^'\\\n\r]*+' )
    | (?P<comment> /\* )
    | (?P<operator> [,;%+\-^/] | \.\.|\.(?![0-9]) | [&!=*<>][&=*]? | ::? | \?[.?]? | \|\|? )
    | (?P<number> \.?(?: {_digits("0[xX]", "0-9a-fA-F_")} | {_digits("0[oO]", "0-7_")}
                       | {_digits("0[bB]", "01_")}        | {_digits("[0-9]", "0-9_")} ) )
    | (?P<pointer> \#\#? )
    | (?P<bytes> [bB] )
    | (?P<foreign> [$\w]++ )
    | (?P<quote> ["'] )
    | (?P<raw> `(?:[^`]|``)*+` )
    | (?P<backtick> ` )
    | (?P<eof> \Z )
    | (?P<other> (?s:.) )
    )""",
    re.VERBOSE,
)
