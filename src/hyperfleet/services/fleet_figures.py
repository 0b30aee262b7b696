"""How the fleet is, in figures: counted by the store over its indexed tokens, for whoever may see which tenants.

`api/metrics` asks for this at each scrape; what was found is kept for some seconds, so that several scrapers cost no
more than one. No resource is looked at one by one, except the first few that are in trouble, for how long they are.
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
from hyperfleet.ports import EVERYTHING, AdapterRecord, Group, Query, Scope, Store, Term
from hyperfleet.services.instruments import OTHER, Family, Labels, Values
from hyperfleet.services.measures import DEFAULT_ADAPTERS
from hyperfleet.services.policies import PolicyBook

_MOST_VALUES: Final = 200  # of one label that policies and adapters fill
_MOST_SCOPES: Final = 64  # whose figures are kept
_LOOKED_AT: Final = 500  # resources of a phase that are asked for how long they are in it


def _gauge(name: str, help_: str, *labels: str) -> Family:
    return Family(f"hyperfleet_{name}", "gauge", help_, labels)


RESOURCES: Final = _gauge("resources", "Resources by phase.", "kind", "phase")
CONDITIONS: Final = _gauge(
    "resource_conditions", "Resources by the status of each condition.", "kind", "condition", "status"
)
REASONS: Final = _gauge("resource_ready_reasons", "Resources by the reason of their condition Ready.", "kind", "reason")
BLOCKED: Final = _gauge("resources_blocked", "Resources that wait for an adapter.", "kind", "adapter")
STATES: Final = _gauge(
    "resource_adapters", "Resources by adapter and what it is up to there.", "kind", "adapter", "state"
)
STALE: Final = _gauge(
    "resources_stale", "Resources of which an adapter has said nothing for too long.", "kind", "adapter"
)
FLAPPING: Final = _gauge("resources_flapping", "Resources whose phase or condition moves too often.", "kind", "subject")
OLDEST: Final = _gauge(
    "resources_oldest_phase_timestamp_seconds",
    f"Since when the resource is in its phase that is so for longest, of the {_LOOKED_AT} created first.",
    *("kind", "phase"),
)
LAST_SEEN: Final = _gauge(
    "adapter_last_seen_timestamp_seconds", "When an adapter was last heard of, whatever it said.", "adapter"
)
SKEW: Final = _gauge(
    "adapter_clock_skew_seconds",
    "How far an adapter's clock was ahead of the database's in its last report.",
    "adapter",
)
LATENESS: Final = _gauge(
    "deadline_lag_seconds", "For how long the most overdue resource waits to be computed anew; 0: none is overdue."
)
BACKLOG: Final = _gauge(
    "recomputation_backlog", "Resources that are still as an earlier policy computed them; 0 soon after a change."
)
POSITION: Final = _gauge("log_position", "The position of the last event: its rate is how much happens.")

# What a caller who is bound to tenants sees, and what only those see who see everything.
OF_TENANTS: Final = (RESOURCES, CONDITIONS, REASONS, BLOCKED, STATES, STALE, FLAPPING, OLDEST, LAST_SEEN, SKEW)
OF_ALL: Final = (LATENESS, BACKLOG, POSITION)

Figures = dict[Family, Values]

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
    """Reads the figures, and keeps them for a while."""

    def __init__(
        self,
        store: Store,
        policies: PolicyBook,
        kinds: Kinds,
        keep: timedelta = timedelta(seconds=5),
        most_adapters: int = DEFAULT_ADAPTERS,
    ) -> None:
        """Read from `store`, no more often than `keep` says."""
        self._store = store
        self._policies = policies
        self._kinds = kinds
        self._keep = keep.total_seconds()
        self._most_adapters = most_adapters
        self._kept: OrderedDict[Scope, tuple[float, Figures]] = OrderedDict()
        self._reading = asyncio.Lock()

    async def read(self, scope: Scope) -> Figures:
        """Return the figures of the tenants of a scope; one reads at a time, and the others take what it found."""
        async with self._reading:
            when, figures = self._kept.get(scope, (0.0, {}))
            if not figures or monotonic() - when > self._keep:
                figures = await self._read(scope)
                self._kept[scope] = monotonic(), figures
            self._kept.move_to_end(scope)
            while len(self._kept) > _MOST_SCOPES:
                self._kept.popitem(last=False)
            return figures

    async def _read(self, scope: Scope) -> Figures:
        figures: Figures = {family: {} for family in OF_TENANTS}
        for kind in self._kinds:
            await self._count_kind(kind.name, scope, figures)
        adapters = _newest(await self._store.adapters(scope), self._most_adapters)
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
        query = Query(kind, scope, terms=(Term((f"p:{phase}",)),), order="createdAt", limit=_LOOKED_AT)
        found = await self._store.find(query)
        return min([_decode(answer.body).status.phase_since for answer in found], default=None)

    async def _read_upkeep(self) -> Figures:
        due = await self._store.due(0)
        late = (due.now - due.next_wake).total_seconds() if due.next_wake is not None else 0.0
        _, backlog = await self._store.outdated(self._policies.rules.policy_version, 1)
        position = await self._store.position()
        return {LATENESS: {(): max(late, 0.0)}, BACKLOG: {(): backlog}, POSITION: {(): position}}


class _Since(Struct, rename="camel"):
    phase_since: datetime


class _Glance(Struct):
    """What is looked at of a resource, out of its stored answer."""

    status: _Since


_decode: Final = msgspec.json.Decoder(_Glance).decode


def _values_of(kind: str, groups: Sequence[Group], *, is_pair: bool) -> Values:
    """Return counts by labels; of too many, the smallest ones together."""
    values: Values = {}
    for place, group in enumerate(group for group in groups if group.values[0] is not None):
        text = group.values[0] or ""
        first, _, second = text.rpartition("=")
        known = (first, second) if is_pair else (text,)
        labels: Labels = (kind, *(known if place < _MOST_VALUES else (OTHER,) * len(known)))
        values[labels] = values.get(labels, 0) + group.count
    return values


def _newest(adapters: Iterable[AdapterRecord], most: int) -> list[AdapterRecord]:
    """Return the adapters that were heard of last, by name."""
    newest = sorted(adapters, key=lambda each: each.last_seen, reverse=True)[:most]
    return sorted(newest, key=lambda each: each.name)
