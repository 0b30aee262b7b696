"""Replay: a hand-made past with a known result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta

import pytest

from hyperfleet.aggregation import load_policies
from hyperfleet.api.answer_decoding import answer_decoder
from hyperfleet.model.event import Transition
from hyperfleet.model.kind import NODE_POOL, Kinds
from hyperfleet.ports import EVERYTHING, Query, Record
from hyperfleet.services import replay as replaying
from hyperfleet.services import simulation, time_slices
from hyperfleet.services.past_events import read_past
from hyperfleet.services.replay import SHOWN_PERIODS, Replay, ReplayRange, SubjectDifference
from hyperfleet.services.simulation import SimulatedProgress, candidate_rules
from hyperfleet.services.timelines import (
    HistoryStep,
    PeriodRecorder,
    ResourcePast,
    StatePeriod,
    SubjectTimeline,
    TimelineReplay,
)
from tests.unit.services.desk import START, Desk, open_desk

PRESENT = """
requiredAdapters: [validation, dns]
clusterConditions:
  - type: Healthy
    evaluate: {expr: 'none(requiredAdapters, .state == "Failed")'}
phases: {ready: {requiredConditions: [{type: Healthy, status: "True"}]}}
"""
DAMPED = PRESENT.replace("evaluate", "goBadAfter: 5m\n    evaluate")
WITHOUT_DNS = PRESENT.replace(", dns", "")
PATIENT = PRESENT + "defaultBehavior: {timeout: 6m}\n"

MINUTE = timedelta(minutes=1)


def at(minutes: float) -> timedelta:
    return minutes * MINUTE


async def report_by_hand(desk: Desk) -> Record:
    """Live for half an hour: dns fails at 10 for 2 minutes, and at 20 for 8."""
    await desk.create("a")
    for adapter in ("validation", "dns"):
        desk.clock.pass_time(MINUTE)
        await desk.report("cls-a", adapter, "True")
    for minute, said in ((10, "False/Broken"), (12, "True"), (20, "False/Broken"), (28, "True"), (29, "True")):
        desk.clock.time = START + at(minute)
        await desk.report("cls-a", "dns", said)
    desk.clock.time = START + at(30)
    return await desk.must_read("cls-a")


async def compare(desk: Desk, record: Record, policy: str, back: timedelta) -> Replay:
    kinds, now = Kinds(), desk.clock.now()
    candidate = candidate_rules(load_policies(policy, kinds=kinds), kinds)
    rules = desk.policies.rules
    replay = Replay(desk.store, EVERYTHING, rules, candidate, ReplayRange(now - back, now), answer_decoder(rules))
    await replay.add(record)
    return replay


def periods(*shown: tuple[str, float, float]) -> tuple[StatePeriod, ...]:
    return tuple(StatePeriod(state, START + at(begin), START + at(end)) for state, begin, end in shown)


def test_what_damping_would_have_spared() -> None:
    async def check() -> None:
        async with open_desk(PRESENT) as desk:
            replay = await compare(desk, await report_by_hand(desk), DAMPED, timedelta(days=7))
            assert (replay.resources, replay.reports, replay.differing, replay.is_complete) == (1, 6, 1, True)
            (differing,) = replay.shown
            differences = {difference.subject: difference for difference in differing.differences}
            assert differences.keys() == {"Healthy"}
            difference = differences["Healthy"]
            assert difference.present.periods == periods(
                ("True", 0, 10), ("False", 10, 12), ("True", 12, 20), ("False", 20, 28), ("True", 28, 30)
            )
            assert difference.candidate.periods == periods(("True", 0, 25), ("False", 25, 28), ("True", 28, 30))
            assert difference.summary == "True 20m → 27m, False 10m → 3m"
            totals = replay.totals["Healthy"]
            assert (totals.present.transitions, totals.candidate.transitions) == (4, 2)
            assert totals.present.durations == {"True": at(20), "False": at(10)}
            assert totals.candidate.durations == {"True": at(27), "False": at(3)}
            phase = replay.totals["phase"]
            assert (
                phase.present.durations
                == phase.candidate.durations
                == {
                    "Pending": at(1),
                    "Provisioning": at(1),
                    "Ready": at(18),
                    "Failed": at(10),
                }
            )

    asyncio.run(check())


def test_both_lives_begin_in_the_state_that_was() -> None:
    async def check() -> None:
        async with open_desk(PRESENT) as desk:
            record = await report_by_hand(desk)
            damped = await compare(desk, record, DAMPED, timedelta(minutes=9))
            assert damped.shown == [], "what was False already is not damped"
            assert damped.totals["Healthy"].candidate.durations == {"False": at(7), "True": at(2)}
            without = await compare(desk, record, WITHOUT_DNS, timedelta(minutes=9))
            differences = {difference.subject: difference for difference in without.shown[0].differences}
            assert differences["phase"].present.periods == periods(("Failed", 21, 28), ("Ready", 28, 30))
            assert differences["phase"].candidate.periods == periods(("Ready", 21, 30))
            assert differences["phase"].summary == "Failed 7m → 0s, Ready 2m → 9m"

    asyncio.run(check())


def test_deadlines_come_while_nobody_reports() -> None:
    async def check() -> None:
        async with open_desk(PRESENT) as desk:
            await desk.create("a")
            desk.clock.pass_time(at(10))
            replay = await compare(desk, await desk.must_read("cls-a"), PATIENT, timedelta(hours=1))
            (difference,) = replay.shown[0].differences
            assert (difference.subject, difference.candidate.periods) == (
                "phase",
                periods(("Pending", 0, 6), ("Failed", 6, 10)),
            )

    asyncio.run(check())


def test_children_live_before_their_parent() -> None:
    pools = """
  - type: PoolsHealthy
    summary: {over: nodePools, type: Healthy}
