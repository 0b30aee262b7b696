"""Facets: which tokens a record has, and that a write adds and removes exactly the right ones."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hyperfleet.ports import FacetChange, Record
from hyperfleet.services.facet_tracker import FacetTracker
from hyperfleet.services.facets import MAX_WORD, MAX_WORDS, facets_of, whole_words
from tests.conformance.timeline import load_policy
from tests.property.worlds import DEFAULT, EVERYTHING, GUIDE, adapters, durations, kinds, policies, send
from tests.world import World, make_report

TWO = load_policy("""
requiredAdapters: [dns, network]
optionalAdapters: [metrics]
phases: {ready: {requiredConditions: [{type: Ready, status: "True"}]}}
policies: {staleThreshold: 10m}
""")


def record_of(world: World, **fields: object) -> Record:
    """Return what a store would hold of a world; `fields` are of the resource."""
    return Record(replace(world.resource, **fields), world.status, dict(world.reports))


def tokens(record: Record, prefix: str) -> list[str]:
    """Return what follows a prefix, sorted."""
    return sorted(token[len(prefix) :] for token in facets_of(record) if token.startswith(prefix))


def facet_changes(before: Record | None, after: Record | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tokens that one write adds and those that it takes away; the book's totals must say the same."""
    book = FacetTracker()
    change = book.change(before, after) or FacetChange()
    gained, lost = book.totals()
    assert (tuple(token for _, token in gained), tuple(token for _, token in lost)) == (change.gained, change.lost)
    return change.gained, change.lost


def changes_since(before: Record, world: World) -> tuple[set[str], set[str]]:
    """Return what a write added and took away that left the resource itself alone, as reports do."""
    added, removed = facet_changes(before, Record(before.resource, world.status, dict(world.reports)))
    return set(added), set(removed)


class TestTokens:
    def test_of_a_new_resource(self) -> None:
        record = record_of(World(TWO), labels={"env": "prod", "example.com/tier": ""})
        assert tokens(record, "p:") == ["Pending"]
        assert tokens(record, "c:") == ["Available=False", "Ready=False"]
        assert tokens(record, "r:") == ["Available=AdaptersMissing", "Ready=AdaptersMissing"]
        assert tokens(record, "a:") == ["dns=Unreported", "network=Unreported"]
        assert tokens(record, "b:") == ["dns", "network"]
        assert tokens(record, "s:") == []
        assert tokens(record, "l:") == ["env=prod", "example.com/tier="]

    def test_of_a_ready_resource(self) -> None:
        world = World(TWO)
        for adapter in ("dns", "network", "metrics", "stranger"):
            send(world, adapter, "Completed")
        record = record_of(world)
        assert tokens(record, "p:") == ["Ready"]
        assert tokens(record, "a:") == [f"{name}=Completed" for name in ("dns", "metrics", "network", "stranger")]
        assert tokens(record, "b:") == []

    def test_an_adapter_that_says_unknown_is_unreported(self) -> None:
        world = World(TWO)
        world.report(make_report("dns", "Unknown/Starting"))
        world.report(make_report("metrics", "Unknown/Starting"))
        assert tokens(record_of(world), "a:") == ["dns=Unreported", "network=Unreported"]

    def test_a_stale_adapter_blocks_though_it_completed(self) -> None:
        world = World(TWO)
        send(world, "dns", "Completed")
        world.pass_time(timedelta(minutes=6))
        send(world, "network", "Completed")
        world.pass_time(timedelta(minutes=6))
        record = record_of(world)
        assert tokens(record, "s:") == ["dns"]
        assert tokens(record, "b:") == ["dns"]
        assert "dns=Completed" in tokens(record, "a:")

    def test_what_flaps_has_a_token_as_long_as_it_does(self) -> None:
        world = World(TWO)
        for kind in ("Failed", "Completed", "Failed", "Completed", "Failed"):
            send(world, "dns", kind)
            world.pass_time(timedelta(seconds=1))
        before = record_of(world)
        assert tokens(before, "f:") == ["phase"]
        world.pass_time(timedelta(minutes=9))
        world.heartbeat()
        world.pass_time(timedelta(minutes=1))
        assert changes_since(before, world) == (set(), {"f:phase"})

    def test_an_outdated_adapter_blocks(self) -> None:
        world = World(TWO)
        send(world, "dns", "Completed")
        send(world, "network", "Completed")
        world.edit()
        send(world, "network", "Completed")
        assert tokens(record_of(world), "b:") == ["dns"]

    def test_an_unhealthy_adapter_that_is_available_does_not_block(self) -> None:
        # Health does not enter Ready: who is waited for is who Ready names.
        world = World(TWO)
        send(world, "dns", "UnhealthyButAvailable")
        record = record_of(world)
        assert "dns=Unhealthy" in tokens(record, "a:")
        assert tokens(record, "b:") == ["network"]

    def test_a_deleted_resource_waits_for_those_that_have_not_finalized(self) -> None:
        world = World(TWO)
        send(world, "dns", "Completed")
        send(world, "network", "Completed")
        world.delete()
        send(world, "dns", "Completed")  # available at the new generation, and not cleaned up
        world.report(make_report("network", "False/Gone", generation=2, extra={"Finalized": "True"}))
        assert tokens(record_of(world), "b:") == ["dns"]


