"""Heartbeats: what they moved is found by every read, whether the row that it belongs to was written or is behind."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hyperfleet.ports import EVERYTHING, Changes, LoggedReport, Needs, Record, Store
from tests.contract.conftest import NewStore
from tests.contract.heartbeats import SECOND, beat, begin, heard, together
from tests.contract.stores import (
    START,
    changed,
    created,
    look,
    make_draft,
    make_pool,
    make_record,
    make_stored,
    must_read,
    write,
)

pytestmark = pytest.mark.anyio

WANTED = Needs(ids=frozenset({"cls-1"}))


async def assert_everywhere(store: Store, wanted: Record) -> None:
    """See that every read finds a record, its revision aside."""

    def seen(record: Record) -> Record:
        return replace(record, revision=0)

    wanted = seen(wanted)
    assert seen(await must_read(store, "cls-1")) == wanted
    assert seen((await look(store, WANTED)).records["cls-1"]) == wanted
    assert [seen(each) for each in await store.read_records(["cls-1"], EVERYTHING)] == [wanted]
    assert [seen(each) for each in await store.walk("", 10, EVERYTHING)] == [wanted]
    told = {each.report.adapter: each for each in await store.read_reports_at("cls-1", EVERYTHING, 1)}
    assert {adapter: told[adapter] for adapter in wanted.reports} == wanted.reports  # the log also has those retired
    answer = await store.read_answer("Cluster", "cls-1", EVERYTHING)
    assert answer is not None
    assert answer.body == wanted.answer


async def test_every_read_finds_what_heartbeats_moved(store: Store) -> None:
    record = await begin(store)
    for seconds, adapter in enumerate(("dns", "apply", "dns"), 1):
        changes = beat(record, adapter, seconds, accepted=("d1", f"d{seconds}"))
        await write(store, changes)
        (record,) = changes.updated
        await assert_everywhere(store, record)


async def test_a_store_that_is_opened_again_finds_it_too(new_store: NewStore) -> None:
    first, second = new_store(), new_store()
    await first.migrate()
    await first.open()
    record = await begin(first)
    changes = beat(record, "dns", 1, out_of_order=2, has_verdict=False, last_unknown=START)
    await write(first, changes)
    await first.close()
    await second.open()
    await assert_everywhere(second, changes.updated[0])
    again = beat(changes.updated[0], "apply", 2)
    await write(second, again)
    await assert_everywhere(second, again.updated[0])
    await second.close()


async def test_news_after_heartbeats_leave_the_others_where_they_were(store: Store) -> None:
    record = await begin(store)
    for seconds, adapter in enumerate(("dns", "apply"), 1):
        changes = beat(record, adapter, seconds)
        await write(store, changes)
        (record,) = changes.updated
    news = make_stored("dns", said="otherwise", last_heard=START + 3 * SECOND, effective_time=START + 3 * SECOND)
    after = heard(record, news)
    await write(store, changed(after, reports=[("cls-1", news)]))
    await assert_everywhere(store, after)
    retired = replace(after, reports={"dns": news})
    await write(store, changed(retired, retired=[("cls-1", "apply")]))
    await assert_everywhere(store, retired)
    back = make_stored("apply")
    after = replace(retired, reports={"apply": back, "dns": news})
    await write(store, changed(after, reports=[("cls-1", back)]))
    await assert_everywhere(store, after)


async def test_other_words_can_come_with_a_status_of_which_only_times_moved(store: Store) -> None:
    record = await begin(store)
    news = make_stored("dns", said="that no rule looks at", last_heard=START + SECOND, effective_time=START + SECOND)
    after = heard(record, news)
    await write(store, changed(after, reports=[("cls-1", news)], steady=frozenset({"cls-1"})))
    await assert_everywhere(store, after)


async def test_what_is_gone_takes_its_pulse_along(store: Store) -> None:
    record = await begin(store)
    await write(store, beat(record, "dns", 1))
    removal = make_draft(record.resource, type_="Removed", answer=None)
    await write(store, Changes(removed=[record.resource], events=[removal]))
    await write(store, created(make_record("cls-1")))
    await assert_everywhere(store, make_record("cls-1"))


async def test_heartbeats_leave_their_events_and_their_places_in_the_log(store: Store) -> None:
    record = await begin(store)
    pool = make_record(make_pool("np-1", "cls-1"), reports={"dns": make_stored()})
    log = [LoggedReport("np-1", make_stored(), 0)]
    await write(store, replace(created(pool), reports=[("np-1", make_stored())], log=log))
    base = await write(store, together(beat(record, "dns", 1), beat(pool, "dns", 2)))
    entries = (await store.read_events(base, 10)).entries
    assert [(each.position, each.type, each.kind, each.resource_id, each.parent_id) for each in entries] == [
        (base + 1, "Reported", "Cluster", "cls-1", None),
        (base + 2, "Reported", "NodePool", "np-1", "cls-1"),
    ]
    assert [(each.tenant, each.generation, each.time, each.answer, each.facets) for each in entries] == [
        ("acme", 1, START + SECOND, None, None),
        ("acme", 1, START + 2 * SECOND, None, None),
    ]
    assert (await must_read(store, "cls-1")).revision == base + 1
    assert (await must_read(store, "np-1", "NodePool")).revision == base + 2


async def test_two_heartbeats_of_a_resource_in_one_transaction_are_two_events(store: Store) -> None:
    record = await begin(store)
    first = beat(record, "dns", 1)
    second = beat(first.updated[0], "apply", 2)
    both = replace(together(first, second), updated=second.updated, revisions={"cls-1": 1})
    base = await write(store, both)
    assert [each.time for each in (await store.read_events(base, 10)).entries] == [START + SECOND, START + 2 * SECOND]
    await assert_everywhere(store, second.updated[0])
    assert (await must_read(store, "cls-1")).revision == base + 2
