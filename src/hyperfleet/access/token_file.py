"""The document of a token file: a list of tokens with their callers and roles. Every problem has its place.

`tokens` reads it and `hyperfleet token create` adds to it. No message ever contains a token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from hyperfleet.access.claims import MAX_NAME, make_caller
from hyperfleet.documents import DocumentProblem, Places, good_items, load, salvage
from hyperfleet.services.callers import Caller, Role

_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # the characters of a bearer token (RFC 6750)
_MIN_TOKEN: Final = 20  # characters; shorter tokens can be guessed
_STRAY: Final = re.compile(rf"[A-Za-z0-9._~+/-]{{{_MIN_TOKEN},}}=*")  # anything that may be a token
_DIGEST: Final = "^[0-9a-f]{64}$"
# Messages for these keys never quote the value.
_EXPECTED: Final = {
    "/token": "expected a token: text, in quotes",
    "/tokenSha256": "expected the SHA-256 of a token: 64 hexadecimal digits in lower case, in quotes",
}

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]


class TokenEntry(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One token, as `token` or as `tokenSha256`; the second keeps the token itself out of the file."""

    name: Name
    roles: Annotated[frozenset[Role], Meta(min_length=1)]
    tenants: Annotated[frozenset[Name], Meta(min_length=1)]
    adapters: frozenset[Name] = frozenset()
    token: str | None = None
    token_sha256: Annotated[str, Meta(pattern=_DIGEST)] | None = None
    expires: str | None = None


class Ticket(Struct, frozen=True):
    """The caller of a token, and when it expires (seconds since 1970)."""

    caller: Caller
    until: float


class TokenList(Struct, frozen=True):
    """The content of a token file: tickets by the SHA-256 of their tokens, and its problems."""

    tickets: dict[bytes, Ticket]
    problems: tuple[DocumentProblem, ...]


def read_tokens(text: str, file: str, now: float) -> TokenList:
    """Read a token file."""
    loaded = load(text, list[TokenEntry], file=file)
    entries = loaded.value or salvage(loaded.places.document, list[TokenEntry]) or []
    problems = [*map(_conceal, loaded.problems), *_check(entries, loaded.places, now)]
    tickets = {} if loaded.value is None else {digest_of(entry): _ticket(entry) for entry in loaded.value}
    return TokenList(tickets, tuple(sorted(problems)))


def digest_of(entry: TokenEntry) -> bytes:
    """Return the SHA-256 of the token of an entry."""
    return bytes.fromhex(entry.token_sha256) if entry.token_sha256 else sha256((entry.token or "").encode()).digest()


def parse_expiry(text: str) -> datetime:
    """Parse when a token expires: a date (midnight UTC), or a time with an offset."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("expected a day such as 2027-01-31 or a time such as 2027-01-31T12:00:00Z") from None
    if time.tzinfo is None and len(text) > len("2027-01-31"):
        raise ValueError("a time needs its offset: write Z behind it for UTC")
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _ticket(entry: TokenEntry) -> Ticket:
    caller = make_caller(entry.name, entry.roles, entry.adapters, entry.tenants)
    try:
        return Ticket(caller, parse_expiry(entry.expires).timestamp() if entry.expires else float("inf"))
    except ValueError:
        return Ticket(caller, 0.0)  # `_check` reports the problem


def _conceal(problem: DocumentProblem) -> DocumentProblem:
    """Remove anything that may be a token from a problem, also one in the wrong place."""
    message = next((text for end, text in _EXPECTED.items() if problem.place.path.endswith(end)), problem.message)
    return replace(problem, snippet="", message=_STRAY.sub("…", message))


# ── checks beyond types ───────────────────────────────────────────────────────────────────────────────────────


def _check(entries: Sequence[TokenEntry], places: Places, now: float) -> Iterator[DocumentProblem]:
    seen: dict[bytes, int] = {}
    for index, entry in good_items(entries):
        yield from _check_entry(entry, f"/{index}", places, now)
        if entry.token or entry.token_sha256:
            first = seen.setdefault(digest_of(entry), index)
            if first != index:
                message = f"this token is the same as that of entry {first + 1}: its caller would be ambiguous"
                yield DocumentProblem(places.value(f"/{index}"), message, "Duplicate")


def _check_entry(entry: TokenEntry, pointer: str, places: Places, now: float) -> Iterator[DocumentProblem]:
    is_given = [places.is_given(f"{pointer}/{key}") for key in ("token", "tokenSha256")]
    if sum(is_given) != 1:
        message = "an entry has either `tokenSha256` or `token`; `hyperfleet token create` makes one"
        yield DocumentProblem(places.value(pointer), message, "NotAllowed")
    if entry.token is not None and (fault := _find_fault(entry.token)):
        yield DocumentProblem(places.value(f"{pointer}/token"), fault, "NotAllowed")
    if entry.roles and "reporter" in entry.roles and not entry.adapters:
        message = 'a reporter needs `adapters`, the names it reports as; ["*"] means any'
        yield DocumentProblem(places.value(pointer), message, "MissingKey")
    if entry.name and not entry.name.isprintable():
        message = "a name may have printable characters only: it is written to logs, on one line"
        yield DocumentProblem(places.value(f"{pointer}/name"), message, "NotAllowed")
    yield from _check_expiry(entry, places, f"{pointer}/expires", now)


def _find_fault(token: str) -> str:
    if len(token) < _MIN_TOKEN:
        return f"a token has at least {_MIN_TOKEN} characters, or it can be guessed; use `hyperfleet token create`"
    return "" if _TOKEN.fullmatch(token) else "a token may have only letters, digits and - . _ ~ + /"


def _check_expiry(entry: TokenEntry, places: Places, pointer: str, now: float) -> Iterator[DocumentProblem]:
    if entry.expires is None:
        return
    try:
        expires = parse_expiry(entry.expires)
    except ValueError as error:
        yield DocumentProblem(places.value(pointer), str(error), "NotAllowed")
        return
    if expires.timestamp() <= now:
        yield DocumentProblem(places.value(pointer), f"the token of {entry.name} has expired", "Expired", "warning")