class TestWords:
    def test_names_and_label_values_whole_and_in_parts(self) -> None:
        world = World(TWO)
        send(world, "dns", "Completed")
        send(world, "network", "Completed")
        record = record_of(world, id="cls-7f", name="Prod-EU", labels={"zone": "eu-west_1.a"})
        assert tokens(record, "w:") == ["1", "7f", "a", "cls", "cls-7f", "eu", "eu-west_1.a", "prod", "prod-eu", "west"]

    def test_reasons_of_what_is_wrong_and_who_is_waited_for(self) -> None:
        world = World(TWO)
        send(world, "dns", "Completed")
        world.report(make_report("network", "False/AWSQuotaExceeded/no more"))
        words = tokens(record_of(world), "w:")
        assert {"awsquotaexceeded", "aws", "quota", "exceeded", "adaptersfailed", "network"} <= set(words)
        assert "dns" not in words
        assert "jobsucceeded" not in words

    def test_they_are_normalised_and_cut(self) -> None:
        assert whole_words("Cafe\u0301 CAF\u00c9") == ["caf\u00e9", "caf\u00e9"]
        assert whole_words("x" * 100) == ["x" * MAX_WORD]
        assert whole_words("(eu-west), -a- _ %") == ["eu-west", "a"]

    def test_there_are_not_too_many(self) -> None:
        labels = {f"k{number}": f"v{number}-{number}x-{number}y" for number in range(300)}
        words = tokens(record_of(World(TWO), labels=labels), "w:")
        assert len(words) == MAX_WORDS
        assert {"my-cluster", "cls-123", "dns", "network"} <= set(words)


