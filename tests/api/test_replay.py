"""Replay: under the policy in force, a life that is lived again is the one that history tells; on every store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any

import pytest

from hyperfleet.api.answer_decoding import answer_decoder
from hyperfleet.api.context import RequestLimits
from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.model.kind import CLUSTER, NODE_POOL
from hyperfleet.ports import EVERYTHING, HistoryQuery, Pruning, StatusCause, Store
from hyperfleet.services.replay import ComparedTimelines, Replay, ReplayRange
from hyperfleet.services.simulation import candidate_rules
from hyperfleet.services.timelines import ResourceTimeline
from hyperfleet.services.upkeep import recompute_all
from tests.api.fleet import Fleet, HandClock, open_fleet, path_of
from tests.world import body

POLICY = """
requiredAdapters: [validation, dns]
optionalAdapters: [monitoring]
policies: {staleThreshold: 10m, staleAction: degraded}
defaultBehavior: {timeout: 7m}
clusterConditions:
  - type: AllDone
    evaluate: {expr: 'all(requiredAdapters, .state == "Completed")'}
  - type: Steady
    goBadAfter: 3m
    goGoodAfter: 90s
    evaluate: {expr: 'none(requiredAdapters, .state == "Failed")'}
  - type: Quiet
    evaluate: {expr: 'none(requiredAdapters, olderThan(#, "4m"))'}
  - type: PoolsReady
    summary: {over: nodePools, type: Ready}
phases: {ready: {requiredConditions: [{type: AllDone, status: "True"}]}}
---
appliesTo: {kind: NodePool}
requiredAdapters: [nodepool]
policies: {staleThreshold: 5m}
clusterConditions:
  - type: Fit
    evaluate: {expr: 'adapters["nodepool"].state == "Completed"'}
phases: {ready: {requiredConditions: [{type: Fit, status: "True"}]}}
"""
SECOND = timedelta(seconds=1)
VERDICTS = ("True", "True", "True", "False/Broken/no such zone", "False/JobRunning", "Unknown")

Told = list[tuple[datetime, str, str | None, str | None]]


@pytest.fixture
def client(store: Store, clock: HandClock, limits: RequestLimits) -> Iterator[Fleet]:
    """Give a client of a server with a policy in which time plays a part."""
    with open_fleet(store, clock, limits, POLICY) as fleet:
        yield fleet


def now(client: Fleet) -> datetime:
    return datetime.now(UTC) if isinstance(client.store, PostgresStore) else client.clock.time


def pass_time(client: Fleet, duration: timedelta) -> None:
    """Let time pass and the server wake at every deadline; PostgreSQL's clock goes by itself, and no faster."""
    until = client.clock.time + duration

    async def wake() -> None:
        while (due := await client.store.due(100)).next_wake or due.ids:
            if due.ids:
                await recompute_all(client.committer, due.ids, StatusCause("deadline"))
            elif due.next_wake is not None and due.next_wake <= until:
                client.clock.time = due.next_wake
            else:
                return

    if not isinstance(client.store, PostgresStore):
        client.run(wake())
        client.clock.time = until


def recorded(client: Fleet, id_: str, since: datetime) -> Told:
    found = client.run(client.store.read_transitions(HistoryQuery(id_, EVERYTHING, limit=10_000)))
    moves = [each.transition for each in found if each.transition.time > since]
    return sorted(((move.time, move.subject, move.before, move.after) for move in moves), key=str)


def replay_record(client: Fleet, resource: dict[str, Any], since: datetime) -> tuple[Replay, ComparedTimelines]:
    rules, candidate = client.policies.rules, candidate_rules(client.policies.rules.policies, client.context.kinds)
    replay = Replay(client.store, EVERYTHING, rules, candidate, ReplayRange(since, now(client)), answer_decoder(rules))
    kind = NODE_POOL if resource["id"].startswith(NODE_POOL.id_prefix) else CLUSTER

    async def run() -> ComparedTimelines:
        record = await client.store.read_record(kind.name, resource["id"], EVERYTHING)
        assert record is not None
        timelines = await replay.replay_record(record)
        assert timelines is not None
        return timelines

    return replay, client.run(run())


def retold(timelines: ComparedTimelines, since: datetime) -> Told:
    moves = [move for move in timelines.present.transitions if move.time > since]
    return sorted(((move.time, move.subject, move.before, move.after) for move in moves), key=str)


_COUNT = count()


