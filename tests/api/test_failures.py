"""What has the same cause: failures over the fleet, grouped."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hyperfleet.backends.memory import MemoryStore
from hyperfleet.ports import EVERYTHING, Query, StatusCause
from hyperfleet.services.failure_search import search_failures
from hyperfleet.services.upkeep import Recompute
from tests.api.fleet import Fleet, HandClock, errors_of, open_fleet, path_of

SILENCE = """
requiredAdapters: [validation, dns]
defaultBehavior: {timeout: 10m}
policies: {staleThreshold: 5m, staleAction: none}
clusterConditions:
  - type: AllDone
    evaluate:
      expr: all(requiredAdapters, .state == "Completed")
phases: {ready: {requiredConditions: [{type: AllDone, status: "True"}]}}
"""


def problems(client: Fleet, query: str = "") -> list[dict[str, Any]]:
    response = client.get(f"/problems{query}")
    assert response.status_code == 200, response.text
    return list(response.json()["items"])


def fail(client: Fleet, name: str, message: str, adapter: str = "dns", **labels: str) -> dict[str, Any]:
    cluster = client.create(name, labels=labels)
    client.report(cluster, adapter, f"False/Throttled/{message}")
    return cluster


def test_nothing_fails(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    memory_client.report(cluster, "dns", "False/JobRunning")
    assert memory_client.get("/problems").json() == {"items": [], "total": 0, "examined": 0, "complete": True}


def test_what_has_the_same_cause(client: Fleet) -> None:
    first = fail(client, "first", "zone first: rate exceeded, 17 of 20", region="eu-west-1", tier="web")
    second = fail(client, "second", "zone second: rate exceeded, 20 of 20", region="eu-west-1", tier="web")
    third = fail(client, "third", "zone third: rate exceeded, 19 of 20", region="eu-west-1")
    fail(client, "fourth", "no such zone", region="us-east-1")
    fail(client, "fifth", "zone fifth: rate exceeded, 19 of 20", adapter="validation", region="us-east-1")
    healthy = client.create("healthy")
    client.report(healthy, "dns")
    answer = client.get("/problems").json()
    assert (answer["total"], answer["examined"], answer["complete"]) == (3, 5, True)
    worst, *others = answer["items"]
    assert [(each["adapter"], each["count"]) for each in others] == [("dns", 1), ("validation", 1)]
    assert (worst["adapter"], worst["reason"]) == ("dns", "Throttled")
    assert worst["message"] == "zone <name>: rate exceeded, <n> of <n>"
    assert "rate exceeded" in worst["example"]
    assert (worst["count"], worst["kinds"]) == (3, {"Cluster": 3})
    assert sorted(each["id"] for each in worst["resources"]) == sorted(each["id"] for each in (first, second, third))
    assert {each["href"] for each in worst["resources"]} == {each["href"] for each in (first, second, third)}
    assert worst["sharedLabels"] == {"region": "eu-west-1"}
    assert worst["mostlySharedLabels"] == [{"key": "tier", "value": "web", "share": 0.667}]
    assert worst["growth"] == {"lastHour": 3, "last24h": 3}
    since = client.get(path_of(worst["resources"][0])).json()["status"]["adapters"][0]["stateSince"]
    assert worst["since"] == since


def test_over_clusters_and_node_pools(client: Fleet) -> None:
    cluster = fail(client, "first", "quota")
    pool = client.create_pool(cluster, "pool")
    client.report(pool, "dns", "False/Throttled/quota")
    (found,) = problems(client)
    assert found["kinds"] == {"Cluster": 1, "NodePool": 1}
    assert {(each["id"], each["kind"]) for each in found["resources"]} == {
        (cluster["id"], "Cluster"),
        (pool["id"], "NodePool"),
    }


def test_an_unhealthy_adapter_speaks_of_its_health(client: Fleet) -> None:
    cluster = client.create()
    client.report(cluster, "dns", "True/Done/all is well", health="False/CrashLoop/restarted 4 times")
    (found,) = problems(client)
    assert (found["reason"], found["message"], found["example"]) == (
        "CrashLoop",
        "restarted <n> times",
        "restarted 4 times",
    )


@pytest.mark.parametrize("available", ["True/Done/all is well", "False/Queued/waits for its turn"])
def test_an_unhealthy_adapter_is_never_explained_by_its_work(client: Fleet, available: str) -> None:
    cluster = client.create()
    client.report(cluster, "dns", available, health="False")
    (found,) = problems(client)
    assert (found["reason"], found["message"]) == ("Unhealthy", "has Health=False and gives no message")


def test_growth(memory_client: Fleet) -> None:
    fail(memory_client, "first", "quota")
    memory_client.clock.pass_time(timedelta(hours=23))
    fail(memory_client, "second", "quota")
    memory_client.clock.pass_time(timedelta(hours=2))
    fail(memory_client, "third", "quota")
    (found,) = problems(memory_client)
    assert (found["count"], found["growth"]) == (3, {"lastHour": 1, "last24h": 2})
    assert (found["since"], found["newest"]) == ("2025-10-17T12:00:00Z", "2025-10-18T13:00:00Z")


def test_those_that_are_silent(clock: HandClock, limits: Any) -> None:
    with open_fleet(MemoryStore(clock), clock, limits, SILENCE) as client:
        cluster = client.create()
        client.report(cluster, "validation")
        client.clock.pass_time(timedelta(minutes=11))
        client.run(client.committer.submit(Recompute(cluster["id"], StatusCause("deadline"))))
        assert client.get(path_of(cluster)).json()["status"]["phase"] == "Failed"
        assert [(each["adapter"], each["reason"], each["since"]) for each in problems(client)] == [
            ("dns", "Missing", "2025-10-17T12:10:00Z"),
            ("validation", "Stale", "2025-10-17T12:05:00Z"),
        ]


def test_a_failure_that_is_over_is_gone(client: Fleet) -> None:
    cluster = fail(client, "first", "quota")
    assert len(problems(client)) == 1
    client.report(cluster, "dns")
    assert problems(client) == []


def test_the_filters_of_lists_apply(client: Fleet) -> None:
    fail(client, "first", "quota", region="eu")
    fail(client, "second", "quota", region="us")
    fail(client, "third", "zone", region="us")
    assert [each["count"] for each in problems(client)] == [2, 1]
    assert [each["count"] for each in problems(client, "?labelSelector=region=us")] == [1, 1]
    assert [each["count"] for each in problems(client, "?q=second")] == [1]
    assert problems(client, "?phase=Ready") == []
    assert client.get("/problems?limit=1").json()["total"] == 2
    assert len(problems(client, "?limit=1")) == 1


def test_no_more_than_twenty_resources_are_told(memory_client: Fleet) -> None:
    for number in range(21):
        fail(memory_client, f"cluster-{number}", "quota")
    (found,) = problems(memory_client)
    assert (found["count"], len(found["resources"])) == (21, 20)


def test_no_more_than_so_many_resources_are_looked_at(client: Fleet) -> None:
    for number in range(5):
        fail(client, f"cluster-{number}", "quota")
    for most, page, examined in ((5, 2, 5), (9, 1, 5), (4, 2, 4), (3, 2, 4), (1, 1, 1)):
        found = client.run(
            search_failures(client.store, client.policies.rules, [Query("Cluster", EVERYTHING)], limit=most, page=page)
        )
        assert (found.examined, found.is_complete, len(found.failures)) == (examined, examined == 5, examined)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?page=1", {("page", "UnknownParameter")}),
        ("?orderBy=name&limit=0", {("orderBy", "UnknownParameter"), ("limit", "OutOfRange")}),
        ("?fields=id", {("fields", "UnknownParameter")}),
        ("?phase=Red", {("phase", "NotAllowed")}),
    ],
)
def test_wrong_parameters(memory_client: Fleet, query: str, expected: set[tuple[str, str]]) -> None:
    assert errors_of(memory_client.get(f"/problems{query}"), 400, "InvalidQuery") == expected
