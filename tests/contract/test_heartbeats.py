"""The store port: which reports are heartbeats, what of a resource they move, and what is written without an event."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from hyperfleet.errors import StoreUnavailable
from hyperfleet.ports import (
    EVERYTHING,
    CalmChange,
    Heartbeat,
    LoggedReport,
    Needs,
    Record,
    Scope,
    Store,
    WriteSet,
)
from tests.contract.stores import (
    changed,
    created,
    look,
    make_pool,
    make_record,
    make_resource,
    make_stored,
    must_read,
    write,
)

pytestmark = pytest.mark.anyio

HOUR: Final = timedelta(hours=1)
STORED: Final = make_stored("dns", said="all is well")


async def begin(store: Store, **more: Any) -> Record:
    """Store a cluster and a node pool on which `dns` reported an hour ago; all is calm unless told otherwise."""
    now = (await look(store, Needs())).now
    stored = replace(STORED, **({"effective_time": now - HOUR, "last_heard": now - HOUR, "is_calm": True} | more))
    await write(store, created(make_record("cls-1"), make_record(make_pool("np-1", "cls-1")), time=now - HOUR))
    log = [LoggedReport(id_, stored, None) for id_ in ("cls-1", "np-1")]
    await write(store, WriteSet(reports=[("cls-1", stored), ("np-1", stored)], log=log))
    return await must_read(store, "cls-1")


def make_beat(**more: Any) -> Heartbeat:
    """Make a report that says what is stored."""
    fields: dict[str, Any] = {
        "kind": "Cluster",
        "resource_id": "cls-1",
        "parent_id": None,
        "scope": EVERYTHING,
        "adapter": "dns",
        "generation": 1,
        "digest": STORED.digest,
        "observed_time": None,
    }
    return Heartbeat(**(fields | more))


async def is_recorded(store: Store, **more: Any) -> bool:
    """Tell whether a report is recorded as a heartbeat."""
    [heard] = await store.record_heartbeats([make_beat(**more)])
    return heard is not None


async def test_a_heartbeat_moves_two_times_and_the_adapters_record(store: Store) -> None:
    before = await begin(store)
    position = await store.position()
    [heard] = await store.record_heartbeats([make_beat()])
    assert heard is not None
    after = await must_read(store, "cls-1")
    stored = after.reports["dns"]
    assert stored.effective_time == stored.last_heard > before.reports["dns"].last_heard
    times = {"effective_time": stored.effective_time, "last_heard": stored.last_heard}
    assert after == replace(before, reports={"dns": replace(before.reports["dns"], **times)})
    assert await store.position() == position
    assert (heard.name, heard.parent_id, heard.tenant, heard.revision) == ("cls-1", None, "acme", after.revision)
    assert (heard.phase, heard.report_id, heard.skew, heard.stored) == ("Pending", "rep-1", timedelta(), None)
    (adapter,) = await store.adapters(EVERYTHING)
    assert (adapter.name, adapter.last_seen) == ("dns", stored.last_heard)
    assert {name: count for name, count in adapter.counts.items() if count} == {"aggregated": 1}


async def test_what_is_loaded_and_read_of_the_past_has_the_times_too(store: Store) -> None:
    await begin(store)
    assert await is_recorded(store)
    record = await must_read(store, "cls-1")
    last = record.reports["dns"].last_heard
    assert (await look(store, Needs(ids=frozenset({"cls-1"})))).records == {"cls-1": record}
    assert await store.read_records(["cls-1"], EVERYTHING) == (record,)
    assert (await store.walk("", 1, EVERYTHING)) == (record,)
    (child,) = await store.read_children("cls-1", EVERYTHING)
    assert child.reports["dns"].last_heard < last, "the node pool's is another"
    (past,) = await store.read_reports_at("cls-1", EVERYTHING, 1)
    (then,) = await store.read_reports_past("cls-1", EVERYTHING, last)
    (logged,) = await store.read_report_log("cls-1", EVERYTHING, last - 2 * HOUR)
    assert past.last_heard == then.last_heard == logged.stored.last_heard == last


@pytest.mark.parametrize(
    ("more", "is_one", "because"),
    [
        ({}, True, "it says what is stored"),
        ({"digest": b"other"}, False, "it says something else"),
        ({"generation": 2}, False, "at another generation"),
        ({"adapter": "apply"}, False, "who never reported"),
        ({"resource_id": "cls-2"}, False, "what is not there"),
        ({"resource_id": "cls-\0"}, False, "what cannot be there"),
        ({"resource_id": "é😀"}, False, "what is not there"),
        ({"kind": "NodePool"}, False, "another kind"),
        ({"parent_id": "cls-1"}, False, "a cluster is below nothing"),
        ({"resource_id": "np-1"}, False, "another kind"),
        ({"kind": "NodePool", "resource_id": "np-1"}, True, "whatever it is below"),
        ({"kind": "NodePool", "resource_id": "np-1", "parent_id": "cls-1"}, True, "below its parent"),
        ({"kind": "NodePool", "resource_id": "np-1", "parent_id": "cls-2"}, False, "below another"),
        ({"kind": "NodePool", "resource_id": "np-1", "parent_id": "cls-\0"}, False, "below nothing"),
        ({"scope": Scope(frozenset({"b", "acme"}))}, True, "who may see it"),
        ({"scope": Scope(frozenset({"b"}))}, False, "who may not"),
        ({"scope": Scope(frozenset())}, False, "who may see nothing"),
        ({"scope": Scope(frozenset({'"] or [" ü', "%"}))}, False, "names are no patterns"),
    ],
)
async def test_which_reports_are_heartbeats(store: Store, more: dict[str, Any], is_one: bool, because: str) -> None:
    before = await begin(store)
    assert await is_recorded(store, **more) is is_one, because
    if not is_one:
        assert await must_read(store, "cls-1") == before, "it has changed nothing"
        assert await store.adapters(EVERYTHING) == ()


async def test_what_is_not_calm_is_for_transactions(store: Store) -> None:
    before = await begin(store, is_calm=False)
    assert not await is_recorded(store)
    assert await must_read(store, "cls-1") == before


@pytest.mark.parametrize(("seconds", "is_one"), [(-3_601, False), (-3_600, False), (-3_599, True), (5, True)])
async def test_only_what_is_observed_later_is_a_heartbeat(store: Store, seconds: int, is_one: bool) -> None:
    """An equal time is a replay, an earlier one is out of order; one that is yet to come counts as now."""
    before = (await begin(store)).reports["dns"]
    observed = before.effective_time + HOUR + timedelta(seconds=seconds)
    [heard] = await store.record_heartbeats([make_beat(observed_time=observed)])
    assert (heard is not None) is is_one
    after = (await must_read(store, "cls-1")).reports["dns"]
    if heard is None:
        assert after == before
        return
    assert after.effective_time == min(observed, after.last_heard)
    assert after.last_heard > before.last_heard
    assert abs(heard.skew - (observed - after.last_heard)) < timedelta(milliseconds=1)


async def test_what_was_heard_stays_heard_when_the_clock_is_set_back(store: Store) -> None:
    before = await begin(store)
    later = before.reports["dns"].last_heard + 5 * HOUR
    await write(store, WriteSet(reports=[("cls-1", replace(before.reports["dns"], last_heard=later))]))
    assert await is_recorded(store)
    after = (await must_read(store, "cls-1")).reports["dns"]
    assert after.last_heard == later
    assert after.effective_time < later


async def test_the_stored_report_is_returned_to_who_wants_it(store: Store) -> None:
    await begin(store)
    [heard] = await store.record_heartbeats([make_beat(wants_report=True)])
    assert heard is not None
    assert heard.stored == (await must_read(store, "cls-1")).reports["dns"]


async def test_those_of_a_batch_are_judged_one_by_one(store: Store) -> None:
    await begin(store)
    other = make_record(make_resource("cls-2", tenant="b"), "Ready")
    stored = (await must_read(store, "cls-1")).reports["dns"]
    await write(store, replace(created(other), reports=[("cls-2", stored), ("cls-2", make_stored("apply"))]))
    observed = stored.effective_time + HOUR / 2
    beats = [
        make_beat(resource_id="np-1", kind="NodePool"),
        make_beat(resource_id="cls-9"),
        make_beat(resource_id="cls-2", observed_time=observed),
        make_beat(resource_id="cls-2", adapter="apply"),
        make_beat(),
    ]
    heard = await store.record_heartbeats(beats)
    assert [each and (each.name, each.tenant, each.phase) for each in heard] == [
        ("np-1", "acme", "Pending"),
        None,
        ("cls-2", "b", "Ready"),
        None,
        ("cls-1", "acme", "Pending"),
    ]
    counts = {tenant: (await store.adapters(Scope(frozenset({tenant}))))[0] for tenant in ("acme", "b")}
    assert {tenant: each.counts["aggregated"] for tenant, each in counts.items()} == {"acme": 2, "b": 1}
    assert (counts["acme"].skew, counts["b"].skew < timedelta()) == (timedelta(), True)


async def test_heartbeats_add_to_what_was_counted_before(store: Store) -> None:
    await begin(store)
    for number in range(3):
        assert await is_recorded(store)
        (adapter,) = await store.adapters(EVERYTHING)
        assert adapter.counts["aggregated"] == number + 1
        await asyncio.sleep(0.001)


async def test_a_heartbeat_is_seen_by_the_other_replica_and_survives_a_restart(replicas: list[Store]) -> None:
    ours, other = replicas
    await begin(ours)
    assert await is_recorded(ours)
    record = await must_read(ours, "cls-1")
    assert await must_read(other, "cls-1") == record
    await asyncio.sleep(0.001)
    assert await is_recorded(other)
    await ours.close()
    await ours.open()
    assert (await must_read(ours, "cls-1")).reports["dns"].last_heard > record.reports["dns"].last_heard


async def test_replicas_record_the_same_heartbeats_at_once(replicas: list[Store]) -> None:
    """Rows are locked in one order, whatever the order of a batch: nobody waits in a circle."""
    ids = [f"cls-{number}" for number in range(20)]
    now = (await look(replicas[0], Needs())).now
    stored = replace(STORED, effective_time=now - HOUR, last_heard=now - HOUR, is_calm=True)
    await write(replicas[0], created(*map(make_record, ids)))
    await write(replicas[0], WriteSet(reports=[(id_, stored) for id_ in ids]))

    async def record(turn: int) -> int:
        beats = [make_beat(resource_id=id_) for id_ in (ids if turn % 4 < 2 else reversed(ids))]
        return sum(each is not None for each in await replicas[turn % 2].record_heartbeats(beats))

    counts = await asyncio.gather(*(record(turn) for turn in range(12)))
    assert max(counts) == 20
    (adapter,) = await replicas[1].adapters(EVERYTHING)
    assert adapter.counts["aggregated"] == sum(counts)


async def test_a_closed_store_records_nothing(store: Store) -> None:
    await begin(store)
    await store.close()
    with pytest.raises(StoreUnavailable):
        await store.record_heartbeats([make_beat()])


# ── what ordinary writes do to rows that heartbeats move ─────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_calm", [False, True])
async def test_calm_is_written_alone(store: Store, is_calm: bool) -> None:
    before = await begin(store, is_calm=not is_calm)
    change = CalmChange("cls-1", replace(before.reports["dns"], is_calm=is_calm))
    await write(store, changed(before, calm=[change]))
    after = await must_read(store, "cls-1")
    assert after.reports == {"dns": replace(before.reports["dns"], is_calm=is_calm)}
    assert await is_recorded(store) is is_calm


async def test_where_only_the_next_deadline_is_stored_nothing_else_moves(store: Store) -> None:
    before = await begin(store)
    due: datetime = (await look(store, Needs())).now - HOUR
    other = make_record("cls-1", "Failed", wake_at=due, policy_version=7, answer=b"other", revision=-9)
    base = await write(store, WriteSet(rescheduled=[other]))
    after = await must_read(store, "cls-1")
    status = replace(before.status, next_deadline=due)
    assert after == replace(before, status=status, policy_version=7)
    assert await store.position() == base
    assert (await store.due(5)).ids == ("cls-1",)
    assert (await store.outdated(8, 5))[0] == ("np-1", "cls-1")
