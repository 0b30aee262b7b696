"""Simulation: whatever the fleet and whatever the policies, what is predicted is what recomputation makes."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random

import pytest
from msgspec.structs import replace

from hyperfleet.aggregation import load_policies
from hyperfleet.errors import PolicyTooExpensive
from hyperfleet.expr import STEPS
from hyperfleet.expr.runtime.budget import WORK
from hyperfleet.model.kind import CLUSTER, NODE_POOL, Kinds
from hyperfleet.model.resource import Resource
from hyperfleet.ports import EVERYTHING, Query, Record, StatusCause
from hyperfleet.services import simulation_cost, time_slices
from hyperfleet.services.simulation import (
    PolicySimulation,
    PredictedChange,
    PredictedMove,
    SimulationFindings,
    candidate_rules,
    compare_statuses,
)
from hyperfleet.services.simulation_cost import SimulationCost
from hyperfleet.services.upkeep import recompute_all
from tests.candidates import CANDIDATES
from tests.unit.services.desk import START, Desk, open_desk

ADAPTERS = ("validation", "dns", "monitoring", "ghost", "nodepool")
VERDICTS = ("True", "True", "False/Broken/no such zone", "False/JobRunning", "Unknown")
QUERIES = (Query(CLUSTER.name, EVERYTHING, limit=1_000), Query(NODE_POOL.name, EVERYTHING, limit=1_000))


async def build(desk: Desk, random: Random) -> None:
    """Make a fleet by chance."""
    ids = []
    for number in range(6):
        await desk.create(f"c{number}", labels={"env": random.choice(("prod", "test"))})
        ids.append(f"cls-c{number}")
        for pool in range(random.randrange(3)):
            await desk.create(f"p{number}{pool}", kind=NODE_POOL, parent_id=f"cls-c{number}")
            ids.append(f"np-p{number}{pool}")
    for _ in range(60):
        desk.clock.pass_time(timedelta(seconds=random.choice((0, 1, 60))))
        await happen(desk, random.choice(ids), random)


async def happen(desk: Desk, id_: str, random: Random) -> None:
    record = await desk.read(id_)
    if record is None:
        return
    match random.choice(("report", "report", "report", "edit", "delete")):
        case "report":
            extra = {"Finalized": random.choice(("True", "False"))}
            said, generation = random.choice(VERDICTS), record.resource.generation
            await desk.report(id_, random.choice(ADAPTERS), said, generation=generation, extra=extra)
        case "edit":
            await desk.edit(id_, size=random.randrange(9))
        case "delete" if random.random() < 0.3:
            await desk.delete(id_)


async def read_all(desk: Desk) -> dict[str, Record]:
    return {record.resource.id: record for record in await desk.store.walk("", 10_000, EVERYTHING)}


async def simulate(desk: Desk, policy: str) -> SimulationFindings:
    kinds = Kinds()
    simulation = PolicySimulation(
        desk.store, candidate_rules(load_policies(policy, kinds=kinds), kinds), QUERIES, desk.clock.now()
    )
    async for _ in simulation.run():
        pass
    return simulation.findings


async def put_in_force(desk: Desk, policy: str) -> None:
    desk.policy = policy
    version = await desk.policies.activate()
    while ids := (await desk.store.outdated(version.version, 3))[0]:
        await recompute_all(desk.committer, ids, StatusCause("policy"))


def moves_between(before: Record, after: Record | None) -> list[tuple[str, str | None, str | None, str, str]]:
    if after is None:
        return [("phase", before.status.phase, None, "Removed", "nothing would be left to clean up")]
    return [_bare(move) for move in compare_statuses(before.status, after.status)]


def _bare(move: PredictedMove) -> tuple[str, str | None, str | None, str, str]:
    return move.subject, move.before, move.after, move.reason, move.message


@pytest.mark.parametrize("seed", range(8))
def test_what_is_predicted_comes_true(seed: int) -> None:
    async def check() -> None:
        random = Random(seed)
        async with open_desk() as desk:
            await build(desk, random)
            for policy in random.sample(list(dict.fromkeys(CANDIDATES)), 6):  # to put one in force twice does nothing
                before = await read_all(desk)
                findings = await simulate(desk, policy)
                assert await read_all(desk) == before, "nothing was written"
                await put_in_force(desk, policy)
                after = await read_all(desk)
                predicted = {each.resource.id: [_bare(move) for move in each.moves] for each in findings.changes}
                actual = {id_: moves_between(record, after.get(id_)) for id_, record in before.items()}
                assert predicted == {id_: moves for id_, moves in actual.items() if moves}
                assert findings.examined == len(before)
                desk.clock.pass_time(timedelta(minutes=random.randrange(10)))

    asyncio.run(check())


def test_why_is_told_of_each_move_that_has_grounds() -> None:
    async def check() -> None:
        async with open_desk() as desk:
            await build(desk, Random(1))
            for policy in CANDIDATES:
                for change in (await simulate(desk, policy)).changes:
                    for move in change.moves:
                        assert move.why or move.after in ("True", None), (change.resource.id, move)

    asyncio.run(check())


def test_what_is_told_is_bounded_and_all_is_counted() -> None:
    findings = SimulationFindings(limit=2)
    resources = [Resource(f"cls-{number}", "Cluster", f"c{number}", 1, START, START) for number in range(5)]
    reworded, moved = PredictedMove("Ready", "True", "True", "Other"), PredictedMove("phase", "Ready", "Failed")
    for resource, moves in zip(resources, ((), (reworded,), (reworded,), (moved, reworded), (moved,)), strict=True):
        findings.add(PredictedChange(resource, moves))
    assert (findings.examined, findings.changed, findings.reworded) == (5, 2, 2)
    assert [change.resource.id for change in findings.changes] == ["cls-3", "cls-4"]
    assert findings.is_truncated
    assert not findings.has_room
    assert findings.summary == {("Ready", "True", "True"): 3, ("phase", "Ready", "Failed"): 2}


EXPENSIVE = "requiredAdapters: [dns]\nclusterConditions:\n" + "".join(
    f"  - {{type: R{place}, evaluate: {{expr: 'count(1..300, count(1..{90 + place}, # > 0) > 90) > 299'}}}}\n"
    for place in range(60)
)


def test_a_policy_that_is_too_expensive_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation_cost, "FREE_STEPS", 10 * STEPS)

    async def check() -> None:
        async with open_desk() as desk:
            for number in range(30):
                await desk.create(f"c{number}")
            before = await read_all(desk)
            with pytest.raises(PolicyTooExpensive, match=r"the rules took [0-9,]+ steps for 1\d statuses"):
                await simulate(desk, EXPENSIVE)
            assert await read_all(desk) == before

    asyncio.run(check())


def test_other_tasks_run_after_every_status_of_an_expensive_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slices, "_SLICE", 0)

    async def check() -> None:
        async with open_desk() as desk:
            for number in range(5):
                await desk.create(f"c{number}")
            kinds = Kinds()
            cost = SimulationCost()
            rules = replace(candidate_rules(load_policies(EXPENSIVE, kinds=kinds), kinds), open_budget=cost.open)
            simulation = PolicySimulation(desk.store, rules, QUERIES, desk.clock.now())
            seen: set[int] = set()

            async def watch() -> None:
                while True:
                    seen.add(cost.statuses)
                    await asyncio.sleep(0)

            watcher = asyncio.create_task(watch())
            async for _ in simulation.run():
                pass
            watcher.cancel()
            assert cost.statuses == 10, "a status and its justification for each"
            assert seen >= set(range(1, 10)), "one at a time"

    asyncio.run(check())


def test_the_cost_of_a_simulation_is_an_average() -> None:
    cost = SimulationCost()
    for _ in range(10_000):
        cost.open()[WORK] -= simulation_cost.STEPS_PER_STATUS
    assert cost.steps == 10_000 * simulation_cost.STEPS_PER_STATUS
    for _ in range(simulation_cost.FREE_STEPS // (STEPS - simulation_cost.STEPS_PER_STATUS) + 1):
        cost.open()[WORK] -= STEPS
    with pytest.raises(PolicyTooExpensive):
        cost.open()