def happen(client: Fleet, cluster: dict[str, Any], pools: list[dict[str, Any]], random: Random) -> None:
    """Let something happen: mostly a report.

    Each says something new, if only in its data: of heartbeats the log has the last one, so staleness is not exact.
    """
    data = {"count": next(_COUNT)}
    adapter = random.choice(("validation", "dns", "monitoring"))
    match random.choice(("report", "report", "report", "same", "pool", "pool", "edit", "retire")):
        case "report":
            generation = client.get(path_of(cluster)).json()["generation"]
            observed = random.choice((generation, max(1, generation - 1)))
            client.report(cluster, adapter, random.choice(VERDICTS), generation=observed, data=data)
        case "same":
            client.post(f"{path_of(cluster)}/statuses", body(adapter, "True", data=data))
        case "pool":
            client.report(random.choice(pools), "nodepool", random.choice(VERDICTS), data=data)
        case "edit":
            labels = {"round": str(random.randrange(1000))}
            client.patch(path_of(cluster), {"labels": labels}, headers={"Content-Type": "application/json"})
        case "retire":
            client.delete(f"{path_of(cluster)}/statuses/adapters/{adapter}")


@pytest.mark.parametrize("seed", range(3))
def test_a_life_lived_again_is_what_history_tells(client: Fleet, seed: int) -> None:
    random = Random(seed)
    begin = now(client)
    pass_time(client, SECOND)
    cluster = client.create()
    pools = []
    for name in ("one", "two"):
        pass_time(client, SECOND)
        pools.append(client.create_pool(cluster, name))
    moments = [begin]
    for _ in range(60):
        pass_time(client, random.choice((SECOND, 30 * SECOND, 100 * SECOND)))
        happen(client, cluster, pools, random)
        moments.append(now(client))
    pass_time(client, timedelta(minutes=20))
    for resource in (cluster, *pools):
        replay, timelines = replay_record(client, resource, begin)
        assert replay.is_complete
        assert retold(timelines, begin) == recorded(client, resource["id"], begin)
        assert timelines.present.transitions == timelines.candidate.transitions
        assert_subjects_fit(timelines.present)


def assert_subjects_fit(timeline: ResourceTimeline) -> None:
    """Check that the timelines of all subjects agree with the statuses, at the start of each status."""
    for time, status in zip(timeline.times, timeline.statuses, strict=True):
        shown = {
            name: period.state
            for name, subject in timeline.subjects.items()
            for period in subject.periods
            if period.begin <= time < period.end
        }
        assert shown == {"phase": status.phase, **{each.type: each.status for each in status.conditions}}
    for subject in timeline.subjects.values():
        durations: dict[str, timedelta] = {}
        for period in subject.periods:
            durations[period.state] = durations.get(period.state, timedelta()) + (period.end - period.begin)
        assert durations == subject.durations


def test_a_past_can_be_replayed_from_its_middle(client: Fleet) -> None:
    cluster = client.create()
    for said in ("True", "False/Broken/no such zone", "True"):
        pass_time(client, SECOND)
        client.report(cluster, "validation", said)
        client.report(cluster, "dns", said)
    pass_time(client, SECOND)
    middle = now(client)
    pass_time(client, SECOND)
    client.report(cluster, "dns", "False/Broken/again")
    pass_time(client, timedelta(minutes=2))
    client.patch(path_of(cluster), {"labels": {"a": "b"}}, headers={"Content-Type": "application/json"})
    pass_time(client, timedelta(minutes=2))
    client.report(cluster, "dns", generation=2)
    pass_time(client, timedelta(minutes=30))
    replay, timelines = replay_record(client, cluster, middle)
    assert replay.is_complete
    assert replay.reports == 4, "two that were there, two that came"
    assert retold(timelines, middle) == recorded(client, cluster["id"], middle) != []


def test_a_pruned_past_is_marked_as_incomplete(client: Fleet, clock: HandClock) -> None:
    cluster = client.create()
    begin = now(client)
    for said in ("True", "False/Broken/no such zone", "True"):
        pass_time(client, timedelta(minutes=1))
        client.report(cluster, "validation", said)
    pass_time(client, timedelta(minutes=1))
    for log in ("events", "reports"):
        while client.run(client.store.prune(Pruning(log, timedelta()), 100)):
            pass
    replay, timelines = replay_record(client, cluster, begin)
    assert not replay.is_complete
    assert timelines.present.times[0] > begin
