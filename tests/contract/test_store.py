"""The store port: what a transaction loads, what it writes, and that it does all of it or nothing."""

from __future__ import annotations

import asyncio
from datetime import UTC, timedelta
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from hyperfleet.errors import Contended, StoreUnavailable
from hyperfleet.model.report import Discard, StoredReport
from hyperfleet.ports import (
    EVERYTHING,
    AdapterCounts,
    HistoryQuery,
    IdempotencyRecord,
    Loaded,
    LoggedReport,
    NameKey,
    Needs,
    Query,
    RecordedTransition,
    Scope,
    StatusCause,
    Store,
    StoredAnswer,
    TokenTerm,
    WriteSet,
)
from tests.contract.stores import (
    START,
    as_past,
    changed,
    created,
    ids_of,
    insist,
    look,
    make_draft,
    make_pool,
    make_record,
    make_resource,
    make_stored,
    moved,
    must_read,
    write,
)

pytestmark = pytest.mark.anyio

DELETED: dict[str, Any] = {"deletion_time": START, "generation": 2}


# ── what is written can be read ──────────────────────────────────────────────────────────────────────────────────


async def test_a_record_comes_back_as_it_was_written(store: Store) -> None:
    resource = make_resource(updated_time=START, created_by="Zoë", labels={"a.b/c": 'x"\\y', "leer": ""})
    record = make_record(resource, "Failed", wake_at=START + timedelta(seconds=1), policy_version=3)
    base = await write(store, created(record))
    assert await must_read(store, "cls-1") == replace(record, revision=base + 1)
    assert await store.read_answer("Cluster", "cls-1", EVERYTHING) == StoredAnswer("cls-1", record.answer, base + 1)


async def test_what_is_not_there_is_none(store: Store) -> None:
    for id_ in ("cls-1", "", "' or 1=1 --", "a\0b", "é😀", "x" * 5_000):
        assert await store.read_answer("Cluster", id_, EVERYTHING) is None
        assert await store.read_record("Cluster", id_, EVERYTHING) is None
    assert (await look(store, Needs(ids=frozenset({"cls-1", "a\0b"})))).records == {}
    assert await store.read_children("cls-1", EVERYTHING) == ()
    assert await store.read_reports_at("cls-1", EVERYTHING, 1) == ()
    assert await store.read_transitions(HistoryQuery("cls-1", EVERYTHING)) == ()
    assert await store.adapters(EVERYTHING) == ()


async def test_a_resource_is_found_by_its_kind_parent_and_tenant_only(store: Store) -> None:
    await write(store, created(make_record("cls-1"), make_record(make_pool("np-1", "cls-1"))))
    acme, other = Scope(frozenset({"acme", "b"})), Scope(frozenset({"b"}))
    for kind, id_, scope, parent, is_there in (
        ("Cluster", "cls-1", EVERYTHING, None, True),
        ("NodePool", "cls-1", EVERYTHING, None, False),
        ("Cluster", "cls-1", EVERYTHING, "cls-1", False),
        ("NodePool", "np-1", EVERYTHING, None, True),
        ("NodePool", "np-1", EVERYTHING, "cls-1", True),
        ("NodePool", "np-1", EVERYTHING, "cls-2", False),
        ("NodePool", "np-1", acme, "cls-1", True),
        ("NodePool", "np-1", acme, None, True),
        ("NodePool", "np-1", other, "cls-1", False),
        ("Cluster", "cls-1", other, None, False),
        ("Cluster", "cls-1", Scope(frozenset()), None, False),
    ):
        row = (kind, id_, scope, parent)
        assert (await store.read_answer(*row) is not None) is is_there, row
        assert (await store.read_record(*row) is not None) is is_there, row


async def test_children_are_read_in_the_order_of_ids(store: Store) -> None:
    pools = [make_pool(id_, "cls-1") for id_ in ("np-b", "np-B", "np-a")]
    stranger = make_pool("np-c", "cls-1", tenant="b")
    await write(store, created(make_record("cls-1"), *map(make_record, [*pools, stranger])))
    children = await store.read_children("cls-1", EVERYTHING)
    assert [child.resource.id for child in children] == ["np-B", "np-a", "np-b", "np-c"]
    children = await store.read_children("cls-1", Scope(frozenset({"b"})))
    assert [child.resource for child in children] == [stranger]


