"""Explain: from the phase to the conditions, their rules and terms, the adapters behind them, and what would help."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hyperfleet.aggregation.explaining.explanation import (
    AdapterExplanation,
    ConditionExplanation,
    ExplainedTerm,
    StatusExplanation,
    explain,
)
from hyperfleet.aggregation.explaining.remedies import RemedySet
from hyperfleet.aggregation.explaining.trials import AdapterChange
from hyperfleet.aggregation.situation import Child
from hyperfleet.model.condition import Condition
from hyperfleet.model.status import RawResult
from tests.conformance.timeline import load_policy
from tests.world import START, World, make_report

MINUTE = timedelta(minutes=1)

POLICY = """
requiredAdapters: [dns, network]
optionalAdapters: [logging]
policies: {staleThreshold: 10m}
defaultBehavior: {timeout: 20m}
clusterConditions:
  - type: AllDone
    evaluate: {expr: 'all(requiredAdapters, {.available == "True"}) && currentGeneration > 1'}
    templates:
      true: {reason: Done, message: All done}
      false: {reason: NotDone, message: "{{.FailedAdapterNames}} to go"}
  - {type: Copied, mirror: {adapter: dns, type: Applied}}
  - {type: OfMany, summary: {over: requiredAdapters, type: Health}}
  - {type: OfOne, summary: {adapter: dns, types: [Applied, Health]}}
  - {type: OwnOnes, summary: {types: [Available, AllDone]}}
  - {type: PoolsReady, summary: {over: nodePools, type: Ready}}
  - {type: Region, evaluate: {expr: 'adapters["dns"].data["n"] % 0 == 1'}}
phases:
  failed: {requiredConditions: [{type: AllDone, status: "False"}]}
  ready: {requiredConditions: [{type: AllDone, status: "True"}]}
"""


def make_world() -> World:
    """Return a world at five minutes: dns completed after one minute, network failed after two."""
    world = World(load_policy(POLICY))
    world.pass_time(MINUTE)
    world.report(make_report("dns", "True/Done/Zone is there", data={"n": 4}))
    world.pass_time(MINUTE)
    world.report(make_report("network", "False/QuotaExceeded/No quota"))
    world.pass_time(3 * MINUTE)
    return world


def tell(world: World, only: str | None = None) -> StatusExplanation:
    return explain(
        world.resource, world.reports, world.policy, world.status, world.now, children=world.children, only=only
    )


def tell_condition(world: World, type_: str) -> ConditionExplanation:
    (condition,) = tell(world, type_).conditions
    return condition


def test_it_begins_with_the_phase_and_what_speaks_for_it() -> None:
    told = tell(make_world())
    assert (told.resource_id, told.generation, told.phase) == ("cls-123", 1, "Failed")
    assert told.phase_since == START + 2 * MINUTE
    assert told.because == ("the required adapter network failed: No quota", "the policy matches: AllDone=False")
    assert told.next_deadline == START + 11 * MINUTE, "dns was last heard of after one minute"


def test_every_condition_is_told_or_only_the_one_asked_for() -> None:
    world = make_world()
    assert [c.type for c in tell(world).conditions] == [c.type for c in world.status.conditions]
    assert [c.type for c in tell(world, "Copied").conditions] == ["Copied"]
    with pytest.raises(ValueError, match="no condition 'Nonsense' to explain; there are Available, Ready, AllDone"):
        tell(world, "Nonsense")


def test_a_condition_is_told_with_its_rule_and_everybody_behind_it() -> None:
    told = tell_condition(make_world(), "AllDone")
    assert (told.status, told.reason, told.message) == ("False", "NotDone", "network to go")
    assert told.since == START
    assert told.rule == 'all(requiredAdapters, {.available == "True"}) && currentGeneration > 1'
    assert told.culprits == (
        AdapterExplanation(
            name="network",
            state="Failed",
            available="False",
            reason="QuotaExceeded",
            message="No quota",
            observed_generation=1,
            generation=1,
            last_heard=START + 2 * MINUTE,
            since=START + 2 * MINUTE,
            is_required=True,
            is_stale=False,
            is_missing=False,
        ),
    )
    assert told.raw is None
    assert told.remedies == RemedySet("True"), "no report makes the generation greater"


def test_the_terms_of_an_expression_have_their_values() -> None:
    terms = tell_condition(make_world(), "AllDone").terms
    assert terms is not None
    assert (terms.value, terms.error, terms.is_skipped) == (False, "", False)
    quantifier, comparison = terms.parts
    assert (quantifier.text, quantifier.value) == ('all(requiredAdapters, {.available == "True"})', False)
    assert comparison == ExplainedTerm("currentGeneration > 1", is_skipped=True), "all() had already decided"
    rounds = [part for part in quantifier.parts if ": " in part.text]
    assert [(part.text, part.value) for part in rounds] == [
        ('dns: .available == "True"', True),
        ('network: .available == "True"', False),
    ]
    assert [part.value for part in rounds[1].parts] == ["False"], "the parts of a round are there too"


def test_a_term_that_failed_says_why() -> None:
    told = tell_condition(make_world(), "Region")
    assert (told.status, told.reason) == ("Unknown", "ExpressionError")
    assert told.terms is not None
    assert "divide by zero" in told.terms.error


def test_elements_without_a_name_are_told_by_their_place() -> None:
    world = World(
        load_policy("""
