"""From query parameters to a `HistoryQuery`, or to everything that is wrong with them; and its continue tokens.

The API calls `read_history_query`, then `encode_position` for the next page. A token keeps the times that durations
came to on the first page, so that all pages are of one span; sent with other parameters it is an error.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from hyperfleet.aggregation import BodyProblem
from hyperfleet.documents.wording import quote
from hyperfleet.model.condition import MAX_TYPE, TYPE_PATTERN
from hyperfleet.ports import HistoryQuery, Recorded, Scope
from hyperfleet.services.parameters import Parameters, split_list
from hyperfleet.services.search import DEFAULT_LIMIT, MAX_LIMIT

PARAMETERS: Final = ("subject", "since", "until", "limit", "continue")
MAX_SUBJECTS: Final = 100

_Time = Annotated[datetime, Meta(tz=True)]


class _Token(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a continue token says."""

    version: Literal[1]
    digest: str  # of the parameters
    since: _Time | None
    until: _Time | None
    position: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    ordinal: Annotated[int, Meta(ge=0, le=2**31 - 1)]


class HistorySearch(Struct, frozen=True):
    """A query, or what is wrong with the parameters; `digest` names what they ask for."""

    query: HistoryQuery
    digest: str
    errors: tuple[BodyProblem, ...] = ()


def read_history_query(
    parameters: Mapping[str, Sequence[str]], resource_id: str, scope: Scope, now: datetime
) -> HistorySearch:
    """Read the parameters of a resource's history."""
    given = Parameters(parameters)
    given.refuse_unknown(PARAMETERS)
    query = HistoryQuery(
        resource_id,
        scope,
        read_subjects(given),
        given.instant("since", now),
        given.instant("until", now),
        limit=given.number("limit", MAX_LIMIT) or DEFAULT_LIMIT,
    )
    digest = _digest(query, given)
    query = _go_on(given, query, digest)
    return HistorySearch(query, digest, tuple(given.errors))


def encode_position(search: HistorySearch, last: Recorded) -> str:
    """Write the token for the page that comes after `last`."""
    query = search.query
    token = _Token(1, search.digest, query.since, query.until, last.position, last.ordinal)
    return urlsafe_b64encode(msgspec.json.encode(token)).rstrip(b"=").decode()


def read_subjects(given: Parameters) -> frozenset[str]:
    """Read `subject`: which conditions, or `phase`."""
    words = [word for text in given.all("subject") for word in split_list(text)]
    if len(words) > MAX_SUBJECTS:
        given.refuse("subject", "TooMany", f"subject has {len(words)} items; at most {MAX_SUBJECTS} are allowed")
    for at, word in words[:MAX_SUBJECTS]:
        if len(word) > MAX_TYPE or not TYPE_PATTERN.fullmatch(word):
            given.refuse("subject", "BadFormat", f"found {quote(word)}, expected phase or a condition type", at)
    return frozenset(word for _, word in words)


def _go_on(given: Parameters, query: HistoryQuery, digest: str) -> HistoryQuery:
    """Go on where a continue token says, if one was given and belongs to this query."""
    text = given.one("continue")
    if text is None:
        return query
    token = _decode(text)
    if token is None:
        message = "this is not a continue token; send what the last page gave as continue, unchanged"
        given.refuse("continue", "BadFormat", message)
    elif token.digest != digest:
        given.refuse("continue", "ContinueMismatch", "this continue token belongs to another query")
    else:
        return replace(query, since=token.since, until=token.until, before=(token.position, token.ordinal))
    return query


def _decode(text: str) -> _Token | None:
    try:
        encoded = text.encode("ascii")
        return _decoder.decode(b64decode(encoded + b"=" * (-len(encoded) % 4), altchars=b"-_", validate=True))
    except (ValueError, msgspec.MsgspecError):
        return None


def _digest(query: HistoryQuery, given: Parameters) -> str:
    """Name what is asked for: times as they were written, because durations move with the clock."""
    asked = (query.resource_id, sorted(query.subjects), given.all("since"), given.all("until"))
    return hashlib.blake2b(msgspec.json.encode(asked), digest_size=9).hexdigest()


_decoder: Final = msgspec.json.Decoder(_Token)
