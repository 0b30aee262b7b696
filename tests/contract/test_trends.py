"""Counts of the past: whatever happened, they are those that were recorded at the time; on every store."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

import pytest
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.errors import HistoryPruned
from hyperfleet.model.event import EventType
from hyperfleet.ports import (
    EVERYTHING,
    CurrentCounts,
    FacetChange,
    Needs,
    Query,
    Record,
    Scope,
    Store,
    TokenTerm,
    WriteSet,
)
from hyperfleet.services import trends
from hyperfleet.services.trends import Moments, TooFar, count_past
from tests.contract.stores import look, make_draft, make_pool, make_record, make_resource, prune_all, write

pytestmark = pytest.mark.anyio

SECOND = timedelta(seconds=1)

QUERIES = [
    (Query("Cluster", EVERYTHING), ("p:",)),
    (Query("Cluster", EVERYTHING), ("l:env=", "p:")),
    (Query("Cluster", EVERYTHING), ("b:",)),  # several of one resource
    (Query("Cluster", EVERYTHING, terms=(TokenTerm(("l:env=prod",)),)), ("p:",)),
    (Query("Cluster", EVERYTHING, terms=(TokenTerm(("p:Ready",), is_negated=True),)), ("l:env=",)),
    (
        Query("Cluster", EVERYTHING, terms=(TokenTerm(("b:",), is_prefix=True), TokenTerm(("p:Failed", "p:Pending")))),
        ("b:", "p:"),
    ),
    (Query("Cluster", Scope(frozenset({"red"}))), ("p:",)),
    (Query("Cluster", Scope(frozenset())), ("p:",)),
    (Query("NodePool", EVERYTHING), ("p:",)),
    (Query("NodePool", EVERYTHING, parent_id="cls-0"), ("p:", "l:env=")),
]


class Living(Struct):
    """A resource that is there."""

    record: Record
    tokens: frozenset[str]


class Fleet:
    """Lets things happen to resources, each a second after the one before or at the same time."""

    def __init__(self, store: Store, start: datetime, seed: int) -> None:
        self.now = start
        self._store = store
        self._random = Random(seed)
        self._living: dict[str, Living] = {}
        self._number = 0

    async def move(self) -> None:
        """Let something happen."""
        self.now += self._random.choice((0, 1, 1, 5)) * SECOND
        id_ = self._random.choice(sorted(self._living)) if self._living else ""
        match self._random.choices(("create", "change", "keep", "remove"), (4, 12, 2, 1))[0]:
            case "change" if id_:
                await self._change(id_, self._tokens())
            case "keep" if id_:
                await self._change(id_, self._living[id_].tokens)
            case "remove" if id_:
                await self._remove(id_)
            case _:
                await self._create()

    def _tokens(self) -> frozenset[str]:
        choose = self._random.choice
        tokens = {f"p:{choose(('Ready', 'Failed', 'Pending'))}", f"w:{choose('abc')}"}
        tokens |= {f"l:env={env}" for env in (choose(("prod", "dev", "")),) if env}
        return frozenset(tokens | {f"b:{name}" for name in ("dns", "apply") if choose((True, False, False))})

    async def _create(self) -> None:
        self._number += 1
        tenant, tokens = self._random.choice(("red", "blue")), self._tokens()
        is_pool = self._random.random() < 0.3
        place = f"{self._number - 1}"
        resource = (
            make_pool(f"np-{place}", f"cls-{self._random.choice('01')}", tenant=tenant)
            if is_pool
            else make_resource(f"cls-{place}", tenant=tenant)
        )
        record = make_record(resource)
        await self._write("Created", record, frozenset(), tokens, WriteSet(inserted=[record]))
        self._living[resource.id] = Living(record, tokens)

    async def _change(self, id_: str, tokens: frozenset[str]) -> None:
        living = self._living[id_]
        await self._write("StatusChanged", living.record, living.tokens, tokens, WriteSet(updated=[living.record]))
        living.tokens = tokens

    async def _remove(self, id_: str) -> None:
        living = self._living.pop(id_)
        gone = WriteSet(removed=[living.record.resource])
        await self._write("Removed", living.record, living.tokens, frozenset(), gone)

    async def _write(
        self, type_: EventType, record: Record, old: frozenset[str], new: frozenset[str], changes: WriteSet
    ) -> None:
        id_, is_removal = record.resource.id, type_ == "Removed"
        facets = FacetChange(tuple(sorted(old & new)), tuple(sorted(new - old)), tuple(sorted(old - new)))
        draft = make_draft(
            record.resource, type_=type_, time=self.now, answer=None if is_removal else b"{}", facets=facets
        )
        await write(
            self._store,
            replace(
                changes,
                events=[draft],
                revisions={} if is_removal else {id_: 0},
                facets_added=[(id_, token) for token in sorted(new - old)],
                facets_removed=[(id_, token) for token in sorted(old - new)],
            ),
        )


async def now_of(store: Store) -> datetime:
    return (await look(store, Needs())).now


async def live(store: Store, steps: int, seed: int = 3) -> dict[datetime, list[CurrentCounts]]:
    """Let things happen, and return what every query counted at the end of each moment."""
    fleet = Fleet(store, await now_of(store) - timedelta(hours=5), seed)
    recorded: dict[datetime, list[CurrentCounts]] = {}
    for _ in range(steps):
        await fleet.move()
        recorded[fleet.now] = [await store.count_now(*each) for each in QUERIES]
    return recorded


@pytest.mark.parametrize("seed", [3, 8])
async def test_a_summary_of_a_moment_is_the_one_that_was_recorded_then(
    store: Store, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trends, "_WINDOW", 7)
    recorded = await live(store, 60, seed)
    times, now = tuple(recorded), await now_of(store)
    for place, (query, prefixes) in enumerate(QUERIES):
        found = await count_past(store, query, prefixes, Moments(None, times), now)
        assert not isinstance(found, TooFar)
        assert [each.at for each in found] == [*times, now]
        for count, then in zip(found, [*(recorded[time] for time in times), recorded[times[-1]]], strict=True):
            assert (count.total, count.groups) == (then[place].total, then[place].groups), (query, prefixes, count.at)
    for time in times[::9]:  # alone, and in between two moments
        (alone,) = await count_past(store, *QUERIES[1], Moments(time + SECOND / 2), now)  # type: ignore[misc]
        assert (alone.total, alone.groups) == (recorded[time][1].total, recorded[time][1].groups)


async def test_before_everything_there_was_nothing(store: Store) -> None:
    recorded = await live(store, 10)
    before = min(recorded) - SECOND
    (count,) = await count_past(store, *QUERIES[0], Moments(before), await now_of(store))  # type: ignore[misc]
    assert (count.at, count.total, count.groups) == (before, 0, ())


async def test_what_is_forgotten_is_not_counted(store: Store) -> None:
    recorded = await live(store, 40)
    times, now = list(recorded), await now_of(store)
    middle = times[len(times) // 2]
    assert await prune_all(store, "events", now - middle) > 0
    with pytest.raises(HistoryPruned):
        await count_past(store, *QUERIES[0], Moments(middle - SECOND), now)
    later = times[-5]
    (count,) = await count_past(store, *QUERIES[0], Moments(later), now)  # type: ignore[misc]
    assert count.groups == recorded[later][0].groups


async def test_too_much_to_undo_is_refused_with_the_earliest_moment(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trends, "MAX_POSITIONS", 20)
    recorded = await live(store, 60)
    now = await now_of(store)
    found = await count_past(store, *QUERIES[0], Moments(min(recorded) - timedelta(hours=1)), now)
    assert isinstance(found, TooFar)
    assert found.earliest > min(recorded)
    (count,) = await count_past(store, *QUERIES[0], Moments(found.earliest), now)  # type: ignore[misc]
    assert count.total >= 0


async def test_the_present_and_its_position_are_of_one_moment(store: Store) -> None:
    await live(store, 20)
    counted = await store.count_now(*QUERIES[0])
    assert counted == CurrentCounts(
        await store.summarize(*QUERIES[0]), await store.count(QUERIES[0][0]), await store.position()
    )