requiredAdapters: [dns]
clusterConditions: [{type: Small, evaluate: {expr: 'all([1, 3], {# < 3})'}}]
""")
    )
    terms = tell_condition(world, "Small").terms
    assert terms is not None
    assert [(part.text, part.value) for part in terms.parts] == [
        ("[1, 3]", [1, 3]),
        ("[0]: # < 3", True),
        ("[1]: # < 3", False),
    ]


def test_of_a_long_loop_the_rest_is_counted() -> None:
    world = World(
        load_policy("""
requiredAdapters: [dns]
clusterConditions: [{type: Small, evaluate: {expr: 'all(1..150, {# < 1000})'}}]
""")
    )
    terms = tell_condition(world, "Small").terms
    assert terms is not None
    assert terms.parts[-1] == ExplainedTerm("… and 50 more", is_skipped=True)


@pytest.mark.parametrize(
    ("type_", "rule"),
    [
        ("Available", ""),
        ("Copied", "mirror of Applied of dns"),
        ("OfMany", "summary of Health of requiredAdapters"),
        ("OfOne", "summary of Applied, Health of dns"),
        ("OwnOnes", "summary of Available, AllDone of the resource"),
    ],
)
def test_rules_without_an_expression_are_told_in_words(type_: str, rule: str) -> None:
    told = tell_condition(make_world(), type_)
    assert (told.rule, told.terms) == (rule, None)


def test_a_good_condition_needs_no_remedy() -> None:
    told = tell_condition(make_world(), "Copied")
    assert (told.status, told.remedies) == ("True", None)


def test_a_bad_condition_says_what_would_help() -> None:
    told = tell_condition(make_world(), "Ready")
    assert told.remedies == RemedySet("True", ((AdapterChange("network", "Completed", 1),),))


def test_a_condition_of_negative_polarity_is_good_when_false() -> None:
    world = World(
        load_policy("""
requiredAdapters: [dns, network]
clusterConditions:
  - {type: Failing, polarity: Negative, evaluate: {expr: 'any(requiredAdapters, {.state == "Failed"})'}}
  - {type: Pressure, polarity: Negative, mirror: {adapter: dns, type: Pressure}}
""")
    )
    assert tell_condition(world, "Failing").remedies is None, "nobody is told how to break things"
    world.report(make_report("dns", "False/QuotaExceeded", extra={"Pressure": "True/Load"}))
    remedy = AdapterChange("dns", "Completed", 1)
    assert tell_condition(world, "Failing").remedies == RemedySet("False", ((remedy,),))
    relief = replace(remedy, conditions=(Condition("Pressure", "False"),))
    assert tell_condition(world, "Pressure").remedies == RemedySet("False", ((relief,),))


def test_remedies_lead_to_the_good_side_also_of_a_rule_without_a_polarity() -> None:
    world = World(
        load_policy("""
requiredAdapters: [dns]
clusterConditions:
  - {type: Failing, evaluate: {expr: 'any(requiredAdapters, {.state == "Failed"})'}}
phases: {failed: {requiredConditions: [{type: Failing, status: "True"}]}}
""")
    )
    assert tell_condition(world, "Failing").remedies is None, "nobody is told how to break things"
    world.report(make_report("dns", "False/QuotaExceeded"))
    wanted = RemedySet("False", ((AdapterChange("dns", "Completed", 1),),))
    assert tell_condition(world, "Failing").remedies == wanted


def test_an_unhealthy_adapter_is_explained_by_its_health() -> None:
    world = World(load_policy("requiredAdapters: [dns]"))
    world.report(make_report("dns", "False/Queued/In the queue", health="False/ApiDown/No answer"))
    (told,) = tell_condition(world, "Ready").culprits
    assert (told.state, told.reason, told.message) == ("Unhealthy", "ApiDown", "No answer")


def test_the_children_count() -> None:
    world = make_world()
    world.children = (Child("NodePool", "pool", (Condition("Ready", "False", "NoNodes", "No nodes"),)),)
    world.write()
    told = tell_condition(world, "PoolsReady")
    assert (told.status, told.message) == ("False", "* NodePool pool: No nodes")


def test_a_damped_rule_is_told_with_what_it_says_now() -> None:
    world = World(
        load_policy("""
