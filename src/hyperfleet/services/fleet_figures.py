"""Metrics of the fleet, counted by the store over its indexed tokens, for the tenants that a caller may see.

`api/metrics` reads them at each scrape. They are cached for some seconds, so that several scrapers cost no more than
one. No resource is read, except the oldest ones in some phases, for how long they have been in them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from time import monotonic
from typing import Final

import msgspec
from msgspec import Struct

from hyperfleet.aggregation.availability import READY
from hyperfleet.model.kind import Kinds
from hyperfleet.model.phase import PHASES, TIMED_PHASES, Phase
from hyperfleet.ports import EVERYTHING, AdapterRecord, GroupCount, Query, Scope, Store, TokenTerm
from hyperfleet.services.instruments import OTHER, Labels, MetricFamily, Values
from hyperfleet.services.measures import DEFAULT_ADAPTERS
from hyperfleet.services.policies import PolicyRegistry

_MAX_VALUES: Final = 200  # of a label whose values come from policies and adapters: bounds the series of a scrape
_MAX_SCOPES: Final = 64  # cached; more different sets of tenants scrape too seldom to gain from a cache
_EXAMINED: Final = 500  # resources of a phase that are read for how long they have been in it


def _gauge(name: str, help_: str, *labels: str) -> MetricFamily:
    return MetricFamily(f"hyperfleet_{name}", "gauge", help_, labels)


RESOURCES: Final = _gauge("resources", "Resources by phase.", "kind", "phase")
CONDITIONS: Final = _gauge(
    "resource_conditions", "Resources by the status of each condition.", "kind", "condition", "status"
)
REASONS: Final = _gauge("resource_ready_reasons", "Resources by the reason of their condition Ready.", "kind", "reason")
BLOCKED: Final = _gauge("resources_blocked", "Resources that wait for an adapter.", "kind", "adapter")
STATES: Final = _gauge("resource_adapters", "Resources by adapter and its state.", "kind", "adapter", "state")
STALE: Final = _gauge(
    "resources_stale", "Resources with a stale adapter: it has not reported within its threshold.", "kind", "adapter"
)
FLAPPING: Final = _gauge(
    "resources_flapping", "Resources whose phase or condition changes too often.", "kind", "subject"
)
OLDEST: Final = _gauge(
    "resources_oldest_phase_timestamp_seconds",
    f"When the resource that is in a phase for longest entered it, among the {_EXAMINED} created first.",
    *("kind", "phase"),
)
LAST_SEEN: Final = _gauge(
    "adapter_last_seen_timestamp_seconds", "When the last report of an adapter came in, accepted or not.", "adapter"
)
SKEW: Final = _gauge(
    "adapter_clock_skew_seconds",
    "How far an adapter's clock was ahead of the database's at its last report.",
    "adapter",
)
LATENESS: Final = _gauge(
    "deadline_lag_seconds", "How long the most overdue resource has waited to be recomputed; 0: none is overdue."
)
BACKLOG: Final = _gauge(
    "recomputation_backlog", "Resources not yet recomputed under the policy in force; 0 soon after a change."
)
POSITION: Final = _gauge("log_position", "The position of the last event; its rate is the rate of changes.")
READER_LAG: Final = _gauge(
    "reader_lag_events", "Changes of the log that a named reader, such as the relay, has not read yet.", "reader"
)
MESSAGES: Final = _gauge(
    "subscription_messages",
    "Messages in the queues of the in-process broker; state is waiting, in_flight or dead.",
    *("subscription", "state"),
)
OLDEST_MESSAGE: Final = _gauge(
    "subscription_oldest_timestamp_seconds",
    "The time of the oldest event that a subscription has not acknowledged; absent: there is none.",
    "subscription",
)

# What a caller of some tenants sees, and what only callers of all tenants see.
OF_TENANTS: Final = (RESOURCES, CONDITIONS, REASONS, BLOCKED, STATES, STALE, FLAPPING, OLDEST, LAST_SEEN, SKEW)
OF_ALL: Final = (LATENESS, BACKLOG, POSITION, READER_LAG, MESSAGES, OLDEST_MESSAGE)

Figures = dict[MetricFamily, Values]

# Which tokens are counted for which family, and whether what follows the prefix has two parts: `Type=Status`.
_COUNTED: Final = (
    (CONDITIONS, "c:", True),
    (REASONS, f"r:{READY}=", False),
    (BLOCKED, "b:", False),
    (STATES, "a:", True),
    (STALE, "s:", False),
    (FLAPPING, "f:", False),
)


class FleetFigures:
    """Reads the metrics, and caches them."""

    def __init__(
        self,
        store: Store,
        policies: PolicyRegistry,
        kinds: Kinds,
        keep: timedelta = timedelta(seconds=5),
        max_adapters: int = DEFAULT_ADAPTERS,
    ) -> None:
        """Read from `store`, at most once per `keep`."""
        self._store = store
        self._policies = policies
        self._kinds = kinds
        self._keep = keep.total_seconds()
        self._max_adapters = max_adapters
        self._kept: OrderedDict[Scope, tuple[float, Figures]] = OrderedDict()
        self._reading = asyncio.Lock()

    async def read(self, scope: Scope) -> Figures:
        """Return the metrics of a scope; one task reads at a time, the others take its result from the cache."""
        async with self._reading:
            when, figures = self._kept.get(scope, (0.0, {}))
            if not figures or monotonic() - when > self._keep:
                figures = await self._read(scope)
                self._kept[scope] = monotonic(), figures
            self._kept.move_to_end(scope)
            while len(self._kept) > _MAX_SCOPES:
                self._kept.popitem(last=False)
            return figures

    async def _read(self, scope: Scope) -> Figures:
        figures: Figures = {family: {} for family in OF_TENANTS}
        for kind in self._kinds:
            await self._count_kind(kind.name, scope, figures)
        adapters = _newest(await self._store.adapters(scope), self._max_adapters)
        figures[LAST_SEEN] = {(each.name,): each.last_seen.timestamp() for each in adapters}
        figures[SKEW] = {(each.name,): each.skew.total_seconds() for each in adapters}
        if scope == EVERYTHING:
            figures |= await self._read_upkeep()
        return figures

    async def _count_kind(self, kind: str, scope: Scope, figures: Figures) -> None:
        query = Query(kind, scope)
        phases = {group.values[0]: group.count for group in await self._store.summarize(query, ("p:",))}
        figures[RESOURCES] |= {(kind, phase): phases.get(phase, 0) for phase in PHASES}
        for family, prefix, is_pair in _COUNTED:
            groups = await self._store.summarize(query, (prefix,))
            figures[family] |= _values_of(kind, groups, is_pair=is_pair)
        for phase in TIMED_PHASES:
            if phase in phases and (oldest := await self._find_oldest(kind, scope, phase)) is not None:
                figures[OLDEST][kind, phase] = oldest.timestamp()

    async def _find_oldest(self, kind: str, scope: Scope, phase: Phase) -> datetime | None:
        query = Query(kind, scope, terms=(TokenTerm((f"p:{phase}",)),), order="createdAt", limit=_EXAMINED)
        found = await self._store.find(query)
        return min([_decode(answer.body).status.phase_since for answer in found], default=None)

    async def _read_upkeep(self) -> Figures:
        due = await self._store.due(0)
        late = (due.now - due.next_wake).total_seconds() if due.next_wake is not None else 0.0
        _, backlog = await self._store.outdated(self._policies.rules.policy_version, 1)
        position = await self._store.position()
        upkeep: Figures = {LATENESS: {(): max(late, 0.0)}, BACKLOG: {(): backlog}, POSITION: {(): position}}
        upkeep[READER_LAG] = {(each.name,): max(position - each.position, 0) for each in await self._store.readers()}
        return upkeep | await self._read_queues()

    async def _read_queues(self) -> Figures:
        """Read what is in the queues of the in-process broker; of too many, only the first by name."""
        states = (await self._store.queues.subscriptions())[:_MAX_VALUES]
        messages: Values = {}
        for each in states:
            counts = (("waiting", each.waiting), ("in_flight", each.in_flight), ("dead", each.dead))
            messages |= {(each.subscription.name, state): count or 0 for state, count in counts}
        oldest: Values = {(each.subscription.name,): each.oldest.timestamp() for each in states if each.oldest}
        return {MESSAGES: messages, OLDEST_MESSAGE: oldest}


class _Since(Struct, rename="camel"):
    phase_since: datetime


class _AnswerPart(Struct):
    """The part of a stored answer that is read."""

    status: _Since


_decode: Final = msgspec.json.Decoder(_AnswerPart).decode


def _values_of(kind: str, groups: Sequence[GroupCount], *, is_pair: bool) -> Values:
    """Return counts by labels; of too many, the smallest are summed as `other`."""
    values: Values = {}
    for place, group in enumerate(group for group in groups if group.values[0] is not None):
        text = group.values[0] or ""
        first, _, second = text.rpartition("=")
        known = (first, second) if is_pair else (text,)
        labels: Labels = (kind, *(known if place < _MAX_VALUES else (OTHER,) * len(known)))
        values[labels] = values.get(labels, 0) + group.count
    return values


def _newest(adapters: Iterable[AdapterRecord], limit: int) -> list[AdapterRecord]:
    """Return the adapters that reported last, by name."""
    newest = sorted(adapters, key=lambda each: each.last_seen, reverse=True)[:limit]
    return sorted(newest, key=lambda each: each.name)
