"""What would help: the smallest sets of reports that give a condition the status one wants."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from hyperfleet.aggregation.explaining.remedies import RemedySet, find_remedies
from hyperfleet.aggregation.explaining.trials import AdapterChange
from hyperfleet.aggregation.hypothetical import imagine_change, imagine_report
from hyperfleet.aggregation.situation import Child, read_situation
from hyperfleet.model.condition import Condition, ConditionStatus
from hyperfleet.model.report import Report, StoredReport
from hyperfleet.model.status import AdapterState
from tests.conformance.timeline import load_policy
from tests.world import START, World, make_report

POLICY = load_policy("""
requiredAdapters: [a, b, c]
optionalAdapters: [d]
policies: {staleThreshold: 10m, inProgressReasons: [Baking], waitingReasons: [AfterYou]}
clusterConditions:
  - {type: All, evaluate: {expr: 'all(requiredAdapters, {.state == "Completed"})'}}
  - {type: Two, evaluate: {expr: 'count(requiredAdapters, {.available == "True"}) >= 2'}}
  - {type: OneAtWork, evaluate: {expr: 'count(requiredAdapters, {.state == "Running"}) == 1'}}
  - {type: Either, evaluate: {expr: 'adapters["a"].available == "True" || adapters["x"].available == "True"'}}
  - {type: Waits, evaluate: {expr: 'adapters["a"].state == "Pending"'}}
  - {type: Broken, evaluate: {expr: 'adapters["a"].state == "Failed"'}}
  - {type: Sick, evaluate: {expr: 'any(allAdapters, {.health == "False"})'}}
  - {type: Region, evaluate: {expr: 'adapters["a"].data["region"] == "eu"'}}
  - {type: Young, evaluate: {expr: 'currentGeneration == 1'}}
  - {type: Old, evaluate: {expr: 'currentGeneration > 1'}}
  - {type: Logged, evaluate: {expr: 'any(optionalAdapters, {.state == "Completed"})'}}
  - {type: Zone, mirror: {adapter: b, type: ZoneCreated}}
  - {type: Sum, summary: {types: [All, Either]}}
  - {type: Pools, summary: {over: nodePools, type: Ready}}
