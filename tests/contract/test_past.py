"""The store port: events in their order, resources as they were, reports of the past, and forgetting in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from hyperfleet.errors import HistoryPruned
from hyperfleet.ports import (
    EVERYTHING,
    FacetChange,
    LoggedEvent,
    LoggedReport,
    Needs,
    NewEvent,
    PastReport,
    Pruning,
    Scope,
    Store,
    WriteSet,
)
from tests.contract.pasts import ADAPTERS, Chronicle, Historian, as_entry, live_through
from tests.contract.stores import (
    as_past,
    changed,
    created,
    insist,
    look,
    make_draft,
    make_pool,
    make_record,
    make_resource,
    make_stored,
    must_read,
    prune_all,
    write,
)

pytestmark = pytest.mark.anyio

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
TICK = timedelta(microseconds=1)


async def now_of(store: Store) -> datetime:
    return (await look(store, Needs())).now


@pytest.fixture
async def historian(store: Store) -> Historian:
    """Give somebody who writes to the store from four days ago on."""
    return Historian(store, await now_of(store) - 4 * DAY)


def moments(chronicle: Chronicle) -> Iterable[datetime]:
    """Return the times at which something happened, and those right before."""
    times = {entry.time for entry in chronicle.entries}
    return sorted({each for time in times for each in (time - TICK, time)})


def ids_in(chronicle: Chronicle) -> list[str]:
    return sorted({entry.resource_id for entry in chronicle.entries})


async def write_at_last(store: Store, changes: WriteSet) -> int:
    """Write changes once nobody is in the way."""
    return await insist(store, Needs(ids=frozenset(changes.revisions)), lambda _: changes)


async def read_all(store: Store, after: int, limit: int) -> AsyncIterator[LoggedEvent]:
    """Read events page by page."""
    while page := (await store.read_events(after, limit)).entries:
        assert len(page) <= limit
        for entry in page:
            yield entry
        after = page[-1].position


# ── events ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_events_are_read_from_any_position_on(store: Store, historian: Historian) -> None:
    assert await store.position() == 0
    assert (await store.read_events(0, 10)).entries == ()
    await live_through(historian, 40)
    entries = historian.chronicle.entries
    assert await store.position() == len(entries) == entries[-1].position
    assert [each async for each in read_all(store, 0, 7)] == entries
    some = await store.read_events(5, 3)
    assert (list(some.entries), some.head) == (entries[5:8], len(entries))
    for after in (len(entries), len(entries) + 5):
        assert (await store.read_events(after, 3)).entries == ()


async def test_an_event_is_kept_with_all_that_is_known_of_it(store: Store) -> None:
    pool = make_pool("np-1", "cls-1", tenant="b", generation=7)
    facets = FacetChange(("l:k=ü",), ("p:Ready", "w:x"), ("p:Failed",))
    drafts = [
        make_draft(make_resource("cls-1"), type_="Created", facets=FacetChange(gained=("a", "b"))),
        NewEvent("DeletionRequested", pool, await now_of(store), b'{"a": "\xc3\xbc"}', facets=facets),
        make_draft(pool, type_="Removed", answer=None, facets=FacetChange(lost=("b",))),
    ]
    await write(store, WriteSet(inserted=[make_record("cls-1")], events=drafts))
    found = await store.read_events(0, 10)
    assert list(found.entries) == [as_entry(place + 1, draft) for place, draft in enumerate(drafts)]
    assert found.head == 3


async def test_a_reader_misses_nothing_while_others_write(replicas: list[Store]) -> None:
    ids = [f"cls-{place}" for place in range(4)]
    await write(replicas[0], created(*(make_record(id_) for id_ in ids)))

    async def write_some(writer: int) -> None:
        for number in range(15):
            record = make_record(ids[(writer + number) % 4])
            draft = make_draft(record.resource, answer=f"{writer} {number}".encode())
            changes = WriteSet(updated=[record], revisions={record.resource.id: 1}, events=[draft, draft])
            await write_at_last(replicas[writer % 2], changes)

    writing = asyncio.gather(*(write_some(writer) for writer in range(4)))
    entries: list[LoggedEvent] = []
    while len(entries) < 4 + 2 * 4 * 15:
        page = await replicas[len(entries) % 2].read_events(len(entries), 5)
        entries += page.entries
        assert page.head >= len(entries)
        assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
        await asyncio.sleep(0)
    await writing
    assert await replicas[1].position() == len(entries)
    answers = [entry.answer for entry in entries[4:]]
    assert answers[::2] == answers[1::2], "the events of one transaction stand together"
    assert len(set(answers)) == 4 * 15


# ── resources as they were ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_resource_as_it_was_at_any_moment(store: Store, historian: Historian) -> None:
    await live_through(historian, 60)
    chronicle = historian.chronicle
    for id_ in ids_in(chronicle):
        for at in moments(chronicle):
            assert await store.read_version("Cluster", id_, EVERYTHING, at) == chronicle.version(id_, at), (id_, at)
            assert await store.read_versions(id_, EVERYTHING, at) == chronicle.versions(id_, at), (id_, at)


async def test_what_is_gone_was_there_before(store: Store, historian: Historian) -> None:
    await historian.create("cls-1")
    there = historian.now
    historian.wait(MINUTE)
    await historian.remove("cls-1")
    then = await store.read_version("Cluster", "cls-1", EVERYTHING, there)
    now = await store.read_version("Cluster", "cls-1", EVERYTHING, historian.now + DAY)
    assert then == historian.chronicle.entries[0]
    assert now == historian.chronicle.entries[1]
    assert historian.chronicle.entries[1].type == "Removed"


async def test_the_past_of_others_is_not_told(store: Store) -> None:
    pool = make_pool("np-1", "cls-1")
    now = await now_of(store)
    await write(store, created(make_record("cls-1"), make_record(pool), time=now))
    acme, other = Scope(frozenset({"acme"})), Scope(frozenset({"b"}))
    for kind, id_, scope, parent, is_told in (
        ("NodePool", "np-1", acme, "cls-1", True),
        ("NodePool", "np-1", EVERYTHING, None, True),
        ("NodePool", "np-1", acme, "cls-2", False),
        ("NodePool", "np-1", other, None, False),
        ("NodePool", "np-1", Scope(frozenset()), None, False),
        ("Cluster", "np-1", EVERYTHING, None, False),
        ("Cluster", "cls-9", EVERYTHING, None, False),
        ("Cluster", "cls-\0", EVERYTHING, None, False),
    ):
        version = await store.read_version(kind, id_, scope, now, parent)
        assert (version is not None) is is_told, (kind, id_, scope, parent)


# ── reports ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_reports_as_they_were_at_any_moment(store: Store, historian: Historian) -> None:
    await live_through(historian, 60)
    chronicle = historian.chronicle
    for id_ in ids_in(chronicle):
        for at in moments(chronicle):
            assert await store.read_reports_past(id_, EVERYTHING, at) == chronicle.reports_past(id_, at), (id_, at)
            assert await store.read_report_log(id_, EVERYTHING, at) == chronicle.report_log(id_, at), (id_, at)


async def test_reports_that_made_no_event_are_in_the_log_too(store: Store) -> None:
    now = await now_of(store)
    await write(store, created(make_record("cls-1"), time=now))
    stored = [make_stored(adapter, id=adapter, last_heard=now) for adapter in ADAPTERS]
    await write(store, WriteSet(log=[LoggedReport("cls-1", each, None) for each in stored]))
    told = tuple(as_past(each) for each in stored)
    assert await store.read_report_log("cls-1", EVERYTHING, now - DAY) == tuple(PastReport(now, each) for each in told)
    assert await store.read_reports_past("cls-1", EVERYTHING, now) == told
    assert await store.read_reports_past("cls-1", EVERYTHING, now - TICK) == ()
    assert await store.read_report_log("cls-9", EVERYTHING, now) == ()


async def test_a_report_of_the_past_has_the_times_that_it_had_before_the_next_one(store: Store) -> None:
    now = await now_of(store)
    await write(store, created(make_record("cls-1"), time=now))
    first = make_stored("dns", said="a", id="rep-1", last_heard=now, effective_time=now)
    heard = replace(first, last_heard=now + MINUTE, effective_time=now + MINUTE - TICK)
    second = make_stored("dns", said="b", id="rep-2", last_heard=now + 2 * MINUTE, effective_time=now + 2 * MINUTE)
    await write(store, WriteSet(reports=[("cls-1", first)], log=[LoggedReport("cls-1", first, None)]))
    await write(store, WriteSet(reports=[("cls-1", heard)]))
    assert await store.read_reports_past("cls-1", EVERYTHING, now) == (as_past(heard),), "it is still the last"
    await write(store, WriteSet(reports=[("cls-1", second)], log=[LoggedReport("cls-1", second, None, heard)]))
    assert await store.read_reports_past("cls-1", EVERYTHING, now) == (as_past(heard),)
    assert await store.read_reports_past("cls-1", EVERYTHING, now + 2 * MINUTE) == (as_past(second),)
    assert await store.read_report_log("cls-1", EVERYTHING, now) == (
        PastReport(now, as_past(heard)),
        PastReport(now + 2 * MINUTE, as_past(second)),
    )


# ── all there are ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_resources_of_all_kinds_are_walked_in_the_order_of_ids(store: Store) -> None:
    records = [make_record(f"cls-{place}") for place in range(3)]
    strangers = [make_record(make_resource("b-1", tenant="b")), make_record(make_pool("np-1", "cls-1", tenant="b"))]
    await write(store, created(*reversed(records), *strangers))
    await write(store, WriteSet(reports=[("cls-1", make_stored())]))
    ids = ["b-1", "cls-0", "cls-1", "cls-2", "np-1"]
    whole = await store.walk("", 10, EVERYTHING)
    assert [record.resource.id for record in whole] == ids
    assert whole[2] == await must_read(store, "cls-1")
    walked, after = [], ""
    while page := await store.walk(after, 2, EVERYTHING):
        walked += [record.resource.id for record in page]
        after = walked[-1]
    assert walked == ids
    assert [each.resource.id for each in await store.walk("b-1", 10, Scope(frozenset({"b"})))] == ["np-1"]
    assert await store.walk("", 10, Scope(frozenset())) == ()


# ── forgetting ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_not_past_its_time_is_told_as_before(store: Store, historian: Historian) -> None:
    await live_through(historian, 160)
    chronicle, span = historian.chronicle, historian.now - historian.chronicle.entries[0].time
    for share in (0.7, 0.3, 0.1):
        cutoff = historian.now - span * share
        keep = await now_of(store) - cutoff
        gone = await prune_all(store, "events", keep, limit=7) + await prune_all(store, "reports", keep, limit=7)
        assert gone > 0
        for id_ in ids_in(chronicle):
            for at in moments(chronicle):
                await compare(store, chronicle, id_, at, is_kept=at >= cutoff + MINUTE)  # its clock goes on


async def compare(store: Store, chronicle: Chronicle, id_: str, at: datetime, *, is_kept: bool) -> None:
    """Let a store tell of the past: what was, or that it is forgotten, and that only if it may be."""
    try:
        version = await store.read_version("Cluster", id_, EVERYTHING, at)
        reports = await store.read_reports_past(id_, EVERYTHING, at)
    except HistoryPruned:
        assert not is_kept, (id_, at)
        return
    if await store.existed("Cluster", id_, EVERYTHING):
        assert version == chronicle.version(id_, at), (id_, at)
        assert reports == chronicle.reports_past(id_, at), (id_, at)
    else:
        assert chronicle.events_of(id_)[-1].type == "Removed"
        assert version is None
        assert reports == ()


async def test_a_reader_is_told_if_events_it_has_not_seen_are_gone(store: Store, historian: Historian) -> None:
    await live_through(historian, 60)
    entries = historian.chronicle.entries
    assert await store.prune(Pruning("events", 5 * DAY), 100) == 0
    assert (await store.read_events(0, 5)).entries
    half = entries[len(entries) // 2].time
    assert await prune_all(store, "events", await now_of(store) - half) > 0
    with pytest.raises(HistoryPruned, match="position"):
        await store.read_events(0, 5)
    for after in range(len(entries) + 1):
        try:
            found = [each async for each in read_all(store, after, 50)]
        except HistoryPruned:
            assert entries[after].time < half + MINUTE  # the store's clock went on meanwhile
        else:
            assert found == entries[after:]
    assert await store.position() == len(entries)


async def test_pruning_goes_on_where_it_ended_and_leaves_what_is_needed(store: Store, historian: Historian) -> None:
    await historian.create("cls-1")
    for number in range(60):
        historian.wait(MINUTE)
        await historian.report("cls-1", "dns", str(number // 2))
        if number % 10 == 5:
            await historian.change("cls-1")
    keep = await now_of(store) - historian.now - MINUTE
    assert await store.prune(Pruning("events", keep), 4) == 4
    gone = 4 + await prune_all(store, "events", keep, limit=3)
    assert gone == len(historian.chronicle.entries) - 1
    assert await prune_all(store, "reports", keep) == len(historian.chronicle.reports) - 1
    version = await store.read_version("Cluster", "cls-1", EVERYTHING, historian.now + DAY)
    assert version == historian.chronicle.version("cls-1", historian.now + DAY)
    assert await store.read_reports_past("cls-1", EVERYTHING, historian.now + DAY) == historian.chronicle.reports_past(
        "cls-1", historian.now + DAY
    )
    assert await prune_all(store, "events", keep) == await prune_all(store, "reports", keep) == 0


async def test_what_a_generation_ended_with_was_last_heard_when_it_was(store: Store, historian: Historian) -> None:
    """Also when the report that came after it, which knows that, is forgotten."""
    await historian.create("cls-1")
    for _ in range(3):
        for said in "aabbcc":
            historian.wait(MINUTE)
            await historian.report("cls-1", "dns", said)
        await historian.edit("cls-1")
    chronicle = historian.chronicle
    assert await prune_all(store, "reports", await now_of(store) - historian.now - MINUTE, limit=1) == 6
    for generation in (1, 2, 3):
        found = await store.read_reports_at("cls-1", EVERYTHING, generation)
        assert found == chronicle.reports_at("cls-1", generation)


async def test_a_change_after_pruning_has_its_base(store: Store) -> None:
    now = await now_of(store)
    record = make_record("cls-1")
    await write(store, created(record, time=now - 9 * DAY))
    await write(store, changed(record, time=now - 8 * DAY))
    await prune_all(store, "events", DAY)
    await write(store, changed(record, time=now))
    version = await store.read_version("Cluster", "cls-1", EVERYTHING, now - TICK)
    assert version is not None
    assert version.position == 2
    with pytest.raises(HistoryPruned, match="pruned"):
        await store.read_version("Cluster", "cls-1", EVERYTHING, now - 2 * DAY)
    young = make_record("cls-2")
    await write(store, created(young, time=now))
    assert await store.read_version("Cluster", "cls-2", EVERYTHING, now - 5 * DAY) is None, "it was not there yet"
