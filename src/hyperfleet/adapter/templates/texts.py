"""Letters and quotes as Go has them."""

from __future__ import annotations

import re
from typing import Final

# A word by the rules of Unicode, near enough: a dot, colon or apostrophe between letters does not end it.
_WORD: Final = re.compile(r"\w+(?:[.:'’·․](?=[^\W\d_])\w+)*")
_UNUSUAL: Final = re.compile(r"[^ !#-\[\]-~]")
_ESCAPES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"'
}  # fmt: skip


def upper(text: str) -> str:
    """Return a text in capitals, letter by letter: ß stays."""
    return text.upper() if text.isascii() else "".join(_one(each, each.upper()) for each in text)


def lower(text: str) -> str:
    """Return a text in small letters, letter by letter."""
    return text.lower() if text.isascii() else "".join(_one(each, each.lower()) for each in text)


def _one(letter: str, changed: str) -> str:
    """Keep a letter that would become several."""
    return changed if len(changed) == 1 else letter


def title(text: str) -> str:
    """Begin every word with a capital and write the rest of it small."""
    return _WORD.sub(lambda word: _capitalize(word[0]), text)


def _capitalize(word: str) -> str:
    first = next((index for index, letter in enumerate(word) if letter.isalpha()), 0)
    return word[:first] + word[first : first + 1].title() + word[first + 1 :].lower()


def quote(text: str) -> str:
    """Put a text in double quotes; what cannot be printed is escaped."""
    return '"' + _UNUSUAL.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    letter = found[0]
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code < 0x80:
        return f"\\x{code:02x}"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
