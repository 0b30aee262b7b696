"""Adapters over the fleet: what became of their reports, and who waits for them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.api.fleet import Fleet, path_of, problem_of
from tests.world import body


def adapter_of(client: Fleet, name: str) -> dict[str, Any]:
    (found,) = [item for item in client.get("/adapters").json()["items"] if item["name"] == name]
    return dict(found)


def test_nobody_was_heard_of(memory_client: Fleet) -> None:
    assert memory_client.get("/adapters").json() == {"items": []}


def test_counts_by_what_became_of_reports(client: Fleet) -> None:
    cluster = client.create()
    sent = "2025-10-17T11:59:58Z"
    client.report(cluster, "dns", "False/JobRunning", observedTime=sent)
    client.report(cluster, "dns", "False/JobRunning", observedTime=sent)
    client.report(cluster, "dns", "True", observedTime="2025-10-17T11:59:50Z")
    client.report(cluster, "dns", "Unknown")
    client.report(cluster, "late", "Unknown")
    client.post(f"{path_of(cluster)}/statuses", body("dns", "True", generation=9))
    dns = adapter_of(client, "dns")
    assert dns["reports"] == {"aggregated": 1, "stored": 0, "replayed": 1}
    assert dns["discards"] == {"OutOfOrder": 1, "UnknownAfterFirst": 1}
    assert dns["rejected"] == {"GenerationAhead": 1}
    assert dns["lastSeen"]
    late = adapter_of(client, "late")
    assert late["reports"] == {"aggregated": 0, "stored": 1, "replayed": 0}
    assert (late["discards"], late["rejected"], late["blocks"]) == ({}, {}, {})
    assert "lastDiscard" not in late


def test_the_last_discard_and_the_clock(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    memory_client.report(cluster, "dns", observedTime="2025-10-17T12:00:30Z")
    assert adapter_of(memory_client, "dns")["clockSkewSeconds"] == 30.0
    memory_client.clock.pass_time(timedelta(minutes=1))
    memory_client.report(cluster, "dns", "Unknown")
    assert adapter_of(memory_client, "dns")["lastDiscard"] == {
        "cause": "UnknownAfterFirst",
        "resource": cluster["id"],
        "time": "2025-10-17T12:01:00Z",
    }


def test_who_waits_for_whom(client: Fleet) -> None:
    first, second = client.create("first"), client.create("second")
    client.report(first, "validation")
    client.report(first, "dns")
    client.report(second, "validation")
    assert adapter_of(client, "validation")["blocks"] == {}
    assert adapter_of(client, "dns")["blocks"] == {"Cluster": 1}
    detail = client.get("/adapters/dns").json()
    assert detail["blocked"] == [
        {"id": second["id"], "name": "second", "phase": "Provisioning", "href": second["href"]}
    ]
    assert {key: value for key, value in detail.items() if key != "blocked"} == adapter_of(client, "dns")


def test_an_adapter_that_is_waited_for_and_was_never_heard_of(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    assert memory_client.get("/adapters").json()["items"] == [
        {
            "name": name,
            "reports": {"aggregated": 0, "stored": 0, "replayed": 0},
            "discards": {},
            "rejected": {},
            "blocks": {"Cluster": 1},
        }
        for name in ("dns", "validation")
    ]
    (blocked,) = memory_client.get("/adapters/dns").json()["blocked"]
    assert blocked["id"] == cluster["id"]


def test_no_more_than_a_hundred_blocked_are_told(memory_client: Fleet) -> None:
    for number in range(101):
        memory_client.create(f"cluster-{number}")
    detail = memory_client.get("/adapters/dns").json()
    assert len(detail["blocked"]) == 100
    assert detail["blocks"] == {"Cluster": 101}


@pytest.mark.parametrize("name", ["none", "..", "a%2Fb"])
def test_an_adapter_nobody_knows(memory_client: Fleet, name: str) -> None:
    problem_of(memory_client.get(f"/adapters/{name}"), 404, "NotFound")


@pytest.mark.parametrize("name", ["%00", "-a", "a%20b", "%F0%9F%90%99", "a" * 254])
def test_what_cannot_be_the_name_of_an_adapter_is_told_what_can(memory_client: Fleet, name: str) -> None:
    path = path_of(memory_client.create())
    for address in (f"/adapters/{name}", f"{path}/statuses/adapters/{name}"):
        problem = problem_of(memory_client.get(address), 400, "InvalidRequest")
        assert "1 to 253 letters, digits and -_." in problem["detail"]


def test_a_refusal_is_no_discard(client: Fleet) -> None:
    cluster = client.create()
    client.post(f"{path_of(cluster)}/statuses", body("dns", "True", generation=9))
    dns = adapter_of(client, "dns")
    assert "lastDiscard" not in dns
    assert {**dict(dns["lastRefusal"]), "time": ""} == {
        "cause": "GenerationAhead",
        "resource": cluster["id"],
        "time": "",
    }
    client.report(cluster, "dns")
    client.report(cluster, "dns", "Unknown")
    dns = adapter_of(client, "dns")
    assert "lastRefusal" not in dns
    assert dict(dns["lastDiscard"])["cause"] == "UnknownAfterFirst"
