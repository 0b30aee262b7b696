"""The write path: commands, one after the other in one transaction, and what is written of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any, NoReturn

import pytest
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.aggregation import load_policies
from hyperfleet.errors import Overloaded
from hyperfleet.model.kind import CLUSTER, NODE_POOL
from hyperfleet.ports import EVERYTHING, HistoryQuery, NewPolicy, Scope, StatusCause
from hyperfleet.services.callers import ANONYMOUS, Caller
from hyperfleet.services.commands import Wants
from hyperfleet.services.committer import Capacity
from hyperfleet.services.facets import facets_of
from hyperfleet.services.policies import digest_of
from hyperfleet.services.reports import MAX_ADAPTERS, AcceptReports, RetireAdapter, Submission
from hyperfleet.services.resources import Create, Edit, ForceDelete, merge_patch
from hyperfleet.services.results import Preconditions, Refusal, Reported, ResourceEdit, Written
from hyperfleet.services.upkeep import recompute_all
from hyperfleet.services.workspace import Workspace
from tests.unit.services.desk import POLICY, START, Desk, accept_all, open_desk, target_of
from tests.world import make_report

Story = Callable[[Desk], Awaitable[None]]


def run(story: Story, policy: str = POLICY, capacity: Capacity | None = None) -> None:
    async def told() -> None:
        async with open_desk(policy, capacity) as desk:
            await story(desk)

    asyncio.run(told())


def test_a_report_is_aggregated_in_its_own_write() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        await desk.report("cls-a", "validation", "True")
        result = await desk.report("cls-a", "dns", "True")
        assert isinstance(result, Reported)
        assert result.phase == "Ready"
        assert (await desk.must_read("cls-a")) == result.record

    run(story)


def test_every_event_tells_what_became_of_the_tokens() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a", labels={"env": "prod"})
        commands = [desk.reporting("cls-a", "dns", said) for said in ("False/Broken", "True", "True")]
        await asyncio.gather(*(desk.committer.submit(command) for command in commands))  # in one transaction
        for adapter, said in (
            ("validation", "True"),
            ("validation", "True"),
            ("dns", "False/Lost"),
            ("dns", "False/Else"),
        ):
            desk.clock.pass_time(timedelta(seconds=1))
            await desk.report("cls-a", adapter, said)
        await desk.edit("cls-a", size=2)
        kept = facets_of(await desk.must_read("cls-a"))
        await desk.delete("cls-a")
        for adapter in ("dns", "validation"):
            desk.clock.pass_time(timedelta(seconds=1))
            await desk.report("cls-a", adapter, "True", generation=3, extra={"Finalized": "True"})
        entries = (await desk.store.read_events(0, 100)).entries
        assert [entry.type for entry in entries if entry.facets is None] == []
        tokens: set[str] = set()
        for change in (entry.facets for entry in entries if entry.facets is not None):
            assert {*change.kept, *change.lost} == tokens
            assert not {*change.gained} & tokens
            tokens = {*change.kept, *change.gained}
        assert tokens == set()
        edit = next(entry.facets for entry in entries if entry.type == "SpecChanged")
        assert edit is not None
        assert {*edit.kept, *edit.gained} == kept
        last = entries[-1].facets
        assert (entries[-1].type, last and bool(last.lost)) == ("Removed", True)

    run(story)


def test_what_moves_a_token_is_more_than_a_heartbeat() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        await desk.create("np", kind=NODE_POOL, parent_id="cls-a")
        await desk.report("cls-a", "dns", "True")
        await desk.delete("cls-a")
        await desk.report("cls-a", "dns", "True", generation=2)
        desk.clock.pass_time(timedelta(seconds=1))
        await desk.report("cls-a", "dns", "True", generation=2, extra={"Finalized": "True"})
        desk.clock.pass_time(timedelta(seconds=1))
        await desk.report("cls-a", "dns", "True", generation=2, extra={"Finalized": "True"})
        *_, done = (await desk.store.read_events(0, 100)).entries
        assert done.facets is not None
        assert done.type == "StatusChanged"
        assert "b:dns" in done.facets.lost

    run(story)


def test_positions_are_dense_and_a_revision_is_the_last_of_them() -> None:
    async def story(desk: Desk) -> None:
        first = await desk.create("a")
        second = await desk.create("b")
        third = await desk.report("cls-a", "dns", "True")
        assert isinstance(first, Written)
        assert isinstance(second, Written)
        assert isinstance(third, Reported)
        assert third.record is not None
        assert [first.record.revision, second.record.revision, third.record.revision] == [1, 2, 3]

    run(story)


def test_commands_of_one_batch_are_done_as_if_each_were_alone() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        batch = [
            desk.reporting("cls-a", "validation", "True"),
            desk.reporting("cls-a", "dns", "True"),
            desk.reporting("cls-a", "dns", "False/Broken"),
        ]
        results = await desk.committer.submit_all(batch)
        phases = [result.phase for result in results if isinstance(result, Reported)]
        assert phases == ["Provisioning", "Ready", "Failed"]
        record = await desk.must_read("cls-a")
        assert record.revision == 4
        recorded = await desk.store.read_transitions(HistoryQuery("cls-a", EVERYTHING))
        moves = [entry.transition.after for entry in reversed(recorded) if entry.transition.subject == "phase"]
        assert moves == ["Pending", "Provisioning", "Ready", "Failed"]

    run(story)


def test_a_transition_names_the_report_that_caused_it() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        result = await desk.report("cls-a", "dns", "False/Broken")
        assert isinstance(result, Reported)
        newest = (await desk.store.read_transitions(HistoryQuery("cls-a", EVERYTHING)))[0]
        assert newest.cause == StatusCause("report", result.results[0].report_id)
        assert newest.policy == "1"

    run(story)


class _Broken(Struct, frozen=True):
    """A command with a fault that nobody foresaw."""

    @property
    def wants(self) -> Wants:
        return Wants()

    def apply(self, workspace: Workspace) -> NoReturn:
        raise ZeroDivisionError


def test_a_fault_in_one_command_does_not_touch_its_neighbours() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        commands: list[Any] = [
            desk.reporting("cls-a", "validation", "True"),
            _Broken(),
            desk.reporting("cls-nobody", "dns", "True"),
            desk.reporting("cls-a", "dns", "True", generation=9),
            desk.reporting("cls-a", "dns", "True"),
        ]
        results = await desk.committer.submit_all(commands)
        assert isinstance(results[1], ZeroDivisionError)
        assert isinstance(results[2], Refusal)
        assert results[2].code == "NotFound"
        assert isinstance(results[3], Refusal)
        assert results[3].code == "GenerationAhead"
        assert (await desk.must_read("cls-a")).status.phase == "Ready"

    run(story)


def test_one_bad_entry_of_a_body_rejects_all_of_it() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        submissions = (
            Submission(make_report("dns", "True"), "rpt-1", "/adapterStatuses/0"),
            Submission(make_report("validation", "True", generation=2), "rpt-2", "/adapterStatuses/1"),
        )
        result = await desk.committer.submit(AcceptReports(target_of("cls-a"), submissions, ANONYMOUS))
        assert isinstance(result, Refusal)
        assert [error.pointer for error in result.errors] == ["/adapterStatuses/1/observedGeneration"]
        assert not (await desk.must_read("cls-a")).reports

    run(story)


def test_neither_a_heartbeat_nor_a_replay_makes_an_event() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        first = await desk.beat("cls-a", "dns", "True", observedTime="2025-10-17T11:00:00Z")
        before = await desk.must_read("cls-a")
        again = await desk.beat("cls-a", "dns", "True", observedTime="2025-10-17T11:00:00Z")
        assert again.results[0].is_replay
        for answer, observed in (("outcome", "11:30"), ("report", "11:31"), ("record", "11:32")):
            beat = await desk.report("cls-a", "dns", "True", answer=answer, observedTime=f"2025-10-17T{observed}:00Z")
            assert isinstance(beat, Reported)
            assert (beat.record is None) is (answer != "record"), "the short way, unless the record was asked for"
            assert beat.results == first.results
        after = await desk.must_read("cls-a")
        assert replace(after, reports={}) == replace(before, reports={})
        assert await desk.store.position() == 2

    run(story)


def test_a_heartbeat_does_not_move_the_deadline_and_then_only_the_next_one_is_stored() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        await desk.report("cls-a", "dns", "True")
        await desk.report("cls-a", "validation", "True")
        alarm = START + timedelta(minutes=5)
        assert (await desk.must_read("cls-a")).status.next_deadline == alarm
        desk.clock.pass_time(timedelta(minutes=3))
        await desk.beat("cls-a", "dns", "True")
        await desk.beat("cls-a", "validation", "True")
        before = await desk.must_read("cls-a")
        assert before.status.next_deadline == alarm
        desk.clock.pass_time(timedelta(minutes=2))
        assert (await desk.store.due(10)).ids == ("cls-a",)
        await desk.wake("cls-a")
        after = await desk.must_read("cls-a")
        status = replace(before.status, next_deadline=START + timedelta(minutes=8))
        assert after == replace(before, status=status)
        desk.clock.pass_time(timedelta(minutes=3))
        await desk.wake("cls-a")
        assert (await desk.must_read("cls-a")).status.phase == "Degraded"
        assert (await desk.store.read_transitions(HistoryQuery("cls-a", EVERYTHING)))[0].cause == StatusCause(
            "deadline"
        )

    run(story)


def test_an_edit_raises_the_generation_only_if_something_changed() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a", spec={"size": 1}, labels={"env": "prod"})
        same = await desk.edit("cls-a", size=1)
        assert isinstance(same, Written)
        assert same.record.resource.generation == 1
        other = await desk.edit("cls-a", size=2)
        assert isinstance(other, Written)
        assert other.record.resource.generation == 2
        assert other.record.resource.labels == {"env": "prod"}
        patch = ResourceEdit(labels={"env": None, "team": "x"}, is_merge=True)
        patched = await desk.committer.submit(Edit(target_of("cls-a"), patch, ANONYMOUS, accept_all))
        assert isinstance(patched, Written)
        assert patched.record.resource.labels == {"team": "x"}
        assert patched.record.resource.generation == 3

    run(story)


@pytest.mark.parametrize(
    ("preconditions", "code"),
    [
        (Preconditions(revisions=frozenset({7})), "PreconditionFailed"),
        (Preconditions(generation=7), "GenerationConflict"),
        (Preconditions(revisions=frozenset({1}), generation=1), None),
    ],
)
def test_preconditions(preconditions: Preconditions, code: str | None) -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        change = Edit(target_of("cls-a"), ResourceEdit(spec={"a": 1}), ANONYMOUS, accept_all, preconditions)
        result = await desk.committer.submit(change)
        assert (result.code if isinstance(result, Refusal) else None) == code

    run(story)


def test_a_precondition_never_holds_for_a_change_of_the_same_batch() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        if_first = Preconditions(revisions=frozenset({1}))
        edits = [
            Edit(target_of("cls-a"), ResourceEdit(spec={"a": n}), ANONYMOUS, accept_all, if_first) for n in range(3)
        ]
        results = await desk.committer.submit_all(edits)
        assert [isinstance(result, Written) for result in results] == [True, False, False]

    run(story)


def test_a_deletion_reaches_the_children_and_waits_for_them() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        await desk.create("p", kind=NODE_POOL, parent_id="cls-a")
        await desk.report("cls-a", "dns", "True")
        await desk.report("cls-a", "validation", "True")
        await desk.delete("cls-a")
        assert await desk.read("np-p") is None, "nothing is required of node pools here, so it went at once"
        record = await desk.must_read("cls-a")
        assert record.status.phase == "Deleting"
        for adapter in ("dns", "validation"):
            await desk.report("cls-a", adapter, "False/Gone", generation=2, extra={"Finalized": "True"})
        assert await desk.read("cls-a") is None
        newest = (await desk.store.read_transitions(HistoryQuery("cls-a", EVERYTHING)))[0].transition
        assert (newest.before, newest.after, newest.reason) == ("Deleting", None, "Removed")

    run(story)


BOTH_KINDS = """
appliesTo: {kind: NodePool}
requiredAdapters: [machines]
---
appliesTo: {kind: Cluster}
requiredAdapters: []
"""


def test_the_last_child_takes_its_parent_with_it() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        await desk.create("p", kind=NODE_POOL, parent_id="cls-a")
        await desk.delete("cls-a")
        assert (await desk.must_read("cls-a")).status.phase == "Deleting"
        last = await desk.report("np-p", "machines", "False/Gone", generation=2, extra={"Finalized": "True"})
        assert isinstance(last, Reported)
        assert last.is_gone
        assert await desk.read("np-p") is None
        assert await desk.read("cls-a") is None

    run(story, BOTH_KINDS)


def test_force_delete_needs_a_delete_and_takes_everything() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        await desk.create("p", kind=NODE_POOL, parent_id="cls-a")
        force = ForceDelete(target_of("cls-a"), "the cloud account is gone", Caller("eve"))
        refused = await desk.committer.submit(force)
        assert isinstance(refused, Refusal)
        assert refused.code == "NotBeingDeleted"
        await desk.delete("cls-a")
        done = await desk.committer.submit(force)
        assert isinstance(done, Written)
        assert done.is_gone
        assert await desk.read("cls-a") is None
        assert await desk.read("np-p") is None
        newest = (await desk.store.read_transitions(HistoryQuery("cls-a", EVERYTHING)))[0].transition
        assert newest.message == "forced by eve: the cloud account is gone"

    run(story, BOTH_KINDS)


SUMMARY = """
appliesTo: {kind: Cluster}
requiredAdapters: []
clusterConditions:
  - type: PoolsReady
    summary: {over: nodePools, type: Ready}
