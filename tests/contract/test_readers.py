"""The store port: changes with their transitions, and named readers that pruning waits for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hyperfleet.errors import HistoryPruned
from hyperfleet.model.event import Transition
from hyperfleet.ports import (
    ChangeQuery,
    FacetChange,
    LogGap,
    LoggedChange,
    Needs,
    Record,
    Scope,
    StatusCause,
    Store,
    TransitionFilter,
    WriteSet,
)
from tests.contract.stores import look, make_draft, make_pool, make_record, make_resource, moved, prune_all, write

pytestmark = pytest.mark.anyio

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


async def now_of(store: Store) -> datetime:
    return (await look(store, Needs())).now


async def create(store: Store, record: Record, time: datetime, *transitions: Transition, **more: Any) -> int:
    """Add a resource; return the position of its event."""
    draft = make_draft(record.resource, *transitions, type_="Created", time=time, **more)
    return await write(store, WriteSet(inserted=[record], revisions={record.resource.id: 0}, events=[draft])) + 1


async def change(store: Store, record: Record, time: datetime, *transitions: Transition, **more: Any) -> int:
    """Let a resource change; return the position of its event."""
    draft = make_draft(record.resource, *transitions, time=time, **more)
    return await write(store, WriteSet(updated=[record], revisions={record.resource.id: 0}, events=[draft])) + 1


async def remove(store: Store, record: Record, time: datetime, *transitions: Transition, **more: Any) -> int:
    """Take a resource away; return the position of its event."""
    draft = make_draft(record.resource, *transitions, type_="Removed", time=time, answer=None, **more)
    return await write(store, WriteSet(removed=[record.resource], events=[draft])) + 1


def positions(changes: Iterable[LoggedChange]) -> list[int]:
    return [each.position for each in changes]


def moves_of(changed: LoggedChange) -> list[tuple[str, str | None, str | None]]:
    moves = [each.transition for each in changed.transitions]
    return [(each.subject, each.before, each.after) for each in moves]


async def read_in_pages(store: Store, query: ChangeQuery) -> Sequence[int]:
    """Read all pages of a query, each from where the one before ended."""
    found: list[int] = []
    while True:
        page = await store.read_changes(query)
        found += positions(page.changes)
        assert len(page.changes) <= query.limit
        if page.is_last:
            return found
        query = replace(query, upto=page.after) if query.is_descending else replace(query, after=page.upto)


async def a_small_fleet(store: Store) -> list[datetime]:
    """Write seven positions, an hour apart, and return their times, that of position 1 at index 1."""
    start = await now_of(store) - 10 * HOUR
    times = [start + number * HOUR for number in range(8)]
    one, pool = make_record("cls-1"), make_record(make_pool("np-1", "cls-1", tenant="b"))
    await create(store, one, times[1], moved("phase", None, "Pending", times[1]))
    await create(store, pool, times[2], moved("phase", None, "Pending", times[2]))
    await change(
        store, one, times[3], moved("phase", "Pending", "Failed", times[3]), moved("Ready", None, "False", times[3])
    )
    await change(store, one, times[4], type_="SpecChanged")
    await change(store, pool, times[5], moved("phase", "Pending", "Ready", times[5]), cause=StatusCause("deadline"))
    await change(store, one, times[6], moved("Ready", "False", "True", times[6]))
    await remove(store, pool, times[7], moved("phase", "Ready", None, times[7]))
    return times


# ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_change_has_its_resource_and_all_its_transitions(store: Store) -> None:
    start = await now_of(store) - DAY
    pool = make_record(make_pool("np-1", "cls-9", tenant="b", generation=7, name="workers"))
    await create(store, pool, start, moved("phase", None, "Pending", start))
    facets = FacetChange(("l:k=ü",), ("p:Ready",), ("p:Pending",))
    moves = (moved("phase", "Pending", "Ready", start + HOUR), moved("Ready", None, "True", start + HOUR))
    await change(store, pool, start + HOUR, *moves, facets=facets, cause=StatusCause("report", "rep-5"), policy="12")
    page = await store.read_changes(ChangeQuery(after=1))
    assert (page.after, page.upto) == (1, 2)
    (found,) = page.changes
    assert (found.position, found.type, found.kind, found.resource_id) == (2, "StatusChanged", "NodePool", "np-1")
    assert (found.parent_id, found.tenant, found.name, found.generation) == ("cls-9", "b", "workers", 7)
    assert (found.time, found.facets) == (start + HOUR, facets)
    assert tuple(each.transition for each in found.transitions) == moves
    assert [each.ordinal for each in found.transitions] == [0, 1]
    assert [each.since for each in found.transitions] == [start, None], "when the state before it began"
    assert {(each.cause, each.policy) for each in found.transitions} == {(StatusCause("report", "rep-5"), "12")}


async def test_a_resource_that_is_gone_keeps_its_name(store: Store) -> None:
    now = await now_of(store)
    record = make_record(make_resource("cls-1", name="payments"))
    await create(store, record, now, answer=b'{"id": "cls-1", "name": "payments"}')
    await remove(store, record, now)
    found = (await store.read_changes(ChangeQuery())).changes
    assert [(each.type, each.name) for each in found] == [("Created", "payments"), ("Removed", "payments")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (ChangeQuery(), [1, 2, 3, 4, 5, 6, 7]),
        (ChangeQuery(is_descending=True), [7, 6, 5, 4, 3, 2, 1]),
        (ChangeQuery(after=2, upto=5), [3, 4, 5]),
        (ChangeQuery(after=2, upto=5, is_descending=True), [5, 4, 3]),
        (ChangeQuery(after=7), []),
        (ChangeQuery(kinds=frozenset({"NodePool"})), [2, 5, 7]),
        (ChangeQuery(scope=Scope(frozenset({"acme"}))), [1, 3, 4, 6]),
        (ChangeQuery(scope=Scope(frozenset())), []),
        (ChangeQuery(moves=TransitionFilter()), [1, 2, 3, 5, 6, 7]),
        (ChangeQuery(moves=TransitionFilter(subjects=frozenset({"Ready"}))), [3, 6]),
        (ChangeQuery(moves=TransitionFilter(after=frozenset({"Failed", "True"}))), [3, 6]),
        (ChangeQuery(moves=TransitionFilter(before=frozenset({"Pending"}))), [3, 5]),
        (ChangeQuery(moves=TransitionFilter(subjects=frozenset({"Ready"}), after=frozenset({"Failed"}))), []),
        (ChangeQuery(moves=TransitionFilter(causes=frozenset({"deadline"})), is_descending=True), [5]),
    ],
)
async def test_changes_are_chosen_and_read_page_by_page(store: Store, query: ChangeQuery, expected: list[int]) -> None:
    await a_small_fleet(store)
    assert positions((await store.read_changes(query)).changes) == expected
    for limit, span in ((1, None), (2, None), (3, 2), (9, 1)):
        assert await read_in_pages(store, replace(query, limit=limit, span=span)) == expected


async def test_changes_are_found_by_their_times(store: Store) -> None:
    times = await a_small_fleet(store)
    page = await store.read_changes(ChangeQuery(since=times[3], until=times[6]))
    assert positions(page.changes) == [3, 4, 5]
    assert positions((await store.read_changes(ChangeQuery(since=times[6], is_descending=True))).changes) == [7, 6]
    assert positions((await store.read_changes(ChangeQuery(until=times[2]))).changes) == [1]
    assert positions((await store.read_changes(ChangeQuery(since=times[7] + HOUR))).changes) == []
    assert positions((await store.read_changes(ChangeQuery(after=4, since=times[3]))).changes) == [5, 6, 7]


async def test_times_need_not_be_in_the_order_of_positions_to_the_second(store: Store) -> None:
    start, second = await now_of(store) - DAY, timedelta(seconds=1)
    for number, offset in enumerate((0, 20, 10, 30, 25)):
        await create(store, make_record(f"cls-{number}"), start + offset * second)
    page = await store.read_changes(ChangeQuery(since=start + 15 * second))
    assert positions(page.changes) == [2, 4, 5]


async def test_what_is_no_longer_whole_is_told(store: Store) -> None:
    times = await a_small_fleet(store)
    now = await now_of(store)
    assert await prune_all(store, "events", now - times[5]) > 0
    with pytest.raises(HistoryPruned):
        await store.read_changes(ChangeQuery(after=0))
    with pytest.raises(HistoryPruned):
        await store.read_changes(ChangeQuery(since=times[1]))
    left = (await store.read_changes(ChangeQuery())).changes
    assert positions(left)[-3:] == [5, 6, 7]
    assert await read_in_pages(store, ChangeQuery(after=left[0].position - 1)) == positions(left)


async def test_an_event_whose_transitions_were_pruned_is_not_taken_for_one_without(store: Store) -> None:
    times = await a_small_fleet(store)
    assert await prune_all(store, "transitions", await now_of(store) - times[4]) == 4
    with pytest.raises(HistoryPruned):
        await store.read_changes(ChangeQuery(after=2))
    with pytest.raises(HistoryPruned):
        await store.read_changes(ChangeQuery(since=times[3] - HOUR))
    page = await store.read_changes(ChangeQuery())
    assert (page.after, positions(page.changes)) == (3, [4, 5, 6, 7])
    assert moves_of(page.changes[1]) == [("phase", "Pending", "Ready")]


# ── named readers ────────────────────────────────────────────────────────────────────────────────────────────────


async def read_and_advance(store: Store, name: str, limit: int = 2) -> list[int]:
    """Read all that is unread, a page at a time."""
    found: list[int] = []
    while page := await store.read_next(name, limit):
        assert page.gap is None
        if page.upto == page.after:
            break
        found += positions(page.changes)
        assert await store.advance_reader(name, page.after, page.upto)
    return found


async def test_a_new_reader_starts_at_the_head(store: Store) -> None:
    times = await a_small_fleet(store)
    reader = await store.open_reader("relay")
    assert (reader.name, reader.position, reader.unread_since, reader.dropped_time) == ("relay", 7, None, None)
    page = await store.read_next("relay", 5)
    assert page is not None
    assert (page.after, page.upto, page.head, page.changes, page.gap) == (7, 7, 7, (), None)
    await create(store, make_record("cls-2"), times[7])
    assert (await store.readers())[0].unread_since == times[7]
    assert await read_and_advance(store, "relay") == [8]


async def test_readers_read_everything_once_each_at_its_own_pace(store: Store) -> None:
    for name in ("b", "a"):
        await store.open_reader(name)
    await a_small_fleet(store)
    assert await read_and_advance(store, "a", 3) == [1, 2, 3, 4, 5, 6, 7]
    page = await store.read_next("b", 2)
    assert page is not None
    assert (positions(page.changes), page.upto, page.head) == ([1, 2], 2, 7)
    assert moves_of(page.changes[0]) == [("phase", None, "Pending")]
    assert await store.read_next("b", 2) == page, "what was not acknowledged is read again"
    assert [(each.name, each.position) for each in await store.readers()] == [("a", 7), ("b", 0)]


async def test_a_reader_opened_again_goes_on_where_it_was(store: Store) -> None:
    first = await store.open_reader("relay")
    await a_small_fleet(store)
    assert await store.advance_reader("relay", 0, 4)
    again = await store.open_reader("relay")
    assert (again.position, again.opened_time) == (4, first.opened_time)
    assert again.moved_time >= first.moved_time


async def test_a_cursor_only_moves_forward_and_from_where_it_is(store: Store) -> None:
    await store.open_reader("relay")
    await a_small_fleet(store)
    assert await store.advance_reader("relay", 0, 5)
    refused = [(0, 6), (5, 5), (5, 3), (5, 8), (4, 6)]  # stale, unmoved, back, beyond the head, never been there
    assert [await store.advance_reader("relay", *each) for each in refused] == [False] * 5
    assert not await store.advance_reader("nobody", 0, 1)
    assert (await store.readers())[0].position == 5


async def test_a_reader_that_was_closed_is_gone(store: Store) -> None:
    await store.open_reader("relay")
    assert await store.close_reader("relay")
    assert not await store.close_reader("relay")
    assert await store.read_next("relay", 5) is None
    assert await store.readers() == ()


async def test_a_cursor_is_durable_and_shared(replicas: list[Store]) -> None:
    await replicas[0].open_reader("relay")
    await a_small_fleet(replicas[1])
    assert await replicas[1].advance_reader("relay", 0, 3)
    assert not await replicas[0].advance_reader("relay", 0, 4), "another one was faster"
    page = await replicas[0].read_next("relay", 1)
    assert page is not None
    assert positions(page.changes) == [4]


# ── pruning ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def prune_everything(store: Store) -> None:
    for log in ("events", "transitions"):
        await prune_all(store, log, HOUR)


async def test_pruning_never_passes_the_lowest_reader(store: Store) -> None:
    for name in ("fast", "slow"):
        await store.open_reader(name)
    await a_small_fleet(store)
    await prune_everything(store)
    assert await store.advance_reader("fast", 0, 7)
    await prune_everything(store)
    assert await store.advance_reader("slow", 0, 3)
    await prune_everything(store)
    page = await store.read_next("slow", 10)
    assert page is not None
    assert (page.gap, positions(page.changes)) == (None, [4, 5, 6, 7])
    assert [moves_of(each) for each in page.changes] == [
        [],
        [("phase", "Pending", "Ready")],
        [("Ready", "False", "True")],
        [("phase", "Ready", None)],
    ]
    assert await store.advance_reader("slow", 3, 7)
    await prune_everything(store)
    with pytest.raises(HistoryPruned):
        await store.read_changes(ChangeQuery(after=3))


async def test_a_reader_that_lags_too_far_is_dropped_and_told_what_it_lost(store: Store) -> None:
    for name in ("alive", "forgotten"):
        await store.open_reader(name)
    await a_small_fleet(store)
    assert await store.advance_reader("alive", 0, 7)
    assert await store.drop_readers(12 * HOUR) == ()
    (dropped,) = await store.drop_readers(HOUR)
    assert (dropped.name, dropped.position) == ("forgotten", 0)
    assert dropped.dropped_time is not None
    assert await store.drop_readers(HOUR) == (), "once"
    await prune_everything(store)
    horizon = (await store.read_changes(ChangeQuery())).after
    assert horizon > 3
    reader = await store.open_reader("forgotten")
    assert (reader.position, reader.dropped_time) == (0, None)
    for _ in range(2):  # until it says that it knows
        page = await store.read_next("forgotten", 10)
        assert page is not None
        assert (page.after, page.gap, page.upto) == (0, LogGap(0, horizon), 7)
        assert positions(page.changes) == list(range(horizon + 1, 8))
    assert await store.advance_reader("forgotten", 0, 7)
    after = await store.read_next("forgotten", 10)
    assert after is not None
    assert after.gap is None


async def test_a_dropped_reader_that_moves_is_waited_for_again(store: Store) -> None:
    await store.open_reader("late")
    await a_small_fleet(store)
    assert len(await store.drop_readers(HOUR)) == 1
    assert await store.advance_reader("late", 0, 2)
    assert (await store.readers())[0].dropped_time is None
    await prune_everything(store)
    page = await store.read_next("late", 10)
    assert page is not None
    assert (page.gap, positions(page.changes)) == (None, [3, 4, 5, 6, 7])


async def test_a_reader_at_the_head_never_lags_however_long_nothing_happens(store: Store) -> None:
    await a_small_fleet(store)
    await store.open_reader("relay")
    assert await store.drop_readers(timedelta(0)) == ()
