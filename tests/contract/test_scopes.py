"""The store port: whoever may not see a resource finds nothing of it, in no table and at no time."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from hyperfleet.ports import (
    EVERYTHING,
    ChangeQuery,
    Heartbeat,
    HistoryQuery,
    LoggedReport,
    Needs,
    Query,
    Scope,
    Store,
    TokenQuery,
    TokenTerm,
    WriteSet,
)
from tests.contract.stores import (
    changed,
    created,
    look,
    make_draft,
    make_pool,
    make_record,
    make_resource,
    make_stored,
    moved,
    must_read,
    prune_all,
    write,
)

pytestmark = pytest.mark.anyio

ACME, OTHER, NOBODY = Scope(frozenset({"acme", "b"})), Scope(frozenset({"b", ""})), Scope(frozenset())
DAY = timedelta(days=1)

Read = Callable[[Store, Scope, datetime], Awaitable[Any]]


async def count_now(store: Store, scope: Scope, _: datetime) -> list[Any]:
    """Return what is counted, groups and total, without the position."""
    found = await store.count_now(Query("Cluster", scope), ("p:",))
    return [*found.groups, *[found.total] * (found.total > 0)]


async def read_changes(store: Store, scope: Scope, now: datetime) -> Any:
    """Return the changes of a page."""
    return (await store.read_changes(ChangeQuery(after=0, scope=scope, until=now + DAY))).changes


async def read_token_moves(store: Store, scope: Scope, now: datetime) -> Any:
    """Return what happened to a token of clusters."""
    query = TokenQuery(0, await store.position(), now - DAY, Query("Cluster", scope), (TokenTerm(("p:Ready",)),))
    return await store.read_token_moves(query)


# Every read that takes a scope, of the cluster `cls-1` or of all there is.
READS: dict[str, Read] = {
    "read_answer": lambda store, scope, now: store.read_answer("Cluster", "cls-1", scope),
    "read_record": lambda store, scope, now: store.read_record("Cluster", "cls-1", scope),
    "read_records": lambda store, scope, now: store.read_records(["cls-1", "np-1"], scope),
    "read_children": lambda store, scope, now: store.read_children("cls-1", scope),
    "read_reports_at": lambda store, scope, now: store.read_reports_at("cls-1", scope, 1),
    "find": lambda store, scope, now: store.find(Query("Cluster", scope, terms=(TokenTerm(("p:Ready",)),))),
    "count": lambda store, scope, now: store.count(Query("NodePool", scope, parent_id="cls-1")),
    "summarize": lambda store, scope, now: store.summarize(Query("Cluster", scope), ("p:",)),
    "count_now": count_now,
    "read_transitions": lambda store, scope, now: store.read_transitions(HistoryQuery("cls-1", scope)),
    "existed": lambda store, scope, now: store.existed("Cluster", "cls-1", scope),
    "read_version": lambda store, scope, now: store.read_version("Cluster", "cls-1", scope, now),
    "read_versions": lambda store, scope, now: store.read_versions("cls-1", scope, now - DAY),
    "read_reports_past": lambda store, scope, now: store.read_reports_past("cls-1", scope, now),
    "read_report_log": lambda store, scope, now: store.read_report_log("cls-1", scope, now - DAY),
    "read_changes": read_changes,
    "read_token_moves": read_token_moves,
    "walk": lambda store, scope, now: store.walk("", 10, scope),
}
OF_THE_PAST = (
    *("read_transitions", "existed", "read_version", "read_versions", "read_reports_past", "read_report_log"),
    *("read_changes", "read_token_moves"),
)
# Of no resource; the log that all watches share, and readers of all of it; what upkeep does for all; adapters, which
# have tests elsewhere; leases; and heartbeats, which have a scope each and a test below. Queues: test_queues.py. Looks:
# test_looks.py.
WITHOUT = {
    *("open", "close", "check", "transact", "position", "read_events", "due", "outdated", "claim"),
    *("activate_policy", "active_policy", "policy_versions", "read_policy", "prune", "adapters"),
    *("open_reader", "readers", "read_next", "advance_reader", "close_reader", "drop_readers", "position_before"),
    *("record_heartbeats", "take_lease", "release_lease", "leases", "store_id"),
    *("on_foreign_commit", "on_foreign_messages", "read_webhooks", "save_webhook"),
}


async def live(store: Store, id_: str = "cls-1", tenant: str = "acme") -> datetime:
    """Write a cluster with a node pool, reports now and before, and a history; return the time."""
    now = (await look(store, Needs())).now
    cluster = make_record(make_resource(id_, tenant=tenant))
    await write(store, created(cluster, tokens={id_: ["p:Ready"]}, time=now))
    pool = make_record(make_pool("np-1", id_, tenant=tenant))
    await write(store, created(pool, time=now), id_)
    stored = [make_stored(adapter, id=adapter, last_heard=now) for adapter in ("apply", "dns")]
    reported = changed(
        await must_read(store, id_),
        time=now,
        reports=[(id_, stored[0])],
        log=[LoggedReport(id_, each, None) for each in stored],
    )
    await write(store, reported)
    draft = make_draft(cluster.resource, moved("phase", "Pending", "Ready", now), time=now)
    await write(store, WriteSet(events=[draft]), id_)
    return now


def test_every_read_is_tried() -> None:
    methods = {name for name, _ in inspect.getmembers(Store, inspect.isfunction) if not name.startswith("_")}
    assert methods == READS.keys() | WITHOUT, "a new read takes a scope and is tried here, or is excused above"


@pytest.mark.parametrize("name", READS)
async def test_what_others_own_is_not_there(store: Store, name: str) -> None:
    now = await live(store)
    read = READS[name]
    whole = await read(store, EVERYTHING, now)
    assert whole
    assert await read(store, ACME, now) == whole
    for scope in (OTHER, NOBODY):
        assert not await read(store, scope, now), (name, scope)


@pytest.mark.parametrize("name", OF_THE_PAST)
async def test_what_others_owned_is_not_there_when_it_is_gone(store: Store, name: str) -> None:
    now = await live(store)
    resources = [(await must_read(store, "cls-1")).resource, (await must_read(store, "np-1", "NodePool")).resource]
    gone = [make_draft(each, type_="Removed", time=now, answer=None) for each in resources]
    await write(store, WriteSet(removed=resources, events=gone))
    read = READS[name]
    whole = await read(store, EVERYTHING, now)
    assert whole
    assert await read(store, ACME, now) == whole
    for scope in (OTHER, NOBODY):
        assert not await read(store, scope, now), (name, scope)


async def test_what_nobody_knows_the_owner_of_is_told_only_to_those_who_see_everything(store: Store) -> None:
    now = await live(store)
    resources = [(await must_read(store, "cls-1")).resource, (await must_read(store, "np-1", "NodePool")).resource]
    gone = [make_draft(each, type_="Removed", time=now - 2 * DAY, answer=None) for each in resources]
    await write(store, WriteSet(removed=resources, events=gone))
    await prune_all(store, "events", timedelta())
    read = READS["read_transitions"]
    assert await read(store, EVERYTHING, now)
    assert not await read(store, ACME, now)


@pytest.mark.parametrize(("id_", "kind", "parent_id"), [("cls-1", "Cluster", None), ("np-1", "NodePool", "cls-1")])
async def test_a_heartbeat_for_what_others_own_is_not_recorded(
    store: Store, id_: str, kind: str, parent_id: str | None
) -> None:
    now = await live(store)
    calm = make_stored("dns", is_calm=True, effective_time=now - DAY, last_heard=now - DAY)
    await write(store, changed(await must_read(store, id_, kind), time=now, reports=[(id_, calm)]))
    before, position = await must_read(store, id_, kind), await store.position()

    def heartbeat(scope: Scope) -> Heartbeat:
        return Heartbeat(kind, id_, parent_id, scope, "dns", 1, calm.digest, None, wants_report=True)

    for scope in (OTHER, NOBODY):
        assert await store.record_heartbeats([heartbeat(scope)]) == [None]
    assert await must_read(store, id_, kind) == before, "nothing has moved"
    for scope in (ACME, EVERYTHING):
        (recorded,) = await store.record_heartbeats([heartbeat(scope)])
        assert recorded is not None, "it was only because of the scope"
        assert recorded.tenant == "acme"
    after = await must_read(store, id_, kind)
    assert after.reports["dns"].last_heard > before.reports["dns"].last_heard
    assert await store.position() == position


async def test_in_one_batch_only_ones_own_heartbeats_are_recorded(store: Store) -> None:
    now = await live(store)
    calm = make_stored("dns", is_calm=True, effective_time=now - DAY, last_heard=now - DAY)
    other = make_record(make_resource("cls-2", tenant="b"))
    await write(store, created(other, time=now))
    for id_ in ("cls-1", "cls-2"):
        await write(store, changed(await must_read(store, id_), time=now, reports=[(id_, calm)]))
    before = await must_read(store, "cls-1")
    sent = [Heartbeat("Cluster", id_, None, OTHER, "dns", 1, calm.digest, None) for id_ in ("cls-1", "cls-2")]
    foreign, own = await store.record_heartbeats(sent)
    assert foreign is None
    assert own is not None
    assert (own.name, own.tenant) == ("cls-2", "b")
    assert await must_read(store, "cls-1") == before, "nothing has moved"