---
appliesTo: {kind: NodePool}
requiredAdapters: [nodepool]
clusterConditions:
  - type: Healthy
    evaluate: {expr: 'none(requiredAdapters, .state == "Failed")'}
"""
    present = "requiredAdapters: [validation]\nclusterConditions:" + pools
    damped = present.replace("    evaluate", "    goBadAfter: 1m\n    evaluate")

    async def check() -> None:
        async with open_desk(present) as desk:
            await desk.create("a")
            await desk.create("p", kind=NODE_POOL, parent_id="cls-a")
            for minute, said in ((5, "False/Broken"), (8, "True")):
                desk.clock.time = START + at(minute)
                await desk.report("np-p", "nodepool", said)
            desk.clock.time = START + at(10)
            replay = await compare(desk, await desk.must_read("cls-a"), damped, timedelta(hours=1))
            (difference,) = replay.shown[0].differences
            assert difference.present.periods == periods(("True", 0, 5), ("False", 5, 8), ("True", 8, 10))
            assert difference.candidate.periods == periods(("True", 0, 6), ("False", 6, 8), ("True", 8, 10))

    asyncio.run(check())


def test_no_more_than_so_many_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "MAX_REPORTS", 5)

    async def check() -> None:
        async with open_desk(PRESENT) as desk:
            record = await report_by_hand(desk)
            replay = await compare(desk, record, DAMPED, timedelta(hours=1))
            assert (replay.resources, replay.reports, replay.is_complete) == (1, 6, True)
            await replay.add(record)
            assert (replay.resources, replay.reports, replay.is_complete) == (1, 6, False)

    asyncio.run(check())


def test_as_long_at_other_times() -> None:
    durations = {"True": at(5), "False": at(1)}
    first, last = (("True", 0, 5), ("False", 5, 6)), (("False", 0, 1), ("True", 1, 6))
    difference = SubjectDifference(
        "Ready", SubjectTimeline(periods(*first), durations), SubjectTimeline(periods(*last), durations)
    )
    assert difference.summary == "each state for as long, at other times"


def test_a_condition_that_comes_and_goes_has_gaps() -> None:
    async def check() -> None:
        async with open_desk(PRESENT) as desk:
            await desk.create("a")
            recorder = PeriodRecorder((await desk.must_read("cls-a")).status, START)
            for minute, before, after in ((1, None, "True"), (2, "True", None), (5, None, "True")):
                time = START + at(minute)
                recorder.add([Transition("Extra", before, after, time)], time)
            subjects = recorder.close(START + at(6))
            assert subjects["Extra"].periods == periods(("True", 1, 2), ("True", 5, 6))
            assert subjects["Extra"].durations == {"True": at(2)}
            assert subjects["phase"].periods == periods(("Pending", 0, 6))

    asyncio.run(check())


def test_of_many_periods_the_first_are_shown() -> None:
    async def check() -> None:
        async with open_desk(PRESENT) as desk:
            record = await flicker(desk, SHOWN_PERIODS + 10)
            replay = await compare(desk, record, WITHOUT_DNS, timedelta(hours=12))
            differences = {difference.subject: difference for difference in replay.shown[0].differences}
            assert len(differences["Healthy"].present.periods) == SHOWN_PERIODS
            assert replay.totals["Healthy"].present.transitions == SHOWN_PERIODS + 10
            assert sum(differences["Healthy"].present.durations.values(), timedelta()) == at(SHOWN_PERIODS + 10)

    asyncio.run(check())


def test_other_tasks_run_while_a_long_past_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slices, "_SLICE", 0.0)  # every piece of work uses its slice up

    async def check() -> None:
        async with open_desk(PRESENT) as desk:
            await flicker(desk, 30)
            reading = asyncio.create_task(
                read_past(
                    desk.store,
                    "cls-a",
                    EVERYTHING,
                    START,
                    answer_decoder(desk.policies.rules),
                    time_slices.TimeSlices(),
                )
            )
            turns = 0
            while not reading.done():
                turns += 1
                await asyncio.sleep(0)
            read = reading.result()
            assert read is not None
            assert read.report_count == 30
            assert turns >= 60, "one for each version, and one for each report"

    asyncio.run(check())


def test_progress_is_reported_during_a_long_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slices, "_SLICE", 0.0)
    monkeypatch.setattr(simulation, "_PROGRESS_INTERVAL", 0.0)

    async def check() -> None:
        async with open_desk(PRESENT) as desk:
            await flicker(desk, 30)
            replay, run = start(desk)
            words = [progress.examined async for progress in run]
            assert words == [1] * len(words), "there is one cluster"
            assert len(words) > 30
            assert replay.resources == 1

            replay, run = start(desk)
            await anext(run)
            await run.aclose()
            assert replay.resources == 0, "closing the generator stops the replay"

    asyncio.run(check())


def start(desk: Desk) -> tuple[Replay, AsyncGenerator[SimulatedProgress, None]]:
    rules, now = desk.policies.rules, desk.clock.now()
    replay = Replay(desk.store, EVERYTHING, rules, rules, ReplayRange(START, now), answer_decoder(rules))
    return replay, simulation.PolicySimulation(desk.store, rules, [Query("Cluster", EVERYTHING)], now).run(replay)


async def flicker(desk: Desk, times: int) -> Record:
    """Let dns fail and recover, every minute one of them."""
    await desk.create("a")
    for minute in range(times):
        desk.clock.pass_time(MINUTE)
        await desk.report("cls-a", "dns", "True" if minute % 2 else "False/Broken")
    return await desk.must_read("cls-a")


def test_what_happens_after_the_end_is_not_replayed() -> None:
    async def check() -> None:
        async with open_desk(PRESENT) as desk:
            record = await report_by_hand(desk)
            report = record.reports["dns"]
            past = ResourcePast(record.resource, START, None, {}, (HistoryStep(START + at(5), reports=(report,)),))
            run = TimelineReplay(past, desk.policies.rules.policies)
            assert list(run.advance(START + at(4))) == []
            timeline = run.finish(START + at(4))
            assert timeline.times == (START,)
            assert timeline.end == START + at(4)
            assert timeline.at(START - at(1)) is None

    asyncio.run(check())
