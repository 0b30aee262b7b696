"""Which stored reports are calm: being heard again changes nothing of the status, clause by clause."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hyperfleet.aggregation import is_calm
from hyperfleet.aggregation.acceptance import Decision
from tests.conformance.timeline import load_policy
from tests.world import World, make_report

MINUTE = timedelta(minutes=1)

PLAIN = "requiredAdapters: [dns, apply]\npolicies: {staleThreshold: 10m}"


def make_world(policy: str = PLAIN) -> World:
    return World(load_policy(policy))


def send(world: World, adapter: str = "dns", available: str = "True", minutes: float = 0, **more: object) -> Decision:
    """Let time pass and an adapter report; return what was decided."""
    world.pass_time(minutes * MINUTE)
    return world.report(make_report(adapter, available, **more))


def calm_in(world: World) -> set[str]:
    """Return the adapters whose reports are calm."""
    return {adapter for adapter, stored in world.reports.items() if is_calm(stored, world.status)}


@pytest.mark.parametrize("available", ["True", "False/Broken", "False/JobRunning"])
def test_what_says_true_or_false_is_calm(available: str) -> None:
    world = make_world()
    send(world, "dns", available)
    send(world, "extra", available, health="False")
    assert calm_in(world) == {"dns", "extra"}


def test_an_unknown_report_moves_the_clock_of_missing_adapters() -> None:
    world = make_world()
    send(world, "dns", "Unknown")
    send(world, "apply")
    assert calm_in(world) == {"apply"}


def test_a_finalized_unknown_report_is_not_calm_either() -> None:
    world = make_world()
    send(world)
    world.delete()
    send(world, "dns", "Unknown", generation=2, extra={"Finalized": "True"})
    assert calm_in(world) == set()


def test_out_of_order_discards_are_ended_by_the_next_heartbeat() -> None:
    world = make_world()
    send(world)
    send(world, "apply")
    late = make_report("dns", "False/Broken", observedTime="2025-10-17T11:00:00Z")
    decision = world.report(late)
    assert (decision.outcome, decision.cause) == ("discarded", "OutOfOrder")
    assert decision.stored is not None
    assert not decision.stored.is_calm, "also where no status is computed"
    world.write()
    assert calm_in(world) == {"apply"}
    send(world)
    assert calm_in(world) == {"dns", "apply"}


def test_other_discards_leave_it_calm() -> None:
    world = make_world()
    send(world, minutes=1)
    world.edit()
    send(world, generation=2)
    for decision in (send(world, generation=1), send(world, "dns", "Unknown", generation=2)):
        assert decision.outcome == "discarded"
        world.write()
        assert calm_in(world) == {"dns"}


def test_a_stale_adapter_recovers_by_a_heartbeat_and_only_that_one_is_not_calm() -> None:
    world = make_world()
    send(world, "extra")
    send(world, "apply", minutes=4)
    send(world, "dns", minutes=4)
    world.pass_time(2 * MINUTE)
    assert calm_in(world) == {"apply", "dns"}, "optional and unlisted adapters can be stale too"
    world.pass_time(4 * MINUTE)
    assert calm_in(world) == {"dns"}
    send(world, "apply")
    assert calm_in(world) == {"apply", "dns"}


def test_while_deleting_nothing_is_stale() -> None:
    world = make_world()
    send(world)
    world.delete()
    world.pass_time(60 * MINUTE)
    world.write()
    assert calm_in(world) == {"dns"}


RULE = """
requiredAdapters: [dns, apply]
clusterConditions: [{type: Late, evaluate: {expr: '%s'}, templates: %s}]
"""


@pytest.mark.parametrize(
    ("expression", "because"),
    [
        ('olderThan(adapters["dns"], "5m")', "it is true of dns"),
        ('!olderThan(adapters["dns"], "5m")', "whatever is made of it"),
        ('any(allAdapters, olderThan(#, "5m"))', "through a list"),
        ('len(filter(allAdapters, olderThan(#, "5m"))) >= 1', "counted"),
    ],
)
def test_an_older_than_that_is_true_turns_false_by_a_heartbeat(expression: str, because: str) -> None:
    world = make_world(RULE % (expression, "{}"))
    send(world)
    send(world, "apply", minutes=3)
    assert calm_in(world) == {"dns", "apply"}, "it is false yet"
    world.pass_time(2 * MINUTE)
    assert calm_in(world) == {"apply"}, because
    send(world)
    assert calm_in(world) == {"dns", "apply"}


def test_an_older_than_of_the_search_for_culprits_counts_too() -> None:
    """The rule is false before it looks at `dns`, but culprits are looked for in both operands."""
    expression = 'all(requiredAdapters, .available == "True" && !olderThan(#, "5m"))'
    world = make_world(RULE % (expression, '{false: {reason: "R", message: "{{.FailedAdapterNames}}"}}'))
    send(world, "dns")
    send(world, "apply", "False/Broken")
    world.pass_time(5 * MINUTE)
    world.write()
    assert "dns" not in calm_in(world)


def test_a_rule_that_reads_last_updated_makes_all_of_them_ordinary() -> None:
    expression = 'adapters["dns"].lastUpdated != adapters["apply"].lastUpdated'
    world = make_world(RULE % (expression, "{}"))
    for adapter in ("dns", "apply", "extra"):
        send(world, adapter)
    assert calm_in(world) == set()


def test_what_only_other_adapters_or_deadlines_decide_needs_no_clause() -> None:
    """Outdated reports, damping and flapping marks have deadlines of their own."""
    world = make_world(
        PLAIN + "\nflapping: {transitions: 2, window: 10m}\nclusterConditions:\n"
        '  - {type: Slow, goBadAfter: 3m, goGoodAfter: 3m, evaluate: {expr: \'adapters["dns"].available == "True"\'}}\n'
    )
    for available in ("True", "False/Broken", "True", "False/Broken"):
        send(world, "dns", available, minutes=0.1)
    send(world, "apply")
    assert calm_in(world) == {"dns", "apply"}
    world.edit()
    assert calm_in(world) == {"dns", "apply"}, "outdated"


def test_the_stored_report_keeps_its_id_and_order_when_it_is_heard_again() -> None:
    world = make_world()
    stored = send(world).stored
    assert stored is not None
    said = stored.report
    backwards = replace(said, conditions=tuple(reversed(said.conditions)))
    world.pass_time(MINUTE)
    decision = world.report(backwards)
    assert decision.is_heartbeat
    assert decision.stored == replace(stored, effective_time=world.now, last_heard=world.now)
    again = world.report(replace(backwards, observed_time=world.now))
    assert (again.is_replay, again.stored) == (True, decision.stored)
