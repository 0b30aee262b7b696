"""Continue tokens: where a list goes on after its last page. Opaque to callers, so they may change with a version.

A token names the query that it belongs to; sent with another one it is an error, because the pages would not fit
together. It is not signed: whoever forges one only chooses where in their own list to start.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, urlsafe_b64encode
from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from hyperfleet.ports import Answer, OrderField, Query
from hyperfleet.services.parameters import is_storable


class Token(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a continue token says."""

    version: Literal[1]
    digest: str  # of the query
    since: Annotated[datetime, Meta(tz=True)] | None  # its `updated_since`: a duration counts from the first page on
    key: str | int
    id: str


def encode_continue(query: Query, last: Answer) -> str:
    """Write the token for the page that comes after `last`."""
    token = Token(1, _digest(query), query.updated_since, last.key, last.id)
    return urlsafe_b64encode(msgspec.json.encode(token)).rstrip(b"=").decode()


def decode_continue(text: str) -> Token | None:
    """Read a token; None: it is none."""
    try:
        encoded = text.encode("ascii")
        token = _decoder.decode(b64decode(encoded + b"=" * (-len(encoded) % 4), altchars=b"-_", validate=True))
    except (ValueError, msgspec.MsgspecError):
        return None
    return token if is_storable(f"{token.key}{token.id}") else None


def resume(query: Query, token: Token, *, is_since_relative: bool) -> Query | None:
    """Return the query from where the token says; None: the token belongs to another query."""
    since = token.since if is_since_relative else query.updated_since
    if token.digest != _digest(query) or token.since != since or not _is_key(token.key, query.order):
        return None
    return replace(query, updated_since=since, after=(token.key, token.id))


def _is_key(key: str | int, order: OrderField) -> bool:
    """Tell whether a key can stand in an order: names are texts, everything else is a number of 64 bits."""
    if isinstance(key, str):
        return order == "name"
    return order != "name" and -(2**63) <= key < 2**63


def _digest(query: Query) -> str:
    """Name a query by everything in it but its page, and the moment that its durations count from."""
    has_since = query.updated_since is not None
    whole = (replace(query, after=None, limit=0, updated_since=None), has_since)
    return hashlib.blake2b(msgspec.json.encode(whole, order="deterministic"), digest_size=9).hexdigest()


_decoder: Final = msgspec.json.Decoder(Token)
