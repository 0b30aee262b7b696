"""Dead letters of RabbitMQ and Google Pub/Sub over the API: listed, replayed and delivered again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import aio_pika
import httpx
import pytest

from hyperfleet.api.wire import BASE
from hyperfleet.backends.google_pubsub_service import EMULATOR
from hyperfleet.bootstrap import System
from hyperfleet.messaging import Broker, Subscription, TopicNames
from hyperfleet.settings import AuthSettings, PubSubSettings, Settings
from tests.contract.brokers import RabbitBrokers, consuming, eventually, message, take, take_ids
from tests.contract.pubsub_brokers import PubSubBrokers
from tests.servers import free_port

pytestmark = pytest.mark.anyio

DNS: Final = Subscription("dns")
AUDIT: Final = Subscription("audit", "statusUpdates")
ONE: Final = f"{BASE}/subscriptions/dns"
TOKENS: Final = """
- {name: reader, token: reader-0123456789abcdef, roles: [reader], tenants: ["*"]}
- {name: admin, token: admin-0123456789abcdef, roles: [admin], tenants: ["*"]}
- {name: red-admin, token: red-admin-0123456789abcdef, roles: [admin], tenants: [red]}
"""


@asynccontextmanager
async def serving(
    directory: Path, provider: str, topics: TopicNames, broker: PubSubSettings
) -> AsyncIterator[httpx.AsyncClient]:
    """Run a server whose events go to a broker; give a client that is an admin of all tenants."""
    policy, tokens = directory / "policy.yaml", directory / "tokens.yaml"
    names = f"{{clusterEvents: {topics.cluster_events}, statusUpdates: {topics.status_updates}}}"
    policy.write_text(f"requiredAdapters: [dns]\npubsub: {{provider: {provider}, topics: {names}}}\n")
    tokens.write_text(TOKENS)
    tokens.chmod(0o600)
    system = System(
        Settings(
            database=f"sqlite:{directory / 'fleet.db'}",
            policy=str(policy),
            auth=AuthSettings(tokens=str(tokens)),
            pubsub=broker,
        )
    )
    await system.store.migrate()  # type: ignore[attr-defined]
    await system.start()
    transport = httpx.ASGITransport(system.app)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=who("admin")) as client:
            yield client
    finally:
        await system.stop()


def who(name: str) -> dict[str, str]:
    """Return the header of a caller."""
    return {"Authorization": f"Bearer {name}-0123456789abcdef"}


@pytest.fixture
async def rabbits(rabbit_url: str, anyio_backend: str) -> AsyncIterator[RabbitBrokers]:
    """Give brokers on one RabbitMQ, with topics of the test's own."""
    brokers = RabbitBrokers(rabbit_url)
    yield brokers
    await brokers.close()


@pytest.fixture
async def rabbit(rabbits: RabbitBrokers) -> Broker:
    """Give the broker of a consumer."""
    return await rabbits.connect()


