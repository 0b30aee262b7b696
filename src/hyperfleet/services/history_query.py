"""Parses query parameters into a `HistoryQuery`, or returns everything that is wrong with them; and continue tokens.

The API calls `read_history_query`, then `encode_position` for the next page. A token contains the absolute times of the
first page, so that all pages cover one range; with other parameters it is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from hyperfleet.aggregation import BodyProblem
from hyperfleet.documents.wording import quote
from hyperfleet.model.condition import MAX_TYPE, TYPE_PATTERN
from hyperfleet.ports import HistoryQuery, RecordedTransition, Scope
from hyperfleet.services.continuation import PageToken, digest_query, encode_token, read_token
from hyperfleet.services.parameters import Parameters, split_list
from hyperfleet.services.search import DEFAULT_LIMIT, MAX_LIMIT

PARAMETERS: Final = ("subject", "since", "until", "limit", "continue")
MAX_SUBJECTS: Final = 100  # more than a policy has conditions

_Time = Annotated[datetime, Meta(tz=True)]


class _Token(PageToken, frozen=True):
    """The content of the token of a history."""

    since: _Time | None
    until: _Time | None
    position: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    ordinal: Annotated[int, Meta(ge=0, le=2**31 - 1)]


class HistorySearch(Struct, frozen=True):
    """A query, or what is wrong with the parameters; `digest` identifies the query."""

    query: HistoryQuery
    digest: str
    errors: tuple[BodyProblem, ...] = ()


def read_history_query(
    parameters: Mapping[str, Sequence[str]], resource_id: str, scope: Scope, now: datetime
) -> HistorySearch:
    """Parse the parameters of a resource's history."""
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
    query = _resume(given, query, digest)
    return HistorySearch(query, digest, tuple(given.errors))


def encode_position(search: HistorySearch, last: RecordedTransition) -> str:
    """Return the token for the page after `last`."""
    query = search.query
    return encode_token(_Token(1, search.digest, query.since, query.until, last.position, last.ordinal))


def read_subjects(given: Parameters) -> frozenset[str]:
    """Parse `subject`: condition types, or `phase`."""
    words = [word for text in given.all("subject") for word in split_list(text)]
    if len(words) > MAX_SUBJECTS:
        given.refuse("subject", "TooMany", f"subject has {len(words)} items; at most {MAX_SUBJECTS} are allowed")
    for at, word in words[:MAX_SUBJECTS]:
        if len(word) > MAX_TYPE or not TYPE_PATTERN.fullmatch(word):
            given.refuse("subject", "BadFormat", f"found {quote(word)}, expected phase or a condition type", at)
    return frozenset(word for _, word in words)


def _resume(given: Parameters, query: HistoryQuery, digest: str) -> HistoryQuery:
    """Continue at the token's position, if one was given and belongs to this query."""
    token = read_token(given, _decoder, digest)
    if token is None:
        return query
    return replace(query, since=token.since, until=token.until, before=(token.position, token.ordinal))


def _digest(query: HistoryQuery, given: Parameters) -> str:
    """Return a digest of the query, with times as they were written: durations move with the clock."""
    return digest_query((query.resource_id, sorted(query.subjects), given.all("since"), given.all("until")))


_decoder: Final = msgspec.json.Decoder(_Token)
