"""Redaction: removes what looks like a secret from a report before it is evaluated, stored or shown.

Adapters put the output of their tools into `data`, and sometimes that contains a password. The API calls this for every
report on every route, so that a secret never reaches the disk, a log, an event or another caller. It works on decoded
JSON, does not change its input, and keeps no value that it removed. `secret_keys` knows the keys of secrets,
`secret_texts` finds secrets in texts, `secret_hints` finds out cheaply that there are none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from hyperfleet.aggregation import BodyProblem
from hyperfleet.documents import pointer
from hyperfleet.services import secret_texts
from hyperfleet.services.secret_hints import SecretHints
from hyperfleet.services.secret_keys import REDACTED, VALUE_KEYS, SecretKeys, flatten

__all__ = ["REDACTED", "Redacted", "Redactor"]

# JSON in a string in JSON in a string: each level is decoded once, so this bounds the work, too. What is nested deeper
# is still searched as a text.
_MAX_LEVEL: Final = 3
_JSON_START: Final = re.compile(r"[ \t\r\n]*+[{\[\"]")
_FLAG: Final = re.compile(r"--[A-Za-z][\w.-]{0,63}", re.ASCII)
_MAX_WORD: Final = 17  # characters: nothing that is recognised by itself is as short and has only letters and digits


class Redacted(Struct, frozen=True):
    """A body without secrets, and a note for each that was removed."""

    body: Any
    notes: tuple[BodyProblem, ...] = ()


class Redactor:
    """Removes secrets from bodies."""

    def __init__(self, more: Iterable[str] = (), *, is_enabled: bool = True) -> None:
        """Look for the built-in keys and for `more`; unless enabled, for nothing."""
        self._is_enabled = is_enabled
        self._keys = SecretKeys(more)
        self._hints = SecretHints(self._keys)

    def is_harmless(self, raw: bytes) -> bool:
        """Tell cheaply whether JSON has nothing to redact; that is the usual case."""
        return not self._is_enabled or not self._hints.has_any(raw)

    def clean(self, raw: bytes) -> Redacted:
        """Return JSON without its secrets; what is not JSON stays unchanged, because it is refused later."""
        if self.is_harmless(raw):
            return Redacted(raw)
        try:
            redacted = self._walk(msgspec.json.decode(raw), "")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return Redacted(raw)
        return Redacted(msgspec.json.encode(redacted.body), redacted.notes) if redacted.notes else Redacted(raw)

    def is_sensitive(self, key: object) -> bool:
        """Tell whether the values of a key must not be shown."""
        return self._is_enabled and self._keys.is_sensitive(key)

    def redact(self, body: object, at: str = "") -> Redacted:
        """Return a body without its secrets; `at` is its pointer in a larger body."""
        return Redacted(body) if self._is_harmless_body(body) else self._walk(body, at)

    def conceal(self, text: str) -> str:
        """Return a text without secrets that are recognised whatever their key."""
        return _Walk(self._keys).conceal(text) if self._is_enabled else text

    def _is_harmless_body(self, body: object) -> bool:
        """Encode a decoded body for the quick test: that is still far cheaper than looking at every value."""
        if not self._is_enabled:
            return True
        try:
            return self.is_harmless(msgspec.json.encode(body))
        except (TypeError, ValueError, RecursionError):  # not from JSON
            return False

    def _walk(self, body: object, at: str) -> Redacted:
        walk = _Walk(self._keys)
        clean = walk.clean(body, at)
        return Redacted(clean, tuple(map(_note, walk.found))) if walk.found else Redacted(body)


class _Walk:
    """Goes through a body and collects the pointers of what it replaces."""

    def __init__(self, keys: SecretKeys, level: int = 0) -> None:
        self.found: list[str] = []
        self._keys = keys
        self._level = level

    def clean(self, value: object, at: str) -> object:
        if isinstance(value, str):
            return self._keep(value, self.conceal(value), at)
        if isinstance(value, list):
            return list(self._clean_items(value, at))
        if isinstance(value, dict):
            return dict(self._clean_members(value, at))
        return value

    def conceal(self, text: str) -> str:
        """Return a text without secrets; one that is JSON is read as JSON."""
        if len(text) <= _MAX_WORD and text.isalnum():
            return text
        if self._level < _MAX_LEVEL and _JSON_START.match(text):
            try:
                inner = json.loads(text, object_pairs_hook=_unique)
            except (ValueError, RecursionError):
                return secret_texts.conceal(text, self._keys)
            walk = _Walk(self._keys, self._level + 1)
            clean = walk.clean(inner, "")
            return json.dumps(clean) if walk.found else text
        return secret_texts.conceal(text, self._keys)

    def _keep(self, value: str, concealed: str, at: str) -> str:
        if concealed != value:
            self.found.append(at)
        return concealed

    def _clean_items(self, items: list[Any], at: str) -> Iterator[object]:
        """Clean the items of a list, with what goes on from one text to the next: private keys and `--password`."""
        is_in_key, before = False, None
        for index, item in enumerate(items):
            place = f"{at}/{index}"
            if not isinstance(item, str):
                yield self.clean(item, place)
            elif is_in_key:
                end = secret_texts.find_key_end(item)
                is_in_key = end < 0
                rest = "" if is_in_key else self.conceal(item[end:])
                yield self._keep(item, REDACTED + rest if item.strip() else item, place)
            else:
                is_in_key = secret_texts.leaves_key_open(item)
                is_secret = _is_flag(before) and not item.startswith("-") and self._keys.hides(str(before), item)
                yield self._keep(item, REDACTED if is_secret else self.conceal(item), place)
            before = item

    def _clean_members(self, members: dict[str, Any], at: str) -> Iterator[tuple[str, object]]:
        label = self._keys.find_label(members)
        for key, item in members.items():
            shown = self.conceal(key)  # maps may have addresses as keys
            is_secret = self._keys.hides(key, item)
            if label and flatten(key) in VALUE_KEYS:
                is_secret = self._keys.hides(label, item)
            place = pointer.join(at, shown)
            if is_secret or shown != key:
                self.found.append(place)
            yield shown, REDACTED if is_secret else self.clean(item, place)


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that is given twice: only the last would be looked at, and all of the text kept."""
    unique = dict(members)
    if len(unique) < len(members):
        raise ValueError("duplicate key")
    return unique


def _is_flag(item: object) -> bool:
    return isinstance(item, str) and _FLAG.fullmatch(item) is not None


def _note(at: str) -> BodyProblem:
    return BodyProblem(at, "Redacted", "this looks like a secret and was not kept; report where it is, not what it is")
