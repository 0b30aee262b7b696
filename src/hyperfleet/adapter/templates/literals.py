"""Numbers, strings and characters as a template writes them, by the rules of Go."""

from __future__ import annotations

import re
from typing import Final

from hyperfleet.adapter.faults import FaultSignal
from hyperfleet.adapter.templates.lexer import Token

LARGEST: Final = 2**63 - 1
SMALLEST: Final = -(2**63)

_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.?))"
)
_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"'
}  # fmt: skip
_OTHER_QUOTE: Final = {'"': "'", "'": '"'}
_INTEGER: Final = re.compile(r"([+-]?)(0[xX]|0[oO]|0[bB]|0(?=[0-9_]))?([0-9a-fA-F_]+)")
_BASES: Final = {"0x": 16, "0o": 8, "0b": 2, "0": 8, "": 10}
_MAX_DIGITS: Final = 400  # more make no other float, and Python refuses very long integers


def read_number(token: Token) -> int | float:
    """Return the number that a token writes."""
    text = token.text
    if text.endswith("i"):
        raise FaultSignal(token.offset, f"{text}: imaginary numbers have no use here")
    if len(text) > _MAX_DIGITS:
        raise FaultSignal(token.offset, "the number has too many digits")
    try:
        return _read_integer(text) if _is_integer(text) else _read_float(text)
    except ValueError:
        raise FaultSignal(token.offset, f"{text} is not a number") from None
    except OverflowError:
        raise FaultSignal(token.offset, f"{text} does not fit into 64 bits") from None


def _is_integer(text: str) -> bool:
    return (text.lstrip("+-")[:2].lower() == "0x" and "p" not in text.lower()) or not re.search("[.eEpP]", text)


def _read_integer(text: str) -> int:
    found = _INTEGER.fullmatch(text)
    if found is None or "__" in text or text.endswith("_"):
        raise ValueError(text)
    sign, prefix, digits = found[1], (found[2] or "").lower(), found[3]
    number = int(sign + digits.removeprefix("_"), _BASES[prefix])
    if not SMALLEST <= number <= LARGEST:
        raise OverflowError(text)
    return number


def _read_float(text: str) -> float:
    if text.lstrip("+-").lower().startswith("0x"):
        return float.fromhex(text.replace("_", ""))
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise OverflowError(text)
    return number


def read_string(token: Token) -> str:
    """Return the text of a quoted or raw string."""
    if token.kind == "raw":
        return token.text[1:-1].replace("\r", "")
    return _unescape(token)


def read_character(token: Token) -> int:
    """Return the code point of a character: to Go, 'a' is a number."""
    text = _unescape(token)
    if len(text) != 1:
        raise FaultSignal(token.offset, f"{token.text} is not one character; strings are in double quotes")
    return ord(text)


def _unescape(token: Token) -> str:
    quote, text = token.text[0], token.text[1:-1]
    if "\\" not in text:
        return text
    found = bytearray()
    last = 0
    for escape in _ESCAPE.finditer(text):
        found += text[last : escape.start()].encode("utf-8", "surrogatepass")
        found += _escaped(token, escape, quote)
        last = escape.end()
    found += text[last:].encode("utf-8", "surrogatepass")
    try:
        return found.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise FaultSignal(token.offset, "the escapes of this string make no text") from None


def _escaped(token: Token, escape: re.Match[str], quote: str) -> bytes:
    place = token.offset + 1 + escape.start()
    simple, byte, short, long, octal, _ = escape.groups()
    if simple and simple != _OTHER_QUOTE[quote]:
        return _SIMPLE[simple].encode()
    if byte or octal:
        number = int(byte, 16) if byte else int(octal, 8)
        if number <= 255:
            return bytes([number])
    if short or long:
        number = int(short or long, 16)
        if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF:
            return chr(number).encode()
    raise FaultSignal(place, f"{escape[0]} is not an escape")
