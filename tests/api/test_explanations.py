"""Explanations: they tell the story of the status that GET shows, as JSON and as text."""

from __future__ import annotations

from typing import Any

import pytest

from hyperfleet.backends.memory import MemoryStore
from tests.api.fleet import POLICY, ROOT, Fleet, HandClock, errors_of, open_fleet, path_of, problem_of

OVER_POOLS = """
requiredAdapters: [validation, dns]
clusterConditions:
  - type: AllDone
    evaluate:
      expr: all(requiredAdapters, .state == "Completed")
  - type: PoolsReady
    summary: {over: nodePools, type: Ready}
phases: {ready: {requiredConditions: [{type: AllDone, status: "True"}]}}
"""


def explain(client: Fleet, resource: dict[str, Any], query: str = "") -> dict[str, Any]:
    response = client.get(f"{path_of(resource)}:explain{query}")
    assert response.status_code == 200, response.text
    return dict(response.json())


def assert_tells_what_get_shows(client: Fleet, resource: dict[str, Any]) -> None:
    told, shown = explain(client, resource), client.get(path_of(resource)).json()
    status = shown["status"]
    assert told["current"] is True
    assert (told["id"], told["generation"]) == (shown["id"], shown["generation"])
    assert (told["phase"], told["phaseSince"]) == (status["phase"], status["phaseSince"])
    shared = ("type", "status", "reason", "message")
    assert [[each[key] for key in shared] for each in told["conditions"]] == [
        [each[key] for key in shared] for each in status["conditions"]
    ]
    assert [each["since"] for each in told["conditions"]] == [
        each["lastTransitionTime"] for each in status["conditions"]
    ]
    reported = {each["name"]: (each["state"], each["stateSince"], each["stale"]) for each in status["adapters"]}
    told_adapters = {each["name"]: each for each in told["adapters"]}
    assert reported == {
        name: (each["state"], each["since"], each["stale"])
        for name, each in told_adapters.items()
        if each["state"] != "Unreported"
    }


def test_every_stage_is_explained_as_it_is_shown(client: Fleet) -> None:
    cluster = client.create()
    pool = client.create_pool(cluster)
    assert_tells_what_get_shows(client, cluster)
    assert_tells_what_get_shows(client, pool)
    for adapter, available in (
        ("validation", "True"),
        ("dns", "False/JobRunning/at it"),
        ("dns", "False/Broken/no such zone"),
        ("dns", "True"),
    ):
        client.report(cluster, adapter, available)
        assert_tells_what_get_shows(client, cluster)
    client.patch(path_of(cluster), {"labels": {"team": "blue"}})
    assert_tells_what_get_shows(client, cluster)
    client.delete(path_of(cluster))
    assert_tells_what_get_shows(client, cluster)


