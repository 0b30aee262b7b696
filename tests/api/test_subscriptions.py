"""Subscriptions over the API: pull, ack, nack, dead letters, and whose messages they are. On every store."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hyperfleet import __version__
from hyperfleet.api.wire import BASE
from hyperfleet.events.broker_choice import BrokerChoice
from hyperfleet.events.describing import describe_events
from hyperfleet.messaging import Message, TopicNames
from tests.api.fleet import ROOT, Fleet, errors_of, problem_of
from tests.api.tenants import World


def publish(client: Fleet, *ids: str, tenant: str = "") -> None:
    """Publish messages to the topic of cluster events."""
    messages = [Message("clusterEvents", id_, "/s", "t", "Cluster/c", None, tenant, "c", b"{}") for id_ in ids]
    client.run(client.store.queues.enqueue(messages))


def pull(client: Fleet, name: str = "dns", **body: Any) -> list[dict[str, Any]]:
    """Pull messages of a subscription."""
    answer = client.post(f"/subscriptions/{name}:pull", body)
    assert answer.status_code == 200, answer.text
    messages: list[dict[str, Any]] = answer.json()["messages"]
    return messages


def test_a_message_is_pulled_and_acknowledged(client: Fleet) -> None:
    created = client.put("/subscriptions/dns", {})
    assert created.status_code == 201
    assert client.put("/subscriptions/dns", {"topic": "clusterEvents"}).status_code == 200
    publish(client, "1", "2")
    first, second = pull(client)
    assert [first["event"]["id"], second["event"]["id"]] == ["1", "2"]
    assert first["event"]["specversion"] == "1.0"
    assert pull(client) == []
    shown = client.get("/subscriptions/dns").json()
    assert (shown["waiting"], shown["inFlight"]) == (0, 2)
    answer = client.post("/subscriptions/dns:ack", {"receipts": [first["receipt"], second["receipt"], "gone"]})
    assert answer.json() == {"acknowledged": 2}
    assert client.get("/subscriptions").json()["items"][0]["inFlight"] == 0


def test_a_rejected_message_becomes_a_dead_letter_and_can_be_replayed(client: Fleet) -> None:
    client.put("/subscriptions/dns", {})
    publish(client, "1")
    (message,) = pull(client)
    body = {"receipts": [message["receipt"]], "error": "no such zone", "deadLetter": True}
    assert client.post("/subscriptions/dns:nack", body).json() == {"acknowledged": 1}
    assert client.post("/subscriptions/dns:nack", body).json() == {"acknowledged": 0}
    (letter,) = client.get("/subscriptions/dns/dead-letters").json()["items"]
    assert (letter["error"], letter["event"]["id"]) == ("no such zone", "1")
    assert client.get("/subscriptions/dns").json()["deadLetters"] == 1
    assert client.post("/subscriptions/dns:replay", {}).json() == {"replayed": 1}
    assert [each["event"]["id"] for each in pull(client)] == ["1"]


def test_a_rejected_message_waits_for_its_next_attempt(client: Fleet) -> None:
    client.put("/subscriptions/dns", {})
    publish(client, "1")
    (message,) = pull(client)
    client.post("/subscriptions/dns:nack", {"receipts": [message["receipt"]], "error": "later"})
    assert pull(client) == []
    assert client.get("/subscriptions/dns/dead-letters").json()["items"] == []


def test_a_topic_that_is_given_must_be_that_of_the_subscription(client: Fleet) -> None:
    client.put("/subscriptions/audit", {"topic": "statusUpdates"})
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "", {}),
        ("GET", "/dead-letters", {}),
        ("POST", ":replay", {"json": {}}),
    ]
    for method, path, more in requests:
        for query in ("", "?topic=statusUpdates"):
            assert client.request(method, f"/subscriptions/audit{path}{query}", **more).status_code == 200
        other = client.request(method, f"/subscriptions/audit{path}?topic=clusterEvents", **more)
        problem_of(other, 404, "NotFound")
        wrong = client.request(method, f"/subscriptions/audit{path}?topic=status&topics=x", **more)
        expected = {("topic", "UnknownValue"), ("topics", "UnknownParameter")}
        assert errors_of(wrong, 400, "InvalidQuery") == expected


def test_a_subscription_is_deleted_with_its_queue(client: Fleet) -> None:
    client.put("/subscriptions/dns", {})
    publish(client, "1")
    assert client.request("DELETE", "/subscriptions/dns").json()["waiting"] == 1
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", ":pull"), ("GET", "/dead-letters")):
        answer = client.request(method, f"/subscriptions/dns{path}", **({"json": {}} if method == "POST" else {}))
        problem_of(answer, 404, "NotFound")


def test_a_caller_who_has_left_gets_no_message(client: Fleet) -> None:
    """Otherwise the message would come again only after its deadline."""
    client.put("/subscriptions/dns", {})
    body = b'{"waitSeconds": 20}'
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"{BASE}/subscriptions/dns:pull",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"host", b"fleet")],
        "client": ("127.0.0.1", 1),
        "server": ("fleet", 80),
        "scheme": "http",
        "http_version": "1.1",
        "asgi": {"version": "3.0"},
        "root_path": "",
        "raw_path": f"{BASE}/subscriptions/dns:pull".encode(),
    }
    received: list[Any] = [{"type": "http.request", "body": body, "more_body": False}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return received.pop(0) if len(received) > 1 else received[0]

    async def send(message: Any) -> None:
        assert message.get("status") != 200

    client.run(asyncio.wait_for(client.app(scope, receive, send), 20))
    publish(client, "1")
    (message,) = pull(client)
    assert message["attempt"] == 1


def test_a_pull_that_waits_ends_when_there_is_a_message_or_the_server_stops(client: Fleet) -> None:
    client.put("/subscriptions/dns", {})
    publish(client, "1")
    assert [each["event"]["id"] for each in pull(client, waitSeconds=20)] == ["1"]
    client.tail.close()
    answer = client.post("/subscriptions/dns:pull", {"waitSeconds": 20})
    problem_of(answer, 503, "Overloaded")


@pytest.mark.parametrize(
    ("path", "body", "pointers"),
    [
        (
            ":pull",
            {"max": 0, "waitSeconds": 21, "ackDeadlineSeconds": "x"},
            {"/max", "/waitSeconds", "/ackDeadlineSeconds"},
        ),
        (":pull", {"maximum": 1}, {"/maximum"}),
        (":pull", [], {""}),
        (":ack", {}, {"/receipts"}),
        (":ack", {"receipts": [1]}, {"/receipts"}),
        (":nack", {"receipts": ["1.1"], "error": "x" * 2_001, "deadLetter": "yes"}, {"/error", "/deadLetter"}),
        (":replay", {"max": 1_001}, {"/max"}),
    ],
)
def test_every_error_of_a_body_is_named(memory_client: Fleet, path: str, body: Any, pointers: set[str]) -> None:
    memory_client.put("/subscriptions/dns", {})
    problem = problem_of(memory_client.post(f"/subscriptions/dns{path}", body), 400, "InvalidBody")
    assert {each["pointer"] for each in problem["errors"]} == pointers


def test_events_are_described(memory_client: Fleet) -> None:
    events = memory_client.context.events
    document = memory_client.get(f"{ROOT}/asyncapi.json").json()
    assert document == describe_events(__version__)
    events.choice = BrokerChoice("rabbitmq", TopicNames(cluster_events="look", status_updates="moves"))
    channels = memory_client.get(f"{ROOT}/asyncapi.json").json()["channels"]
    assert channels["clusterEvents"]["bindings"]["amqp"]["exchange"]["name"] == "look"
    assert channels["statusUpdates"]["address"] == "moves"


def test_names_and_topics_are_checked(memory_client: Fleet) -> None:
    problem = problem_of(memory_client.put("/subscriptions/Not%20a%20name", {"topic": "x"}), 400, "InvalidBody")
    assert len(problem["errors"]) == 2
    memory_client.put("/subscriptions/dns", {})
    answer = memory_client.put("/subscriptions/dns", {"topic": "statusUpdates"})
    problem_of(answer, 409, "SubscriptionExists")
    problem_of(memory_client.get("/subscriptions/dns/dead-letters?limit=0"), 400, "InvalidQuery")


def test_messages_of_other_tenants_never_arrive(own_world: World) -> None:
    red, blue, all_ = (own_world.voice(each) for each in ("red", "blue", "all"))
    red.must(201, "PUT", "/subscriptions/one", json={})
    all_.must(201, "PUT", "/subscriptions/every", json={})
    fleet = own_world.fleet
    publish(fleet, "r", tenant="red")
    publish(fleet, "b", tenant="blue")
    pulled = red.must(200, "POST", "/subscriptions/one:pull", json={})["messages"]
    assert [each["event"]["id"] for each in pulled] == ["r"]
    pulled = all_.must(200, "POST", "/subscriptions/every:pull", json={})["messages"]
    assert [each["event"]["id"] for each in pulled] == ["r", "b"]
    assert blue.must(200, "GET", "/subscriptions")["items"] == []
    assert [each["name"] for each in red.must(200, "GET", "/subscriptions")["items"]] == ["one"]
    for method, path in (("GET", "one"), ("POST", "one:pull"), ("POST", "every:pull"), ("GET", "every/dead-letters")):
        more: dict[str, Any] = {"json": {}} if method == "POST" else {}
        assert blue.request(method, f"/subscriptions/{path}", **more).status_code == 404
    assert blue.request("PUT", "/subscriptions/one", json={}).status_code == 404, "the name is taken"
