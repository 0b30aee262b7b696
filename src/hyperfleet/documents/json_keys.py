"""Finds keys that an object in JSON has twice. Decoders keep the last one, so it would be unclear which one counts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from hyperfleet.documents import pointer

_KEY_END: Final = b'":'
_SPACE: Final = b" \t\r\n"


def may_repeat_keys(raw: bytes, decoded: object) -> bool:
    """Tell cheaply whether an object in JSON may have a key twice: fewer keys came out than went in. No is certain."""
    return b"\\u" in raw or _count_keys(raw) != _count_keys(msgspec.json.encode(decoded))


def _count_keys(text: bytes) -> int:
    """Count keys, and texts that begin with a colon: these are in both forms. Escaped quotes are left out."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return text.translate(None, _SPACE).count(_KEY_END)


def find_repeated_keys(raw: bytes, at: str = "") -> Iterator[tuple[str, str]]:
    """Yield the pointer of each object with a repeated key, and that key."""
    return _find(json.loads(raw, object_pairs_hook=_Pairs), at)


class _Pairs(dict[str, Any]):
    """An object of JSON that remembers which keys it had twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated = () if len(self) == len(pairs) else tuple(_repeated(pairs))


def _repeated(pairs: list[tuple[str, Any]]) -> list[str]:
    counts = Counter(key for key, _ in pairs)
    return [key for key, count in counts.items() if count > 1]


def _find(value: object, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, _Pairs):
        yield from ((at, key) for key in value.repeated)
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(child, dict | list):
                yield from _find(child, pointer.join(at, key))
