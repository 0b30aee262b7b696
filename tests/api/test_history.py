"""History: every move of the phase and of conditions, newest first, in pages, also of what is gone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.api.fleet import Fleet, errors_of, path_of, problem_of

MINUTE = timedelta(minutes=1)


def history(client: Fleet, resource: dict[str, Any], query: str = "") -> list[dict[str, Any]]:
    response = client.get(f"{path_of(resource)}/history{query}")
    assert response.status_code == 200, response.text
    return list(response.json()["items"])


def moves(entries: list[dict[str, Any]]) -> list[tuple[str, str | None, str | None]]:
    return [(each["subject"], each["from"], each["to"]) for each in entries]


@pytest.fixture
def cluster(client: Fleet) -> dict[str, Any]:
    """Give a cluster that was Pending for one minute, Failed for two, and is Ready; PostgreSQL has its own clock."""
    cluster = client.create()
    client.clock.pass_time(MINUTE)
    client.report(cluster, "validation")
    client.report(cluster, "dns", "False/Broken/no such zone")
    client.clock.pass_time(2 * MINUTE)
    client.report(cluster, "dns")
    return cluster


def test_what_moved_and_why(client: Fleet, cluster: dict[str, Any]) -> None:
    phases = history(client, cluster, "?subject=phase")
    assert moves(phases) == [
        ("phase", "Failed", "Ready"),
        ("phase", "Provisioning", "Failed"),
        ("phase", "Pending", "Provisioning"),
        ("phase", None, "Pending"),
    ]
    assert [each["cause"]["kind"] for each in phases] == ["report", "report", "report", "created"]
    dns = client.get(f"{path_of(cluster)}/statuses/adapters/dns").json()
    assert phases[0]["cause"]["ref"] == dns["id"]
    assert "duration" not in phases[-1]
    assert all("duration" in each for each in phases[:-1])
    shown = client.get(path_of(cluster))
    assert phases[0]["time"] == shown.json()["status"]["phaseSince"]
    assert shown.headers["etag"] == f'"{phases[0]["position"]}"'
    policies = {each["policy"] for each in phases}
    assert policies == {client.get(f"{path_of(cluster)}:explain").json()["policy"]}


def test_how_long_each_state_lasted(memory_client: Fleet) -> None:
    created = memory_client.create()
    memory_client.clock.pass_time(90 * MINUTE)
    memory_client.report(created, "dns", "False/Broken/no such zone")
    memory_client.clock.pass_time(2 * MINUTE)
    memory_client.report(created, "dns", "False/JobRunning")
    lasted = [each.get("duration") for each in history(memory_client, created, "?subject=phase")]
    assert lasted == ["2m", "1h30m", None]
    (ready,) = history(memory_client, created, "?subject=Ready")
    assert (ready["from"], ready["to"], ready["reason"]) == (None, "False", "AdaptersMissing")


def test_all_subjects_together_in_the_order_of_writes(client: Fleet, cluster: dict[str, Any]) -> None:
    entries = history(client, cluster)
    positions = [each["position"] for each in entries]
    assert positions == sorted(positions, reverse=True)
    assert {each["subject"] for each in entries} == {"phase", "Available", "Ready", "AllDone"}
    some = history(client, cluster, "?subject=phase,Ready")
    assert some == [each for each in entries if each["subject"] in ("phase", "Ready")]
    assert history(client, cluster, "?subject=phase&subject=Ready") == some
    assert history(client, cluster, "?subject=Else") == []


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
def test_pages(client: Fleet, cluster: dict[str, Any], limit: int) -> None:
    whole, found, token = history(client, cluster), [], ""
    while True:
        page = client.get(f"{path_of(cluster)}/history?since=24h&limit={limit}{token}").json()
        found += page["items"]
        if "continue" not in page:
            break
        client.clock.pass_time(MINUTE)  # the span stays that of the first page
        assert len(page["items"]) == limit
        token = f"&continue={page['continue']}"
    assert found == whole


def test_spans_of_time(memory_client: Fleet) -> None:
    created = memory_client.create()
    memory_client.clock.pass_time(10 * MINUTE)
    memory_client.report(created, "dns", "False/Broken")
    whole = history(memory_client, created)
    assert len(whole) > 3
    failed = [each for each in whole if each["time"] == "2025-10-17T12:10:00Z"]
    earlier = [each for each in whole if each not in failed]
    for query, expected in (
        ("?since=5m", failed),
        ("?since=2025-10-17T12:10:00Z", failed),
        ("?until=2025-10-17T12:10:00Z", earlier),
        ("?until=2025-10-17T14:10:00%2B02:00", earlier),
        ("?until=5m", earlier),
        ("?since=10m&until=1m", earlier),
        ("?since=1h", whole),
        ("?until=2000-01-01T00:00:00Z", []),
    ):
        assert history(memory_client, created, query) == expected, query


def test_of_a_node_pool(client: Fleet) -> None:
    cluster = client.create()
    pool = client.create_pool(cluster)
    assert moves(history(client, pool, "?subject=phase")) == [("phase", None, "Ready")]
    assert client.get(f"{path_of(pool)}/history").json()["href"] == f"{pool['href']}/history"


def test_of_what_is_gone(client: Fleet) -> None:
    cluster = client.create()
    pool = client.create_pool(cluster)
    client.delete(path_of(cluster))
    reason = "the account was closed"
    assert client.post(f"{path_of(cluster)}/force-delete", {"reason": reason}).status_code == 204
    problem_of(client.get(path_of(cluster)), 404, "NotFound")
    last, before, *_ = history(client, cluster, "?subject=phase")
    assert (before["to"], last["from"], last["to"]) == ("Deleting", "Deleting", None)
    assert reason in last["message"]
    assert moves(history(client, pool, "?subject=phase&limit=1")) == [("phase", "Deleting", None)]


def test_what_never_was(client: Fleet) -> None:
    cluster = client.create()
    pool = client.create_pool(cluster)
    for path in (
        "/clusters/cls-none/history",
        f"/clusters/{pool['id']}/history",
        f"/clusters/{cluster['id']}/nodepools/{cluster['id']}/history",
        f"/clusters/cls-none/nodepools/{pool['id']}/history",
    ):
        problem_of(client.get(path), 404, "NotFound")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?subject=a%20b", {("subject", "BadFormat")}),
        ("?subject=phase,", {("subject", "BadFormat")}),
        ("?since=yesterday", {("since", "BadFormat")}),
        ("?since=2025-10-17T12:00:00&until=1d", {("since", "BadFormat"), ("until", "BadFormat")}),
        ("?limit=0", {("limit", "OutOfRange")}),
        ("?page=1", {("page", "UnknownParameter")}),
        ("?continue=x", {("continue", "BadFormat")}),
        ("?subject=" + ",".join(["a"] * 101), {("subject", "TooMany")}),
    ],
)
def test_wrong_parameters(memory_client: Fleet, query: str, expected: set[tuple[str, str]]) -> None:
    cluster = memory_client.create()
    assert errors_of(memory_client.get(f"{path_of(cluster)}/history{query}"), 400, "InvalidQuery") == expected


def test_a_token_belongs_to_its_query(memory_client: Fleet) -> None:
    first, second = memory_client.create("first"), memory_client.create("second")
    token = memory_client.get(f"{path_of(first)}/history?limit=1&since=1h").json()["continue"]
    assert memory_client.get(f"{path_of(first)}/history?since=1h&continue={token}").status_code == 200
    for path in (
        f"{path_of(second)}/history?since=1h&continue={token}",
        f"{path_of(first)}/history?since=2h&continue={token}",
        f"{path_of(first)}/history?since=1h&subject=phase&continue={token}",
    ):
        assert errors_of(memory_client.get(path), 400, "InvalidQuery") == {("continue", "ContinueMismatch")}