""")


def remedies(world: World, type_: str, wanted: ConditionStatus = "True") -> list[set[str]]:
    """Return what helps, each remedy as a set of `adapter State`."""
    situation = read_situation(
        world.resource, world.reports, world.policy, world.status, world.now, children=world.children
    )
    found = find_remedies(situation, world.reports, type_, wanted).sets
    assert {change.generation for remedy in found for change in remedy} <= {world.resource.generation}
    return [{f"{change.adapter} {change.state}" for change in remedy} for remedy in found]


def make_world(*completed: str) -> World:
    world = World(POLICY)
    for adapter in completed:
        world.report(make_report(adapter, "True/Done"))
    return world


COMPLETED = {name: f"{name} Completed" for name in "abcdx"}
A, B, C, D, X = COMPLETED.values()


@pytest.mark.parametrize(
    ("completed", "type_", "expected"),
    [
        pytest.param("", "Ready", [{A, B, C}], id="nobody has reported"),
        pytest.param("b", "Ready", [{A, C}], id="who is done need not report again"),
        pytest.param("", "Available", [{A, B, C}], id="of a built-in condition only required adapters matter"),
        pytest.param("", "Two", [{A, B}, {A, C}, {B, C}], id="every way to get there"),
        pytest.param("c", "Two", [{A}, {B}], id="no set that contains a smaller one that helps"),
        pytest.param("", "Either", [{A}, {X}], id="adapters that only the rule names"),
        pytest.param("abc", "OneAtWork", [{"a Running"}, {"b Running"}, {"c Running"}], id="not only completing"),
        pytest.param("", "Waits", [{"a Pending"}], id="waiting"),
        pytest.param("", "Broken", [{"a Failed"}], id="failing"),
        pytest.param("abc", "Sick", [{f"{name} Unhealthy"} for name in "abcdx"], id="anybody may get unhealthy"),
        pytest.param("", "Logged", [{D}], id="an optional adapter that has not reported"),
        pytest.param("", "Young", [set()], id="it is so already"),
        pytest.param("", "Old", [], id="no report makes a generation greater"),
        pytest.param("ab", "Region", [], id="no state of an adapter says what is in its data"),
        pytest.param("", "Zone", [{B}], id="a condition that the rule names and the adapter never sent"),
        pytest.param("b", "Zone", [{B}], id="who is done may still have to send such a condition"),
        pytest.param("b", "Sum", [{A, C}], id="a summary of conditions that come before it"),
    ],
)
def test_the_smallest_sets(completed: str, type_: str, expected: list[set[str]]) -> None:
    assert remedies(make_world(*completed), type_) == expected


def test_any_status_may_be_wanted() -> None:
    world = make_world("a", "b", "c")
    assert remedies(world, "All", "False") == [{f"{name} Running"} for name in "abc"], (
        "that any other state does too is not worth telling: to the rule they look alike"
    )


def test_who_is_stale_need_only_say_it_again() -> None:
    world = make_world("a", "b", "c")
    world.pass_time(timedelta(minutes=9))
    world.report(make_report("a", "True/Done"))
    world.pass_time(timedelta(minutes=1))
    assert remedies(world, "Ready") == [{B, C}]


def test_it_counts_at_the_generation_of_now() -> None:
    world = make_world("a", "b", "c")
    world.edit()
    assert remedies(world, "Ready") == [{A, B, C}]


def test_a_condition_that_an_adapter_sent_before_is_expected_of_it_again() -> None:
    world = make_world("a", "c")
    world.report(make_report("b", "False/JobFailed", extra={"ZoneCreated": "False/NoZone"}))
    assert remedies(world, "Zone") == [{B}]


def test_node_pools_are_not_ours_to_report() -> None:
    world = make_world("a", "b", "c")
    assert remedies(world, "Pools") == [set()], "no node pools, nothing to complain of"
    world.children = (Child("NodePool", "pool", (Condition("Ready", "False", "NoNodes"),)),)
    world.write()
    assert remedies(world, "Pools") == []


NAMES = [f"n{number:02}" for number in range(12)]


def find_of_many(expression: str, reported: Mapping[str, str] | None = None) -> RemedySet:
    """Return what makes a rule True for twelve adapters, which have 4095 sets: more than are tried."""
    policy = load_policy(f"""
