"""The values of literals, and quoting text the way error texts print it.

Lexer and parser read and quote with it. Escapes are checked while reading, so an error points at
the character at fault; what can only be seen in the whole literal (a code point that is none) at its last quote.
"""

from __future__ import annotations

import re

from hyperfleet.errors import ExprSyntaxError
from hyperfleet.expr.source import error_at

_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}
_DIGITS = {"x": (2, 16), "u": (4, 16), "U": (8, 16), **dict.fromkeys("01234567", (3, 8))}
_OCTAL = frozenset("01234567")
_HEX = frozenset("0123456789abcdefABCDEF")
_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_REPLACEMENT = "\ufffd"


def read_string(text: str, start: int) -> tuple[str, int]:
    """Return the value of the quoted string at `start`, and where it ends."""
    parts, end = _read(text, start)
    return "".join(part if isinstance(part, str) else _code_point(text, part, end) for part in parts), end


def read_bytes(text: str, start: int) -> tuple[str, int]:
    """Return the bytes of the literal `b"…"` at `start` as characters below 256, and where it ends."""
    parts, end = _read(text, start + 1)
    values = b"".join(
        part.encode(errors="surrogatepass") if isinstance(part, str) else _byte(text, part, end) for part in parts
    )
    return values.decode("latin-1"), end


def _read(text: str, start: int) -> tuple[list[str | tuple[str, int]], int]:
    """Split a literal into plain text and numeric escapes (their letter and number)."""
    quote, position = text[start], start + 1
    parts: list[str | tuple[str, int]] = []
    plain = re.compile(rf"[^{quote}\\\n]+")
    while True:
        if found := plain.match(text, position):
            parts.append(found[0].replace("\r\n", "\n").replace("\r", "\n"))
            position = found.end()
        character = text[position : position + 1]
        if character == quote:
            return parts, position + 1
        if character != "\\":
            raise error_at(ExprSyntaxError, text, position, "literal not terminated")
        part, position = _escape(text, position + 1, quote)
        parts.append(part)


def _escape(text: str, position: int, quote: str) -> tuple[str | tuple[str, int], int]:
    """Read what follows a backslash."""
    letter = text[position : position + 1]
    if letter == quote:
        return quote, position + 1
    if letter in _SIMPLE:
        return _SIMPLE[letter], position + 1
    if letter not in _DIGITS:
        raise _bad_escape(text, position)
    if letter == "u" and text[position + 1 : position + 2] == "{":
        return _braced(text, position + 2)
    count, base = _DIGITS[letter]
    start = position if base == 8 else position + 1
    allowed = _OCTAL if base == 8 else _HEX
    for at in range(start, start + count):
        if text[at : at + 1] not in allowed or at >= len(text):
            raise _bad_escape(text, at)
    return (letter, int(text[start : start + count], base)), start + count


def _braced(text: str, start: int) -> tuple[tuple[str, int], int]:
    """Read the one to six digits of a braced code point, and the closing brace."""
    end = start
    while end < len(text) and text[end] in _HEX and end - start < 6:
        end += 1
    if end == start or text[end : end + 1] != "}":
        raise _bad_escape(text, end - 1)  # the last character that was right
    return ("u", int(text[start:end], 16)), end + 1


def _code_point(text: str, escape: tuple[str, int], end: int) -> str:
    letter, number = escape
    if number > _LAST_CODE_POINT or "4" <= letter <= "7":  # octal digits stop at \377
        raise _cannot_unescape(text, end)
    return _REPLACEMENT if number in _SURROGATES else chr(number)


def _byte(text: str, escape: tuple[str, int], end: int) -> bytes:
    letter, number = escape
    if letter in "uU" or number > 255:
        raise _cannot_unescape(text, end)
    return bytes((number,))


def _bad_escape(text: str, offset: int) -> ExprSyntaxError:
    return error_at(ExprSyntaxError, text, offset, "invalid char escape")


def _cannot_unescape(text: str, end: int) -> ExprSyntaxError:
    return error_at(ExprSyntaxError, text, end - 1, "unable to unescape string")


_NAMED = {'"': '\\"', "\\": "\\\\", **{character: f"\\{letter}" for letter, character in _SIMPLE.items()}}


def go_quote(text: str) -> str:
    """Put `text` between double quotes with the escapes that the original's messages use."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_quoted(character) for character in text) + '"'


def _quoted(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80 or 0xDC80 <= code <= 0xDCFF:  # the latter is a byte that is no UTF-8
        return f"\\x{code & 0xFF:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_BASES = {"0x": ("hex", 16), "0b": ("binary", 2), "0o": ("octal", 8)}
_INT64 = range(-(1 << 63), 1 << 63)


def read_number(text: str) -> int | float:
    """Return the value of a number; raise `ValueError` with the original's message when it has none."""
    digits = text.replace("_", "")
    lower = digits.lower()
    name, base = _BASES.get(lower[:2], ("integer", 10))
    if base != 16 and ("." in lower or "e" in lower):
        return _float(digits)
    try:
        value = int(digits, base)
    except ValueError:  # of decimal digits only when Python finds them too many to convert
        fault = "value out of range" if base == 10 else "invalid syntax"
        raise _bad_number(name, "ParseInt", digits, fault) from None
    if value not in _INT64:
        raise _bad_number(name, "ParseInt", digits, "value out of range")
    return value


def _float(digits: str) -> float:
    try:
        value = float(digits)
    except ValueError:
        raise _bad_number("float", "ParseFloat", digits, "invalid syntax") from None
    if value == float("inf"):
        raise _bad_number("float", "ParseFloat", digits, "value out of range")
    return value


def _bad_number(name: str, function: str, digits: str, fault: str) -> ValueError:
    return ValueError(f'invalid {name} literal: strconv.{function}: parsing "{digits}": {fault}')
