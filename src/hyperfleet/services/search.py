"""Parses the query parameters of a list into a `Query`, or returns everything that is wrong with them.

The API calls `read_query` for lists and summaries, `read_group_by` for summaries, `read_fields` and `mask_answer` for
field masks, `encode_continue` for the next page. `filters` documents the filters.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, get_args

from msgspec import Struct

from hyperfleet.aggregation import BodyProblem
from hyperfleet.documents.wording import quote, suggest
from hyperfleet.ports import OrderField, Query, Scope
from hyperfleet.services.continuation import MALFORMED, OTHER_QUERY, decode_continue, encode_continue, resume
from hyperfleet.services.field_masks import FieldMask, mask_answer, read_fields
from hyperfleet.services.filters import FILTERS, GroupBy, blocked_by, read_group_by, read_terms
from hyperfleet.services.parameters import Parameters

__all__ = [
    "PARAMETERS",
    "READ_ELSEWHERE",
    "FieldMask",
    "GroupBy",
    "SearchResult",
    "blocked_by",
    "encode_continue",
    "mask_answer",
    "read_fields",
    "read_group_by",
    "read_query",
]

PARAMETERS: Final = (*FILTERS, "updatedSince", "orderBy", "limit", "continue", "page", "size")
READ_ELSEWHERE: Final = frozenset({"fields"})
MAX_LIMIT: Final = 1_000  # a page of a few megabytes
DEFAULT_LIMIT: Final = 100

# `lastUpdated` is the name that this time has in a status; `updatedAt` is another one in the metadata.
ORDERS: Final[Mapping[str, OrderField]] = {
    **{order: order for order in get_args(OrderField)},
    "lastUpdated": "updatedAt",
}
_ORDER: Final = re.compile(r"(-?)(\w+)(?:\s+(asc|desc))?")


class SearchResult(Struct, frozen=True):
    """A query, or the errors of the parameters; the pointer of an error is the name of its parameter."""

    query: Query | None
    errors: tuple[BodyProblem, ...] = ()
    is_paged: bool = False  # by page and size: then the answer has the total


def read_query(
    parameters: Mapping[str, Sequence[str]],
    kind: str,
    scope: Scope,
    parent_id: str | None,
    now: datetime,
    *,
    read_elsewhere: Collection[str] = READ_ELSEWHERE,
    without: Collection[str] = (),
) -> SearchResult:
    """Parse the parameters of a list; those `read_elsewhere` are skipped, those `without` are unknown."""
    given = Parameters({name: values for name, values in parameters.items() if name not in read_elsewhere})
    given.refuse_unknown([name for name in (*PARAMETERS, *sorted(read_elsewhere)) if name not in without])
    terms = read_terms(given)
    order, is_descending = _read_order(given)
    page = _read_page(given)
    query = Query(
        kind=kind,
        scope=scope,
        parent_id=parent_id,
        terms=terms,
        updated_since=given.instant("updatedSince", now),
        order=order,
        is_descending=is_descending,
        offset=page.offset,
        limit=page.limit,
    )
    query = _resume(given, query)
    errors = tuple(given.errors)
    return SearchResult(None if errors else query, errors, page.is_numbered)


# ── order, page ──────────────────────────────────────────────────────────────────────────────────────────────────


def _read_order(given: Parameters) -> tuple[OrderField, bool]:
    text = given.one("orderBy")
    if text is None:
        return "name", False
    match = _ORDER.fullmatch(text)
    minus, field, direction = match.groups() if match else ("", text, None)
    if field in ORDERS and not (minus and direction):
        return ORDERS[field], bool(minus) or direction == "desc"
    known = ", ".join(ORDERS)
    guess = suggest(field, tuple(ORDERS))
    message = f"orderBy is one of {known}, with - before it or desc behind it to reverse it, not {quote(text)}{guess}"
    given.refuse("orderBy", "NotAllowed", message)
    return "name", False


class _Page(Struct, frozen=True):
    """The requested part of a list."""

    offset: int
    limit: int
    is_numbered: bool


def _read_page(given: Parameters) -> _Page:
    page, size = given.number("page"), given.number("size", MAX_LIMIT)
    limit = given.number("limit", MAX_LIMIT)
    numbered = [name for name in ("page", "size") if given.all(name)]
    if numbered and (given.all("limit") or given.all("continue")):
        for name in numbered:
            given.refuse(name, "Exclusive", f"{name} cannot be combined with limit or continue")
    if numbered:
        size = size or DEFAULT_LIMIT
        return _Page(((page or 1) - 1) * size, size, True)
    return _Page(0, limit or DEFAULT_LIMIT, False)


def _resume(given: Parameters, query: Query) -> Query:
    """Continue at the token's position, if one was given and belongs to this query."""
    text = given.one("continue")
    token = decode_continue(text) if text else None
    if text and token is None:
        given.refuse("continue", "BadFormat", MALFORMED)
    if token is None or given.errors:
        return query
    resumed = resume(query, token, is_since_relative=given.is_relative("updatedSince"))
    if resumed is None:
        given.refuse("continue", "ContinueMismatch", OTHER_QUERY)
    return resumed or query