requiredAdapters: [{", ".join(NAMES)}]
clusterConditions: [{{type: X, evaluate: {{expr: '{expression}'}}}}]
""")
    world = World(policy)
    for name, available in (reported or {}).items():
        world.report(make_report(name, available))
    situation = read_situation(world.resource, world.reports, policy, world.status, world.now)
    return find_remedies(situation, world.reports, "X")


class TestManyAdapters:
    """Adapters that look alike to a rule stand in for each other."""

    def test_all_are_needed(self) -> None:
        found = find_of_many('all(requiredAdapters, {.state == "Completed"})', dict.fromkeys(NAMES[:3], "False/Boom"))
        assert [[change.adapter for change in remedy] for remedy in found.sets] == [NAMES]
        assert (found.is_exhaustive, found.is_minimal) == (True, True)

    @pytest.mark.parametrize("test", [">= 6", "in [6, 12]", "in [12, 6, 13]"])
    def test_some_are_needed_and_more_may_be_too_many(self, test: str) -> None:
        found = find_of_many(f'len(filter(requiredAdapters, {{.available == "True"}})) {test}')
        assert [len(remedy) for remedy in found.sets] == [6] * 10
        assert (found.is_exhaustive, found.is_minimal) == (False, True), "there are 924, ten are enough to choose from"

    def test_whoever_has_done_its_part_is_left_alone(self) -> None:
        found = find_of_many('count(requiredAdapters, {.available == "True"}) == 11', dict.fromkeys(NAMES[:10], "True"))
        assert [[change.adapter for change in remedy] for remedy in found.sets] == [["n10"], ["n11"]]
        assert found.is_exhaustive

    def test_a_rule_that_tells_adapters_apart_may_be_too_much(self) -> None:
        """Six would do, but any two adapters may differ to this rule, and so not all sets of six can be tried."""
        found = find_of_many('count(requiredAdapters, {.adapter != "x" && .available == "True"}) in [6, 12]')
        assert [len(remedy) for remedy in found.sets] == [12]
        assert (found.is_exhaustive, found.is_minimal) == (False, False)

    def test_a_rule_that_tells_adapters_apart_may_still_be_solved(self) -> None:
        found = find_of_many('requiredAdapters[3].available == "True" && requiredAdapters[7].state == "Completed"')
        assert [[change.adapter for change in remedy] for remedy in found.sets] == [["n03", "n07"]]
        assert (found.is_exhaustive, found.is_minimal) == (False, True)

    @pytest.mark.parametrize("first", [0, 2])
    def test_of_everybody_those_that_are_not_needed_are_left_out(self, first: int) -> None:
        """Eight of twelve: no set of eight is tried, so everybody is, and then without one after the other."""
        needed = range(first, first + 8)
        found = find_of_many(" && ".join(f'requiredAdapters[{place}].available == "True"' for place in needed))
        assert [[change.adapter for change in remedy] for remedy in found.sets] == [[NAMES[place] for place in needed]]
        assert (found.wanted, found.is_exhaustive, found.is_minimal) == ("True", False, False)

    def test_what_is_left_is_minimal_when_all_that_is_smaller_was_tried(self) -> None:
        found = find_of_many(" && ".join(f'requiredAdapters[{place}].available == "True"' for place in range(7, 12)))
        assert [[change.adapter for change in remedy] for remedy in found.sets] == [NAMES[7:]]
        assert (found.is_exhaustive, found.is_minimal) == (False, True), "all sets of four were tried"

    @pytest.mark.parametrize("type_", ["Ready", "Available", "Zones", "Both"])
    def test_conditions_without_an_expression(self, type_: str) -> None:
        policy = load_policy(f"""
requiredAdapters: [{", ".join(NAMES)}]
clusterConditions:
  - {{type: Zones, summary: {{over: requiredAdapters, type: Zone}}}}
  - {{type: Both, summary: {{types: [Ready, Zones]}}}}
""")
        world = World(policy)
        situation = read_situation(world.resource, world.reports, policy, world.status, world.now)
        found = find_remedies(situation, world.reports, type_)
        assert [[change.adapter for change in remedy] for remedy in found.sets] == [NAMES]
        assert (found.is_exhaustive, found.is_minimal) == (True, True)

    def test_to_have_found_nothing_is_not_to_have_tried_everything(self) -> None:
        nowhere = 'all(requiredAdapters, {.data["region"] == "eu"})'
        assert find_of_many(nowhere) == RemedySet("True", (), is_exhaustive=False)
        assert find_of_many('any(requiredAdapters, {.state == "Nonsense"})') == RemedySet(
            "True", (), is_exhaustive=True
        )


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        pytest.param('adapters["a"].conditions["Zone"].status == "True"', {"Zone": "True"}, id="by name"),
        pytest.param('adapters["a"].conditions.Zone?.status == "False"', {"Zone": "False"}, id="with a dot"),
        pytest.param(
            'adapters["a"].conditions["Zone"].status == "True" && adapters["a"].conditions["Load"].status == "False"',
            {"Zone": "True", "Load": "False"},
            id="two of them",
        ),
    ],
)
def test_conditions_that_a_rule_names_are_imagined_too(expression: str, wanted: dict[str, str]) -> None:
    world = World(
        load_policy(f"""
