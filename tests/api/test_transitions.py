"""Transitions over the whole fleet: in pages, filtered, by position and by time, and as a stream that resumes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.api.fleet import Fleet, errors_of, path_of, problem_of
from tests.api.listening import Connection
from tests.contract.stores import prune_all

MINUTE = timedelta(minutes=1)

Items = list[dict[str, Any]]


def transitions(client: Fleet, query: str = "") -> Items:
    response = client.get(f"/transitions{query}")
    assert response.status_code == 200, response.text
    return list(response.json()["items"])


def moves(items: Items) -> list[tuple[str, str, str | None, str | None]]:
    return [(item["name"], each["subject"], each["from"], each["to"]) for item in items for each in item["transitions"]]


def phases(client: Fleet, query: str = "") -> list[tuple[str, str | None]]:
    """Return names and phases that were entered."""
    joined = f"{query}&subject=phase" if query else "?subject=phase"
    return [(name, after) for name, _, _, after in moves(transitions(client, joined))]


def positions(items: Items) -> list[int]:
    return [item["position"] for item in items]


@pytest.fixture
def fleet(client: Fleet) -> Fleet:
    """Give a server with two clusters: `one` was Failed and is Ready, `two` is Failed and has a node pool."""
    one = client.create("one", labels={"region": "eu"})
    two = client.create("two", labels={"region": "us"})
    client.clock.pass_time(MINUTE)
    client.report(one, "validation")
    client.report(one, "dns", "False/Broken/no such zone")
    client.report(two, "dns", "False/Broken/no such zone")
    client.create_pool(two)
    client.clock.pass_time(MINUTE)
    client.report(one, "dns")
    return client


def test_every_change_with_its_resource_and_why(fleet: Fleet) -> None:
    newest, *_ = transitions(fleet)
    cluster = fleet.get("/clusters?q=one").json()["items"][0]
    assert (newest["id"], newest["name"], newest["kind"], newest["href"]) == (
        cluster["id"],
        "one",
        "Cluster",
        cluster["href"],
    )
    assert (newest["event"], newest["phase"], newest["generation"]) == ("StatusChanged", "Ready", 1)
    history = fleet.get(f"{path_of(cluster)}/history").json()["items"]
    same = [each for each in history if each["position"] == newest["position"]]
    assert (newest["cause"], newest["policy"], newest["time"]) == (same[0]["cause"], same[0]["policy"], same[0]["time"])
    kept = ("subject", "from", "to", "reason", "message", "duration")
    told = [{key: each[key] for key in kept if key in each} for each in reversed(same)]
    assert newest["transitions"] == told


def test_the_newest_first_unless_after_a_position(fleet: Fleet) -> None:
    items = transitions(fleet)
    assert positions(items) == sorted(positions(items), reverse=True)
    assert transitions(fleet, "?order=asc") == items[::-1]
    second = items[-2]["position"]
    assert transitions(fleet, f"?after={second}") == items[:-2][::-1]
    assert transitions(fleet, f"?after={second}&order=desc") == items[:-2]
    page = fleet.get("/transitions").json()
    assert page["position"] == fleet.run(fleet.store.position())
    assert transitions(fleet, f"?after={page['position']}") == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?kind=NodePool", [("workers", "Ready")]),
        ("?kind=Cluster&movedTo=Failed", [("two", "Failed"), ("one", "Failed")]),
        ("?movedFrom=Failed", [("one", "Ready")]),
        ("?cause=created&kind=Cluster", [("two", "Pending"), ("one", "Pending")]),
        ("?labelSelector=region=us", [("two", "Failed"), ("two", "Pending")]),
        ("?phase=Failed", [("two", "Failed"), ("one", "Failed")]),  # as it was after the change, not as it is
        ("?adapterState=dns:Completed", [("one", "Ready")]),
        ("?q=one&conditions=Ready", [("one", "Ready")]),
        ("?movedTo=Deleting", []),
    ],
)
def test_filters(fleet: Fleet, query: str, expected: list[tuple[str, str]]) -> None:
    assert phases(fleet, query) == expected


def test_only_moves_that_were_asked_for_are_told(fleet: Fleet) -> None:
    assert {subject for _, subject, _, _ in moves(transitions(fleet, "?subject=Ready,AllDone"))} == {"Ready", "AllDone"}
    assert {after for *_, after in moves(transitions(fleet, "?movedTo=True"))} == {"True"}


@pytest.mark.parametrize("query", ["?order=asc", "?order=desc", "?phase=Failed,Ready", "?since=24h"])
@pytest.mark.parametrize("limit", [1, 2, 100])
def test_pages(fleet: Fleet, query: str, limit: int) -> None:
    whole, found, token = transitions(fleet, query), [], ""
    heads = set()
    while True:
        page = fleet.get(f"/transitions{query}&limit={limit}{token}").json()
        found += page["items"]
        heads.add(page["position"])
        if "continue" not in page:
            break
        assert len(page["items"]) <= limit
        token = f"&continue={page['continue']}"
        if "asc" not in query:
            fleet.create(f"late-{len(found)}")  # newer than the first page, so on none of them
    assert found == whole
    assert "asc" in query or len(heads) == 1


def test_by_time(memory_client: Fleet) -> None:
    for number in range(4):
        memory_client.create(f"c{number}")
        memory_client.clock.pass_time(10 * MINUTE)
    assert [name for name, _ in phases(memory_client, "?since=25m")] == ["c3", "c2"]
    assert [name for name, _ in phases(memory_client, "?since=35m&until=15m&order=asc")] == ["c1", "c2"]


def test_what_is_gone_is_told_by_name(client: Fleet) -> None:
    cluster = client.create("short-lived")
    client.delete(path_of(cluster))
    client.post(f"{path_of(cluster)}/force-delete", {"reason": "test"})
    newest = transitions(client)[0]
    assert (newest["event"], newest["name"], newest["phase"]) == ("Removed", "short-lived", None)
    assert moves([newest])[-1][1:] == ("phase", "Deleting", None)


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("?kind=Clusters", "kind"),
        ("?movedTo=Broken", "movedTo"),
        ("?movedFrom=x", "movedFrom"),
        ("?cause=luck", "cause"),
        ("?subject=!", "subject"),
        ("?order=up", "order"),
        ("?order=asc,desc", "order"),
        ("?phase=Fine", "phase"),
        ("?after=x", "after"),
        ("?after=1000", "after"),
        ("?since=yesterday", "since"),
        ("?limit=0", "limit"),
        ("?continue=x", "continue"),
        ("?updatedSince=1h", "updatedSince"),
        ("?watch=true&limit=5", "limit"),
        ("?watch=true&order=desc", "order"),
        ("?watch=maybe", "watch"),
    ],
)
def test_what_makes_no_sense_is_refused(memory_client: Fleet, query: str, parameter: str) -> None:
    response = memory_client.get(f"/transitions{query}")
    assert {name for name, _ in errors_of(response, code="InvalidQuery")} == {parameter}


def test_a_token_of_another_query_is_refused(memory_client: Fleet) -> None:
    for name in ("a", "b"):
        memory_client.create(name)
    token = memory_client.get("/transitions?limit=1").json()["continue"]
    response = memory_client.get(f"/transitions?limit=1&order=asc&continue={token}")
    assert errors_of(response, code="InvalidQuery") == {("continue", "ContinueMismatch")}


def test_what_was_pruned_is_not_passed_over(client: Fleet) -> None:
    cluster = client.create()
    for outcome in ("False/Broken", "True", "False/Broken"):
        client.report(cluster, "dns", outcome)
    client.clock.pass_time(MINUTE)
    assert client.run(prune_all(client.store, "events", timedelta(0))) > 0
    for query in ("?after=0", "?watch=true&after=0", "?since=10h"):
        problem_of(client.get(f"/transitions{query}"), 410, "Forgotten")
    assert positions(transitions(client)) == [client.run(client.store.position())]


# ── watching ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_watch_goes_on_from_now_or_from_a_position(client: Fleet) -> None:
    client.create("before")
    with Connection(client, "/transitions?watch=true&subject=phase") as stream:
        (synced,) = stream.take_list()
        assert synced.id == client.run(client.store.position())
        cluster = client.create("after")
        client.report(cluster, "dns", "False/Broken")
        created, failed = stream.take(2)
    assert [each.event for each in (created, failed)] == ["transitions", "transitions"]
    assert moves([created.data, failed.data]) == [
        ("after", "phase", None, "Pending"),
        ("after", "phase", "Pending", "Failed"),
    ]
    assert (created.id, failed.id) == (created.data["position"], failed.data["position"])
    with Connection(client, "/transitions?watch=true&subject=phase", {"Last-Event-ID": str(created.id)}) as stream:
        assert stream.take(2)[-1] == failed
    with Connection(client, f"/transitions?watch=true&subject=phase&after={synced.id}") as stream:
        assert stream.take(3)[1:] == [created, failed]


def test_a_watch_tells_what_a_page_tells(client: Fleet) -> None:
    one, two = client.create("one", labels={"region": "eu"}), client.create("two", labels={"region": "us"})
    query = "labelSelector=region=us&movedTo=Failed,False"
    with Connection(client, f"/transitions?watch=true&{query}") as stream:
        stream.take_list()
        for cluster in (one, two):
            client.report(cluster, "dns", "False/Broken")
            client.report(cluster, "validation")
        expected = transitions(client, f"?after=2&{query}")
        assert [each.data for each in stream.take(len(expected))] == expected
    assert expected


def test_a_watch_may_begin_with_what_happened_since(client: Fleet) -> None:
    for number in range(3):
        client.create(f"c{number}")
    with Connection(client, "/transitions?watch=true&since=1h&subject=phase") as stream:
        first = stream.take_list()
        assert [each.event for each in first] == ["transitions"] * 3 + ["synced"]
        assert [each.id for each in first] == [1, 2, 3, 3]
        client.create("next")
        assert stream.take(1)[0].data["name"] == "next"


def test_many_watchers_cost_one_read_of_the_store(memory_client: Fleet) -> None:
    reads = []
    real = memory_client.store.read_changes

    async def counting(query: Any) -> Any:
        reads.append(query)
        return await real(query)

    memory_client.store.read_changes = counting  # type: ignore[method-assign]
    paths = ["/transitions?watch=true", "/transitions?watch=true&phase=Pending", "/transitions?watch=true&kind=Cluster"]
    streams = [Connection(memory_client, path) for path in paths]
    for stream in streams:
        stream.__enter__()
        stream.take_list()
    memory_client.create("seen")
    assert {stream.take(1)[0].data["name"] for stream in streams} == {"seen"}
    for stream in streams:
        stream.__exit__(None, None, None)
    assert len(reads) == 1
