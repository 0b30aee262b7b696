"""Removes secrets from a text: private keys, tokens, passwords of URLs, and the value behind a sensitive word.

`redaction` calls this for every string of a body. Texts come from anyone, so every pattern takes linear time: what it
repeats is possessive (`++`, `*+`) or bounded, so nothing is tried twice, and a search begins only where a word begins,
so a long word is read once and not once for each of its letters.
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Final

from hyperfleet.services.secret_keys import NAME_KEYS, REDACTED, SecretKeys, flatten

_MARK: Final = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_BLOCK: Final = re.compile(
    rf"-----BEGIN {_MARK}.*?(?:(?P<end>-----END {_MARK})|\Z)", re.DOTALL | re.IGNORECASE | re.ASCII
)
_KEY_END: Final = re.compile(rf"-----END {_MARK}", re.IGNORECASE | re.ASCII)
# Private keys in base64, as in a Kubernetes Secret: what they begin with, without the last, incomplete letter.
_KEY_KINDS: Final = ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "PGP ")
_ENCODED_STARTS: Final = sorted({b64encode(f"-----BEGIN {kind}PRIV".encode()).rstrip(b"=")[:-1] for kind in _KEY_KINDS})
_ENCODED_BEGIN: Final = "LS0tLS1CRUdJTi"
_ENCODED_KEY: Final = re.compile(rf"(?:{b'|'.join(_ENCODED_STARTS).decode()})[\w+/=-]*+", re.ASCII)

_JWT: Final = re.compile(r"(?<![\w-])eyJ[\w-]{8,}+\.eyJ[\w-]{8,}+\.[\w-]*+", re.ASCII)
_BEARER: Final = re.compile(r"(?<=\bbearer )(?=\S*\d)[\w.~+/=-]{16,}", re.IGNORECASE | re.ASCII)
# Up to the last @: a password may have one.
_URL: Final = re.compile(r"((?<=://)[^\s/:@?#]{0,256}:)(?!\[redacted\]@)[^\s/]{1,1024}(?=@)", re.ASCII)
# Tokens that say what they are. `secret_hints` knows how they begin, too.
_TOKEN: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"gh[opsur]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|dckr_pat_[\w-]{16,}"
    r"|gl(?:pat|dt)-[\w.-]{16,}|glsa_\w{16,}"
    r"|A[KS]IA[A-Z0-9]{16}(?![A-Z0-9])|AIza[\w-]{30,}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|sk-(?:ant|proj)-[\w-]{16,}"
    r"|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|hv[sbr]\.[\w-]{20,}|do[opr]_v1_[0-9a-f]{32,}"
    r"|sha256~[\w-]{30,}|k8s-aws-v1\.[\w-]{20,}"
    r")",
    re.ASCII,
)

# `key: `, `"key": `, `\"key\": `, `key = `, `key=`, `key => `; or `--key `, which needs a value of its own.
_KEY: Final = re.compile(
    r"(?<![\w.-])(?:"
    r"(?P<key>[\w.-]++)(?P<quote>\\*+[\"']?+) *+(?P<sign>[:=][:=>]?+)(?P<space>[ \t]*+)"
    r"|(?P<flag>--[A-Za-z][\w.-]*+)[ \t]++(?=[^\s-])"
    r")",
    re.ASCII,
)
_VALUE: Final = re.compile(
    r"\"(?:[^\"\\]|\\.)*+\"?+"
    r"|'[^']*+'?+"
    r"|(?P<escaped>\\++[\"'])(?:(?!(?<!\\)(?P=escaped)).)*+(?P=escaped)?+"  # with as many backslashes at its end
    r"|[|>][-+0-9]{0,2}+[ \t]*+(?:\r?\n[ \t][^\n]*+)++"  # a block of YAML
    r"|[\[{(][^\r\n]*+"
    r"|(?:[^\s&;,\"']|[&;,](?![\s\"']|\Z|[\w.-]*+[=:]))++",  # a comma may be part of it
    re.DOTALL | re.ASCII,
)
_REST_OF_LINE: Final = re.compile(r"[^\r\n\"']++")
_SCHEME: Final = re.compile(r"(?:basic|bearer|token|negotiate|apikey) ++(?=\S)", re.IGNORECASE)
_LONG_SCHEME: Final = re.compile(r"(?:digest|aws4-hmac-sha256) ", re.IGNORECASE)
# `name: DB_PASSWORD, ` before `value: `
_NAMED: Final = re.compile(
    rf"(?<![\w.-])(?:{'|'.join(sorted(NAME_KEYS))})[\"'\\]*+ *+[:=] *+"
    r"[\"'\\]*+([\w.-]{1,64}+)[\"'\\]*+[,;]?\s*+[\"'\\]*+\Z",
    re.IGNORECASE | re.ASCII,
)
_LOOK_BACK: Final = 64  # characters before a sign: `api key: ` is a key of two words

_PASSWORD: Final = re.compile(r"pass|pwd")
_SCALARS: Final = frozenset(("true", "false", "null", "none", "nil", "yes", "no", "<nil>", "<none>"))
# What people write behind `password: ` or `--password` that is no password.
REMARKS: Final = frozenset(
    (
        *("required", "missing", "expired", "invalid", "wrong", "incorrect", "empty", "unset", "none", "null", "nil"),
        *("not", "no", "is", "are", "was", "were", "has", "have", "must", "should", "may", "can", "cannot", "will"),
        *("the", "a", "an", "of", "to", "in", "on", "for", "from", "with", "without", "by", "and", "or", "as", "if"),
        *("unknown", "unauthorized", "forbidden", "denied", "rejected", "revoked", "refused", "failed", "timeout"),
        *("malformed", "mismatch", "unsupported", "unavailable", "unchanged", "rotated", "too", "true", "false"),
        *("yes", "ok", "valid", "hidden", "masked", "redacted", "flag", "option", "argument", "undefined", "eof"),
    )
)
_WORD: Final = re.compile(r"[A-Za-z]++(?=[.,:;!)]*+(?:\s|\Z))", re.ASCII)
# A word with another one behind it: `failed to get token: context deadline exceeded`.
_SENTENCE: Final = re.compile(r"[A-Za-z]{1,15}+:?+ ++[\w\"'(/]", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]++(?=[.,:;!)]*+(?:\s|\Z))", re.ASCII)
_STARS: Final = re.compile(r"\*++(?=[.,:;!)]*+(?:\s|\Z))")


def conceal(text: str, keys: SecretKeys) -> str:
    """Return a text without the secrets that are recognised in texts."""
    if "-----" in text:
        text = _KEY_BLOCK.sub(REDACTED, text)
    if ":" in text or "=" in text or "--" in text:
        text = _conceal_values(text, keys)
    if "://" in text:
        text = _URL.sub(rf"\1{REDACTED}", text)
    if "eyJ" in text or _ENCODED_BEGIN in text:
        text = _JWT.sub(REDACTED, _ENCODED_KEY.sub(REDACTED, text))
    return _BEARER.sub(REDACTED, _TOKEN.sub(REDACTED, text))


def leaves_key_open(text: str) -> bool:
    """Tell whether a private key begins in a text and does not end there."""
    blocks = list(_KEY_BLOCK.finditer(text)) if "-----" in text else []
    return bool(blocks) and blocks[-1]["end"] is None


def find_key_end(text: str) -> int:
    """Return where a private key that began in an earlier text ends in this one; -1 if it goes on."""
    end = _KEY_END.search(text)
    return -1 if end is None else end.end()


def _conceal_values(text: str, keys: SecretKeys) -> str:
    """Replace the value behind each sensitive word."""
    parts, done = [], 0
    for found in _KEY.finditer(text):
        if found.start() < done:  # inside the last value
            continue
        start, end = _find_value(text, found, keys)
        if start < end:
            parts += [text[done:start], REDACTED]
            done = end
    return "".join([*parts, text[done:]]) if parts else text


def _find_value(text: str, found: re.Match[str], keys: SecretKeys) -> tuple[int, int]:
    """Return where the secret behind a word begins and ends; nothing if it has none."""
    key, at = _key_of(text, found), found.end()
    if not keys.is_sensitive(key) or _is_part_of_name(text, found) or text.startswith(REDACTED, at):
        return at, at
    at, value = _match_value(text, at, key)
    if value is None or text.startswith(REDACTED, at):
        return at, at
    has_scheme = at > found.end() or value.re is _REST_OF_LINE
    is_remark = not has_scheme and not found["quote"] and found["sign"] in (":", None) and found["space"] != ""
    if is_remark and _is_remark(text, at, key):
        return at, at
    return (at, value.end()) if _hides(keys, key, text, value) else (at, at)


def _key_of(text: str, found: re.Match[str]) -> str:
    """Return what stands before the sign, with the words before it; for the value of a pair, its name."""
    if found["flag"]:
        return found["flag"]
    if found["key"].lower() == "value":
        named = _NAMED.search(text, max(0, found.start() - 2 * _LOOK_BACK), found.start("key"))
        if named:
            return named[1]
    end = found.end("key")
    return text[max(0, end - _LOOK_BACK) : end]


def _is_part_of_name(text: str, found: re.Match[str]) -> bool:
    """Tell whether a word is a part of `quay.io/external-secrets:v1`, `arn:aws:…:secret:db` or `secret://db`."""
    if found["sign"] != ":" or found["space"] or found["quote"]:
        return False
    before = text[max(0, found.start() - 2) : found.start()]
    if before == "//" or text.startswith("//", found.end()):
        return True
    return before.endswith(("/", ":")) and not _PASSWORD.search(flatten(found["key"]))


def _match_value(text: str, at: int, key: str) -> tuple[int, re.Match[str] | None]:
    """Return where a value begins, behind the scheme of an `Authorization`, and the value."""
    flat = flatten(key)
    if flat.endswith("authorization"):
        if _LONG_SCHEME.match(text, at):
            return at, _REST_OF_LINE.match(text, at)
        scheme = _SCHEME.match(text, at)
        at = scheme.end() if scheme else at
    elif flat.endswith(("cookie", "cookies")) and not text.startswith(('"', "'", "\\", "|", ">"), at):
        return at, _REST_OF_LINE.match(text, at)
    return at, _VALUE.match(text, at)


def _is_remark(text: str, at: int, key: str) -> bool:
    """Tell whether what follows a word is prose. Passwords are words, too, so there only a list of remarks is."""
    word = _WORD.match(text, at)
    if word and word[0].lower() in REMARKS:
        return True
    return not _PASSWORD.search(flatten(key)) and _SENTENCE.match(text, at) is not None


def _hides(keys: SecretKeys, key: str, text: str, value: re.Match[str]) -> bool:
    if _STARS.match(text, value.start()):
        return False
    if number := _NUMBER.match(text, value.start()):
        return keys.hides(key, int(number[0][:18]))
    bare = value[0].strip("\\\"'")
    return bare.lower() not in _SCALARS and keys.hides(key, bare)