class TestChanges:
    def test_of_a_new_and_of_a_removed_resource(self) -> None:
        record = record_of(World(TWO))
        everything = tuple(sorted(facets_of(record)))
        assert facet_changes(None, record) == (everything, ())
        assert facet_changes(record, None) == ((), everything)
        assert facet_changes(None, None) == ((), ())

    def test_a_heartbeat_changes_nothing(self) -> None:
        world = World(TWO)
        send(world, "dns", "Failed")
        before = record_of(world)
        world.pass_time(timedelta(minutes=1))
        world.heartbeat()
        after = Record(before.resource, world.status, dict(world.reports))
        assert after.status != before.status
        assert facet_changes(before, after) == ((), ())

    def test_another_reason_of_a_failure_is_noticed(self) -> None:
        world = World(TWO)
        world.report(make_report("dns", "False/QuotaExceeded/same words"))
        before = record_of(world)
        world.report(make_report("dns", "False/ZoneLost/same words"))
        gone = {"w:quotaexceeded", "w:quota", "w:exceeded"}
        assert changes_since(before, world) == ({"w:zonelost", "w:zone", "w:lost"}, gone)

    def test_an_adapter_that_a_new_policy_requires_is_noticed(self) -> None:
        world = World(TWO)
        before = record_of(world)
        world.use_policy(replace(TWO, required=("dns", "network", "storage"), digest="another"))
        assert changes_since(before, world) == ({"a:storage=Unreported", "b:storage", "w:storage"}, set())

    def test_an_adapter_that_finalizes_is_noticed(self) -> None:
        world = World(TWO)
        world.delete()
        send(world, "dns", "Completed")
        before = record_of(world)
        send(world, "dns", "Completed", extra={"Finalized": "True"})
        assert changes_since(before, world) == (set(), {"b:dns", "w:dns"})

    def test_an_adapter_that_gets_available_but_stays_unhealthy_is_noticed(self) -> None:
        world = World(TWO)
        world.report(make_report("network", "False/JobFailed"))
        world.report(make_report("dns", "False/JobFailed", health="False"))
        before = record_of(world)
        world.report(make_report("dns", "True/JobFailed", health="False"))
        assert changes_since(before, world) == (set(), {"b:dns", "w:dns"})

    def test_an_adapter_that_catches_up_but_stays_unhealthy_is_noticed(self) -> None:
        world = World(TWO)
        send(world, "dns", "UnhealthyButAvailable")
        world.edit()
        world.report(make_report("network", "False/JobFailed", generation=2))
        before = record_of(world)
        send(world, "dns", "UnhealthyButAvailable")
        assert changes_since(before, world) == (set(), {"b:dns", "w:dns"})

    def test_an_optional_adapter_that_gets_stale_is_noticed(self) -> None:
        world = World(TWO)
        send(world, "metrics", "Completed")
        before = record_of(world)
        world.pass_time(timedelta(minutes=10))
        assert changes_since(before, world) == ({"s:metrics"}, set())

    def test_each_event_of_one_transaction_tells_its_own(self) -> None:
        book, world = FacetTracker(), World(TWO)
        records = [record_of(world)]
        for kind in ("Failed", "Completed", "Completed"):
            send(world, "dns", kind)
            records.append(Record(records[0].resource, world.status, dict(world.reports)))
        first, failed, completed = (book.change(*pair) for pair in pairwise([None, *records[:3]]))
        assert first is not None
        assert set(first.gained) == facets_of(records[0])
        assert failed is not None
        assert "a:dns=Failed" in failed.gained
        assert completed is not None
        assert "a:dns=Failed" in completed.lost
        assert {*completed.kept, *completed.gained} == facets_of(records[2])
        assert book.change(records[2], records[3]) is None
        assert set(book.unchanged(records[3]).kept) == facets_of(records[3])
        assert book.totals() == ([("cls-123", token) for token in sorted(facets_of(records[3]))], [])
        gone = book.change(records[3], None)
        assert gone is not None
        assert set(gone.lost) == facets_of(records[3])
        assert book.totals() == ([], [])

    @pytest.mark.parametrize("change", [{"name": "other"}, {"labels": {"env": "prod"}}])
    def test_an_edit_is_noticed(self, change: dict[str, object]) -> None:
        before = record_of(World(TWO))
        after = replace(before, resource=replace(before.resource, **change))
        added, removed = facet_changes(before, after)
        assert facets_of(before) - set(removed) | set(added) == facets_of(after)
        assert added


@st.composite
def steps(draw: st.DrawFn, world: World) -> None:
    """Let one thing happen, of all that can."""
    match draw(st.sampled_from(("report", "report", "report", "beat", "wait", "edit", "policy", "delete", "final"))):
        case "report":
            send(world, draw(adapters), draw(kinds))
        case "beat":
            world.heartbeat()
        case "wait":
            world.pass_time(draw(durations))
        case "edit":
            world.edit()
        case "policy":
            world.use_policy(draw(policies))
        case "delete" if not world.resource.is_deleting:
            world.delete()
        case _:
            send(world, draw(adapters), draw(kinds), extra={"Finalized": draw(st.sampled_from(("True", "False")))})


@given(st.data())
def test_the_shortcut_never_misses_a_change(data: st.DataObject) -> None:
    """Replay what the store is told over a history, policy changes included: it must hold the tokens of the end."""
    world = World(data.draw(st.sampled_from((GUIDE, DEFAULT, EVERYTHING, TWO))))
    before: Record | None = None
    stored: set[str] = set()
    for _ in range(data.draw(st.integers(1, 12))):
        after = (
            record_of(world) if before is None else replace(before, status=world.status, reports=dict(world.reports))
        )
        if before is not None and before.resource != world.resource:
            after = replace(after, resource=world.resource)
        added, removed = facet_changes(before, after)
        assert not stored & set(added)
        assert stored >= set(removed)
        stored = (stored - set(removed)) | set(added)
        assert stored == facets_of(after)
        before = after
        data.draw(steps(world))