requiredAdapters: [a, b]
clusterConditions: [{{type: X, evaluate: {{expr: '{expression}'}}}}]
""")
    )
    situation = read_situation(world.resource, world.reports, world.policy, world.status, world.now)
    ((change,),) = find_remedies(situation, world.reports, "X").sets
    assert {condition.type: condition.status for condition in change.conditions} == wanted


class TestSummaries:
    """Merged conditions depend on the conditions they merge, of each adapter that has a part."""

    POLICY = """
requiredAdapters: [a, b]
optionalAdapters: [c]
clusterConditions:
  - {type: OfOne, summary: {adapter: c, types: [Zone, Throttled], negative: [Throttled]}}
  - {type: OfMany, summary: {over: requiredAdapters, type: Zone}}
  - {type: OfOptional, summary: {over: optionalAdapters, type: Zone}}
  - {type: Both, summary: {types: [OfOne, OfMany]}}
"""

    def find(self, type_: str, wanted: ConditionStatus = "True", **zones: str) -> list[set[str]]:
        world = World(load_policy(self.POLICY))
        for adapter, status in zones.items():
            world.report(make_report(adapter, "True/Done", extra={"Zone": status}))
        situation = read_situation(world.resource, world.reports, world.policy, world.status, world.now)
        found = find_remedies(situation, world.reports, type_, wanted)
        return [{str(change).removesuffix(" at generation 1") for change in remedy} for remedy in found.sets]

    def test_of_one_adapter(self) -> None:
        assert self.find("OfOne") == [{"c Available=True, Zone=True, Throttled=False"}]

    def test_of_many_adapters(self) -> None:
        assert self.find("OfMany") == [{"a Available=True, Zone=True", "b Available=True, Zone=True"}]
        assert self.find("OfMany", a="True", b="False") == [{"b Available=True, Zone=True"}]
        assert self.find("OfMany", a="True") == [{"b Available=True, Zone=True"}]

    def test_of_those_that_reported(self) -> None:
        assert self.find("OfOptional") == [set()], "nobody reported, nothing to complain of"
        assert self.find("OfOptional", c="False") == [{"c Available=True, Zone=True"}]

    def test_to_make_one_false(self) -> None:
        zones = {"a": "True", "b": "True"}
        assert self.find("OfMany", "False", **zones) == [
            {"a Available=True, Zone=False"},
            {"b Available=True, Zone=False"},
        ]

    def test_of_several_at_once(self) -> None:
        (both,) = self.find("Both", a="True")
        assert {change.partition(" ")[0] for change in both} == {"b", "c"}


def test_while_deleting_nothing_makes_a_resource_ready() -> None:
    world = make_world()
    world.delete()
    assert remedies(world, "Ready") == []


def test_a_change_reads_as_people_speak() -> None:
    said: dict[AdapterState, str] = {
        "Completed": "dns Available=True at generation 3",
        "Running": "dns Available=False and in progress at generation 3",
        "Pending": "dns Available=False, waiting and not applied at generation 3",
        "Failed": "dns Available=False and failed at generation 3",
        "Unhealthy": "dns Health=False, neither available nor applied at generation 3",
    }
    assert {state: str(AdapterChange("dns", state, 3)) for state in said} == said
    with_zone = AdapterChange("dns", "Completed", 3, (Condition("Zone", "True"), Condition("Load", "False")))
    assert str(with_zone) == "dns Available=True, Zone=True, Load=False at generation 3"


class TestImagining:
    """Reports that nobody sent."""

    @pytest.mark.parametrize("state", ["Unhealthy", "Outdated", "Completed", "Pending", "Running", "Failed"])
    def test_an_imagined_report_puts_an_adapter_into_the_state(self, state: AdapterState) -> None:
        stored = imagine_report("a", state, 2, POLICY, START)
        assert stored is not None
        world = make_world()
        world.edit()
        world.reports["a"] = stored
        (summary,) = world.write().adapters
        assert (summary.state, summary.observed_generation) == (state, 1 if state == "Outdated" else 2)

    def test_it_looks_as_one_that_was_stored_now(self) -> None:
        stored = imagine_report("a", "Failed", 2, POLICY, START)
        assert stored is not None
        assert (stored.report.adapter, stored.report.observed_time) == ("a", START)
        assert (stored.effective_time, stored.last_heard) == (START, START)
        assert {c.last_transition_time for c in stored.report.conditions} == {START}
        assert [c.type for c in stored.report.conditions] == ["Available", "Applied", "Health"]

    def test_who_has_not_reported_has_no_report(self) -> None:
        assert imagine_report("a", "Unreported", 2, POLICY, START) is None

    def test_without_such_reasons_an_adapter_can_be_at_work_all_the_same(self) -> None:
        """docs/semantics.md §3: Running also without any reason, Pending also without one and not applied."""
        waiting, working = sorted(POLICY.waiting_reasons), sorted(POLICY.in_progress_reasons)
        without = load_policy(f"""