def test_from_the_phase_to_the_adapter_and_what_would_help(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    memory_client.report(cluster, "validation")
    memory_client.report(cluster, "dns", "False/Broken/no such zone")
    told = explain(memory_client, cluster, "?condition=AllDone")
    assert told["phase"] == "Failed"
    assert any("dns" in evidence for evidence in told["because"])
    (condition,) = told["conditions"]
    assert condition["rule"] == 'all(requiredAdapters, .state == "Completed")'
    assert condition["terms"]["value"] is False
    assert [part["text"].partition(":")[0] for part in condition["terms"]["parts"]] == ["validation", "dns"]
    (culprit,) = condition["culprits"]
    assert (culprit["name"], culprit["state"], culprit["reason"], culprit["message"]) == (
        "dns",
        "Failed",
        "Broken",
        "no such zone",
    )
    assert condition["remedies"] == {
        "wanted": "True",
        "sets": [[{"adapter": "dns", "state": "Completed", "generation": 1}]],
        "exhaustive": True,
        "minimal": True,
    }


def test_a_parent_is_explained_with_its_children(store: Any, clock: HandClock, limits: Any) -> None:
    with open_fleet(store, clock, limits, OVER_POOLS) as client:
        cluster = client.create()
        client.create_pool(cluster, "first")
        client.create_pool(cluster, "second")
        assert_tells_what_get_shows(client, cluster)
        (pools,) = explain(client, cluster, "?condition=PoolsReady")["conditions"]
        assert pools["rule"] == "summary of Ready of nodePools"


@pytest.mark.parametrize(
    "accept", ["text/plain", "text/*", "text/plain, application/json;q=0.5", "text/plain, */*;q=0.1"]
)
def test_as_text(memory_client: Fleet, accept: str) -> None:
    cluster = memory_client.create()
    memory_client.report(cluster, "dns", "False/Broken/no such zone")
    response = memory_client.get(f"{path_of(cluster)}:explain?condition=Ready", headers={"Accept": accept})
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["vary"] == "Accept, Accept-Encoding"
    first, *_ = response.text.splitlines()
    assert first == f"{cluster['id']} is Failed for 0s (generation 1)"
    assert "\nReady=False for 0s: AdaptersFailed\n" in response.text
    assert "dns Failed (generation 1, heard 0s ago) Broken no such zone" in response.text


@pytest.mark.parametrize("accept", ["*/*", "application/json", "text/html", "text/plain;q=0.5, application/json", ""])
def test_json_unless_text_is_preferred(memory_client: Fleet, accept: str) -> None:
    cluster = memory_client.create()
    response = memory_client.get(f"{path_of(cluster)}:explain", headers={"Accept": accept})
    assert response.headers["content-type"] == "application/json"


def test_known_already(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    first = memory_client.get(f"{path_of(cluster)}:explain")
    again = memory_client.get(f"{path_of(cluster)}:explain", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.headers["etag"]) == (304, first.headers["etag"])


def test_until_it_is_computed_anew_a_new_policy_is_a_preview(client: Fleet) -> None:
    cluster = client.create()
    client.report(cluster, "dns")
    assert explain(client, cluster)["current"] is True
    before = explain(client, cluster)["policy"]
    client.policy = POLICY.replace("[validation, dns]", "[dns]")
    assert client.post("/policy:reload").status_code == 200
    told = explain(client, cluster)
    assert (told["current"], told["phase"]) == (False, "Ready")
    assert told["policy"] != before
    text = client.get(f"{path_of(cluster)}:explain", headers={"Accept": "text/plain"}).text
    assert text.startswith("the policy has changed; after the recomputation:\n")


def test_what_is_not_there(client: Fleet) -> None:
    cluster = client.create()
    problem_of(client.get("/clusters/cls-none:explain"), 404, "NotFound")
    problem_of(client.get(f"/clusters/cls-none/nodepools/{cluster['id']}:explain"), 404, "NotFound")
    problem = problem_of(client.get(f"{path_of(cluster)}:explain?condition=Reddy"), 400, "InvalidQuery")
    (error,) = problem["errors"]
    assert (error["parameter"], error["code"]) == ("condition", "UnknownCondition")
    assert "Available, Ready, AllDone" in error["message"]
    assert 'did you mean "Ready"?' in error["message"]


@pytest.mark.parametrize(
    ("query", "code"),
    [("?conditions=Ready", "UnknownParameter"), ("?condition=Ready&condition=Available", "Repeated")],
)
def test_wrong_parameters(memory_client: Fleet, query: str, code: str) -> None:
    cluster = memory_client.create()
    errors = errors_of(memory_client.get(f"{path_of(cluster)}:explain{query}"), 400, "InvalidQuery")
    assert {each for _, each in errors} == {code}


def test_only_reading(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    assert memory_client.request("HEAD", f"{path_of(cluster)}:explain").status_code == 200
    response = memory_client.delete(f"{path_of(cluster)}:explain")
    problem_of(response, 405, "MethodNotAllowed")
    assert response.headers["allow"] == "GET, HEAD"
    problem_of(memory_client.get(f"{path_of(cluster)}:explian"), 404, "NotFound")


def test_also_at_the_other_addresses(clock: HandClock, limits: Any) -> None:
    with open_fleet(MemoryStore(clock), clock, limits) as client:
        cluster = client.create()
        assert client.get(f"{ROOT}/v1/clusters/{cluster['id']}:explain").status_code == 200
