"""The secret values of one event, and how they are kept out of everything that people read.

Params mark values as secret; logs, traces and dry-runs pass their texts through `Secrets.redact` first. A secret is
found as it is, and in the forms in which templates and manifests write it: base64, JSON, a URL, single lines of a key.
"""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from hyperfleet.services.secret_keys import REDACTED, SecretKeys

MIN_LENGTH: Final = 4  # characters; a shorter secret is part of too many words, and is hidden by its name only
_MIN_LINE: Final = 16  # characters of one line of a longer secret
_KEYS: Final = SecretKeys()
_UNRESERVED: Final = frozenset(f"{string.ascii_letters}{string.digits}-._~".encode())  # as they are in a URL


def is_secret_name(name: str) -> bool:
    """Tell whether a value with this name is a secret: hyperfleetApiToken, DB_PASSWORD."""
    return _KEYS.is_sensitive(name)


class Secrets:
    """Knows secret values and the names of params that hold one."""

    def __init__(self, values: Iterable[tuple[str, Any]] = ()) -> None:
        """Take params by name; a value may be a structure, all texts in which are then secret."""
        self.names: frozenset[str] = frozenset()
        self._texts: tuple[str, ...] = ()
        for name, value in values:
            self._include(name, value)

    def adding(self, name: str, value: Any) -> Secrets:
        """Return these secrets and one more."""
        more = Secrets()
        more.names, more._texts = self.names, self._texts
        more._include(name, value)
        return more

    def redact(self, text: str) -> str:
        """Replace every secret in a text."""
        for each in self._texts:
            if each in text:
                text = text.replace(each, REDACTED)
        return text

    def redact_value(self, value: Any) -> Any:
        """Return a structure without secrets in its texts and keys."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            return {self.redact(str(key)): self.redact_value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.redact_value(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and str(value) in self._texts:
            return REDACTED
        return value

    def redact_variables(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Return variables for people: a secret one is hidden whatever its value is."""
        return {name: REDACTED if name in self.names else self.redact_value(value) for name, value in variables.items()}

    def __repr__(self) -> str:
        """Tell how many there are, nothing more: this may be in a traceback."""
        return f"<{len(self.names)} secrets>"

    def _include(self, name: str, value: Any) -> None:
        self.names |= {name}
        texts = {form for leaf in _leaves(value) for form in _forms(leaf)}
        kept = {each for each in texts if len(each) >= MIN_LENGTH}
        # The longest first: a part of a secret must not be replaced before the whole.
        self._texts = tuple(sorted({*self._texts, *kept}, key=lambda each: (-len(each), each)))


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _forms(text: str) -> Iterator[str]:
    """Yield a secret as it may be written."""
    stripped = text.strip()
    for each in (text, stripped):
        yield each
        yield json.dumps(each)[1:-1]
        yield json.dumps(each, ensure_ascii=False)[1:-1]
        yield _percent_encode(each)
        yield base64.b64encode(each.encode("utf-8", "replace")).decode()
    yield from (line.strip() for line in stripped.splitlines() if len(line.strip()) >= _MIN_LINE)


def _percent_encode(text: str) -> str:
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in text.encode("utf-8", "replace"))
