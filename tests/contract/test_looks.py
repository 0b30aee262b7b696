"""When the sentinel looks at which resource: the same on every store."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from hyperfleet.ports import EVERYTHING, LookMove, LookPlan, Needs, Record, Scope, Store, WriteSet
from hyperfleet.sentinel.schedule import LookHistory
from tests.contract.stores import (
    changed,
    created,
    look,
    make_pool,
    make_record,
    make_resource,
    must_read,
    prune_all,
    write,
)

pytestmark = pytest.mark.anyio

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
ACME, OTHER = Scope(frozenset({"acme"})), Scope(frozenset({"globex"}))


async def time_of(store: Store) -> datetime:
    """Return the time of a store, to the microsecond."""
    return (await look(store, Needs())).now


def due_at(id_: str, at: datetime | None, tenant: str = "acme", history: LookHistory = LookHistory()) -> Record:  # noqa: B008
    """Make a cluster with its next look."""
    return make_record(make_resource(id_, tenant=tenant), look=LookPlan(at, history))


async def ids_due(store: Store, scope: Scope = EVERYTHING) -> list[str]:
    """Return the ids of all clusters that are due."""
    return [each.resource.id for each in (await store.looks.due("Cluster", scope, 100)).looks]


async def test_what_is_due_comes_in_order_of_time_and_with_its_answer(store: Store) -> None:
    now = await time_of(store)
    history = LookHistory(now - HOUR, 3, 2)
    first = due_at("cls-b", now - 2 * MINUTE, history=history)
    rest = [due_at("cls-a", now - MINUTE), due_at("cls-c", now - MINUTE), due_at("cls-d", now + HOUR)]
    await write(store, created(first, *rest, due_at("cls-e", None)))
    await write(store, created(make_record(make_pool("np-1", "cls-a"), look=LookPlan(now - HOUR))), "cls-a")
    page = await store.looks.due("Cluster", EVERYTHING, 10)
    assert [each.resource.id for each in page.looks] == ["cls-b", "cls-a", "cls-c"]
    assert page.now >= now
    found = page.looks[0]
    assert (found.resource, found.status, found.answer, found.look) == (
        first.resource,
        first.status,
        first.answer,
        LookPlan(now - 2 * MINUTE, history),
    )
    assert [each.resource.id for each in (await store.looks.due("NodePool", EVERYTHING, 10)).looks] == ["np-1"]
    assert (await must_read(store, "cls-b")).look == LookPlan(now - 2 * MINUTE, history)
    assert (await look(store, Needs(ids=frozenset({"cls-b"})))).records["cls-b"].look == found.look
    assert (await must_read(store, "cls-e")).look == LookPlan()


async def test_pages_follow_each_other(store: Store) -> None:
    now = await time_of(store)
    await write(store, created(*[due_at(f"cls-{number}", now - MINUTE) for number in range(5)]))
    seen: list[str] = []
    after: tuple[datetime, str] | None = None
    while looks := (await store.looks.due("Cluster", EVERYTHING, 2, after)).looks:
        seen += [each.resource.id for each in looks]
        last = looks[-1]
        assert last.look.at is not None
        after = (last.look.at, last.resource.id)
    assert seen == [f"cls-{number}" for number in range(5)]


async def test_what_others_own_is_not_due(store: Store) -> None:
    now = await time_of(store)
    await write(store, created(due_at("cls-1", now - MINUTE), due_at("cls-2", now + HOUR)))
    assert await ids_due(store, ACME) == ["cls-1"]
    assert await ids_due(store, OTHER) == []
    assert len((await store.looks.read("Cluster", ["cls-1", "cls-2", "none"], ACME)).looks) == 2
    assert (await store.looks.read("Cluster", ["cls-1"], OTHER)).looks == ()
    assert (await store.looks.read("NodePool", ["cls-1"], ACME)).looks == ()
    foreign = await store.looks.count("Cluster", OTHER, 10)
    assert (foreign.due, foreign.oldest, foreign.next) == (0, None, None)
    own = await store.looks.count("Cluster", ACME, 10)
    assert (own.due, own.oldest, own.next) == (1, now - MINUTE, now + HOUR)


async def test_counting_ends_at_the_limit(store: Store) -> None:
    now = await time_of(store)
    assert (await store.looks.count("Cluster", EVERYTHING, 10)).next is None
    await write(store, created(*[due_at(f"cls-{number}", now - number * MINUTE) for number in range(5)]))
    counts = await store.looks.count("Cluster", EVERYTHING, 3)
    assert (counts.due, counts.oldest) == (3, now - 4 * MINUTE)


async def test_only_what_is_as_it_was_read_moves(store: Store) -> None:
    now = await time_of(store)
    await write(store, created(due_at("cls-1", now - MINUTE), due_at("cls-2", now - MINUTE)))
    was, then = LookPlan(now - MINUTE), LookPlan(now + HOUR, LookHistory(now, 1))
    moves = [LookMove("cls-1", was, then), LookMove("cls-2", LookPlan(now), then), LookMove("gone", was, then)]
    assert await store.looks.advance(moves) == {"cls-1"}
    assert await store.looks.advance(moves) == frozenset(), "it has moved already"
    assert await store.looks.advance([]) == frozenset()
    assert await ids_due(store) == ["cls-2"]
    assert (await must_read(store, "cls-1")).look == then
    back = LookMove("cls-1", then, LookPlan(now, LookHistory(now, 2, 1)))
    assert await store.looks.advance([back]) == {"cls-1"}
    assert (await must_read(store, "cls-1")).look == back.after


async def test_a_write_sets_the_next_look_and_a_look_is_not_a_write(store: Store) -> None:
    now = await time_of(store)
    await write(store, created(due_at("cls-1", now - MINUTE)))
    record = await must_read(store, "cls-1")
    assert await store.looks.advance([LookMove("cls-1", record.look, LookPlan(now + HOUR))]) == {"cls-1"}
    assert await must_read(store, "cls-1") == replace(record, look=LookPlan(now + HOUR)), "nothing else moves"
    later = replace(record, look=LookPlan(now + 2 * HOUR, LookHistory(now, 1)))
    await write(store, changed(later))
    assert (await must_read(store, "cls-1")).look == later.look
    await write(store, WriteSet(rescheduled=[replace(later, look=LookPlan(now - HOUR))]))
    assert await ids_due(store) == ["cls-1"]


async def test_all_are_spread_over_a_time(store: Store) -> None:
    now = await time_of(store)
    history = LookHistory(now, 4)
    records = [due_at(f"cls-{number}", now + HOUR, history=history) for number in range(20)]
    early, never = due_at("cls-early", now - MINUTE, history=history), due_at("cls-never", None)
    await write(store, created(*records, early, never))

    async def spread(*, forgets: bool) -> None:
        last = ""
        for _ in range(99):
            following = await store.looks.spread(last, 5, 10 * MINUTE, forgets=forgets)
            if following is None:
                return
            last = following
        pytest.fail("it does not end")

    await spread(forgets=False)
    looks = {each.resource.id: (await must_read(store, each.resource.id)).look for each in (*records, early, never)}
    upto = await time_of(store) + 10 * MINUTE
    times = [each.at for each in looks.values() if each.at is not None]
    assert len(times) == 22
    assert max(times) <= upto
    assert len(set(times)) > 10, "not all at once"
    assert looks["cls-early"] == early.look
    assert {each.history for id_, each in looks.items() if id_ != "cls-never"} == {history}
    await spread(forgets=True)
    for each in records:
        found, before = (await must_read(store, each.resource.id)).look, looks[each.resource.id]
        assert found.history == LookHistory()
        assert found.at is not None
        assert before.at is not None
        assert found.at <= before.at


async def test_the_digest_of_the_rules_is_kept(store: Store) -> None:
    assert await store.looks.rules_digest() == ""
    await store.looks.save_rules_digest("abc")
    assert await store.looks.rules_digest() == "abc"


async def test_leases_are_found_until_they_expire(store: Store) -> None:
    for name in ("sentinel/a/2", "sentinel/a/1", "sentinel/ab/1", "relay"):
        assert await store.take_lease(name, name[-1], MINUTE) is not None
    short = await store.take_lease("sentinel/a/3", "3", timedelta(milliseconds=20))
    assert short is not None
    await asyncio.sleep(0.05)
    assert [each.name for each in await store.leases("sentinel/a/")] == ["sentinel/a/1", "sentinel/a/2"]
    (one,) = await store.leases("sentinel/ab/")
    await store.release_lease(one)
    assert await store.leases("sentinel/ab/") == ()


async def test_of_two_replicas_one_moves_a_look(replicas: list[Store]) -> None:
    now = await time_of(replicas[0])
    await write(replicas[0], created(*[due_at(f"cls-{number:02}", now - MINUTE) for number in range(40)]))
    moves = [LookMove(f"cls-{number:02}", LookPlan(now - MINUTE), LookPlan(now + HOUR)) for number in range(40)]
    one, two = await asyncio.gather(replicas[0].looks.advance(moves), replicas[1].looks.advance(moves[::-1]))
    assert not one & two
    assert len(one | two) == 40


async def test_members_that_are_long_gone_are_forgotten_and_other_leases_are_not(store: Store) -> None:
    moment = timedelta(milliseconds=1)
    for name in ("sentinel/a/all/1", "relay"):
        for epoch in (1, 2):
            await asyncio.sleep(0.01)
            lease = await store.take_lease(name, str(epoch), moment)
            assert lease is not None
            assert lease.epoch == epoch
    await asyncio.sleep(0.01)
    await prune_all(store, "keys", timedelta())
    for name, epoch in (("sentinel/a/all/1", 1), ("relay", 3)):
        lease = await store.take_lease(name, "3", moment)
        assert lease is not None
        assert lease.epoch == epoch
