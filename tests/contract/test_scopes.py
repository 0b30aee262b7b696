"""The store port: whoever may not see a resource finds nothing of it, in no table and at no time."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from hyperfleet.ports import EVERYTHING, HistoryQuery, LoggedReport, Needs, Query, Scope, Store, TokenTerm, WriteSet
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
    "read_transitions": lambda store, scope, now: store.read_transitions(HistoryQuery("cls-1", scope)),
    "existed": lambda store, scope, now: store.existed("Cluster", "cls-1", scope),
    "read_version": lambda store, scope, now: store.read_version("Cluster", "cls-1", scope, now),
    "read_versions": lambda store, scope, now: store.read_versions("cls-1", scope, now - DAY),
    "read_reports_past": lambda store, scope, now: store.read_reports_past("cls-1", scope, now),
    "read_report_log": lambda store, scope, now: store.read_report_log("cls-1", scope, now - DAY),
    "walk": lambda store, scope, now: store.walk("", 10, scope),
}
OF_THE_PAST = ("read_transitions", "existed", "read_version", "read_versions", "read_reports_past", "read_report_log")
# Of no resource; the log that all watches share; what upkeep does for all; and adapters, which have tests elsewhere.
WITHOUT = {
    *("open", "close", "check", "transact", "position", "read_events", "due", "outdated", "claim"),
    *("activate_policy", "active_policy", "policy_versions", "read_policy", "prune", "adapters"),
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