# ── positions and revisions ──────────────────────────────────────────────────────────────────────────────────────


async def test_positions_are_dense_and_a_revision_is_the_position_of_the_last_event(store: Store) -> None:
    first = await write(store, created(make_record("cls-1"), make_record("cls-2")))
    record = make_record("cls-1", "Ready")
    twice = WriteSet(
        updated=[record],
        revisions={"cls-1": 1},
        events=[make_draft(record.resource), make_draft(record.resource)],
    )
    second = await write(store, twice)
    assert second == first + 2
    assert (await must_read(store, "cls-1")).revision == second + 2
    assert (await must_read(store, "cls-2")).revision == first + 2
    assert await store.transact(Needs(), lambda _: WriteSet()) == second + 2


async def test_a_record_without_an_event_keeps_its_revision(store: Store) -> None:
    base = await write(store, created(make_record("cls-1")))
    await write(store, WriteSet(updated=[make_record("cls-1", "Ready", revision=-7)]))
    record = await must_read(store, "cls-1")
    assert record.status.phase == "Ready"
    assert record.revision == base + 1


async def test_a_resource_changes_only_if_it_was_edited(store: Store) -> None:
    await write(store, created(make_record("cls-1")))
    renamed = make_record(make_resource(labels={}, name="new", **DELETED), "Deleting", wake_at=START, policy_version=2)
    await write(store, changed(renamed))
    assert (await must_read(store, "cls-1")).resource == make_resource()
    await write(store, changed(renamed, edited=frozenset({"cls-1"})))
    record = await must_read(store, "cls-1")
    assert replace(record, revision=0) == renamed


# ── loading ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_transaction_finds_the_records_and_their_parents(store: Store) -> None:
    report = make_stored()
    await write(store, created(make_record("cls-1"), make_record("cls-2"), make_record(make_pool("np-1", "cls-1"))))
    await write(store, WriteSet(reports=[("np-1", report), ("cls-2", report)]))
    loaded = await look(store, Needs(ids=frozenset({"np-1", "np-404"})))
    assert loaded.records == {
        id_: await must_read(store, id_, kind) for id_, kind in [("cls-1", "Cluster"), ("np-1", "NodePool")]
    }
    assert loaded.records["np-1"].reports == {"dns": report}
    assert loaded.children == {}
    assert loaded.now.tzinfo is UTC or loaded.now.utcoffset() == timedelta()
    assert loaded.policy_version == 0


async def test_a_transaction_finds_children_where_they_are_wanted(store: Store) -> None:
    pools = [make_record(make_pool(id_, "cls-1")) for id_ in ("np-2", "np-1", "np-3")]
    await write(store, created(make_record("cls-1"), make_record("cls-2"), make_record("cls-3"), *pools))
    await write(store, WriteSet(reports=[("np-3", make_stored())]))
    needs = Needs(
        ids=frozenset({"np-1", "cls-2", "cls-3"}),
        wants_children=lambda resource: resource.id in ("cls-1", "cls-2"),
    )
    loaded = await look(store, needs)
    assert loaded.records.keys() == {"np-1", "cls-1", "cls-2", "cls-3"}
    assert loaded.children == {
        "cls-1": tuple([await must_read(store, id_, "NodePool") for id_ in ("np-1", "np-2", "np-3")]),
        "cls-2": (),
    }
    assert loaded.children["cls-1"][2].reports == {"dns": make_stored()}


async def test_a_child_that_was_loaded_for_its_parent_can_be_written(store: Store) -> None:
    await write(store, created(make_record("cls-1"), make_record(make_pool("np-1", "cls-1"))))
    needs = Needs(ids=frozenset({"cls-1"}), wants_children=lambda _: True)
    child = make_record(make_pool("np-1", "cls-1"), "Ready")
    await store.transact(needs, lambda _: changed(child, facets_added=[("np-1", "p:Ready")]))
    assert (await must_read(store, "np-1", "NodePool")).status.phase == "Ready"
    assert ids_of(await store.find(Query("NodePool", EVERYTHING, terms=(TokenTerm(("p:Ready",)),)))) == ["np-1"]


