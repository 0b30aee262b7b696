"""Heartbeats through the committer: which way they take, in which order, and what happens where being heard matters."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from hyperfleet.errors import Contended, StoreUnavailable
from hyperfleet.ports import EVERYTHING, HistoryQuery, Record, Scope, StatusCause
from hyperfleet.services.callers import ANONYMOUS, Caller
from hyperfleet.services.measures import Measures
from hyperfleet.services.reports import AcceptReports, Submission
from hyperfleet.services.resources import Edit
from hyperfleet.services.results import Refusal, Reported, ResourceEdit
from hyperfleet.services.upkeep import Recompute
from tests.unit.services.desk import POLICY, START, Desk, accept_all, open_desk, target_of
from tests.world import make_report

Story = Callable[[Desk], Awaitable[None]]

MINUTE: Final = timedelta(minutes=1)
SECOND: Final = timedelta(seconds=1)
SILENT: Final = """
requiredAdapters: [validation, dns]
clusterConditions: [{type: Silent, evaluate: {expr: 'olderThan(adapters["dns"], "3m")'}}]
"""


def run(story: Story, policy: str = POLICY) -> None:
    async def told() -> None:
        async with open_desk(policy) as desk:
            await desk.create("a")
            for adapter in ("validation", "dns"):
                await desk.report("cls-a", adapter, "True")
            await story(desk)

    asyncio.run(told())


async def transitions(desk: Desk) -> list[tuple[str, str | None, str]]:
    """Return what moved, the latest first, and why."""
    recorded = await desk.store.read_transitions(HistoryQuery("cls-a", EVERYTHING))
    return [(each.transition.subject, each.transition.after, each.cause.kind) for each in recorded]


def untimed(record: Record) -> Record:
    """Return a record without its reports, whose times move."""
    return replace(record, reports={})


# ── where being heard again matters ──────────────────────────────────────────────────────────────────────────────


def test_a_stale_adapter_recovers_by_a_heartbeat() -> None:
    async def story(desk: Desk) -> None:
        desk.clock.pass_time(3 * MINUTE)
        await desk.beat("cls-a", "validation", "True")
        desk.clock.pass_time(2 * MINUTE)
        await desk.wake("cls-a")
        record = await desk.must_read("cls-a")
        assert {each.name: each.stale for each in record.status.adapters} == {"dns": True, "validation": False}
        assert {name: each.is_calm for name, each in record.reports.items()} == {"dns": False, "validation": True}
        assert record.status.phase == "Degraded"
        result = await desk.beat("cls-a", "dns", "True")
        assert (result.phase, result.heartbeat) == ("Ready", None)
        assert result.results[0].report_id == record.reports["dns"].id, "it says what is stored"
        after = await desk.must_read("cls-a")
        assert not any(each.stale for each in after.status.adapters)
        assert after.revision == record.revision + 1
        assert ("phase", "Ready", "report") in (await transitions(desk))[:3]
        assert len(await desk.store.read_report_log("cls-a", EVERYTHING, START)) == 2, "it is not logged as news"
        desk.clock.pass_time(SECOND)
        assert (await desk.beat("cls-a", "dns", "True")).heartbeat is not None

    run(story)


def test_an_older_than_that_is_true_turns_false_by_a_heartbeat() -> None:
    async def story(desk: Desk) -> None:
        desk.clock.pass_time(3 * MINUTE)
        await desk.wake("cls-a")
        assert (await transitions(desk))[0] == ("Silent", "True", "deadline")
        assert (await desk.beat("cls-a", "validation", "True")).heartbeat is not None, "nothing is old of this one"
        assert (await desk.beat("cls-a", "dns", "True")).heartbeat is None
        assert (await transitions(desk))[0] == ("Silent", "False", "report")
        desk.clock.pass_time(2 * MINUTE)
        assert (await desk.beat("cls-a", "dns", "True")).heartbeat is not None

    run(story, SILENT)


def test_an_unknown_report_never_takes_the_short_way_for_it_moves_the_clock_of_missing_adapters() -> None:
    async def story(desk: Desk) -> None:
        await desk.create("b")
        for minutes in range(4):
            result = await desk.beat("cls-b", "dns", "Unknown")
            assert (result.heartbeat, result.results[0].outcome) == (None, "stored")
            assert (await desk.must_read("cls-b")).reports["dns"].last_unknown == START + minutes * MINUTE
            desk.clock.pass_time(MINUTE)

    run(story)


def test_a_heartbeat_ends_the_count_of_discards() -> None:
    async def story(desk: Desk) -> None:
        before = await desk.must_read("cls-a")
        desk.clock.pass_time(MINUTE)
        await desk.beat("cls-a", "dns", "False/Broken", observedTime="2025-10-17T11:00:00Z")
        discarded = (await desk.must_read("cls-a")).reports["dns"]
        assert (len(discarded.discards), discarded.is_calm) == (1, False)
        assert (await desk.beat("cls-a", "dns", "True")).heartbeat is None
        after = await desk.must_read("cls-a")
        assert (after.reports["dns"].discards, after.reports["dns"].is_calm) == ((), True)
        assert untimed(after) == untimed(before), "though it took the ordinary way"
        assert await desk.store.position() == before.revision

    run(story)


# ── early deadlines ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_deadline_that_finds_nothing_due_stores_only_the_next_one() -> None:
    async def story(desk: Desk) -> None:
        for _ in range(2):
            desk.clock.pass_time(2 * MINUTE)
            for adapter in ("validation", "dns"):
                assert (await desk.beat("cls-a", adapter, "True")).heartbeat is not None
        before = await desk.must_read("cls-a")
        desk.clock.pass_time(MINUTE)
        assert (await desk.store.due(5)).ids == ("cls-a",)
        await desk.wake("cls-a")
        after = await desk.must_read("cls-a")
        assert after == replace(before, status=replace(before.status, next_deadline=START + 9 * MINUTE))
        assert (await desk.store.due(5)).ids == ()
        assert await desk.store.position() == before.revision

    run(story)


def test_a_heartbeat_after_the_instant_but_before_the_timer_counts_as_in_time() -> None:
    async def story(desk: Desk) -> None:
        before = await desk.must_read("cls-a")
        desk.clock.pass_time(6 * MINUTE)
        for adapter in ("validation", "dns"):
            assert (await desk.beat("cls-a", adapter, "True")).phase == "Ready"
        await desk.wake("cls-a")
        after = await desk.must_read("cls-a")
        assert (after.revision, after.answer) == (before.revision, before.answer)

    run(story)


def test_the_next_deadline_is_told_to_who_waits_for_it() -> None:
    async def story(desk: Desk) -> None:
        told: list[Any] = []
        desk.clock.pass_time(2 * MINUTE)
        for adapter in ("validation", "dns"):
            await desk.beat("cls-a", adapter, "True")
        desk.committer.on_wake = told.append
        desk.clock.pass_time(3 * MINUTE)
        await desk.wake("cls-a")
        assert told == [START + 7 * MINUTE]

    run(story)


# ── bundles and order ────────────────────────────────────────────────────────────────────────────────────────────


def bundle(*reports: Any) -> AcceptReports:
    """Make one body of several reports."""
    submissions = tuple([Submission(report, f"rpt-b{place}") for place, report in enumerate(reports)])
    return AcceptReports(target_of("cls-a"), submissions, ANONYMOUS, "outcome")


def test_a_heartbeat_in_a_rejected_body_moves_nothing() -> None:
    async def story(desk: Desk) -> None:
        before, (counts,) = await desk.must_read("cls-a"), [await desk.store.adapters(EVERYTHING)]
        desk.clock.pass_time(MINUTE)
        ahead = make_report("validation", "True", generation=2)
        result = await desk.committer.submit(bundle(make_report("dns", "True"), ahead))
        assert isinstance(result, Refusal)
        assert result.code == "GenerationAhead"
        assert await desk.must_read("cls-a") == before
        dns = next(each for each in await desk.store.adapters(EVERYTHING) if each.name == "dns")
        assert dns in counts, "nor is it counted"

    run(story)


def test_heartbeats_of_a_body_that_is_accepted_move_their_times_and_nothing_else() -> None:
    async def story(desk: Desk) -> None:
        before = await desk.must_read("cls-a")
        desk.clock.pass_time(MINUTE)
        result = await desk.committer.submit(bundle(make_report("dns", "True"), make_report("validation", "True")))
        assert isinstance(result, Reported)
        after = await desk.must_read("cls-a")
        assert (after.revision, after.answer) == (before.revision, before.answer)
        assert {each.last_heard for each in after.reports.values()} == {desk.clock.time}
        assert [verdict.report_id for verdict in result.results] == [
            before.reports["dns"].id,
            before.reports["validation"].id,
        ]

    run(story)


def test_a_heartbeat_behind_another_command_on_its_resource_waits_for_that() -> None:
    async def story(desk: Desk) -> None:
        desk.clock.pass_time(MINUTE)
        edit = Edit(target_of("cls-a"), ResourceEdit(spec={"size": 2}), ANONYMOUS, accept_all)
        beats = [desk.reporting("cls-a", "dns", "True", answer="outcome") for _ in range(2)]
        commands: list[Any] = [beats[0], edit, beats[1]]
        first, edited, behind = await desk.committer.submit_all(commands)
        assert isinstance(first, Reported)
        assert isinstance(behind, Reported)
        assert (first.phase, first.heartbeat is None) == ("Ready", False)
        assert (behind.phase, behind.heartbeat is None) == ("Pending", True), "it sees the edit"
        assert not isinstance(edited, BaseException)

    run(story)


def test_of_two_reports_of_an_adapter_in_one_batch_the_later_one_is_stored() -> None:
    async def story(desk: Desk) -> None:
        desk.clock.pass_time(MINUTE)
        for words in (("False/Broken", "True"), ("True", "False/Broken")):
            commands = [desk.reporting("cls-a", "dns", said, answer="outcome") for said in words]
            results = await desk.committer.submit_all(commands)
            assert [each.phase for each in results if isinstance(each, Reported)] == [
                "Failed" if "Broken" in said else "Ready" for said in words
            ]
            available = (await desk.must_read("cls-a")).reports["dns"].report.status_of("Available")
            assert available == words[1].partition("/")[0]
            desk.clock.pass_time(MINUTE)

    run(story)


def test_who_may_not_report_as_an_adapter_moves_nothing() -> None:
    async def story(desk: Desk) -> None:
        before = await desk.must_read("cls-a")
        desk.clock.pass_time(MINUTE)
        submission = Submission(make_report("dns", "True"), "rpt-x")
        for caller in (Caller(adapters=frozenset({"validation"})), Caller(tenant="b", scope=_scope("b"))):
            result = await desk.committer.submit(AcceptReports(target_of("cls-a"), (submission,), caller, "outcome"))
            assert isinstance(result, Refusal)
        assert await desk.must_read("cls-a") == before

    run(story)


def _scope(tenant: str) -> Scope:
    return Scope(frozenset({tenant}))


# ── what goes wrong, and who is told ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("error", [Contended("a deadlock"), StoreUnavailable("gone"), ZeroDivisionError()])
def test_what_cannot_be_recorded_takes_the_ordinary_way(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(desk: Desk) -> None:
        async def fail(_: object) -> Any:
            raise error

        monkeypatch.setattr(desk.store, "record_heartbeats", fail)
        desk.clock.pass_time(MINUTE)
        result = await desk.beat("cls-a", "dns", "True")
        assert result.results[0].outcome == "aggregated"
        assert (await desk.must_read("cls-a")).reports["dns"].last_heard == desk.clock.time

    run(story)


def test_heartbeats_are_counted_and_watches_are_not_disturbed() -> None:
    async def story(desk: Desk) -> None:
        measures = Measures()
        desk.committer.observer = measures
        commits: list[None] = []
        desk.committer.on_commit = lambda: commits.append(None)
        for _ in range(3):
            desk.clock.pass_time(SECOND)
            await desk.beat("cls-a", "dns", "True")
        await desk.beat("cls-a", "dns", "False/Broken")
        assert len(commits) == 1, "only what may have made an event"
        assert measures.heartbeats.values == {("dns",): 3.0}
        assert measures.reports.values == {("dns", "aggregated"): 4.0}

    run(story)


def test_a_recomputation_for_another_policy_decides_again_what_is_calm() -> None:
    async def story(desk: Desk) -> None:
        desk.policy = """
requiredAdapters: [validation, dns]
clusterConditions: [{type: Same, evaluate: {expr: 'adapters["dns"].lastUpdated == adapters["validation"].lastUpdated'}}]
"""
        await desk.policies.activate()
        desk.clock.pass_time(SECOND)
        assert (await desk.beat("cls-a", "dns", "True")).heartbeat is not None, "until it is computed again"
        await desk.committer.submit(_recompute())
        assert not any(each.is_calm for each in (await desk.must_read("cls-a")).reports.values())
        desk.policy = POLICY
        await desk.policies.activate()
        await desk.committer.submit(_recompute())
        assert all(each.is_calm for each in (await desk.must_read("cls-a")).reports.values())

    run(story)


def _recompute() -> Recompute:
    return Recompute("cls-a", StatusCause("policy"))
