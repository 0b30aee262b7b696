"""Searches the fleet for failing adapters: reads the records that may have any, a page at a time.

Called by the API. It costs one indexed query and one read for every hundred such resources; healthy ones cost nothing.
The number of resources is bounded; the worst come first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.ports import AdapterRecord, Query, Record, Store
from hyperfleet.services.failures import Failure, find_failures, narrow_to_failing
from hyperfleet.services.workspace import Rules

MAX_RESOURCES: Final = 5_000  # enough to see which causes are common; the rest would only add to their counts

_PAGE: Final = 100  # records decoded together in a thread, so that a page takes milliseconds
_MAX_ADAPTERS: Final = 5_000  # names in one query; a fleet has dozens, but callers can invent names


class FoundFailures(Struct, frozen=True):
    """The result. `is_complete`: every resource that may have a failing adapter was examined."""

    failures: tuple[Failure, ...]
    examined: int
    is_complete: bool


async def search_failures(
    store: Store, rules: Rules, queries: Sequence[Query], *, limit: int = MAX_RESOURCES, page: int = _PAGE
) -> FoundFailures:
    """Find every failing adapter of the resources of some queries; stop after about `limit` resources."""
    failures: list[Failure] = []
    seen: set[str] = set()  # a resource that changes meanwhile may be on two pages
    for query in queries:
        names = _newest(await store.adapters(query.scope))
        wanted = replace(narrow_to_failing(query, names), order="severity", limit=page)
        while found := await store.find(wanted):
            if len(seen) >= limit:
                return FoundFailures(tuple(failures), len(seen), is_complete=False)
            new = [answer.id for answer in found if answer.id not in seen]
            seen.update(new)
            records = await store.read_records(new, query.scope)
            failures += await asyncio.to_thread(_find_all, records, rules)
            wanted = replace(wanted, after=(found[-1].key, found[-1].id))
    return FoundFailures(tuple(failures), len(seen), is_complete=True)


def _newest(adapters: Iterable[AdapterRecord]) -> list[str]:
    """Return the names of adapters; of too many, those that reported last."""
    return [each.name for each in sorted(adapters, key=lambda each: each.last_seen, reverse=True)[:_MAX_ADAPTERS]]


def _find_all(records: Sequence[Record], rules: Rules) -> list[Failure]:
    policies = rules.policies
    return [each for record in records for each in find_failures(record, policies.select(record.resource))]
