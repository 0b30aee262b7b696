"""Trying combinations of adapter states: who is interchangeable, how many are tried, and what silence leads to."""

from __future__ import annotations

from hyperfleet.aggregation.linting.diagram import draw_phases
from hyperfleet.aggregation.linting.enumeration import Combination, Enumeration, enumerate_states
from hyperfleet.model.status import ADAPTER_STATES
from tests.conformance.timeline import load_policy

DONE = """
clusterConditions: [{type: Done, evaluate: {expr: 'all(requiredAdapters, {.state == "Completed"})'} %s}]
phases: {ready: {requiredConditions: [{type: Done, status: "True"}]}}
"""


def tried(text: str) -> Enumeration:
    return enumerate_states(load_policy(text))


def named_one_by_one(count: int) -> str:
    """Write a policy in which every adapter has a rule of its own behind a phase."""
    names = [f"a{number}" for number in range(count)]
    rules = [f"  - {{type: T{name}, mirror: {{adapter: {name}}}}}" for name in names]
    wanted = [f"      - {{type: T{name}, status: 'True'}}" for name in names]
    head = [f"requiredAdapters: [{', '.join(names)}]", "clusterConditions:", *rules]
    return "\n".join([*head, "phases:", "  ready:", "    requiredConditions:", *wanted, ""])


def test_who_is_named_moves_alone_and_the_others_are_interchangeable() -> None:
    """Only rules behind a phase count: `Aside` could name anybody."""
    enumeration = tried("""
requiredAdapters: [a, b, c, d]
optionalAdapters: [e, f, g]
clusterConditions:
  - {type: One, evaluate: {expr: 'adapters["f"].reported || any(allAdapters, {.state == "Failed"})'}}
  - {type: Two, mirror: {adapter: b}}
  - {type: Both, summary: {types: [One, Two]}}
  - {type: Aside, mirror: {adapter: a}}
phases: {ready: {requiredConditions: [{type: Both, status: "True"}]}}
""")
    assert enumeration.groups == (("f",), ("b",), ("a", "c", "d"), ("e", "g"))


def test_adapters_that_no_phase_depends_on_are_left_out() -> None:
    enumeration = tried("requiredAdapters: [a]\noptionalAdapters: [b, c]\n" + DONE % "")
    assert enumeration.groups == (("a",),)


def test_every_combination_is_tried() -> None:
    """Of two interchangeable adapters in seven states there are 7 * 8 / 2 combinations: their order is none."""
    enumeration = tried("requiredAdapters: [a, b]\n" + DONE % "")
    expected = {((one, two),) for at, one in enumerate(ADAPTER_STATES) for two in ADAPTER_STATES[at:]}
    assert set(enumeration.results) == expected
    assert (enumeration.total, enumeration.is_complete) == (28, True)
    result = enumeration.results[("Completed", "Running"),]
    assert result.states == {"a": "Completed", "b": "Running"}
    assert (result.phase, result.conditions["Done"]) == ("Provisioning", "False")
    done: Combination = (("Completed", "Completed"),)
    assert [states for states, result in enumeration.results.items() if result.phase == "Ready"] == [done]


def test_of_very_many_combinations_a_sample_is_tried() -> None:
    """Everybody alike, and each adapter in each state while all the others are alike."""
    enumeration = tried(named_one_by_one(20))
    assert enumeration.total == 7**20
    assert not enumeration.is_complete
    assert len(enumeration.results) <= 2000
    for base in ADAPTER_STATES:
        for place in range(20):
            for state in ADAPTER_STATES:
                combination = tuple((state if place == at else base,) for at in range(20))
                assert combination in enumeration.results


def test_of_many_interchangeable_adapters_every_number_is_tried() -> None:
    names = ", ".join(f"a{number}" for number in range(50))
    enumeration = tried(f"requiredAdapters: [{names}]\n" + DONE % "")
    assert not enumeration.is_complete
    for count in range(51):
        assert (("Completed",) * (50 - count) + ("Running",) * count,) in enumeration.results


def test_rules_that_look_at_more_than_states_leave_something_open() -> None:
    enumeration = tried("""
requiredAdapters: [a]
clusterConditions: [{type: Done, evaluate: {expr: 'adapters["a"].data["done"] == true'}}]
phases: {ready: {requiredConditions: [{type: Done, status: "True"}]}}
""")
    assert len(enumeration.results) == enumeration.total
    assert not enumeration.is_complete


def test_time_passes_only_where_it_is_asked_for() -> None:
    """Where everything counts as stale or missing at once, or is damped, the states themselves decide all the same."""
    limits = "policies: {staleThreshold: 1us, staleAction: degraded}\ndefaultBehavior: {timeout: 1us}\n"
    timeless = tried("requiredAdapters: [a]\n" + DONE % "")
    pressed = tried("requiredAdapters: [a]\n" + DONE % ", goBadAfter: 10m, goGoodAfter: 10m" + limits)
    phases = {states: result.phase for states, result in timeless.results.items()}
    assert {states: result.phase for states, result in pressed.results.items()} == phases
    assert all(result.later == {} for result in timeless.results.values())


def test_what_silence_leads_to() -> None:
    """docs/semantics.md §5: an adapter that has not reported ends as missing, never stale; one that has, vice versa."""
    limits = "policies: {staleThreshold: 10m, staleAction: degraded}\ndefaultBehavior: {timeout: 5m}\n"
    later = {states[0][0]: result.later for states, result in tried(limits + "requiredAdapters: [a]\n").results.items()}
    assert later == {
        "Unreported": {"times out": "Failed", "goes stale": "Pending"},
        "Unhealthy": {"times out": "Degraded", "goes stale": "Degraded"},
        "Outdated": {"times out": "Pending", "goes stale": "Degraded"},
        "Completed": {"times out": "Provisioning", "goes stale": "Degraded"},
        "Pending": {"times out": "Pending", "goes stale": "Degraded"},
        "Running": {"times out": "Provisioning", "goes stale": "Degraded"},
        "Failed": {"times out": "Failed", "goes stale": "Failed"},
    }


def test_a_diagram_says_what_it_leaves_open() -> None:
    sampled = draw_phases(tried(named_one_by_one(8))).splitlines()
    assert sampled[1] == "    %% a sample: 3823 of 5764801 combinations of adapter states were tried"
    assert "%%" not in draw_phases(tried("requiredAdapters: [a]\n" + DONE % ""))
    beyond = draw_phases(tried("requiredAdapters: [a]\n" + DONE.replace('.state == "Completed"', ".stale") % ""))
    assert "    %% the rules depend on more than adapter states; more moves are possible\n" in beyond