@pytest.fixture
async def client(
    rabbits: RabbitBrokers, rabbit: Broker, rabbit_url: str, tmp_path: Path
) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client of a server whose events go to RabbitMQ."""
    async with serving(tmp_path, "rabbitmq", rabbits.options.topics, PubSubSettings(url=rabbit_url)) as client:
        yield client


async def poison(broker: Broker, subscription: Subscription, id_: str) -> None:
    """Publish an event, and give it up."""
    async with consuming(broker, subscription) as found:
        await broker.publish([message(id_, topic=subscription.topic)])
        await (await take(found)).reject("no such zone", is_poison=True)


async def letters_of(client: httpx.AsyncClient, name: str = "dns", **query: Any) -> list[tuple[str, str]]:
    """List the dead letters: the ids of the events, and the errors."""
    answer = await client.get(f"{BASE}/subscriptions/{name}/dead-letters", params=query)
    assert answer.status_code == 200, answer.text
    return [(each["event"]["id"], each["error"]) for each in answer.json()["items"]]


async def replay(client: httpx.AsyncClient, name: str = "dns", **query: Any) -> int:
    """Put dead letters back."""
    answer = await client.post(f"{BASE}/subscriptions/{name}:replay", json={}, params=query)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["replayed"])


async def test_rabbitmq_delivers_a_dead_letter_again(client: httpx.AsyncClient, rabbit: Broker) -> None:
    await poison(rabbit, DNS, "1")
    await eventually(lambda: _has_letters(client, 1))
    assert await letters_of(client) == [("1", "no such zone")]
    assert (await client.get(ONE)).json() == {
        "name": "dns",
        "topic": "clusterEvents",
        "tenants": None,
        "waiting": 0,
        "inFlight": None,
        "deadLetters": 1,
    }
    assert await replay(client) == 1
    async with consuming(rabbit, DNS) as found:
        assert await take_ids(found, 1) == ["1"]
    assert await letters_of(client) == []
    assert await replay(client) == 0


async def test_google_pubsub_delivers_a_dead_letter_again(
    pubsub_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EMULATOR, pubsub_address)
    project, brokers = f"test-{uuid4().hex}", PubSubBrokers(pubsub_address)
    broker = await brokers.connect_with(project=project)
    try:
        async with serving(tmp_path, "gcp-pubsub", TopicNames(), PubSubSettings(project=project)) as client:
            await poison(broker, DNS, "1")
            await eventually(lambda: _has_letters(client, 1))
            found = (await client.get(ONE)).json()
            assert (found["waiting"], found["inFlight"], found["deadLetters"]) == (None, None, None)
            assert await replay(client) == 1
            async with consuming(broker, DNS) as deliveries:
                assert await take_ids(deliveries, 1) == ["1"]
            for name in ("nope", "a" * 253):
                assert (await client.get(f"{BASE}/subscriptions/{name}")).status_code == 404
    finally:
        await brokers.close()


async def test_what_is_not_an_event_is_shown(
    client: httpx.AsyncClient, rabbits: RabbitBrokers, rabbit: Broker, rabbit_url: str
) -> None:
    async with consuming(rabbit, DNS):
        connection = await aio_pika.connect(rabbit_url)
        async with connection, connection.channel() as channel:
            exchange = await channel.get_exchange(rabbits.options.topics.cluster_events, ensure=False)
            await exchange.publish(aio_pika.Message(b"\xff{"), "")
        await eventually(lambda: _has_letters(client, 1))
    (letter,) = (await client.get(f"{ONE}/dead-letters")).json()["items"]
    assert letter["event"]["type"] == "malformed"


async def test_the_topic_is_part_of_the_name(client: httpx.AsyncClient, rabbit: Broker) -> None:
    await poison(rabbit, AUDIT, "1-s")
    await eventually(lambda: _has_letters(client, 1, "audit", topic="statusUpdates"))
    assert (await client.get(f"{BASE}/subscriptions/audit")).status_code == 404
    shown = await client.get(f"{BASE}/subscriptions/audit", params={"topic": "statusUpdates"})
    assert shown.json()["topic"] == "statusUpdates"
    assert await replay(client, "audit", topic="statusUpdates") == 1
    wrong = await client.get(f"{BASE}/subscriptions/audit", params={"topic": "status", "name": "x"})
    assert wrong.status_code == 400
    assert {each["code"] for each in wrong.json()["errors"]} == {"UnknownValue", "UnknownParameter"}


async def test_callers_of_some_tenants_find_nothing(client: httpx.AsyncClient, rabbit: Broker) -> None:
    await poison(rabbit, DNS, "1")
    await eventually(lambda: _has_letters(client, 1))
    assert (await client.get(ONE, headers=who("reader"))).status_code == 200
    for answer in (
        await client.get(ONE, headers=who("red-admin")),
        await client.get(f"{ONE}/dead-letters", headers=who("red-admin")),
        await client.post(f"{ONE}:replay", json={}, headers=who("red-admin")),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "NotFound")
    assert (await client.post(f"{ONE}:replay", json={}, headers=who("reader"))).status_code == 403
    assert len(await letters_of(client)) == 1


async def test_an_unknown_subscription(client: httpx.AsyncClient) -> None:
    """Names that no queue can have are no errors of the server."""
    for name in ("nope", "a" * 253, "a" * 300, "a%20b", "dns%2Fx", "%C3%BC", "-"):
        one = f"{BASE}/subscriptions/{name}"
        for answer in (
            await client.get(one),
            await client.get(f"{one}/dead-letters"),
            await client.post(f"{one}:replay", json={}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (404, "NotFound"), name


async def test_the_rest_is_done_at_the_broker(client: httpx.AsyncClient, rabbit: Broker) -> None:
    await rabbit.subscribe(DNS)
    for method, path, body in (
        ("GET", f"{BASE}/subscriptions", None),
        ("PUT", ONE, {}),
        ("DELETE", ONE, None),
        ("POST", f"{ONE}:pull", {}),
        ("POST", f"{ONE}:ack", {"receipts": ["1.1"]}),
        ("POST", f"{ONE}:nack", {"receipts": ["1.1"]}),
    ):
        answer = await client.request(method, path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (409, "BrokerElsewhere")
        assert "list its dead letters and replay them" in answer.json()["detail"]
    assert await rabbit.state_of(DNS) is not None


async def test_a_broker_that_is_away(tmp_path: Path) -> None:
    settings = PubSubSettings(url=f"amqp://guest:guest@127.0.0.1:{free_port()}/")
    async with serving(tmp_path, "rabbitmq", TopicNames(), settings) as client:
        for answer in (
            await client.get(ONE),
            await client.get(f"{ONE}/dead-letters"),
            await client.post(f"{ONE}:replay", json={}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (503, "BrokerUnavailable")


async def _has_letters(client: httpx.AsyncClient, count: int, name: str = "dns", **query: Any) -> bool:
    return len(await letters_of(client, name, **query)) == count