---
appliesTo: {kind: NodePool}
requiredAdapters: [machines]
"""


def test_a_parent_that_looks_at_its_children_moves_in_their_transaction() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        await desk.create("p", kind=NODE_POOL, parent_id="cls-a")

        async def pools_ready() -> str:
            condition = (await desk.must_read("cls-a")).status.condition("PoolsReady")
            assert condition is not None
            return condition.status

        assert await pools_ready() != "True"
        await desk.report("np-p", "machines", "True")
        assert await pools_ready() == "True"
        assert (await desk.store.read_transitions(HistoryQuery("cls-a", EVERYTHING)))[0].cause == StatusCause(
            "child", "np-p"
        )

    run(story, SUMMARY)


def test_a_name_is_free_again_when_its_owner_is_being_deleted() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        taken = await desk.committer.submit(_create_again("cls-a2"))
        assert isinstance(taken, Refusal)
        assert taken.code == "NameTaken"
        await desk.delete("cls-a")
        assert isinstance(await desk.committer.submit(_create_again("cls-a2")), Written)

    run(story)


def test_a_childs_name_is_its_parents_matter_whoever_creates_it() -> None:
    async def story(desk: Desk) -> None:
        red = Caller(scope=Scope(frozenset({"red"})), tenant="red")
        await desk.create("a", caller=red)
        await desk.create("p", kind=NODE_POOL, parent_id="cls-a", caller=red)
        again = await desk.committer.submit(
            Create(NODE_POOL, "np-other", "p", {}, {}, ANONYMOUS, accept_all, parent_id="cls-a")
        )
        assert isinstance(again, Refusal)
        assert again.code == "NameTaken"

    run(story)


def _create_again(id_: str, **more: Any) -> Any:
    return Create(CLUSTER, id_, "a", {}, {}, ANONYMOUS, accept_all, **more)


def test_an_idempotency_key_repeats_the_answer_and_refuses_another_request() -> None:
    async def story(desk: Desk) -> None:
        first = await desk.committer.submit(_create_again("cls-a", key="k", digest="1"))
        again = await desk.committer.submit(_create_again("cls-b", key="k", digest="1"))
        other = await desk.committer.submit(_create_again("cls-c", key="k", digest="2"))
        assert isinstance(first, Written)
        assert isinstance(again, Written)
        assert again.is_repeated
        assert again.record.answer == first.record.answer
        assert again.record.resource.id == "cls-a"
        assert isinstance(other, Refusal)
        assert other.code == "IdempotencyKeyReused"

    run(story)


def test_nobody_finds_a_resource_of_another_tenant() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a", caller=Caller(scope=Scope(frozenset({"red"})), tenant="red"))
        blue = Caller(scope=Scope(frozenset({"blue"})), tenant="blue")
        report = Submission(make_report("dns", "True"), "rpt-1")
        for command in (
            AcceptReports(target_of("cls-a"), (report,), blue),
            Edit(target_of("cls-a"), ResourceEdit(spec={"a": 1}), blue, accept_all),
            ForceDelete(target_of("cls-a"), "because", blue),
            RetireAdapter(target_of("cls-a"), "dns", blue),
        ):
            result = await desk.committer.submit(command)
            assert isinstance(result, Refusal)
            assert result.code == "NotFound"
        assert (await desk.must_read("cls-a")).revision == 1

    run(story)


def test_a_retired_adapter_is_forgotten() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        await desk.report("cls-a", "extra", "False/Broken")
        done = await desk.committer.submit(RetireAdapter(target_of("cls-a"), "extra", ANONYMOUS))
        assert isinstance(done, Written)
        assert not (await desk.must_read("cls-a")).reports
        again = await desk.committer.submit(RetireAdapter(target_of("cls-a"), "extra", ANONYMOUS))
        assert isinstance(again, Refusal)
        assert again.code == "NotFound"

    run(story)


def test_discards_are_counted_by_cause_and_the_last_one_is_kept() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        await desk.report("cls-a", "dns", "True")
        await desk.report("cls-a", "dns", "Unknown")
        await desk.report("cls-a", "dns", "True", observedTime="2025-10-17T11:00:00Z")
        await desk.report("cls-a", "dns", "True", generation=4)
        (adapter,) = await desk.store.adapters(Scope())
        counted = {what: count for what, count in adapter.counts.items() if count}
        assert counted == {"aggregated": 1, "UnknownAfterFirst": 1, "OutOfOrder": 1, "GenerationAhead": 1}
        assert "GenerationAhead" in adapter.last_discard

    run(story)


def test_a_full_queue_refuses_and_goes_on_afterwards() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        reports = [desk.reporting("cls-a", "dns", "True") for _ in range(4)]
        with pytest.raises(Overloaded):
            await desk.committer.submit_all([*reports, *reports])
        assert len(await desk.committer.submit_all(reports)) == 4

    run(story, capacity=Capacity(queue=4, batch=2))


def test_a_policy_that_another_replica_put_in_force_is_used_at_once() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        text = POLICY.replace("validation, ", "")
        await desk.store.activate_policy(NewPolicy(digest_of(load_policies(text, "other")), text, "other"))
        result = await desk.report("cls-a", "dns", "True")
        assert isinstance(result, Reported)
        assert result.phase == "Ready"
        assert result.record is not None
        assert result.record.policy_version == 2

    run(story)


def test_a_name_taken_over_stays_taken_when_its_first_owner_goes() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        await desk.delete("cls-a")
        assert isinstance(await desk.committer.submit(_create_again("cls-a2")), Written)
        await desk.report("cls-a", "dns", "False/Gone", generation=2, extra={"Finalized": "True"})
        commands: list[Any] = [
            desk.reporting("cls-a", "validation", "False/Gone", generation=2, extra={"Finalized": "True"}),
            _create_again("cls-a3"),
            desk.reporting("cls-a2", "dns", "True"),
        ]
        gone, refused, reported = await desk.committer.submit_all(commands)
        assert isinstance(gone, Reported)
        assert gone.is_gone
        assert isinstance(refused, Refusal)
        assert refused.code == "NameTaken"
        assert isinstance(reported, Reported)

    run(story)


def test_a_deletion_goes_on_from_what_its_children_made_of_the_parent() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        await desk.create("p", kind=NODE_POOL, parent_id="cls-a")
        await desk.report("np-p", "machines", "True")
        await desk.delete("cls-a")
        recorded = await desk.store.read_transitions(HistoryQuery("cls-a", EVERYTHING))
        moves = [entry.transition for entry in reversed(recorded) if entry.transition.subject == "PoolsReady"]
        assert all(before.after == after.before for before, after in pairwise(moves))

    run(story, SUMMARY)


def test_one_and_true_are_not_the_same() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a", spec={"ha": 1})
        edited = await desk.edit("cls-a", ha=True)
        assert isinstance(edited, Written)
        assert edited.record.resource.generation == 2
        await desk.report("cls-a", "dns", "True", generation=2, data={"ready": 1})
        later = await desk.report("cls-a", "dns", "True", generation=2, data={"ready": True})
        assert isinstance(later, Reported)
        assert later.record is not None
        assert later.record.reports["dns"].report.data == {"ready": True}

    run(story)


def test_a_refused_bundle_counts_only_what_was_wrong_with_it() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        submissions = (
            Submission(make_report("dns", "True"), "rpt-1"),
            Submission(make_report("validation", "True", generation=2), "rpt-2"),
        )
        await desk.committer.submit(AcceptReports(target_of("cls-a"), submissions, ANONYMOUS))
        (adapter,) = await desk.store.adapters(Scope())
        assert adapter.name == "validation"

    run(story)


def test_no_more_adapters_than_can_be_shown() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        reports = [desk.reporting("cls-a", f"a{n}", "True") for n in range(MAX_ADAPTERS + 1)]
        *taken, last = await desk.committer.submit_all(reports)
        assert all(isinstance(result, Reported) for result in taken)
        assert isinstance(last, Refusal)
        assert last.code == "TooManyAdapters"
        assert isinstance(await desk.report("cls-a", "a0", "True"), Reported)

    run(story)


def test_commands_about_one_resource_keep_their_order_whoever_writes_them() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("a")
        reports = [desk.reporting("cls-a", "dns", "True", data={"n": n}) for n in range(60)]
        await desk.committer.submit_all(reports)
        assert (await desk.must_read("cls-a")).reports["dns"].report.data == {"n": 59}

    run(story, capacity=Capacity(batch=7, writers=3))


def test_upkeep_gets_done_with_a_queue_smaller_than_its_work() -> None:
    async def story(desk: Desk) -> None:
        ids = [f"cls-{n}" for n in range(20)]
        for n in range(20):
            await desk.create(str(n))
        await recompute_all(desk.committer, ids, StatusCause("policy"))
        desk.policy = POLICY.replace("validation, ", "")
        await desk.policies.activate()
        await recompute_all(desk.committer, ids, StatusCause("policy"))
        assert (await desk.store.outdated(2, 1))[0] == ()

    run(story, capacity=Capacity(queue=3, batch=2))


def test_merge_patch_follows_its_rfc() -> None:
    before = {"a": {"b": 1, "c": [1]}, "d": "x"}
    patch = {"a": {"b": None, "c": [2]}, "d": {"e": None, "f": 1}, "g": None}
    assert merge_patch(before, patch) == {"a": {"c": [2]}, "d": {"f": 1}}


def test_an_observer_that_fails_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Clumsy:
        """An observer that cannot take in what it is told."""

        def committed(self, *_: object) -> NoReturn:
            raise KeyError("no such figure")

        failed = retried = recorded = committed

    async def story(desk: Desk) -> None:
        desk.committer.observer = Clumsy()
        async with asyncio.timeout(5):
            await desk.create("a")
            result = await desk.report("cls-a", "dns", "True")
            assert isinstance(result, Reported)
        assert "a transaction is missing in the metrics" in caplog.text

    run(story)