async def test_a_transaction_finds_who_has_a_name(store: Store) -> None:
    pool = make_pool("np-1", "cls-1", name="cls-1")
    leaving = make_resource("cls-2", name="leaving", **DELETED)
    await write(store, created(make_record("cls-1"), make_record(pool), make_record(leaving)))
    keys = {
        NameKey("acme", "Cluster", "", "cls-1"): "cls-1",
        NameKey("", "NodePool", "cls-1", "cls-1"): "np-1",
        NameKey("", "NodePool", "cls-2", "cls-1"): None,
        NameKey("b", "Cluster", "", "cls-1"): None,
        NameKey("acme", "Cluster", "", "CLS-1"): None,
        NameKey("acme", "Cluster", "", "leaving"): None,
    }
    loaded = await look(store, Needs(names=frozenset(keys)))
    assert loaded.names == {key: id_ for key, id_ in keys.items() if id_ is not None}


async def test_a_transaction_finds_what_was_remembered(store: Store) -> None:
    remembered = IdempotencyRecord("k1", "digest", "cls-1", b"\x00{}", START)
    await write(store, replace(created(make_record("cls-1")), idempotency_records=[remembered]))
    loaded = await look(store, Needs(keys=frozenset({"k1", "k2"})))
    assert loaded.idempotency_records == {"k1": remembered}


async def test_a_transaction_finds_what_is_stored_whatever_else_a_written_record_said(store: Store) -> None:
    async def loaded_as_stored() -> bool:
        found = await look(store, Needs(ids=frozenset({"cls-1"})))
        return found.records["cls-1"] == await must_read(store, "cls-1")

    report = make_stored()
    await write(store, replace(created(make_record("cls-1", reports={"ghost": report})), reports=[("cls-1", report)]))
    assert await loaded_as_stored()
    for changes in (
        WriteSet(updated=[make_record("cls-1", "Ready", revision=-7)]),  # no event: keeps its revision
        changed(make_record(make_resource(labels={}))),  # not edited: keeps its resource
        changed(make_record("cls-1", reports={"ghost": report})),  # reports are written apart from their record
        changed(make_record("cls-1"), reports=[("cls-1", make_stored("apply"))]),
        changed(make_record("cls-1"), retired=[("cls-1", "dns")]),
        WriteSet(reports=[("cls-1", make_stored("apply", said="more"))]),
    ):
        await write(store, changes)
        assert await loaded_as_stored(), changes


async def test_a_transaction_finds_what_another_replica_wrote(replicas: list[Store]) -> None:
    ours, other = replicas
    needs = Needs(ids=frozenset({"cls-1"}))
    await write(ours, created(make_record("cls-1")))
    await ours.close()
    await write(other, changed(make_record("cls-1", "Failed")))
    await ours.open()
    assert (await look(ours, needs)).records["cls-1"].status.phase == "Failed"
    await write(other, changed(make_record("cls-1", "Ready")))
    assert (await look(ours, needs)).records["cls-1"].status.phase == "Ready"


# ── all or nothing ───────────────────────────────────────────────────────────────────────────────────────────────


class _OwnError(Exception):
    pass


async def test_what_work_raises_passes_through_and_nothing_is_written(store: Store) -> None:
    base = await write(store, created(make_record("cls-1")))

    def work(_: Loaded) -> WriteSet:
        raise _OwnError("mine")

    with pytest.raises(_OwnError, match="mine"):
        await store.transact(Needs(ids=frozenset({"cls-1"})), work)
    assert await write(store, created(make_record("cls-2"))) == base + 1


