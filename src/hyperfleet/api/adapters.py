"""Adapters over the whole fleet: when each last reported, counts of its reports, and which resources wait for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.adapter_watch import AdapterWatch
from hyperfleet.api.callers import caller_of
from hyperfleet.api.context import Context
from hyperfleet.api.problems import Problem, Refused
from hyperfleet.api.requests import adapter_of, refuse_parameters
from hyperfleet.api.responses import answer_made
from hyperfleet.api.shapes import (
    AdapterDetail,
    AdapterList,
    AdapterSummaryBody,
    BlockedResourceBody,
    LostReportBody,
    ReportCountsBody,
)
from hyperfleet.api.watch import WATCH, is_watch
from hyperfleet.ports import AdapterRecord, Query, Scope
from hyperfleet.services.search import blocked_by, read_group_by

_MAX_BLOCKED: Final = 100  # shown with one adapter: more than a person reads; the filter `blockedBy` lists all
_ACCEPTED: Final = ("aggregated", "stored", "replayed")
_REJECTIONS: Final = ("GenerationAhead",)  # answered with an error; every other count is a discard

Blocks = Mapping[str, int]  # kind → how many


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, relative to the base path."""
    watch = AdapterWatch(context.store, context.tail, partial(_find_all, context))

    async def list_all(request: Request) -> Response:
        """Answer every adapter that has reported or is waited for; with `watch=true`, also changes."""
        refuse_parameters(request, (WATCH,))
        if is_watch(request):
            return await watch.watch(caller_of(request).scope)
        return answer_made(request, AdapterList(await _find_all(context, caller_of(request).scope)))

    async def read(request: Request) -> Response:
        """Answer one adapter, and the first resources that wait for it."""
        name, scope = adapter_of(request), caller_of(request).scope
        for adapter in await _find_all(context, scope):
            if adapter.name == name:
                blocked = await _find_blocked(context, scope, name)
                return answer_made(request, AdapterDetail(**asdict(adapter), blocked=blocked))
        raise Refused(Problem("NotFound", f"adapter {name} has never reported, and no resource waits for it"))

    return [Route("/adapters", list_all, methods=["GET"]), Route("/adapters/{adapter}", read, methods=["GET"])]


async def _find_all(context: Context, scope: Scope) -> tuple[AdapterSummaryBody, ...]:
    """Return all adapters by name, with one query for their records and one per kind for what they block."""
    records = {record.name: record for record in await context.store.adapters(scope)}
    blocks = await _count_blocked(context, scope)
    names = sorted(records.keys() | blocks.keys())
    return tuple([_summarize(name, records.get(name), blocks.get(name, {})) for name in names])


async def _count_blocked(context: Context, scope: Scope) -> dict[str, dict[str, int]]:
    """Count by adapter and kind the resources that wait for it."""
    prefixes = read_group_by("blockedBy").prefixes
    blocks: dict[str, dict[str, int]] = defaultdict(dict)
    for kind in context.kinds:
        for group in await context.store.summarize(Query(kind.name, scope), prefixes):
            (adapter,) = group.values
            if adapter is not None:
                blocks[adapter][kind.name] = group.count
    return blocks


def _summarize(name: str, record: AdapterRecord | None, blocks: Blocks) -> AdapterSummaryBody:
    counts = record.counts if record else {}
    discards = {key: count for key, count in counts.items() if key not in (*_ACCEPTED, *_REJECTIONS) and count}
    summary = AdapterSummaryBody(
        name,
        ReportCountsBody(*(counts.get(key, 0) for key in _ACCEPTED)),
        discards,
        {key: counts[key] for key in _REJECTIONS if counts.get(key)},
        dict(blocks),
    )
    if record is None:
        return summary
    summary = replace(summary, last_seen=record.last_seen, clock_skew_seconds=record.skew.total_seconds())
    if not record.last_discard:
        return summary
    lost = msgspec.json.decode(record.last_discard, type=LostReportBody)
    return replace(summary, last_refusal=lost) if lost.cause in _REJECTIONS else replace(summary, last_discard=lost)


class _Phase(Struct):
    phase: str


class _BlockedView(Struct):
    """The parts of a stored answer that are shown of a blocked resource."""

    id: str
    name: str
    href: str
    status: _Phase


async def _find_blocked(context: Context, scope: Scope, adapter: str) -> tuple[BlockedResourceBody, ...]:
    """Return the resources that wait for an adapter, the worst phase first within each kind."""
    blocked: list[BlockedResourceBody] = []
    for kind in context.kinds:
        query = Query(
            kind.name, scope, terms=(blocked_by(adapter),), order="severity", limit=_MAX_BLOCKED - len(blocked)
        )
        for answer in await context.store.find(query) if query.limit else ():
            view = msgspec.json.decode(answer.body, type=_BlockedView)
            blocked.append(BlockedResourceBody(view.id, view.name, view.status.phase, view.href))
    return tuple(blocked)
