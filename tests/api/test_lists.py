"""Lists and summaries over HTTP: pages, filters, masks, groups, and what is wrong with parameters."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.api.fleet import Fleet, errors_of, path_of, problem_of


def names(answer: Any) -> list[str]:
    return [item["name"] for item in answer.json()["items"]]


@pytest.fixture
def fleet(client: Fleet) -> Fleet:
    """Give a fleet of three clusters, one of them ready and one failed, and two node pools."""
    east = client.create("east", labels={"region": "us-east-1", "tier": "web"})
    west = client.create("west", labels={"region": "us-west-2"})
    client.create("north")
    for adapter in ("validation", "dns"):
        client.report(east, adapter)
    client.report(west, "validation", "False/QuotaExceeded/no more addresses")
    client.create_pool(east, "workers", labels={"size": "large"})
    client.create_pool(west, "workers")
    return client


def test_a_list_has_the_stored_answers(fleet: Fleet) -> None:
    answer = fleet.get("/clusters")
    assert answer.status_code == 200
    listed = answer.json()
    assert (listed["type"], listed["href"]) == ("ClusterList", "/api/hyperfleet/v1/clusters")
    assert listed.keys() == {"type", "href", "items"}
    assert listed["items"] == [fleet.get(path_of(item)).json() for item in listed["items"]]
    assert names(answer) == ["east", "north", "west"]


def test_an_empty_list_is_no_error(memory_client: Fleet) -> None:
    assert memory_client.get("/clusters").json()["items"] == []
    assert memory_client.get("/nodepools").json() == {
        "type": "NodePoolList",
        "href": "/api/hyperfleet/v1/nodepools",
        "items": [],
    }


FOUND = [
    ("labelSelector=region", ["east", "west"]),
    ("labelSelector=region in (us-east-1, eu-west-1),tier=web", ["east"]),
    ("labelSelector=region!=us-east-1", ["north", "west"]),
    ("labelSelector=tier&labelSelector=!region", []),
    ("conditions=Ready", ["east"]),
    ("conditions=Ready!=True", ["north", "west"]),
    ("phase=Ready,Failed", ["east", "west"]),
    ("phase=!Ready", ["north", "west"]),
    ("adapterState=validation:Failed", ["west"]),
    ("adapterState=dns:Unreported", ["north", "west"]),
    ("blockedBy=validation", ["north", "west"]),
    ("q=us-east", ["east"]),
    ("q=quota", ["west"]),
    ("orderBy=-name", ["west", "north", "east"]),
    ("orderBy=severity", ["west", "north", "east"]),
    ("labelSelector=&continue=", ["east", "north", "west"]),
    ("orderBy=-lastUpdated&q=us", ["west", "east"]),
    ("adapterState=nobody:Unreported", ["east", "north", "west"]),
    ("adapterState=validation:Unreported|Failed", ["north", "west"]),
]


def test_filters_and_orders(fleet: Fleet) -> None:
    for query, found in FOUND:
        assert names(fleet.get(f"/clusters?{query}")) == found, query


@pytest.mark.parametrize(
    "name",
    [
        "conditions",
        "phase",
        "flapping",
        "adapterState",
        "blockedBy",
        "reason",
        "q",
        "updatedSince",
        "orderBy",
        "limit",
        "fields",
    ],
)
@pytest.mark.parametrize("value", ["", "%20"])
def test_a_filter_without_a_value_does_not_show_everything(memory_client: Fleet, name: str, value: str) -> None:
    answer = memory_client.get(f"/clusters?{name}={value}")
    assert errors_of(answer, 400, "InvalidQuery") == {(name, "Empty")}
    answer = memory_client.get("/clusters:summary?groupBy=&colour=")
    assert errors_of(answer, 400, "InvalidQuery") == {("groupBy", "Empty"), ("colour", "UnknownParameter")}


def test_what_changed_since(memory_client: Fleet) -> None:
    old = memory_client.create("old")
    memory_client.clock.pass_time(timedelta(hours=1))
    memory_client.create("new")
    assert names(memory_client.get("/clusters?updatedSince=15m")) == ["new"]
    memory_client.report(old, "dns")
    assert names(memory_client.get("/clusters?updatedSince=15m&orderBy=updatedAt")) == ["new", "old"]


def test_pages_by_continue_tokens_hold_everything_once(fleet: Fleet) -> None:
    seen, path = [], "/clusters?limit=1"
    for _ in range(3):
        answer = fleet.get(path)
        seen += names(answer)
        if token := answer.json().get("continue"):
            path = f"/clusters?limit=1&continue={token}"
    assert seen == ["east", "north", "west"]
    assert "continue" not in answer.json()


def test_a_continue_token_belongs_to_its_query(fleet: Fleet) -> None:
    token = fleet.get("/clusters?limit=1").json()["continue"]
    answer = fleet.get(f"/clusters?limit=1&phase=Ready&continue={token}")
    assert errors_of(answer, 400, "InvalidQuery") == {("continue", "ContinueMismatch")}


def test_pages_by_number_tell_how_many_there_are(fleet: Fleet) -> None:
    answer = fleet.get("/clusters?page=2&size=2")
    assert names(answer) == ["west"]
    assert {key: answer.json()[key] for key in ("page", "size", "total")} == {"page": 2, "size": 2, "total": 3}
    assert fleet.get("/clusters?page=1000000000&size=1000").json()["items"] == []


def test_a_mask_leaves_parts(fleet: Fleet) -> None:
    (item,) = fleet.get("/clusters?q=west&fields=name,status.phase&fields=metadata.labels").json()["items"]
    assert item == {
        "id": item["id"],
        "name": "west",
        "status": {"phase": "Failed"},
        "metadata": {"labels": {"region": "us-west-2"}},
    }


@pytest.mark.parametrize("fields", ["bogus", "*", "items.name", "name,bogus.deeper", "Name"])
def test_a_mask_begins_with_a_field_of_a_resource(memory_client: Fleet, fields: str) -> None:
    for path in ("/clusters", path_of(memory_client.create())):
        answer = memory_client.get(path, params={"fields": fields})
        assert errors_of(answer, 400, "InvalidQuery") == {("fields", "UnknownField")}
        assert "name" in answer.json()["errors"][0]["message"]


def test_node_pools_are_listed_below_their_cluster_and_over_the_fleet(fleet: Fleet) -> None:
    (east,) = fleet.get("/clusters?q=east").json()["items"]
    below = fleet.get(f"{path_of(east)}/nodepools").json()
    assert below["href"] == f"{east['href']}/nodepools"
    assert [item["metadata"]["clusterId"] for item in below["items"]] == [east["id"]]
    assert len(fleet.get("/nodepools").json()["items"]) == 2
    assert names(fleet.get("/nodepools?labelSelector=size=large")) == ["workers"]


@pytest.mark.parametrize("tail", ["nodepools", "nodepools:summary"])
def test_below_a_cluster_that_is_not_there(memory_client: Fleet, tail: str) -> None:
    problem_of(memory_client.get(f"/clusters/cls-none/{tail}"), 404, "NotFound")
    problem_of(memory_client.get(f"/clusters/%F0%9F%90%99/{tail}"), 404, "NotFound")


def test_everything_that_is_wrong_is_told_at_once(memory_client: Fleet) -> None:
    answer = memory_client.get("/clusters?phase=Red&limit=0&colour=blue&fields=a..b&conditions=Ready=Maybe")
    assert errors_of(answer, 400, "InvalidQuery") == {
        ("phase", "NotAllowed"),
        ("limit", "OutOfRange"),
        ("colour", "UnknownParameter"),
        ("fields", "BadFormat"),
        ("conditions", "NotAllowed"),
    }


def test_a_summary_counts_by_phase_unless_told(fleet: Fleet) -> None:
    assert fleet.get("/clusters:summary").json() == {
        "groupBy": ["phase"],
        "total": 3,
        "groups": [
            {"phase": "Failed", "count": 1},
            {"phase": "Pending", "count": 1},
            {"phase": "Ready", "count": 1},
        ],
    }


def test_a_summary_has_the_filters_of_lists(fleet: Fleet) -> None:
    summary = fleet.get("/clusters:summary?groupBy=label:region,phase&phase=!Pending").json()
    assert summary["groupBy"] == ["label:region", "phase"]
    assert summary["total"] == 2
    assert summary["groups"] == [
        {"label:region": "us-east-1", "phase": "Ready", "count": 1},
        {"label:region": "us-west-2", "phase": "Failed", "count": 1},
    ]


def test_a_resource_without_the_value_counts_too_and_one_in_two_groups_once_in_the_total(fleet: Fleet) -> None:
    summary = fleet.get("/clusters:summary?groupBy=blockedBy").json()
    assert summary["total"] == 3
    assert {group["blockedBy"]: group["count"] for group in summary["groups"]} == {"dns": 2, "validation": 2, None: 1}


def test_summaries_of_node_pools(fleet: Fleet) -> None:
    assert fleet.get("/nodepools:summary").json()["total"] == 2
    (east,) = fleet.get("/clusters?q=east").json()["items"]
    assert fleet.get(f"{path_of(east)}/nodepools:summary?groupBy=label:size").json()["groups"] == [
        {"label:size": "large", "count": 1}
    ]


def test_what_a_summary_does_not_take(memory_client: Fleet) -> None:
    answer = memory_client.get("/clusters:summary?groupBy=colour&limit=3&fields=id")
    assert errors_of(answer, 400, "InvalidQuery") == {
        ("groupBy", "NotAllowed"),
        ("limit", "UnknownParameter"),
        ("fields", "UnknownParameter"),
    }


def test_a_list_that_did_not_change_is_not_sent_again(memory_client: Fleet) -> None:
    tag = memory_client.get("/clusters").headers["etag"]
    assert memory_client.get("/clusters", headers={"If-None-Match": tag}).status_code == 304
    memory_client.create()
    assert memory_client.get("/clusters", headers={"If-None-Match": tag}).status_code == 200


def test_head_and_other_methods(memory_client: Fleet) -> None:
    assert memory_client.request("HEAD", "/clusters").content == b""
    answer = memory_client.delete("/clusters")
    problem_of(answer, 405, "MethodNotAllowed")
    assert answer.headers["allow"] == "GET, HEAD, POST"
