"""An explanation as a person reads it in a terminal, as golden text."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hyperfleet.aggregation.explaining.explanation import (
    ConditionExplanation,
    ExplainedTerm,
    StatusExplanation,
    explain,
)
from hyperfleet.aggregation.explaining.explanation_text import render
from hyperfleet.aggregation.explaining.remedies import RemedySet
from hyperfleet.aggregation.explaining.trials import AdapterChange
from tests.conformance.timeline import load_policy
from tests.world import START, World, make_report

POLICY = load_policy("""
requiredAdapters: [dns, network]
policies: {staleThreshold: 10m}
defaultBehavior: {timeout: 20m}
clusterConditions:
  - type: NetworkUp
    evaluate: {expr: 'adapters["dns"].available == "True" && adapters["network"].available == "True"'}
    goBadAfter: 30m
    templates:
      true: {reason: Up, message: "All is up.\\nReally."}
      false: {reason: Down}
  - {type: DNSApplied, mirror: {adapter: dns, type: Applied}}
phases: {ready: {requiredConditions: [{type: NetworkUp, status: "True"}]}}
""")

BEFORE_ANY_REPORT = """\
cls-123 is Pending for 5m (generation 1)
  because no required adapter has started on the current generation
  next change by time alone in 15m

Ready=False for 5m: AdaptersMissing
  2 of 2 required adapters not ready: dns has not reported yet; network has not reported yet
  ← dns has not reported yet
  ← network has not reported yet
  True with: dns Available=True at generation 1 and network Available=True at generation 1
"""

ALL_UP = """\
cls-123 is Ready for 2m (generation 1)
  because the policy matches: NetworkUp=True; and Ready=True
  next change by time alone in 8m

NetworkUp=True for 2m: Up
  All is up.
  Really.
  adapters["dns"].available == "True" && adapters["network"].available == "True" = true
    adapters["dns"].available == "True" = true
      adapters["dns"].available = "True"
    adapters["network"].available == "True" = true
      adapters["network"].available = "True"
  ← dns Completed (generation 1, heard 2m ago) Done Zone is there
  ← network Completed (generation 1, heard 2m ago)
"""

AFTER_AN_EDIT = """\
cls-123 is Degraded for 1m (generation 2)
  because the required adapter dns has Health=False
  next change by time alone in 8m

NetworkUp=True for 14m: Up
  All is up.
  Really.
  damped: the rule has said False for 1m
  adapters["dns"].available == "True" && adapters["network"].available == "True" = false
    adapters["dns"].available == "True" = false
      adapters["dns"].available = "False"
    adapters["network"].available == "True" was not needed
  ← dns Unhealthy (generation 1 of 2, heard 1m ago) ApiDown