requiredAdapters: [dns]
clusterConditions: [{type: Up, evaluate: {expr: 'adapters["dns"].available == "True"'}, goBadAfter: 5m}]
""")
    )
    world.report(make_report("dns", "True"))
    world.pass_time(MINUTE)
    world.report(make_report("dns", "False/JobFailed"))
    told = tell_condition(world, "Up")
    assert (told.status, told.raw) == ("True", RawResult("False", START + MINUTE, START + MINUTE))


class TestAdapters:
    """What is told of each adapter."""

    def test_all_that_have_a_part(self) -> None:
        world = make_world()
        world.report(make_report("unlisted", "True"))
        told = {adapter.name: adapter for adapter in tell(world).adapters}
        assert list(told) == ["dns", "network", "unlisted"]
        assert [adapter.is_required for adapter in told.values()] == [True, True, False]

    def test_one_that_has_not_reported(self) -> None:
        world = World(load_policy(POLICY))
        told = tell(world).adapters[0]
        assert (told.name, told.state, told.available) == ("dns", "Unreported", "Unknown")
        assert (told.observed_generation, told.last_heard, told.since) == (0, None, None)
        assert (told.is_stale, told.is_missing) == (False, False)

    def test_one_that_is_missing_from_the_instant_of_its_timeout(self) -> None:
        world = World(load_policy(POLICY))
        world.pass_time(20 * MINUTE - timedelta(seconds=1))
        assert not tell(world).adapters[0].is_missing
        world.pass_time(timedelta(seconds=1))
        assert tell(world).adapters[0].is_missing

    def test_one_that_is_stale_and_outdated(self) -> None:
        world = make_world()
        world.edit()
        world.pass_time(10 * MINUTE)
        told = tell(world).adapters[0]
        assert (told.state, told.observed_generation, told.generation) == ("Outdated", 1, 2)
        assert told.is_stale
        assert (told.last_heard, told.since) == (START + MINUTE, START + 5 * MINUTE)


def test_it_tells_since_when_as_it_was_published() -> None:
    world = make_world()
    world.report(make_report("network", "True/Done"))
    world.pass_time(MINUTE)
    assert (tell(world).phase, tell(world).phase_since) == ("Provisioning", START + 5 * MINUTE)
    assert tell_condition(world, "Ready").since == START + 5 * MINUTE
    assert tell_condition(world, "AllDone").since == START


def test_a_roll_out_is_told_with_those_still_to_come() -> None:
    world = make_world()
    world.report(make_report("network", "True/Done"))
    world.edit()
    world.report(make_report("dns", "True/Done", generation=2))
    told = tell_condition(world, "Available")
    assert (told.status, told.reason) == ("True", "RollOutInProgress")
    assert [adapter.name for adapter in told.culprits] == ["network"]


def test_nothing_required_is_told_too() -> None:
    assert tell(World(load_policy("optionalAdapters: [dns]\n"))).because == ("no adapters are required",)


def test_a_round_that_failed_says_why() -> None:
    world = World(
        load_policy("""
requiredAdapters: [dns]
clusterConditions: [{type: Odd, evaluate: {expr: 'all(requiredAdapters, {.data["n"] % 0 == 1})'}}]
""")
    )
    world.report(make_report("dns", "True", data={"n": 1}))
    terms = tell_condition(world, "Odd").terms
    assert terms is not None
    assert terms.parts[-1].text.startswith("dns: ")
    assert "divide by zero" in terms.parts[-1].error
    assert not terms.parts[-1].is_skipped


def test_an_element_that_is_no_adapter_has_no_name() -> None:
    world = World(
        load_policy("""
requiredAdapters: [dns]
clusterConditions: [{type: Odd, evaluate: {expr: 'all([{"x": 1}], {.x == 1})'}}]
""")
    )
    terms = tell_condition(world, "Odd").terms
    assert terms is not None
    assert terms.parts[-1].text.startswith("[0]: ")
