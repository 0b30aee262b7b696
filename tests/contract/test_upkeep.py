"""The store port: deadlines, policies, claims, pruning and the schema."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from hyperfleet.errors import StoreUnavailable
from hyperfleet.ports import (
    EVERYTHING,
    HistoryQuery,
    IdempotencyRecord,
    LoggedReport,
    Needs,
    NewPolicy,
    PolicyVersion,
    Pruning,
    Query,
    Store,
    WriteSet,
)
from tests.contract.stores import (
    START,
    DurableStore,
    as_past,
    changed,
    created,
    look,
    make_draft,
    make_record,
    make_resource,
    make_stored,
    moved,
    prune_all,
    write,
)

pytestmark = pytest.mark.anyio

DAY = timedelta(days=1)


async def now_of(store: Store) -> datetime:
    return (await look(store, Needs())).now


# ── deadlines ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_due_is_whose_time_has_come_the_longest_overdue_first(store: Store) -> None:
    assert (await store.due(5)).next_wake is None
    now = await now_of(store)
    wakes = {"cls-1": now + DAY, "cls-2": now - DAY, "cls-3": now - 2 * DAY, "cls-4": None, "cls-5": now + 2 * DAY}
    await write(store, created(*(make_record(id_, wake_at=wake) for id_, wake in wakes.items())))
    due = await store.due(5)
    assert due.ids == ("cls-3", "cls-2")
    assert due.next_wake == now + DAY
    assert due.now >= now
    some = await store.due(1)
    assert (some.ids, some.next_wake) == (("cls-3",), now - DAY)


async def test_an_alarm_can_be_moved_and_switched_off(store: Store) -> None:
    now = await now_of(store)
    await write(store, created(make_record("cls-1", wake_at=now - DAY), make_record("cls-2", wake_at=now - DAY)))
    await write(store, changed(make_record("cls-1", wake_at=now + DAY), make_record("cls-2", wake_at=None)))
    due = await store.due(5)
    assert (due.ids, due.next_wake) == ((), now + DAY)


# ── policies ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_policy_is_in_force_until_another_one_is(store: Store) -> None:
    assert await store.active_policy() is None
    first = await store.activate_policy(NewPolicy("d1", "text ü", "file"))
    assert (first.version, first.digest, first.text, first.file) == (1, "d1", "text ü", "file")
    assert await store.activate_policy(NewPolicy("d1", "other words", "elsewhere")) == first
    second = await store.activate_policy(NewPolicy("d2", "", ""))
    again = await store.activate_policy(NewPolicy("d1", "text ü", "file"))
    assert [second.version, again.version] == [2, 3]
    assert await store.active_policy() == again
    assert (await look(store, Needs())).policy_version == 3


async def test_replicas_agree_on_the_policy_in_force(replicas: list[Store]) -> None:
    version: PolicyVersion = await replicas[0].activate_policy(NewPolicy("d1", "a", "b"))
    assert await replicas[1].active_policy() == version
    assert await replicas[1].activate_policy(NewPolicy("d1", "a", "b")) == version


async def test_outdated_is_what_was_computed_under_an_earlier_policy(store: Store) -> None:
    versions = {"cls-1": 1, "cls-2": 2, "cls-3": 1, "cls-4": 3}
    await write(store, created(*(make_record(id_, policy_version=version) for id_, version in versions.items())))
    assert await store.outdated(1, 10) == ((), 0)
    assert await store.outdated(2, 10) == (("cls-1", "cls-3"), 2)
    ids, total = await store.outdated(3, 1)
    assert (len(ids), total) == (1, 3)
    await write(store, changed(make_record("cls-1", policy_version=3)))
    ids, total = await store.outdated(3, 10)
    assert (set(ids), total) == ({"cls-2", "cls-3"}, 2)


# ── claims ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_task_is_done_by_one_at_a_time(store: Store) -> None:
    claim = await store.claim("deadlines")
    assert claim is not None
    async with claim:
        assert await store.claim("deadlines") is None
        other = await store.claim("retention")
        assert other is not None
        async with other:
            pass
    again = await store.claim("deadlines")
    assert again is not None
    async with again:
        pass


async def test_a_task_is_done_by_one_replica_at_a_time(replicas: list[Store]) -> None:
    claim = await replicas[0].claim("deadlines")
    assert claim is not None
    async with claim:
        assert await replicas[1].claim("deadlines") is None
    claim = await replicas[1].claim("deadlines")
    assert claim is not None
    async with claim:
        pass


# ── pruning ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_old_events_go_but_not_the_last_one_of_a_living_resource(store: Store) -> None:
    now = await now_of(store)
    living, gone = make_record("cls-1"), make_record("cls-2")
    await write(store, created(living, gone, time=now - 9 * DAY))
    for age in (8, 7, 6):
        await write(store, changed(living, gone, time=now - age * DAY))
    removal = make_draft(gone.resource, type_="Removed", answer=None, time=now - 5 * DAY)
    await write(store, WriteSet(removed=[gone.resource], events=[removal]))
    assert await prune_all(store, "events", 10 * DAY) == 0
    assert await prune_all(store, "events", timedelta(days=5, hours=12)) == 6
    assert await prune_all(store, "events", DAY) == 2
    assert await store.count(Query("Cluster", EVERYTHING, updated_since=now - timedelta(days=6, hours=1))) == 1
    await write(store, changed(living, time=now - 2 * DAY))
    assert await prune_all(store, "events", DAY) == 1
    await write(store, changed(living, time=now))
    assert await prune_all(store, "events", DAY) == 0  # it tells what was until now
    assert await store.transact(Needs(), lambda _: WriteSet()) == 11


async def test_old_transitions_go(store: Store) -> None:
    now = await now_of(store)
    record = make_record("cls-1")
    old = [moved(subject, None, "True", now - age * DAY) for subject, age in (("A", 4), ("B", 3), ("C", 2))]
    young = moved("D", None, "True", now)
    await write(store, WriteSet(inserted=[record], events=[make_draft(record.resource, *old, young)]))
    assert await store.prune(Pruning("transitions", DAY), 2) == 2
    kept = await store.read_transitions(HistoryQuery("cls-1", EVERYTHING))
    assert [each.transition for each in kept] == [young, old[2]], "the oldest go first, so that no gap is left"
    assert await prune_all(store, "transitions", DAY) == 1
    assert [each.transition for each in await store.read_transitions(HistoryQuery("cls-1", EVERYTHING))] == [young]


async def test_old_idempotency_keys_go(store: Store) -> None:
    now = await now_of(store)
    ages = {"k1": 3, "k2": 2, "k3": 2, "k4": 0}
    remembered = [IdempotencyRecord(key, "d", "cls-1", b"", now - age * DAY) for key, age in ages.items()]
    await write(store, WriteSet(inserted=[make_record("cls-1")], idempotency_records=remembered))
    assert await prune_all(store, "keys", DAY) == 3
    assert (await look(store, Needs(keys=frozenset(ages)))).idempotency_records.keys() == {"k4"}


async def test_old_reports_go_but_not_what_a_generation_ended_with(store: Store) -> None:
    now = await now_of(store)
    await write(store, created(make_record("cls-1")))
    rows = [(1, "x", 9), (1, "y", 8), (1, "z", 5), (2, "z", 4), (2, "w", 3), (2, "v", 0)]  # generation, words, age
    before = None
    for generation, said, age in rows:
        stored = make_stored("dns", generation, said, id=f"rep-{age}", last_heard=now - age * DAY)
        log = [LoggedReport("cls-1", stored, None, before)]
        await write(store, WriteSet(reports=[("cls-1", stored)], log=log))
        before = stored
    assert await prune_all(store, "reports", timedelta(days=5, hours=12)) == 1
    assert await prune_all(store, "reports", DAY) == 2
    (last,) = await store.read_reports_at("cls-1", EVERYTHING, 1)
    assert last == as_past(make_stored("dns", 1, "z", id="rep-5", last_heard=now - 5 * DAY))
    (last,) = await store.read_reports_at("cls-1", EVERYTHING, 2)
    assert last.id == "rep-0"


async def test_all_reports_of_a_resource_that_is_gone_go_with_its_last_event(store: Store) -> None:
    now = await now_of(store)
    await write(store, created(make_record("cls-1"), time=now - 9 * DAY))
    for age in (9, 8, 7):
        stored = make_stored(said=str(age), last_heard=now - age * DAY)
        await write(store, WriteSet(reports=[("cls-1", stored)], log=[LoggedReport("cls-1", stored, None)]))
    removal = make_draft(make_resource(), type_="Removed", answer=None, time=now - 6 * DAY)
    await write(store, WriteSet(removed=[make_resource()], events=[removal]))
    assert await prune_all(store, "reports", timedelta(days=6, hours=12)) == 2
    assert await prune_all(store, "events", timedelta(days=6, hours=12)) == 0
    assert [report.id for report in await store.read_reports_at("cls-1", EVERYTHING, 1)] == ["rep-1"]
    assert await prune_all(store, "events", DAY) == 3
    assert await store.read_reports_at("cls-1", EVERYTHING, 1) == ()
    stored = make_stored(last_heard=now - 5 * DAY)  # in SQLite it gets the number of one that went
    await write(store, created(make_record("cls-2"), time=now - 5 * DAY))
    for _ in range(3):
        await write(store, WriteSet(log=[LoggedReport("cls-2", stored, None)]))
    assert await prune_all(store, "reports", DAY) == 2


# ── the schema ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_migrating_brings_tables_once(new_store: Callable[[], DurableStore]) -> None:
    store = new_store()
    assert await store.schema_version() == 0
    applied = await store.migrate()
    assert applied[0] == "0001_initial"
    assert await store.schema_version() == len(applied)
    assert await store.migrate() == []
    await store.open()
    await write(store, created(make_record("cls-1"), time=START))
    await store.close()
    assert await store.schema_version() == len(applied)
    with pytest.raises(StoreUnavailable):
        await store.check()
