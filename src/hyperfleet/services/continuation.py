"""Continue tokens: where the next page starts. Opaque to callers, so the format may change in any version.

A token contains a digest of its query; with another query it is an error, because the pages would not fit together. It
is not signed: a forged token only starts the caller's own list elsewhere.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, urlsafe_b64encode
from datetime import datetime
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from hyperfleet.ports import OrderField, Query, StoredAnswer
from hyperfleet.services.parameters import Parameters, is_storable

MALFORMED: Final = "this is not a continue token; send the value of continue from the last page unchanged"
OTHER_QUERY: Final = "this continue token belongs to another query"

T = TypeVar("T", bound="PageToken")


class PageToken(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What every continue token begins with."""

    version: Literal[1]
    digest: str  # of the query


# ── any pages ────────────────────────────────────────────────────────────────────────────────────────────────────────


def encode_token(token: PageToken) -> str:
    """Write a token."""
    return urlsafe_b64encode(msgspec.json.encode(token)).rstrip(b"=").decode()


def decode_token(text: str, decoder: msgspec.json.Decoder[T]) -> T | None:
    """Read a token; None: the text is not a token."""
    try:
        encoded = text.encode("ascii")
        return decoder.decode(b64decode(encoded + b"=" * (-len(encoded) % 4), altchars=b"-_", validate=True))
    except (ValueError, msgspec.MsgspecError):
        return None


def read_token(given: Parameters, decoder: msgspec.json.Decoder[T], digest: str) -> T | None:
    """Return the token in `continue`, if there is one; refuse one that does not belong to this query."""
    text = given.one("continue")
    if text is None:
        return None
    token = decode_token(text, decoder)
    if token is None:
        given.refuse("continue", "BadFormat", MALFORMED)
    elif token.digest != digest:
        given.refuse("continue", "ContinueMismatch", OTHER_QUERY)
    else:
        return token
    return None


def digest_query(asked: object) -> str:
    """Return a digest of what was asked for."""
    return hashlib.blake2b(msgspec.json.encode(asked, order="deterministic"), digest_size=9).hexdigest()


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class ContinueToken(PageToken, frozen=True):
    """The content of the token of a list."""

    since: Annotated[datetime, Meta(tz=True)] | None  # its `updated_since`: a duration counts from the first page on
    key: str | int
    id: str


def encode_continue(query: Query, last: StoredAnswer) -> str:
    """Return the token for the page after `last`."""
    return encode_token(ContinueToken(1, _digest(query), query.updated_since, last.key, last.id))


def decode_continue(text: str) -> ContinueToken | None:
    """Decode a token; None: the text is not a token."""
    token = decode_token(text, _decoder)
    return token if token is not None and is_storable(f"{token.key}{token.id}") else None


def resume(query: Query, token: ContinueToken, *, is_since_relative: bool) -> Query | None:
    """Return the query from the token's position on; None: the token belongs to another query."""
    since = token.since if is_since_relative else query.updated_since
    if token.digest != _digest(query) or token.since != since or not _is_key(token.key, query.order):
        return None
    return replace(query, updated_since=since, after=(token.key, token.id))


def _is_key(key: str | int, order: OrderField) -> bool:
    """Tell whether a key fits an order: names are strings, everything else is a 64-bit number."""
    if isinstance(key, str):
        return order == "name"
    return order != "name" and -(2**63) <= key < 2**63


def _digest(query: Query) -> str:
    """Return a digest of a query without its page and without the time that durations count from."""
    has_since = query.updated_since is not None
    return digest_query((replace(query, after=None, limit=0, updated_since=None), has_since))


_decoder: Final = msgspec.json.Decoder(ContinueToken)
