"""Looking through the fleet for failing adapters: reads the records that can have any, a page at a time.

Called by the API. It costs one indexed query and one read for every hundred such resources; the healthy ones cost
nothing. How many are looked at is bounded, the worst first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.ports import AdapterRecord, Query, Record, Store
from hyperfleet.services.causes import Failure, failing, find_failures
from hyperfleet.services.workspace import Rules

MOST_RESOURCES: Final = 5_000

_PAGE: Final = 100
_MOST_ADAPTERS: Final = 5_000  # names in one query; a fleet has dozens, but whoever reports may invent some


class Survey(Struct, frozen=True):
    """What was found. `is_complete`: every resource that can have a failing adapter was looked at."""

    failures: tuple[Failure, ...]
    examined: int
    is_complete: bool


async def survey_failures(
    store: Store, rules: Rules, queries: Sequence[Query], *, most: int = MOST_RESOURCES, page: int = _PAGE
) -> Survey:
    """Find every failing adapter of the resources of some queries; stop after `most` resources, give or take a page."""
    failures: list[Failure] = []
    seen: set[str] = set()  # what changes meanwhile may come on two pages
    for query in queries:
        names = _newest(await store.adapters(query.scope))
        wanted = replace(failing(query, names), order="severity", limit=page)
        while found := await store.find(wanted):
            if len(seen) >= most:
                return Survey(tuple(failures), len(seen), is_complete=False)
            new = [answer.id for answer in found if answer.id not in seen]
            seen.update(new)
            records = await store.read_records(new, query.scope)
            failures += await asyncio.to_thread(_find_all, records, rules)
            wanted = replace(wanted, after=(found[-1].key, found[-1].id))
    return Survey(tuple(failures), len(seen), is_complete=True)


def _newest(adapters: Iterable[AdapterRecord]) -> list[str]:
    """Return the names of adapters, if there are too many those that were heard of last."""
    return [each.name for each in sorted(adapters, key=lambda each: each.last_seen, reverse=True)[:_MOST_ADAPTERS]]


def _find_all(records: Sequence[Record], rules: Rules) -> list[Failure]:
    policies = rules.policies
    return [each for record in records for each in find_failures(record, policies.select(record.resource))]