requiredAdapters: [a]
policies:
  waitingReasons: [{", ".join(f'"!{name}"' for name in waiting if name != "AfterYou")}]
  inProgressReasons: [{", ".join(f'"!{name}"' for name in working if name != "Baking")}]
""")
        for state in ("Pending", "Running"):
            world = World(without)
            stored = imagine_report("a", state, 1, without, START)
            assert stored is not None
            world.reports["a"] = stored
            assert [summary.state for summary in world.write().adapters] == [state]

    def test_a_change_keeps_what_else_the_adapter_said(self) -> None:
        before = make_report(
            "a", "False/JobFailed", extra={"Zone": "False/NoZone/None yet"}, data={"n": 1}, metadata={"job": "x"}
        )
        now = START + timedelta(minutes=1)
        stored, load = StoredReport(before, START, START), Condition("Load", "False")
        after = imagine_change(stored, "a", "Completed", 2, [load], now)
        assert after.report == Report(
            "a",
            2,
            (
                Condition("Available", "True", last_transition_time=now),
                Condition("Applied", "True", last_transition_time=now),
                Condition("Health", "True", last_transition_time=now),
                Condition("Zone", "False", "NoZone", "None yet", 1),
                load,
            ),
            now,
            {"n": 1},
            {"job": "x"},
        )
        assert (after.effective_time, after.last_heard) == (now, now)


@pytest.mark.parametrize(("type_", "wanted"), [("Young", "True"), ("All", "False"), ("All", "True"), ("Two", "True")])
def test_the_answer_says_what_was_wanted(type_: str, wanted: ConditionStatus) -> None:
    world = make_world()
    situation = read_situation(world.resource, world.reports, world.policy, world.status, world.now)
    assert find_remedies(situation, world.reports, type_, wanted).wanted == wanted


def test_optional_and_unlisted_adapters_are_told_apart_by_whether_they_reported() -> None:
    """An optional adapter is in the lists once it has reported, an unlisted one while it is fresh."""
    world = World(
        load_policy("""
requiredAdapters: [a]
optionalAdapters: [c, d]
policies: {staleThreshold: 10m}
clusterConditions:
  - {type: ManyThere, evaluate: {expr: 'len(allAdapters) >= 4'}}
  - {type: ManyOptional, evaluate: {expr: 'len(optionalAdapters) == 2'}}
""")
    )
    world.report(make_report("c", "False/JobFailed"))
    world.report(make_report("x", "False/JobFailed"))
    assert remedies(world, "ManyOptional") == [{"d Completed"}]
    assert remedies(world, "ManyThere") == [{"d Completed"}]
    world.pass_time(timedelta(minutes=10))
    assert remedies(world, "ManyThere") == [{"d Completed", "x Completed"}]
