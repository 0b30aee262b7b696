"""Lists in the compat API: reads `search`, `order` and `kind`, and finds one page.

If the index of the store can answer the search, the store finds and counts. Otherwise each resource that the index does
not rule out is checked and sorted here; the number of these is limited.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request

from hyperfleet.api.compat.paging import PageRequest, read_page
from hyperfleet.api.compat.problems import BAD_REQUEST, INVALID, CompatRefused, FieldError
from hyperfleet.api.compat.resource_collections import ResourceCollection
from hyperfleet.api.compat.search import COLUMNS, Search, compile_search
from hyperfleet.api.compat.shapes import ResourceShape, shape_resource
from hyperfleet.model.kind import Kind, Kinds
from hyperfleet.ports import OrderField, Query, Record, Scope

MAX_EXAMINED: Final = 20_000  # resources per request; a few seconds of work

_Match: TypeAlias = tuple[ResourceShape, Record]

_BATCH: Final = 500  # records per read: some MB of memory
_ORDER: Final = re.compile(r"([a-z_][a-z0-9_]*)(?: +(asc|desc))?")
_INDEXED: Final[dict[str, OrderField]] = {"created_time": "createdAt", "name": "name"}


class Order(Struct, frozen=True):
    """A column to sort by."""

    column: str
    is_descending: bool = False


class Listing(Struct, frozen=True):
    """The parameters of a list."""

    page: PageRequest
    search: Search
    orders: tuple[Order, ...]
    kinds: tuple[Kind, ...]

    @property
    def is_indexed(self) -> bool:
        """Return whether the store can find the page by its index."""
        is_sorted = len(self.orders) == 1 and self.orders[0].column in _INDEXED
        return self.search.is_exact and is_sorted and len(self.kinds) == 1


class FoundPage(Struct, frozen=True):
    """One page and the total count."""

    records: tuple[Record, ...]
    total: int


# ── parameters ───────────────────────────────────────────────────────────────────────────────────────────────────────


def read_listing(request: Request, collection: ResourceCollection) -> Listing:
    """Read the parameters of a list; unknown ones are ignored, as in the original."""
    page = read_page(request)
    if collection.kind is not None:
        _refuse_references(request, collection.kind)
    search = compile_search(request.query_params.get("search", ""))
    return Listing(page, search, _read_orders(request), _read_kinds(request, collection))


def _read_orders(request: Request) -> tuple[Order, ...]:
    texts = [text.strip() for value in request.query_params.getlist("order") for text in value.split(",")]
    orders = [_read_order(text) for text in texts if text]
    return tuple(orders) or (Order("created_time", is_descending=True),)


def _read_order(text: str) -> Order:
    match = _ORDER.fullmatch(text)
    if match is None or match[1] not in COLUMNS:
        raise CompatRefused(BAD_REQUEST, f"order: '{text[:80]}' is not a column, optionally followed by asc or desc")
    return Order(match[1], match[2] == "desc")


def _read_kinds(request: Request, collection: ResourceCollection) -> tuple[Kind, ...]:
    if collection.kind is not None:
        return (collection.kind,)
    name = request.query_params.get("kind", "").strip()
    kind = collection.context.kinds.get(name)
    if name and kind is None:
        message = f"unknown kind '{name[:80]}'"
        raise CompatRefused(INVALID, message, (FieldError("kind", message, "enum"),))
    return (kind,) if kind else tuple(collection.context.kinds)


def _refuse_references(request: Request, kind: Kind) -> None:
    """Refuse filters by reference: both parameters are needed, and no kind has references."""
    type_, target = (request.query_params.get(name, "").strip() for name in ("ref_type", "ref_target_id"))
    if bool(type_) != bool(target):
        missing = "ref_target_id" if type_ else "ref_type"
        message = "ref_type and ref_target_id must be given together"
        raise CompatRefused(INVALID, message, (FieldError(missing, message, "required"),))
    if type_:
        message = f"unknown reference type '{type_[:80]}' of {kind.name}"
        raise CompatRefused(INVALID, message, (FieldError("ref_type", message, "enum"),))


# ── search ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def find_page(listing: Listing, collection: ResourceCollection, parent_id: str | None, scope: Scope) -> FoundPage:
    """Find one page of matching resources within the scope."""
    queries = [Query(kind.name, scope, parent_id, listing.search.terms) for kind in listing.kinds]
    if listing.is_indexed:
        return await _find_indexed(listing, collection, queries[0])
    return await _find_examined(listing, collection, queries)


async def _find_indexed(listing: Listing, collection: ResourceCollection, query: Query) -> FoundPage:
    (order,), store = listing.orders, collection.context.store
    query = replace(
        query,
        order=_INDEXED[order.column],
        is_descending=order.is_descending,
        offset=listing.page.offset,
        limit=listing.page.size,
    )
    ids = [answer.id for answer in await store.find(query)]
    records = {record.resource.id: record for record in await store.read_records(ids, query.scope)}
    return FoundPage(tuple(records[id_] for id_ in ids if id_ in records), await store.count(query))


async def _find_examined(listing: Listing, collection: ResourceCollection, queries: list[Query]) -> FoundPage:
    matching: list[_Match] = []
    examined = 0
    for query in queries:
        async for records in _walk(query, collection):
            examined += len(records)
            if examined > MAX_EXAMINED:
                message = (
                    f"more than {MAX_EXAMINED} resources would have to be checked; search by a label or a name as well"
                )
                raise CompatRefused(BAD_REQUEST, message)
            matching += await asyncio.to_thread(_examine, records, listing.search, collection.context.kinds)
    _sort(matching, listing.orders)
    start = listing.page.offset
    records = tuple(record for _, record in matching[start : start + listing.page.size])
    return FoundPage(records, len(matching))


async def _walk(query: Query, collection: ResourceCollection) -> AsyncIterator[tuple[Record, ...]]:
    """Yield the resources of a query in batches."""
    store, query = collection.context.store, replace(query, order="createdAt", limit=_BATCH)
    while found := await store.find(query):
        yield await store.read_records([answer.id for answer in found], query.scope)
        query = replace(query, after=(found[-1].key, found[-1].id))


def _examine(records: tuple[Record, ...], search: Search, kinds: Kinds) -> list[_Match]:
    """Return the matching resources, as shown and as stored."""
    shown = [(shape_resource(record, kinds), record) for record in records]
    return [match for match in shown if search.holds(match[0])]


def _sort(matching: list[_Match], orders: tuple[Order, ...]) -> None:
    """Sort by each column, the last one first, so that the first one decides; absent values come last, as in SQL."""
    matching.sort(key=lambda pair: pair[0].id)
    for order in reversed(orders):
        read = COLUMNS[order.column]

        def key(pair: _Match, read: Any = read) -> tuple[bool, Any]:
            value = read(pair[0])
            return value is None, value if value is not None else 0

        matching.sort(key=key, reverse=order.is_descending)