async def test_two_living_resources_cannot_have_one_name(store: Store) -> None:
    base = await write(store, created(make_record("cls-1")))
    twin = make_record(make_resource("cls-2", name="cls-1"))
    with pytest.raises(Contended):
        await write(store, created(make_record("cls-3"), twin, tokens={"cls-3": ["t"], "cls-2": ["t"]}))
    assert await store.count(Query("Cluster", EVERYTHING)) == 1
    assert await store.count(Query("Cluster", EVERYTHING, terms=(TokenTerm(("t",)),))) == 0
    assert await store.transact(Needs(), lambda _: WriteSet()) == base + 1
    elsewhere = make_resource("cls-4", name="cls-1", tenant="b")
    leaving = make_resource("cls-5", name="cls-1", **DELETED)
    pool = make_pool("np-1", "cls-1", name="cls-1")
    await write(store, created(*map(make_record, (elsewhere, leaving, pool))))


async def test_an_id_or_a_key_cannot_be_taken_twice(store: Store) -> None:
    remembered = IdempotencyRecord("k1", "digest", "cls-1", b"", START)
    await write(store, replace(created(make_record("cls-1")), idempotency_records=[remembered]))
    with pytest.raises(Contended):
        await write(store, created(make_record(make_resource("cls-1", name="other"))))
    with pytest.raises(Contended):
        await write(store, replace(created(make_record("cls-2")), idempotency_records=[remembered]))
    assert ids_of(await store.find(Query("Cluster", EVERYTHING))) == ["cls-1"]


async def test_a_name_is_free_for_others_in_the_transaction_that_gives_it_up(store: Store) -> None:
    await write(store, created(make_record("cls-1"), make_record("cls-2")))
    leaving = make_record(make_resource("cls-1", **DELETED))
    heirs = [make_record(make_resource("cls-3", name="cls-1")), make_record(make_resource("cls-4", name="cls-2"))]
    changes = WriteSet(inserted=heirs, updated=[leaving], edited=frozenset({"cls-1"}), removed=[make_resource("cls-2")])
    await write(store, changes)
    names = frozenset(NameKey("acme", "Cluster", "", name) for name in ("cls-1", "cls-2"))
    assert set((await look(store, Needs(names=names))).names.values()) == {"cls-3", "cls-4"}


# ── reports, history and the rest of a write ─────────────────────────────────────────────────────────────────────


async def test_the_last_report_of_each_adapter_is_kept_until_it_is_retired(store: Store) -> None:
    await write(store, created(make_record("cls-1")))
    reports = {
        "dns": make_stored(
            "dns",
            discards=(Discard(START, timedelta(seconds=-7)), Discard(START, timedelta(minutes=2))),
            has_verdict=False,
            last_unknown=START,
            is_calm=True,
        ),
        "Validation": make_stored("Validation", generation=2),
    }
    await write(store, WriteSet(reports=[("cls-1", make_stored("dns", said="earlier"))]))
    await write(store, WriteSet(reports=[("cls-1", report) for report in reports.values()]))
    record = await must_read(store, "cls-1")
    assert record.reports == reports
    assert record.revision == 1
    await write(store, changed(replace(record, reports={}), retired=[("cls-1", "dns"), ("cls-1", "never")]))
    assert (await must_read(store, "cls-1")).reports == {"Validation": reports["Validation"]}


async def test_removal_leaves_history_and_nothing_else(store: Store) -> None:
    record = make_record("cls-1")
    await write(store, created(record, make_record("cls-2"), tokens={"cls-1": ["a", "b"], "cls-2": ["a"]}))
    await write(store, WriteSet(reports=[("cls-1", make_stored())]))
    gone = WriteSet(
        removed=[record.resource],
        events=[make_draft(record.resource, moved("phase", "Deleting", None), type_="Removed", answer=None)],
        facets_removed=[("cls-1", "a"), ("cls-1", "b")],
    )
    base = await write(store, gone)
    assert await store.read_answer("Cluster", "cls-1", EVERYTHING) is None
    assert ids_of(await store.find(Query("Cluster", EVERYTHING, terms=(TokenTerm(("a",)),)))) == ["cls-2"]
    assert [each.position for each in await store.read_transitions(HistoryQuery("cls-1", EVERYTHING))] == [base + 1]
    await write(store, created(record))
    assert (await must_read(store, "cls-1")).reports == {}
    assert await store.count(Query("Cluster", EVERYTHING, terms=(TokenTerm(("b",)),))) == 0


