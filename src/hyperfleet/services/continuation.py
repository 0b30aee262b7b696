"""Continue tokens: where the next page of a list starts. Opaque to callers, so the format may change in any version.

A token contains a digest of its query; with another query it is an error, because the pages would not fit together. It
is not signed: a forged token only starts the caller's own list elsewhere.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, urlsafe_b64encode
from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from hyperfleet.ports import OrderField, Query, StoredAnswer
from hyperfleet.services.parameters import is_storable


class ContinueToken(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The content of a continue token."""

    version: Literal[1]
    digest: str  # of the query
    since: Annotated[datetime, Meta(tz=True)] | None  # its `updated_since`: a duration counts from the first page on
    key: str | int
    id: str


def encode_continue(query: Query, last: StoredAnswer) -> str:
    """Return the token for the page after `last`."""
    token = ContinueToken(1, _digest(query), query.updated_since, last.key, last.id)
    return urlsafe_b64encode(msgspec.json.encode(token)).rstrip(b"=").decode()


def decode_continue(text: str) -> ContinueToken | None:
    """Decode a token; None: the text is not a token."""
    try:
        encoded = text.encode("ascii")
        token = _decoder.decode(b64decode(encoded + b"=" * (-len(encoded) % 4), altchars=b"-_", validate=True))
    except (ValueError, msgspec.MsgspecError):
        return None
    return token if is_storable(f"{token.key}{token.id}") else None


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
    whole = (replace(query, after=None, limit=0, updated_since=None), has_since)
    return hashlib.blake2b(msgspec.json.encode(whole, order="deterministic"), digest_size=9).hexdigest()


_decoder: Final = msgspec.json.Decoder(ContinueToken)
