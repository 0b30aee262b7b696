"""A plan is a function of its options, and its steps are consistent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperfleet.simulator.actions import (
    CreateAction,
    DeleteAction,
    ForceDeleteAction,
    PlanStep,
    ReportAction,
    ResourceRef,
    UpdateAction,
)
from hyperfleet.simulator.adapters import POOL_ADAPTERS, list_adapters
from hyperfleet.simulator.fault_profiles import FaultProfiles
from hyperfleet.simulator.faults import FAULTS, parse_faults
from hyperfleet.simulator.lifecycles import HOUR, MINUTE
from hyperfleet.simulator.planning import PlanOptions, plan
from hyperfleet.simulator.reports import is_final

NAMES = tuple(adapter.name for adapter in (*list_adapters(4), *POOL_ADAPTERS))
NEEDS = {adapter.name: adapter.needs for adapter in (*list_adapters(8), *POOL_ADAPTERS)}


def faults(text: str) -> FaultProfiles:
    parsed = parse_faults(text, NAMES)
    assert not parsed.problems
    return parsed.faults


some_faults = st.lists(
    st.builds("{}={}".format, st.sampled_from((*NAMES, "*")), st.sampled_from([fault.example for fault in FAULTS])),
    max_size=4,
).map(lambda terms: faults(",".join(terms)))
some_options = st.builds(
    PlanOptions,
    seed=st.integers(0, 2**32),
    clusters=st.integers(1, 4),
    adapters=st.integers(1, 8),
    faults=some_faults,
    churn=st.sampled_from([0.0, 1.0, 8.0]),
    heartbeat=st.sampled_from([60.0, 180.0]),
    duration=st.sampled_from([0.0, 20 * MINUTE, 3 * HOUR]),
    showcase_at=st.sampled_from([0.0, 2 * HOUR]),
)


@settings(max_examples=40, deadline=None)
@given(some_options)
def test_the_same_options_give_the_same_plan(options: PlanOptions) -> None:
    assert list(plan(options)) == list(plan(options))


@settings(max_examples=40, deadline=None)
@given(some_options)
def test_steps_are_ordered_and_consistent(options: PlanOptions) -> None:
    steps = list(plan(options))
    assert all(one.at <= other.at for one, other in pairwise(steps))
    assert all(0 <= step.at <= options.duration for step in steps)
    generations: dict[ResourceRef, int] = {}
    for step in steps:
        match step.action:
            case CreateAction(ref=ref):
                assert ref not in generations, "a name is used once"
                assert not ref.pool or ResourceRef(ref.cluster) in generations
                generations[ref] = 1
            case UpdateAction(ref=ref, generation=generation):
                assert generation == generations[ref] + 1
                generations[ref] = generation
            case DeleteAction(ref=ref, generation=generation):
                assert generation == generations[ref] + 1
                for each in [each for each in generations if each.cluster == ref.cluster]:
                    generations[each] += 1
            case ReportAction(ref=ref, generation=generation):
                assert 1 <= generation <= generations[ref], "no report comes before its generation"
            case ForceDeleteAction(ref=ref):
                assert ref in generations


@settings(max_examples=20, deadline=None)
@given(some_options, st.integers(0, 400))
def test_a_longer_plan_begins_like_the_shorter_one(options: PlanOptions, length: int) -> None:
    """Nothing looks ahead: how far a plan is carried out, or how fast, changes nothing in it."""
    endless = PlanOptions(options.seed, options.clusters, options.adapters, options.faults, options.churn)
    some = list(islice(plan(endless), length))
    assert list(islice(plan(endless), 2 * length))[: len(some)] == some


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 4))
def test_one_more_cluster_changes_no_other(seed: int, clusters: int) -> None:
    def of_the_first(count: int) -> list[PlanStep]:
        steps = list(plan(PlanOptions(seed, count, churn=0.0, duration=HOUR)))
        first = {step.action.ref.cluster for step in plan(PlanOptions(seed, clusters, churn=0.0, duration=HOUR))}
        return [step for step in steps if step.action.ref.cluster in first]

    assert of_the_first(clusters + 1) == of_the_first(clusters)


def test_other_seeds_give_other_plans() -> None:
    plans = [[repr(step) for step in plan(PlanOptions(seed, 2, duration=600))] for seed in range(5)]
    assert len({tuple(steps) for steps in plans}) == 5


def test_adapters_wait_for_those_they_need() -> None:
    done: dict[ResourceRef, set[str]] = defaultdict(set)
    for report in reports(plan(PlanOptions(clusters=5, adapters=8, faults=faults("none"), churn=0, duration=HOUR))):
        if report.conditions[0].reason == "JobRunning":
            assert done[report.ref].issuperset(NEEDS[report.adapter])
        if report.conditions[0].status == "True":
            done[report.ref].add(report.adapter)
    assert all(len(names) == (2 if ref.pool else 8) for ref, names in done.items())


def test_a_calm_fleet_has_no_failures() -> None:
    found = list(reports(plan(PlanOptions(clusters=5, faults=faults("none"), duration=6 * HOUR))))
    reasons = {report.conditions[0].reason for report in found if report.conditions[0].status == "False"}
    assert reasons == {"PreconditionsNotMet", "JobRunning", ""}, "no reason: it has cleaned up"
    times = defaultdict(list)
    for report in found:
        times[report.ref, report.adapter].append(report.observed)
    assert all(later > earlier for each in times.values() for earlier, later in pairwise(each)), "all in order"


def test_reports_are_lost_duplicated_and_late() -> None:
    def arrivals(text: str) -> list[str]:
        options = PlanOptions(faults=faults(f"none,{text}"), clusters=4, churn=0, duration=HOUR)
        return [repr(report) for report in reports(plan(options))]

    calm = arrivals("*=slow:1x")
    lost, twice, late = arrivals("*=lost:0.3"), arrivals("*=twice:0.3"), arrivals("*=late:0.3")
    assert 0.6 < len(lost) / len(calm) < 0.8
    assert set(lost) < set(calm)
    assert set(twice) == set(calm)
    assert set(Counter(twice).values()) == {1, 2}
    assert set(late) < set(calm), "some would come after the end"
    assert [report for report in calm if report in set(late)] != late, "in another order"


def test_failures_are_retried_and_slow_work_takes_longer() -> None:
    def first_done(text: str) -> float:
        steps = plan(PlanOptions(clusters=1, faults=faults(f"none,{text}"), churn=0, duration=12 * HOUR))
        return next(step.at for step in steps if _reports_status(step, "dns", "True"))

    assert first_done("dns=slow:1x") < first_done("dns=slow:3x") < first_done("dns=slow:20x")
    tries = plan(PlanOptions(clusters=1, faults=faults("none,dns=fail:1"), churn=0, duration=HOUR))
    reasons = [report.conditions[0].reason for report in reports(tries) if report.adapter == "dns"]
    assert reasons.count("Route53Throttled") + reasons.count("RecordConflict") > 5
    assert "AllRecordsCreated" not in reasons


def test_a_silent_adapter_stops_reporting() -> None:
    steps = plan(PlanOptions(clusters=5, faults=faults("none,dns=silent:30m"), churn=0, duration=8 * HOUR))
    gaps = longest_gaps(steps)
    assert max(gaps["dns"]) > 30 * MINUTE
    assert max(gaps["validation"]) < 4 * MINUTE


def test_a_flapping_adapter_alternates() -> None:
    steps = plan(PlanOptions(clusters=1, faults=faults("none,hypershift=flap:60s"), churn=0, duration=3 * HOUR))
    statuses = [report.conditions[0].status for report in reports(steps) if report.adapter == "hypershift"]
    assert sum(one != other for one, other in pairwise(statuses)) > 50


def test_who_is_absent_reports_status_nothing_and_who_is_sick_says_so() -> None:
    steps = list(
        plan(PlanOptions(clusters=3, faults=faults("none,dns=absent,validation=sick:0.5"), churn=0, duration=HOUR))
    )
    assert {report.adapter for report in reports(steps)}.isdisjoint({"dns"})
    assert any(report.conditions[2].status == "False" for report in reports(steps) if report.adapter == "validation")


def test_clocks_are_skewed_as_requested() -> None:
    steps = plan(
        PlanOptions(clusters=2, faults=faults("none,dns=skew:+90s,validation=skew:-5m"), churn=0, duration=HOUR)
    )
    skews: dict[str, list[float]] = defaultdict(list)
    for step in steps:
        if isinstance(step.action, ReportAction):
            assert step.action.observed == step.at
            skews[step.action.adapter].append(step.action.skew)
    assert all(89 <= skew <= 91 for skew in skews["dns"])
    assert all(-301 <= skew <= -299 for skew in skews["validation"])
    assert all(-1 <= skew <= 1 for skew in skews["hypershift"])


def test_deleted_clusters_go_after_clean_up_or_by_force() -> None:
    def ends(text: str) -> tuple[int, int, int]:
        steps = list(plan(PlanOptions(clusters=20, faults=faults(text), churn=20, duration=8 * HOUR)))
        kinds = Counter(type(step.action) for step in steps)
        return (
            kinds[DeleteAction],
            kinds[ForceDeleteAction],
            sum(is_final(report.conditions) for report in reports(steps)),
        )

    deleted, forced, final = ends("none")
    assert deleted > 10
    assert forced == 0
    assert final >= 4 * (deleted - 5), "four adapters each, but for those that are still at it"
    deleted, forced, final = ends("none,infrastructure=stuck")
    assert forced > 5


def test_a_lost_report_does_not_block_a_deletion_for_ever() -> None:
    steps = list(plan(PlanOptions(clusters=5, faults=faults("none,*=lost:0.5"), churn=20, duration=24 * HOUR)))
    created = sum(isinstance(step.action, CreateAction) and not step.action.ref.pool for step in steps)
    assert created > 20


def reports(steps: Iterable[PlanStep]) -> Iterable[ReportAction]:
    return (step.action for step in steps if isinstance(step.action, ReportAction))


def _reports_status(step: PlanStep, adapter: str, status: str) -> bool:
    return (
        isinstance(step.action, ReportAction)
        and step.action.adapter == adapter
        and step.action.conditions[0].status == status
    )


def longest_gaps(steps: Iterable[PlanStep]) -> dict[str, list[float]]:
    last_report: dict[tuple[ResourceRef, str], float] = {}
    gaps: dict[str, list[float]] = defaultdict(list)
    for step in steps:
        if isinstance(step.action, ReportAction):
            key = step.action.ref, step.action.adapter
            gaps[key[1]].append(step.at - last_report.get(key, step.at))
            last_report[key] = step.at
    return gaps
