"""Strategies and policies that the laws of the core are tried on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from hyperfleet.aggregation.policy import Policy
from hyperfleet.model.status import Status
from tests.conformance.timeline import load_policy
from tests.world import World, make_report

GUIDE = load_policy("guide")
DEFAULT = load_policy("default")

# Everything that depends on time or on other conditions, in one policy.
EVERYTHING = load_policy("""
requiredAdapters: [validation, dns, infrastructure, hypershift]
optionalAdapters: [monitoring, logging]
clusterConditions:
  - type: Slow
    goBadAfter: 3m
    goGoodAfter: 1m
    evaluate: {expr: 'all(requiredAdapters, {.available == "True"})'}
  - type: SlowTrouble
    polarity: Negative
    goBadAfter: 2m
    flapping: {window: 3m, transitions: 2}
    evaluate: {expr: 'any(allAdapters, {.state in ["Failed", "Unhealthy"]})'}
  - {type: Silent, polarity: Negative, evaluate: {expr: 'any(allAdapters, {olderThan(#, "7m")})'}}
  - {type: Dns, mirror: {adapter: dns}}
  - {type: Everybody, summary: {over: allAdapters, type: Available}}
  - {type: Own, summary: {types: [Slow, SlowTrouble, Dns], negative: [SlowTrouble]}}
phases:
  degraded: {requiredConditions: [{type: SlowTrouble, status: "True"}]}
  failed: {requiredConditions: [{type: Own, status: "False"}]}
  ready: {requiredConditions: [{type: Ready, status: "True"}]}
  provisioning: {requiredConditions: [{type: Slow, status: "False"}]}
policies: {staleThreshold: 10m, staleAction: degraded}
defaultBehavior: {timeout: 10m}
flapping: {window: 8m, transitions: 3}
""")

# What an adapter may report, by the state it puts the adapter into at the current generation.
REPORTS: dict[str, dict[str, str]] = {
    "Completed": {"available": "True/JobSucceeded/done"},
    "Running": {"available": "False/JobRunning/at work"},
    "Pending": {"available": "False/PreconditionsNotMet/waits", "applied": "False/PreconditionsNotMet"},
    "Failed": {"available": "False/JobFailed/broken"},
    "Unhealthy": {"available": "False/UnexpectedError/down", "health": "False/UnexpectedError"},
    "UnhealthyButAvailable": {"available": "True/JobSucceeded/done", "health": "False/APIConnectionFailed"},
}

adapters = st.sampled_from((*GUIDE.required, *GUIDE.optional, "unlisted"))
required_adapters = st.sampled_from(GUIDE.required)
kinds = st.sampled_from(sorted(REPORTS))
durations = st.integers(0, 25 * 60).map(lambda seconds: timedelta(seconds=seconds))
policies = st.sampled_from((GUIDE, DEFAULT, EVERYTHING))
# While a condition is held by damping it keeps its words, and those remember the order of events.
undamped_policies = st.sampled_from((GUIDE, DEFAULT))


def send(world: World, adapter: str, kind: str, **more: Any) -> Any:
    """Let an adapter report for the current generation, or for the one given."""
    more.setdefault("generation", world.resource.generation)
    return world.report(make_report(adapter, **{**REPORTS[kind], **more}))


@st.composite
def worlds(draw: st.DrawFn, policy: Policy | None = None) -> World:
    """Draw a world in which something has happened already."""
    world = World(policy or draw(policies))
    for _ in range(draw(st.integers(0, 8))):
        world.pass_time(draw(st.integers(0, 240).map(lambda s: timedelta(seconds=s))))
        action = draw(st.integers(0, 9))
        if action == 0:
            world.edit()
        else:
            send(world, draw(adapters), draw(kinds))
    return world


def shown(status: Status) -> Any:
    """Return what a reader sees of a status, without times."""
    return (
        status.phase,
        [(c.type, c.status, c.reason, c.message, c.observed_generation) for c in status.conditions],
        sorted((a.name, a.available, a.observed_generation, a.state, a.stale) for a in status.adapters),
    )