"""


def tell(world: World, type_: str | None = None) -> str:
    told = explain(world.resource, world.reports, world.policy, world.status, world.now, only=type_)
    return render(told, world.now)


def make_world() -> World:
    world = World(POLICY)
    world.report(make_report("dns", "True/Done/Zone is there"))
    world.report(make_report("network", "True"))
    return world


def test_before_any_report() -> None:
    world = World(POLICY)
    world.pass_time(timedelta(minutes=5))
    assert tell(world, "Ready") == BEFORE_ANY_REPORT


def test_when_all_is_well() -> None:
    world = make_world()
    world.pass_time(timedelta(minutes=2))
    assert tell(world, "NetworkUp") == ALL_UP


def test_after_an_edit() -> None:
    world = make_world()
    world.pass_time(timedelta(minutes=12))
    world.edit()
    world.pass_time(timedelta(minutes=1))
    world.report(make_report("dns", "False/NoZone", health="False/ApiDown"))
    world.pass_time(timedelta(minutes=1))
    assert tell(world, "NetworkUp") == AFTER_AN_EDIT


def test_a_stale_adapter_is_called_so() -> None:
    world = make_world()
    world.pass_time(timedelta(minutes=10))
    assert "\n  ← dns Completed (generation 1, heard 10m ago, stale) Done Zone is there\n" in tell(world, "Ready")


def test_what_flaps_is_told_with_its_moves() -> None:
    """Of a damped condition those that damping hides."""
    world = make_world()
    for available in ("False/Broken", "True/Done") * 3:
        world.pass_time(timedelta(seconds=30))
        world.report(make_report("dns", available))
    world.pass_time(timedelta(minutes=1))
    phase, ready = tell(world, "Ready").split("\n\n")
    damped = tell(world, "NetworkUp").split("\n\n")[1]
    assert (
        "\n  flapping for 2m30s: it has moved 8 times, the last 5 within 2m: Ready→Failed→Ready→Failed→Ready\n" in phase
    )
    assert "\n  flapping for 2m: it has moved 7 times, the last 5 within 2m: True→False→True→False→True\n" in ready
    assert (
        "\n  flapping for 2m: the rule has moved 7 times, the last 5 within 2m: True→False→True→False→True\n" in damped
    )
    assert damped.startswith("NetworkUp=True for 4m: Up\n")


def test_a_missing_adapter_is_called_so() -> None:
    world = World(POLICY)
    world.pass_time(timedelta(minutes=20))
    assert "\n  ← dns has not reported in time\n" in tell(world, "Ready")


def test_a_rule_without_an_expression_stands_in_words() -> None:
    assert "\nDNSApplied=True for 0s: " in tell(make_world(), "DNSApplied")
    assert "\n  mirror of Applied of dns\n" in tell(make_world(), "DNSApplied")


def test_a_clock_that_was_set_back_makes_no_negative_age() -> None:
    world = make_world()
    told = explain(world.resource, world.reports, world.policy, world.status, world.now)
    assert render(told, world.now - timedelta(minutes=1)).startswith("cls-123 is Ready for 0s ")


def make_condition(terms: ExplainedTerm, remedies: RemedySet | None = None, message: str = "") -> StatusExplanation:
    condition = ConditionExplanation("Up", "False", "Down", message, None, "", terms, (), None, remedies)
    return StatusExplanation("cls-1", 1, "Pending", START, (), (condition,), (), None)


def test_what_is_not_known_is_left_out() -> None:
    failing = ExplainedTerm(
        "1 % x", error="integer divide by zero", parts=(ExplainedTerm("x", 0), ExplainedTerm("y", is_skipped=True))
    )
    assert render(make_condition(failing), START) == (
        "cls-1 is Pending for 0s (generation 1)\n"
        "\n"
        "Up=False: Down\n"
        "  1 % x failed: integer divide by zero\n"
        "    x = 0\n"
        "    y was not needed\n"
    )


DONE = AdapterChange("dns", "Completed", 3)


@pytest.mark.parametrize(
    ("remedies", "lines"),
    [
        pytest.param(
            RemedySet("True"),
            "  no state of an adapter found that makes it True; it may depend on other things\n",
            id="nothing found",
        ),
        pytest.param(
            RemedySet("False", is_exhaustive=False),
            "  nothing found that makes it False; there were too many combinations to try them all\n",
            id="not everything tried",
        ),
        pytest.param(RemedySet("True", ((),)), "", id="nothing to be done but to wait"),
        pytest.param(
            RemedySet("False", ((DONE,),)), "  False with: dns Available=True at generation 3\n", id="the only remedy"
        ),
        pytest.param(
            RemedySet("True", ((DONE, DONE),), is_exhaustive=False, is_minimal=False),
            "  True with (fewer may do): dns Available=True at generation 3 and dns Available=True at generation 3\n"
            "  … and perhaps in other ways\n",
            id="one of several, not known to be minimal",
        ),
        pytest.param(
            RemedySet("True", ((DONE,) * 12,)),
            f"  True with: {'dns Available=True at generation 3 and ' * 10}2 more\n",
            id="a large one",
        ),
    ],
)
def test_what_would_help(remedies: RemedySet, lines: str) -> None:
    _, told = render(make_condition(ExplainedTerm("x", 0), remedies), START).split("  x = 0\n")
    assert told == lines


def test_a_long_message_is_cut_at_two_hundred_characters() -> None:
    told = render(make_condition(ExplainedTerm("x", 0), message="a" * 200 + "\n" + "b" * 201), START)
    assert f"\n  {'a' * 200}\n  {'b' * 199}…\n" in told


def test_of_many_adapters_with_much_to_say_the_first_are_told() -> None:
    names = [f"n{number}" for number in range(50)]
    world = World(load_policy(f"requiredAdapters: [{', '.join(names)}]"))
    for name in names:
        world.report(make_report(name, "False/Boom/" + "x " * 10_000))
    told = tell(world, "Ready")
    assert told.count("\n  ← ") == 10
    assert told.count("\n  because ") == 10
    assert told.count("\n  … and 40 more\n") == 2
    assert max(map(len, told.splitlines())) < 500


def test_a_long_value_is_cut_at_sixty_characters() -> None:
    whole, long = ExplainedTerm("a", "x" * 58), ExplainedTerm("b", "x" * 59)
    assert f'  a = "{"x" * 58}"\n' in render(make_condition(whole), START)
    assert f'  b = "{"x" * 58}…\n' in render(make_condition(long), START)


def test_a_time_is_a_value_too() -> None:
    assert '  t = "2025-10-17T12:00:00Z"\n' in render(make_condition(ExplainedTerm("t", START)), START)


def test_what_json_does_not_know_is_written_as_text() -> None:
    assert '  f = "(1+2j)"\n' in render(make_condition(ExplainedTerm("f", 1 + 2j)), START)
