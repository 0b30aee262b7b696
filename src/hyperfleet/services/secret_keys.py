"""Which keys have secrets as values, and which of these values only name a secret.

`redaction` asks this for the keys of a body, `secret_texts` for what stands before a colon or an equals sign in a text,
so both follow the same table (docs/security.md).
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

REDACTED: Final = "[redacted]"

# A key is sensitive if it is, or ends with, one of these: `dbPassword` and `API-TOKEN` are, `secretName` and
# `tokenExpiresAt` are not.
WORDS: Final = (
    *("password", "passwd", "passphrase", "passcode", "passwordhash", "dbpass", "userpass", "pgpass"),
    *("token", "secret", "kubeconfig", "credential", "creds", "cookie", "authorization", "bearer"),
    *("apikey", "accesskey", "privatekey", "privkey", "secretkey", "signingkey", "encryptionkey", "clientkey"),
    *("serverkey", "tlskey", "sslkey", "sharedkey", "accountkey", "masterkey", "authkey", "sessionkey"),
    *("presharedkey", "connectionstring", "dockerconfigjson", "dockercfg"),
)
# What may follow a word: `privateKeyPem`, `credentialsJson`, `tokenBase64`.
FORMS: Final = (
    *("pem", "der", "data", "value", "values", "string", "plain", "plaintext", "base64", "b64", "raw", "json", "yaml"),
    "binary",
)
# Sensitive only as a word of their own: `pass` and `dbPass` are, `bypass` is not.
SHORT_WORDS: Final = ("pass", "pwd")

# `{"name": "DB_PASSWORD", "value": …}`. Every key of values ends with `value` or `values`: the quick test relies on it.
NAME_KEYS: Final = frozenset(
    ("name", "key", "variable", "var", "env", "envvar", "header", "field", "parameter", "param", "option", "flag")
)
VALUE_KEYS: Final = frozenset(
    ("value", "values", "stringvalue", "defaultvalue", "currentvalue", "newvalue", "oldvalue")
)

IGNORED: Final = "-_. "  # in keys
_LETTERS: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase, IGNORED)
_MAX_CACHED: Final = 64  # characters of a key: the cache then stays below a megabyte
_MAX_NAME: Final = 253
_TAIL: Final = 2  # letters at the end that exclude most keys
_MAX_SHORT: Final = 12  # characters of `dbPass` with digits behind it

_ANYTHING: Final = (str, int, float, dict, list)
_NO_COUNT: Final = (str, dict, list)  # `tokens: 3` is a number of tokens, `pass: 3` one of tests
_NOTHING: Final = ()

_TITLES: Final = "|".join(map(str.title, SHORT_WORDS))
_SHORT: Final = re.compile(
    rf"(?:(?<![A-Za-z])(?i:{'|'.join(SHORT_WORDS)})|(?<=[A-Za-z])(?:{_TITLES}))[-_. 0-9]*\Z", re.ASCII
)

# `kubeconfigSecret` holds the name of a Secret if it looks like one: what such a Secret contains is never a DNS name.
HOLDERS: Final = (
    *("kubeconfig", "tls", "pull", "cert", "certificate", "credential", "credentials", "sshkey", "bootstrapdata"),
    "userdata",
)
_NAMED: Final = tuple([f"{holder}secret" for holder in HOLDERS])
# A DNS name, perhaps with a namespace. 32 characters without a dash are a digest or a key rather than a name.
_PART: Final = r"[a-z0-9]{1,31}"
_DNS: Final = rf"(?:{_PART}[-.]{{1,3}})*+{_PART}"
_NAME: Final = re.compile(rf"{_DNS}(?:/{_DNS})?")
_PATH: Final = re.compile(r"(?:~|\.{1,2})?(?:/[A-Za-z0-9_.-]{1,31})++/?")
# The members of a reference to a Kubernetes object.
_REFERENCE: Final = frozenset(
    ("name", "namespace", "key", "kind", "apiVersion", "group", "optional", "uid", "version", "resourceVersion")
)
_WRAPPERS: Final = frozenset(("valueFrom", "secretKeyRef", "configMapKeyRef", "secretRef"))
_MEMBER: Final = re.compile(r"[\w./-]{1,64}", re.ASCII)
_DATA_KEYS: Final = frozenset(("value", "data", "config", "username", "user", "tls.crt", "ca.crt", "key"))


class SecretKeys:
    """The sensitive keys: the built-in ones and those of the settings."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        """Know the built-in words and `more`."""
        self.words = (*WORDS, *(word for word in map(flatten, more) if word))
        self.endings = {
            word + plural + form: _NO_COUNT if plural and not form else _ANYTHING
            for word in self.words
            for plural in ("", "s")
            for form in ("", *FORMS)
        }
        self._lengths = sorted({len(ending) for ending in self.endings})
        self._tails = frozenset(ending[-_TAIL:] for ending in self.endings)
        self._cached = lru_cache(maxsize=4096)(self._find_types)  # a fleet has few different keys

    def is_sensitive(self, key: object) -> bool:
        """Tell whether the values of a key must not be shown."""
        return isinstance(key, str) and bool(self._types(key))

    def hides(self, key: str, value: object) -> bool:
        """Tell whether the value of a key is a secret. Yes, no, nothing and names of secrets are none."""
        if isinstance(value, bool) or not isinstance(value, self._types(key)):
            return False
        return bool(value or value == 0) and value != REDACTED and not self._is_reference(key, value)

    def find_label(self, members: Mapping[str, Any]) -> str:
        """Return the sensitive name in `{"name": "DB_PASSWORD", "value": …}`, if there is one."""
        if not any(flatten(key) in VALUE_KEYS for key in members):
            return ""
        names = (name for key, name in members.items() if flatten(key) in NAME_KEYS)
        return next((name for name in names if self.is_sensitive(name)), "")

    def _types(self, key: str) -> tuple[type, ...]:
        """Return the types of values that are secrets under a key; results for long keys are not cached."""
        return self._cached(key) if len(key) <= _MAX_CACHED else self._find_types(key)

    def _find_types(self, key: str) -> tuple[type, ...]:
        flat = flatten(key[-_MAX_CACHED - self._lengths[-1] :])
        for text in dict.fromkeys((flat, flat.rstrip(string.digits))):  # `password1`
            if text[-_TAIL:] in self._tails:
                for length in self._lengths:
                    if text[-length:] in self.endings:
                        return self.endings[text[-length:]]
        short = _SHORT.search(key[-_MAX_SHORT:])
        if short is None:
            return _NOTHING
        return _NO_COUNT if short[0].lower().startswith("pass") else _ANYTHING

    def _is_reference(self, key: str, value: object) -> bool:
        """Tell whether a value under a sensitive key only says where the secret is."""
        if isinstance(value, list):
            return all(self._is_reference(key, item) for item in value if item != REDACTED)
        if isinstance(value, dict):
            return self._is_object_reference(value, is_wrapped=False)
        if not isinstance(value, str) or len(value) > _MAX_NAME:
            return False
        flat = flatten(key).rstrip(string.digits).removesuffix("s")
        if flat.endswith("kubeconfig"):
            return _PATH.fullmatch(value) is not None
        return flat.endswith(_NAMED) and _NAME.fullmatch(value) is not None

    def _is_object_reference(self, value: Mapping[str, Any], *, is_wrapped: bool) -> bool:
        """Tell whether an object is `{"name": …, "key": …}`; the key must be that of an entry, not a key itself."""
        (first, *others) = value or [""]
        if not others and first in _WRAPPERS:
            inner = value[first]
            return isinstance(inner, dict) and self._is_object_reference(inner, is_wrapped=True)
        if not value.keys() <= _REFERENCE or not _is_name(value.get("name")):
            return False
        entry = value.get("key", "")
        is_entry = isinstance(entry, str) and (
            not entry or is_wrapped or entry in _DATA_KEYS or self.is_sensitive(entry)
        )
        return is_entry and all(isinstance(each, bool) or _is_member(each) for each in value.values())


def flatten(key: str) -> str:
    """Return a key in the form that is compared."""
    return key.translate(_LETTERS)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_NAME and _NAME.fullmatch(value) is not None


def _is_member(value: object) -> bool:
    return isinstance(value, str) and (_MEMBER.fullmatch(value) is not None or _is_name(value))
