"""Redaction: removes what looks like a secret from a report before it is evaluated, stored or shown.

Adapters put the output of their tools into `data`, and sometimes that contains a password. The API calls this for every
report on every route, so that a secret never reaches the disk, a log, an event or another caller. It works on decoded
JSON, does not change its input, and keeps no value that it removed.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

import msgspec
from msgspec import Struct

from hyperfleet.aggregation import BodyProblem
from hyperfleet.documents import pointer

REDACTED: Final = "[redacted]"

# A key is sensitive if it is, or ends with, one of these: `dbPassword` and `API-TOKEN` are, `secretName` and
# `tokenExpiresAt` are not.
WORDS: Final = (
    *("password", "passwd", "passphrase", "passwordhash", "token", "secret", "kubeconfig", "credential", "cookie"),
    *("apikey", "accesskey", "privatekey", "secretkey", "signingkey", "encryptionkey", "clientkeydata"),
    *("authorization", "bearer", "connectionstring"),
)

_IGNORED: Final = "-_. "  # in keys
_LETTERS: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase, _IGNORED)
# Turns JSON into lower case, without the characters that are ignored in keys and between a key and its colon.
_FLAT: Final = bytes.maketrans(string.ascii_uppercase.encode(), string.ascii_lowercase.encode())
_SKIPPED: Final = _IGNORED.encode() + b"\t\r\n"
_KEY_END: Final = b'":'
_TAIL: Final = 6  # letters that distinguish most keys from sensitive ones; with 5, `generation` would look like one
_tail_of: Final = itemgetter(slice(-_TAIL, None))

# Secrets whatever their key. Each pattern begins with something that cannot occur inside its own match, so that every
# text takes a single pass.
_KEY_BLOCK: Final = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_TEXTS: Final = re.compile(
    rf"-----BEGIN {_KEY_BLOCK}.*?(?:-----END {_KEY_BLOCK}|\Z)"  # PEM
    r"|(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"  # JSON web tokens
    r"|(?<=\bbearer )(?=\S*\d)[\w.~+/=-]{16,}"
    r"|(?P<user>(?<=://)[^\s/:@?#]{0,256}:)[^\s/]{1,1024}(?=@)"  # up to the last @: a password may have one
    r"|(?P<key>(?:password|passwd|secret|token)=)(?:\"[^\"\r\n]*\"?|'[^'\r\n]*'?|[^\s&;,\"']+)",
    re.DOTALL | re.IGNORECASE | re.ASCII,
)
# Flattened JSON with such a text contains one of these.
_ASSIGNED: Final = (b"password=", b"passwd=", b"secret=", b"token=")
_URL: Final = re.compile(rb"://[^/@:]*:[^/@]*@")

_ANYTHING: Final = (str, int, float, dict, list)
_NO_COUNT: Final = (str, dict, list)  # `tokens: 3` is a number of tokens
_NOTHING: Final = ()
_MAX_CACHED: Final = 64  # characters of a key: the cache then stays below a megabyte


class Redacted(Struct, frozen=True):
    """A body without secrets, and a note for each that was removed."""

    body: Any
    notes: tuple[BodyProblem, ...] = ()


class Redactor:
    """Removes secrets from bodies."""

    def __init__(self, more: Iterable[str] = (), *, is_enabled: bool = True) -> None:
        """Look for the built-in keys and for `more`; unless enabled, for nothing."""
        own = [word for word in map(_flatten, more) if word]
        words = (*WORDS, *own) if is_enabled else ()
        self._is_enabled = is_enabled
        self._endings = tuple([word.encode() + plural for word in words for plural in (b"", b"s")])
        self._tails = frozenset(_list_tails(self._endings))
        self._short = tuple([ending + _KEY_END for ending in self._endings if len(ending) < _TAIL - 1])
        self._words = words
        self._cached = lru_cache(maxsize=4096)(lambda key: _find_replaced(key, words))  # a fleet has few different keys

    def is_harmless(self, raw: bytes) -> bool:
        """Tell cheaply whether JSON has nothing to redact; that is the usual case."""
        if not self._is_enabled:
            return True
        if b"\\" in raw and (b"\\u" in raw or b"\\/" in raw):  # escapes could hide a key
            return False
        flat = raw.translate(_FLAT, _SKIPPED)
        return not self._has_sensitive_key(flat) and not _has_secret_text(raw, flat)

    def clean(self, raw: bytes) -> Redacted:
        """Return JSON without its secrets; what is not JSON stays unchanged, because it is refused later."""
        if self.is_harmless(raw):
            return Redacted(raw)
        try:
            redacted = self.redact(msgspec.json.decode(raw))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return Redacted(raw)
        return Redacted(msgspec.json.encode(redacted.body), redacted.notes) if redacted.notes else Redacted(raw)

    def _has_sensitive_key(self, flat: bytes) -> bool:
        """Tell whether a key of flattened JSON is sensitive; the last letters exclude most."""
        for ending in self._short:
            if ending in flat:
                return True
        keys = flat.split(_KEY_END)  # each behind the value before it
        if self._tails.isdisjoint(map(_tail_of, keys)):
            return False
        return any(key.endswith(self._endings) for key in keys if _tail_of(key) in self._tails)

    def is_sensitive(self, key: object) -> bool:
        """Tell whether the values of a key must not be shown."""
        return isinstance(key, str) and bool(self._replaced(key))

    def redact(self, body: object, at: str = "") -> Redacted:
        """Return a body without its secrets; `at` is its pointer in a larger body."""
        if not self._is_enabled:
            return Redacted(body)
        found: list[str] = []
        clean = self._clean(body, at, found)
        return Redacted(clean, tuple(map(_note, found))) if found else Redacted(body)

    def conceal(self, text: str) -> str:
        """Return a text without secrets that are recognised whatever their key."""
        return _TEXTS.sub(_conceal, text) if self._is_enabled else text

    def _replaced(self, key: str) -> tuple[type, ...]:
        """Return the types of values that are secrets under a key; results for long keys are not cached."""
        return self._cached(key) if len(key) <= _MAX_CACHED else _find_replaced(key, self._words)

    def _clean(self, value: object, at: str, found: list[str]) -> object:
        if isinstance(value, str):
            concealed = self.conceal(value)
            if concealed != value:
                found.append(at)
            return concealed
        if isinstance(value, list):
            return [self._clean(item, f"{at}/{index}", found) for index, item in enumerate(value)]
        if isinstance(value, dict):
            return dict(self._clean_items(value, at, found))
        return value

    def _clean_items(self, value: dict[str, Any], at: str, found: list[str]) -> Iterator[tuple[str, object]]:
        for key, item in value.items():
            shown = self.conceal(key)  # maps may have addresses as keys
            is_secret = not isinstance(item, bool) and isinstance(item, self._replaced(key)) and item != REDACTED
            place = pointer.join(at, shown)
            if is_secret or shown != key:
                found.append(place)
            yield shown, REDACTED if is_secret else self._clean(item, place, found)


def _flatten(key: str) -> str:
    """Return a key in the form that is compared."""
    return key.translate(_LETTERS)


def _list_tails(endings: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the last letters of all keys with one of these endings, as far as these are long enough."""
    for ending in endings:
        if len(ending) >= _TAIL:
            yield ending[-_TAIL:]
        elif len(ending) == _TAIL - 1:  # `token`, after any character
            yield from [bytes([before]) + ending for before in range(256)]


def _has_secret_text(raw: bytes, flat: bytes) -> bool:
    """Tell whether JSON may contain a text that is a secret whatever its key.

    Rare single bytes come first: searching them is several times as fast as searching words.
    """
    if b"eyj" in flat or b"bearer" in flat:
        return True
    if b"-----" in raw and b"privatekey" in flat:
        return True
    if b"=" in raw and any(sign in flat for sign in _ASSIGNED):
        return True
    return b"@" in raw and _URL.search(flat) is not None


def _find_replaced(key: str, words: tuple[str, ...]) -> tuple[type, ...]:
    """Return the types of values that are secrets under a key. Booleans and null never are."""
    flat = _flatten(key)
    if flat.endswith(words):
        return _ANYTHING
    return _NO_COUNT if flat.endswith("s") and flat[:-1].endswith(words) else _NOTHING


def _conceal(match: re.Match[str]) -> str:
    """Keep the user or key of a secret: that helps to find the leak."""
    return (match["user"] or match["key"] or "") + REDACTED


def _note(at: str) -> BodyProblem:
    return BodyProblem(at, "Redacted", "this looks like a secret and was not kept; report where it is, not what it is")
