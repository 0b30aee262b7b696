"""The quick test whether JSON can contain a secret, which nearly every report passes.

It searches the bytes without decoding them and may be wrong on one side only: what `redaction` would change is never
called harmless. So each search below finds everything that its rule in `secret_keys` or `secret_texts` recognises, and
now and then more. A few searches in C are several times as fast as one large pattern.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Final

from hyperfleet.services.secret_keys import IGNORED, SHORT_WORDS, SecretKeys

# Lower case, `:` for `=`, without what is ignored in keys and what may stand between a key and its colon. Without
# quotes and backslashes, JSON inside strings looks like JSON, however often it is escaped.
_FLAT: Final = bytes.maketrans(string.ascii_uppercase.encode() + b"=", string.ascii_lowercase.encode() + b":")
_SKIPPED: Final = IGNORED.encode() + b"\t\r\n\"'\\" + string.digits.encode()
_COLON: Final = b":"
_TAIL: Final = 5  # letters that distinguish most keys from sensitive ones
_tail_of: Final = itemgetter(slice(-_TAIL, None))
_COMMON: Final = b"authorization"  # searched by itself: it ends like `generation`, which is in every report

_VALUE_TAILS: Final = (b"value", b"values")  # the keys of values in pairs end like this
_FLAG: Final = re.compile(rb"--([A-Za-z][\w.-]*+)", re.ASCII)
_URL: Final = re.compile(rb"://[^/@:]*+:[^/@]*+@")
_MAX_FLAG: Final = 80


def _behind(*starts: str) -> bytes:
    return f"(?:{'|'.join([f'(?<={start})' for start in starts])})".encode()


# How tokens begin. A pattern that starts with one character searches as fast as for that character; the two letters
# before it exclude nearly all places, and only then all of the beginning is compared.
_DASH: Final = rb"(?<=[8adnopx][abeijoprst]-)" + _behind(
    "glpat-", "gldt-", "xox.-", "sk-ant-", "sk-proj-", "pypi-", "k8s-"
)
_DASHED: Final = re.compile(b"-" + _DASH)
_DASHED_OR_TWO: Final = re.compile(b"-(?:-|" + _DASH + b")")
_VAULT: Final = re.compile(rb"v(?<=hv)[sbr]\.")
_UNDERSCORED: Final = re.compile(
    rb"_(?<=[ahpsv][1abemoprstu]_)" + _behind("gh[opsur]_", "_pat_", "live_", "test_", "glsa_", "npm_", "_v1_")
)
_ENCODED: Final = re.compile(rb"J(?:(?<=eyJ)|(?<=UdJ))")  # JSON web tokens; `-----BEGIN` in base64
_CLOUD_KEYS: Final = re.compile(rb"I(?<=[AKS]I)(?:A|za)")


class SecretHints:
    """The searches for the sensitive keys of a server."""

    def __init__(self, keys: SecretKeys) -> None:
        """Prepare the searches."""
        self._endings = frozenset(map(_flatten, (*keys.endings, *SHORT_WORDS)))
        self._lengths = sorted({len(ending) for ending in self._endings})
        searched = [ending for ending in (*self._endings, *_VALUE_TAILS) if _COMMON not in ending]
        self._tails = frozenset(_list_tails(searched))
        self._short = (_COMMON, *(ending + _COLON for ending in searched if len(ending) < _TAIL - 1))
        self._words = tuple(map(_flatten, (*keys.words, *SHORT_WORDS)))

    def has_any(self, raw: bytes) -> bool:
        """Tell whether JSON may have something to redact."""
        has_escapes = b"\\" in raw
        if has_escapes and b"\\u" in raw:  # could hide a letter of anything
            return True
        flat = raw.translate(_FLAT, _SKIPPED)
        if self._has_key(flat) or self._has_text(raw, flat):
            return True
        return has_escapes and _has_spaced_json(raw) and self._has_word(flat)

    def _has_key(self, flat: bytes) -> bool:
        """Tell whether a sensitive word stands before a colon; the last letters exclude most."""
        for ending in self._short:
            if ending in flat:
                return True
        keys = flat.split(_COLON)  # each behind the value before it
        if self._tails.isdisjoint(map(_tail_of, keys)):
            return False
        suspects = {key[-self._lengths[-1] :] for key in keys if _tail_of(key) in self._tails}
        if any(suspect.endswith(_VALUE_TAILS) for suspect in suspects) and self._has_word(flat):
            return True  # perhaps {"name": "DB_PASSWORD", "value": …}
        return self._has_ending(suspects)

    def _has_ending(self, texts: Iterable[bytes]) -> bool:
        return any(text[-length:] in self._endings for text in texts for length in self._lengths)

    def _has_word(self, flat: bytes) -> bool:
        return any(word in flat for word in self._words)

    def _has_text(self, raw: bytes, flat: bytes) -> bool:
        """Tell whether JSON may contain a text that is a secret whatever its key."""
        if b"bearer" in flat or _has_token(raw) or self._has_dashes(raw, flat):
            return True
        return b"@" in raw and _URL.search(flat) is not None

    def _has_dashes(self, raw: bytes, flat: bytes) -> bool:
        """Tell whether there is a token with a dash or, behind two dashes, a private key or a sensitive option."""
        if _DASHED_OR_TWO.search(raw) is None:
            return False
        return b"privatekey" in flat or self._has_flag(raw) or _DASHED.search(raw) is not None

    def _has_flag(self, raw: bytes) -> bool:
        return self._has_ending({_flatten(flag[-_MAX_FLAG:]) for flag in _FLAG.findall(raw)})


def _flatten(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return raw.translate(_FLAT, _SKIPPED)


def _has_token(raw: bytes) -> bool:
    """Tell whether something begins like a well-known token; a single byte that is not there is the fastest search."""
    if b"J" in raw and _ENCODED.search(raw):
        return True
    if b"I" in raw and _CLOUD_KEYS.search(raw):
        return True
    if b"_" in raw and _UNDERSCORED.search(raw):
        return True
    return b"~" in raw or _VAULT.search(raw) is not None


def _has_spaced_json(raw: bytes) -> bool:
    r"""Tell whether there are quotes and white space in a string: `"password"\n:` may be JSON of its own."""
    return b'\\"' in raw and (b"\\n" in raw or b"\\t" in raw or b"\\r" in raw)


def _list_tails(endings: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the last letters of all keys with one of these endings, as far as these are long enough."""
    for ending in endings:
        if len(ending) >= _TAIL:
            yield ending[-_TAIL:]
        elif len(ending) == _TAIL - 1:  # `pass`, after any character or none
            yield ending
            yield from [bytes([before]) + ending for before in range(256)]
