"""A plan is a function of its options, and what happens in it could happen."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperfleet.simulator.actions import Change, Create, Delete, ForceDelete, Place, Say, Step
from hyperfleet.simulator.adapters import POOL_ADAPTERS, list_adapters
from hyperfleet.simulator.faults import FAULTS, read_faults
from hyperfleet.simulator.planning import Options, plan
from hyperfleet.simulator.stories import HOUR, MINUTE
from hyperfleet.simulator.temper import Faults
from hyperfleet.simulator.wording import is_final

NAMES = tuple(adapter.name for adapter in (*list_adapters(4), *POOL_ADAPTERS))
NEEDS = {adapter.name: adapter.needs for adapter in (*list_adapters(8), *POOL_ADAPTERS)}


def faults(text: str) -> Faults:
    reading = read_faults(text, NAMES)
    assert not reading.problems
    return reading.faults


some_faults = st.lists(
    st.builds("{}={}".format, st.sampled_from((*NAMES, "*")), st.sampled_from([fault.example for fault in FAULTS])),
    max_size=4,
).map(lambda terms: faults(",".join(terms)))
some_options = st.builds(
    Options,
    seed=st.integers(0, 2**32),
    clusters=st.integers(1, 4),
    adapters=st.integers(1, 8),
    faults=some_faults,
    churn=st.sampled_from([0.0, 1.0, 8.0]),
    heartbeat=st.sampled_from([60.0, 180.0]),
    duration=st.sampled_from([0.0, 20 * MINUTE, 3 * HOUR]),
    moment=st.sampled_from([0.0, 2 * HOUR]),
)


@settings(max_examples=40, deadline=None)
@given(some_options)
def test_the_same_options_give_the_same_plan(options: Options) -> None:
    assert list(plan(options)) == list(plan(options))


@settings(max_examples=40, deadline=None)
@given(some_options)
def test_what_happens_could_happen(options: Options) -> None:
    steps = list(plan(options))
    assert all(one.at <= other.at for one, other in pairwise(steps))
    assert all(0 <= step.at <= options.duration for step in steps)
    generations: dict[Place, int] = {}
    for step in steps:
        match step.action:
            case Create(place=place):
                assert place not in generations, "a name is used once"
                assert not place.pool or Place(place.cluster) in generations
                generations[place] = 1
            case Change(place=place, generation=generation):
                assert generation == generations[place] + 1
                generations[place] = generation
            case Delete(place=place, generation=generation):
                assert generation == generations[place] + 1
                for each in [each for each in generations if each.cluster == place.cluster]:
                    generations[each] += 1
            case Say(place=place, generation=generation):
                assert 1 <= generation <= generations[place], "nobody reports on what is not there yet"
            case ForceDelete(place=place):
                assert place in generations


@settings(max_examples=20, deadline=None)
@given(some_options, st.integers(0, 400))
def test_a_longer_plan_begins_as_the_shorter_one(options: Options, length: int) -> None:
    """Nothing looks ahead: how far a plan is carried out, or how fast, changes nothing in it."""
    endless = Options(options.seed, options.clusters, options.adapters, options.faults, options.churn)
    some = list(islice(plan(endless), length))
    assert list(islice(plan(endless), 2 * length))[: len(some)] == some


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 4))
def test_one_more_cluster_changes_no_other(seed: int, clusters: int) -> None:
    def of_the_first(count: int) -> list[Step]:
        steps = list(plan(Options(seed, count, churn=0.0, duration=HOUR)))
        first = {step.action.place.cluster for step in plan(Options(seed, clusters, churn=0.0, duration=HOUR))}
        return [step for step in steps if step.action.place.cluster in first]

    assert of_the_first(clusters + 1) == of_the_first(clusters)


def test_other_seeds_give_other_plans() -> None:
    plans = [[repr(step) for step in plan(Options(seed, 2, duration=600))] for seed in range(5)]
    assert len({tuple(steps) for steps in plans}) == 5


def test_adapters_wait_for_those_they_need() -> None:
    done: dict[Place, set[str]] = defaultdict(set)
    for say in says(plan(Options(clusters=5, adapters=8, faults=faults("none"), churn=0, duration=HOUR))):
        if say.conditions[0].reason == "JobRunning":
            assert done[say.place].issuperset(NEEDS[say.adapter])
        if say.conditions[0].status == "True":
            done[say.place].add(say.adapter)
    assert all(len(names) == (2 if place.pool else 8) for place, names in done.items())


def test_a_calm_fleet_has_no_failures() -> None:
    found = list(says(plan(Options(clusters=5, faults=faults("none"), duration=6 * HOUR))))
    reasons = {say.conditions[0].reason for say in found if say.conditions[0].status == "False"}
    assert reasons == {"PreconditionsNotMet", "JobRunning", ""}, "no reason: it has cleaned up"
    times = defaultdict(list)
    for say in found:
        times[say.place, say.adapter].append(say.observed)
    assert all(later > earlier for each in times.values() for earlier, later in pairwise(each)), "all in order"


def test_the_post_is_not_reliable() -> None:
    def arrivals(text: str) -> list[str]:
        options = Options(faults=faults(f"none,{text}"), clusters=4, churn=0, duration=HOUR)
        return [repr(say) for say in says(plan(options))]

    calm = arrivals("*=slow:1x")
    lost, twice, late = arrivals("*=lost:0.3"), arrivals("*=twice:0.3"), arrivals("*=late:0.3")
    assert 0.6 < len(lost) / len(calm) < 0.8
    assert set(lost) < set(calm)
    assert set(twice) == set(calm)
    assert set(Counter(twice).values()) == {1, 2}
    assert set(late) < set(calm), "some would come after the end"
    assert [say for say in calm if say in set(late)] != late, "in another order"


def test_what_fails_is_tried_again_and_what_is_slow_takes_longer() -> None:
    def first_done(text: str) -> float:
        steps = plan(Options(clusters=1, faults=faults(f"none,{text}"), churn=0, duration=12 * HOUR))
        return next(step.at for step in steps if _says(step, "dns", "True"))

    assert first_done("dns=slow:1x") < first_done("dns=slow:3x") < first_done("dns=slow:20x")
    tries = plan(Options(clusters=1, faults=faults("none,dns=fail:1"), churn=0, duration=HOUR))
    reasons = [say.conditions[0].reason for say in says(tries) if say.adapter == "dns"]
    assert reasons.count("Route53Throttled") + reasons.count("RecordConflict") > 5
    assert "AllRecordsCreated" not in reasons


def test_who_is_silent_is_not_heard_of() -> None:
    steps = plan(Options(clusters=5, faults=faults("none,dns=silent:30m"), churn=0, duration=8 * HOUR))
    gaps = longest_gaps(steps)
    assert max(gaps["dns"]) > 30 * MINUTE
    assert max(gaps["validation"]) < 4 * MINUTE


def test_who_flaps_changes_its_mind() -> None:
    steps = plan(Options(clusters=1, faults=faults("none,hypershift=flap:60s"), churn=0, duration=3 * HOUR))
    minds = [say.conditions[0].status for say in says(steps) if say.adapter == "hypershift"]
    assert sum(one != other for one, other in pairwise(minds)) > 50


def test_who_is_absent_says_nothing_and_who_is_sick_says_so() -> None:
    steps = list(
        plan(Options(clusters=3, faults=faults("none,dns=absent,validation=sick:0.5"), churn=0, duration=HOUR))
    )
    assert {say.adapter for say in says(steps)}.isdisjoint({"dns"})
    assert any(say.conditions[2].status == "False" for say in says(steps) if say.adapter == "validation")


def test_clocks_are_skewed_as_told() -> None:
    steps = plan(Options(clusters=2, faults=faults("none,dns=skew:+90s,validation=skew:-5m"), churn=0, duration=HOUR))
    skews: dict[str, list[float]] = defaultdict(list)
    for step in steps:
        if isinstance(step.action, Say):
            assert step.action.observed == step.at
            skews[step.action.adapter].append(step.action.skew)
    assert all(89 <= skew <= 91 for skew in skews["dns"])
    assert all(-301 <= skew <= -299 for skew in skews["validation"])
    assert all(-1 <= skew <= 1 for skew in skews["hypershift"])


def test_the_deleted_go_when_all_have_cleaned_up_or_by_force() -> None:
    def ends(text: str) -> tuple[int, int, int]:
        steps = list(plan(Options(clusters=20, faults=faults(text), churn=20, duration=8 * HOUR)))
        kinds = Counter(type(step.action) for step in steps)
        return kinds[Delete], kinds[ForceDelete], sum(is_final(say.conditions) for say in says(steps))

    deleted, forced, final = ends("none")
    assert deleted > 10
    assert forced == 0
    assert final >= 4 * (deleted - 5), "four adapters each, but for those that are still at it"
    deleted, forced, final = ends("none,infrastructure=stuck")
    assert forced > 5


def test_a_report_that_is_lost_keeps_nobody_for_ever() -> None:
    steps = list(plan(Options(clusters=5, faults=faults("none,*=lost:0.5"), churn=20, duration=24 * HOUR)))
    created = sum(isinstance(step.action, Create) and not step.action.place.pool for step in steps)
    assert created > 20


def says(steps: Iterable[Step]) -> Iterable[Say]:
    return (step.action for step in steps if isinstance(step.action, Say))


def _says(step: Step, adapter: str, status: str) -> bool:
    return (
        isinstance(step.action, Say) and step.action.adapter == adapter and step.action.conditions[0].status == status
    )


def longest_gaps(steps: Iterable[Step]) -> dict[str, list[float]]:
    heard: dict[tuple[Place, str], float] = {}
    gaps: dict[str, list[float]] = defaultdict(list)
    for step in steps:
        if isinstance(step.action, Say):
            key = step.action.place, step.action.adapter
            gaps[key[1]].append(step.at - heard.get(key, step.at))
            heard[key] = step.at
    return gaps