async def test_transitions_are_told_newest_first(store: Store) -> None:
    record = make_record("cls-1")
    first = [moved("phase", None, "Pending"), moved("Ready", None, "False")]
    base = await write(
        store,
        WriteSet(inserted=[record], events=[make_draft(record.resource, *first, cause=StatusCause("created"))]),
    )
    second = [moved("Ready", "False", "True", START + timedelta(microseconds=1)), moved("Old", "True", None)]
    await write(store, WriteSet(updated=[record], events=[make_draft(record.resource, *second)]))
    recorded = [
        RecordedTransition(base + 1, each, StatusCause("created"), "digest", place) for place, each in enumerate(first)
    ]
    report = StatusCause("report", "rep-1")
    recorded += [
        RecordedTransition(base + 2, second[0], report, "digest", 0, START),
        RecordedTransition(base + 2, second[1], report, "digest", 1),  # what it was before is not known
    ]
    assert await store.read_transitions(HistoryQuery("cls-1", EVERYTHING)) == tuple(reversed(recorded))
    assert await store.read_transitions(HistoryQuery("cls-1", EVERYTHING, limit=1)) == (recorded[-1],)


async def test_transitions_by_subject_time_and_page(store: Store) -> None:
    record, minute = make_record("cls-1"), timedelta(minutes=1)
    phases = [None, "Pending", "Ready", "Failed", "Ready"]
    await write(store, created(record, make_record("cls-2")))
    for number, (before, after) in enumerate(pairwise(phases)):
        instant = START + number * minute
        moves = [moved("phase", before, after, instant), moved("Ready", "True" if number else None, "True", instant)]
        stranger = make_draft(make_resource("cls-2"), moved("phase", "Failed", "Ready", instant))
        await write(store, WriteSet(updated=[record], events=[make_draft(record.resource, *moves), stranger]))

    async def ask(**more: Any) -> list[tuple[str, int]]:
        found = await store.read_transitions(HistoryQuery("cls-1", EVERYTHING, **more))
        return [(each.transition.subject, (each.transition.time - START) // minute) for each in found]

    phase = frozenset({"phase"})
    whole = await ask()
    assert whole == [(subject, number) for number in (3, 2, 1, 0) for subject in ("Ready", "phase")]
    assert await ask(subjects=phase) == [("phase", number) for number in (3, 2, 1, 0)]
    assert await ask(subjects=frozenset({"phase", "Ready", "Else"})) == whole
    assert await ask(subjects=frozenset({"Else"})) == []
    assert await ask(since=START + minute, until=START + 2 * minute) == [("Ready", 1), ("phase", 1)]
    pages = []
    last: tuple[int, int] | None = None
    while page := await store.read_transitions(HistoryQuery("cls-1", EVERYTHING, before=last, limit=3)):
        last = (page[-1].position, page[-1].ordinal)
        pages += [(each.transition.subject, (each.transition.time - START) // minute) for each in page]
    assert pages == whole, "a page may end between transitions that share a position"
    moves_of_phase = await store.read_transitions(HistoryQuery("cls-1", EVERYTHING, phase, since=START + 2 * minute))
    assert [each.since for each in moves_of_phase] == [START + 2 * minute, START + minute]


async def test_what_is_remembered_of_a_resource(store: Store) -> None:
    pool = make_pool("np-1", "cls-1")
    await write(store, created(make_record("cls-1"), make_record(pool)))
    await write(store, WriteSet(removed=[pool], events=[make_draft(pool, type_="Removed", answer=None)]))
    acme, other = Scope(frozenset({"acme"})), Scope(frozenset({"b"}))
    for kind, id_, scope, parent, has_existed in (
        ("Cluster", "cls-1", EVERYTHING, None, True),
        ("NodePool", "np-1", EVERYTHING, None, True),
        ("NodePool", "np-1", acme, "cls-1", True),
        ("NodePool", "np-1", acme, "cls-2", False),
        ("NodePool", "np-1", other, "cls-1", False),
        ("NodePool", "np-1", Scope(frozenset()), None, False),
        ("Cluster", "np-1", EVERYTHING, None, False),
        ("NodePool", "np-2", EVERYTHING, None, False),
    ):
        row = (kind, id_, scope, parent)
        assert await store.existed(*row) is has_existed, row


async def test_records_are_read_together(store: Store) -> None:
    stranger = make_record(make_resource("cls-3", tenant="b"))
    await write(store, created(make_record("cls-1"), make_record("cls-2"), stranger))
    await write(store, WriteSet(reports=[("cls-1", make_stored())]))
    ids = ["cls-3", "cls-1", "cls-9", "cls-1"]
    assert await store.read_records(ids, EVERYTHING) == (
        await must_read(store, "cls-1"),
        await must_read(store, "cls-3"),
    )
    assert await store.read_records(ids, Scope(frozenset({"b"}))) == (await must_read(store, "cls-3"),)
    assert await store.read_records([], EVERYTHING) == ()


async def test_the_counters_of_adapters_add_up_over_the_tenants_one_may_see(store: Store) -> None:
    later, earlier = START + timedelta(seconds=9), START - timedelta(seconds=9)
    added = [
        AdapterCounts(
            "acme", "dns", START, timedelta(seconds=1), {"aggregated": 2, "OutOfOrder": 1}, '{"cause": "OutOfOrder"}'
        ),
        AdapterCounts("acme", "dns", later, timedelta(seconds=-2), {"aggregated": 1, "GenerationAhead": 4}),
        AdapterCounts("acme", "dns", earlier, timedelta(seconds=7), {"stored": 1, "replayed": 1}),
        AdapterCounts(
            "b", "dns", START, timedelta(), {"aggregated": 10, "StaleGeneration": 1, "UnknownAfterFirst": 1}, "b's"
        ),
        AdapterCounts("b", "Apply", START, timedelta(), {"aggregated": 1}),
    ]
    for counts in added:
        await write(store, WriteSet(adapter_counts=[counts]))
    (acme,) = await store.adapters(Scope(frozenset({"acme"})))
    assert (acme.name, acme.last_seen, acme.skew) == ("dns", later, timedelta(seconds=-2))
    assert acme.last_discard == '{"cause": "OutOfOrder"}'
    some = {name: count for name, count in acme.counts.items() if count}
    assert some == {"aggregated": 3, "stored": 1, "replayed": 1, "OutOfOrder": 1, "GenerationAhead": 4}
    apply, dns = await store.adapters(EVERYTHING)
    assert (apply.name, dns.name) == ("Apply", "dns")
    assert dns.counts["aggregated"] == 13
    assert dns.last_seen == later
    assert await store.adapters(Scope(frozenset())) == ()


async def test_reports_of_an_earlier_generation_are_found_in_the_log(store: Store) -> None:
    await write(store, created(make_record("cls-1")))

    async def accept(stored: StoredReport, replaced: StoredReport | None = None) -> StoredReport:
        log = [LoggedReport("cls-1", stored, None, replaced)]
        await write(store, WriteSet(reports=[("cls-1", stored)], log=log))
        return stored

    later = START + timedelta(minutes=1)
    first = await accept(make_stored("dns", said="w", id="rep-0"))
    second = await accept(make_stored("dns", said="x", id="rep-1"), first)
    heard = replace(second, effective_time=later, last_heard=later + timedelta(seconds=1))
    await write(store, WriteSet(reports=[("cls-1", heard)]))
    apply = await accept(make_stored("apply", said="y", id="rep-3"))
    now = await accept(make_stored("dns", generation=2, id="rep-4"), heard)
    assert await store.read_reports_at("cls-1", EVERYTHING, 1) == (as_past(apply), as_past(heard))
    assert await store.read_reports_at("cls-1", EVERYTHING, 2) == (as_past(now),)
    assert await store.read_reports_at("cls-1", EVERYTHING, 3) == ()


# ── several at once ──────────────────────────────────────────────────────────────────────────────────────────────


def counting(loaded: Loaded) -> WriteSet:
    """Raise the generation of a resource by one: if two see the same, one is lost."""
    record = loaded.records["cls-1"]
    resource = replace(record.resource, generation=record.resource.generation + 1)
    return changed(replace(record, resource=resource), edited=frozenset({"cls-1"}))


async def test_transactions_on_one_resource_come_one_after_the_other(store: Store) -> None:
    await write(store, created(make_record("cls-1")))
    needs = Needs(ids=frozenset({"cls-1"}))
    bases = await asyncio.gather(*(insist(store, needs, counting) for _ in range(20)))
    assert sorted(bases) == list(range(1, 21))
    record = await must_read(store, "cls-1")
    assert (record.resource.generation, record.revision) == (21, 21)


async def test_replicas_share_resources_and_positions(replicas: list[Store]) -> None:
    await write(replicas[0], created(make_record("cls-1")))
    needs = Needs(ids=frozenset({"cls-1"}))
    bases = await asyncio.gather(*(insist(replicas[turn % 2], needs, counting) for turn in range(20)))
    assert sorted(bases) == list(range(1, 21))
    for replica in replicas:
        assert (await must_read(replica, "cls-1")).resource.generation == 21


async def test_of_two_replicas_that_take_a_name_one_gets_it(replicas: list[Store]) -> None:
    records = [make_record(make_resource(f"cls-{place}", name="same")) for place in range(2)]
    outcomes = await asyncio.gather(
        *(write(replica, created(record)) for replica, record in zip(replicas, records, strict=True)),
        return_exceptions=True,
    )
    assert {type(outcome) for outcome in outcomes} == {int, Contended}
    assert await replicas[0].count(Query("Cluster", EVERYTHING)) == 1


async def test_a_write_whose_caller_went_away_is_done_or_not_and_everybody_sees_the_same(store: Store) -> None:
    await write(store, created(make_record("cls-1")))
    for steps in range(40):  # the caller goes away a little later each time: at the lock, at work, at the commit
        before = await must_read(store, "cls-1")
        writing = asyncio.create_task(insist(store, Needs(ids=frozenset({"cls-1"})), counting))
        for _ in range(steps):
            await asyncio.sleep(0.0002 if steps % 2 else 0)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        loaded = (await look(store, Needs(ids=frozenset({"cls-1"})))).records["cls-1"]
        assert loaded == await must_read(store, "cls-1")
        assert loaded.resource.generation - before.resource.generation in (0, 1)
        assert loaded.revision - before.revision in (0, 1)


# ── opening and closing ──────────────────────────────────────────────────────────────────────────────────────────


async def test_an_open_store_is_writable(store: Store) -> None:
    await store.check()


async def test_a_closed_store_is_unavailable(store: Store) -> None:
    await store.close()
    with pytest.raises(StoreUnavailable):
        await store.read_answer("Cluster", "cls-1", EVERYTHING)
    with pytest.raises(StoreUnavailable):
        await store.find(Query("Cluster", EVERYTHING))
    with pytest.raises(StoreUnavailable):
        await store.transact(Needs(), lambda _: WriteSet())
    with pytest.raises(StoreUnavailable):
        await store.check()
    await store.close()


async def test_what_is_under_way_when_a_store_closes_is_finished_or_refused(store: Store) -> None:
    await write(store, created(make_record("cls-1")))
    needs = Needs(ids=frozenset({"cls-1"}))
    writes = [asyncio.create_task(insist(store, needs, counting)) for _ in range(5)]
    reads = [asyncio.create_task(store.count(Query("Cluster", EVERYTHING))) for _ in range(5)]
    for _ in range(3):
        await asyncio.sleep(0)
    await store.close()
    outcomes = await asyncio.gather(*writes, *reads, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} <= {int, StoreUnavailable}, outcomes
    await store.open()
    done = sum(isinstance(outcome, int) for outcome in outcomes[:5])
    assert (await must_read(store, "cls-1")).resource.generation == 1 + done


async def test_a_store_that_is_opened_again_has_what_it_had(store: Store) -> None:
    record = make_record("cls-1")
    await write(store, created(record))
    await store.close()
    await store.open()
    assert replace(await must_read(store, "cls-1"), revision=0) == record
