"""Webhooks on every store, to a real receiver: sent once, grouped, resolved, repeated after failures, disabled."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from hyperfleet.api.wire import BASE
from hyperfleet.bootstrap import System, open_tables
from hyperfleet.events.making import Origin
from hyperfleet.events.webhook_sender import READER_PREFIX, WebhookServices
from hyperfleet.events.webhook_state import WebhookState, WebhookTiming
from hyperfleet.events.webhook_target import Webhook, WebhookFilter
from hyperfleet.events.webhooks import Webhooks
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import Pruning
from hyperfleet.settings import Settings
from hyperfleet.settings.tree import TenancySettings
from tests.api.fleet import HandClock
from tests.certificates import Authority
from tests.contract.conftest import DURABLE
from tests.receiving import Receiver, receiving
from tests.world import body

pytestmark = pytest.mark.anyio

_SECRET = b"0123456789abcdef-signing-key"
_AT_ONCE = WebhookTiming(gather=timedelta(), growth=timedelta(), retries=(0.0,))
_DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def receiver(authority: Authority) -> Iterator[Receiver]:
    """Give a receiver that speaks HTTPS."""
    with receiving(authority.issue("receiver")) as found:
        yield found


class Bench:
    """A server without sockets and its webhooks, which a test starts and stops."""

    def __init__(self, system: System, webhook: Webhook, stack: AsyncExitStack) -> None:
        self.system = system
        self.webhook = webhook
        self.clock = HandClock()
        self.clock.time = datetime.now(UTC)
        self.webhooks: list[Webhooks] = []
        self._stack = stack

    async def start(
        self, timing: WebhookTiming = _AT_ONCE, addresses: Sequence[str] = ("127.0.0.1",), **changes: Any
    ) -> Webhooks:
        """Start the webhook, as another replica would."""
        origin = Origin("test", lambda kind, id_, _: f"/{kind}/{id_}", lambda _: None)
        holder = f"replica-{len(self.webhooks)}"
        services = WebhookServices(
            self.system.store, self.system.policies, Kinds(), self.clock, holder, lambda _: origin, timing
        )

        async def resolve(host: str, port: int) -> Sequence[str]:
            return addresses

        started = Webhooks([replace(self.webhook, **changes)], services, resolve)
        await started.start()
        self.webhooks.append(started)
        self._stack.push_async_callback(started.stop)
        return started

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds."""
        async with asyncio.timeout(20):
            while not condition():
                for sender in (each for webhooks in self.webhooks for each in webhooks.senders):
                    sender.loop.nudge()
                await asyncio.sleep(0.02)

    async def settle(self) -> None:
        """Wait until everything in the log was looked at, and some turns more."""
        head, name = await self.system.store.position(), READER_PREFIX + self.webhook.name
        async with asyncio.timeout(20):
            while True:
                self.webhooks[-1].senders[0].loop.nudge()
                await asyncio.sleep(0.1)
                readers = {each.name: each.position for each in await self.system.store.readers()}
                if readers.get(name, 0) >= head:
                    break
        for _ in range(3):
            self.webhooks[-1].senders[0].loop.nudge()
            await asyncio.sleep(0.05)

    async def send(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the server and return the answer."""
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self.system.app)) as client:
            answer = await client.request(method, f"http://localhost{BASE}{path}", json=body)
        assert answer.is_success, answer.text
        return answer.json()

    async def create(self, name: str, tenant: str = "", **labels: str) -> str:
        more = {"tenant": tenant} if tenant else {}
        return str(
            (await self.send("POST", "/clusters", {"name": name, "spec": {}, "labels": {**labels, **more}}))["id"]
        )

    async def fail(self, id_: str, message: str = "quota of 5 reached", adapter: str = "dns") -> None:
        await self.send("POST", f"/clusters/{id_}/statuses", body(adapter, f"False/QuotaExceeded/{message}"))

    async def recover(self, id_: str, adapter: str = "dns") -> None:
        await self.send("POST", f"/clusters/{id_}/statuses", body(adapter, "True/Done"))

    async def until_state(self, condition: Callable[[WebhookState], bool]) -> None:
        """Wait until something holds for the saved state."""
        async with asyncio.timeout(20):
            while not condition(await self.state()):
                await asyncio.sleep(0.02)

    async def state(self) -> WebhookState:
        (status,) = await self.webhooks[-1].statuses()
        return status.state


@pytest.fixture(params=["memory", *DURABLE])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of an empty database of each kind."""
    files = {"memory": "memory:", "sqlite": f"sqlite:{tmp_path / 'fleet.db'}"}
    return files.get(request.param) or str(request.getfixturevalue("postgres_url"))


@pytest.fixture
async def bench(
    url: str, tmp_path: Path, receiver: Receiver, authority: Authority, anyio_backend: str
) -> AsyncIterator[Bench]:
    """Give a running server on each store, with a webhook that is yet to be started."""
    if url != "memory:":
        await open_tables(url).migrate()
    secret = tmp_path / "secret"
    secret.write_bytes(_SECRET + b"\n")
    webhook = Webhook(
        name="ops", url=receiver.url, secret_file=str(secret), ca_file=str(authority.file), allow_private=True
    )
    async with AsyncExitStack() as stack:
        system = System(Settings(database=url, tenancy=TenancySettings(label="tenant")))
        await system.start()
        stack.push_async_callback(system.stop)
        yield Bench(system, webhook, stack)


def verify(headers: Any, content: bytes) -> None:
    """Check a signature, as docs/webhooks.md says."""
    parts = dict(part.split("=", 1) for part in headers["X-HyperFleet-Signature"].split(","))
    expected = hmac.new(_SECRET, parts["t"].encode() + b"." + content, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(expected, parts["v1"])


async def test_a_problem_is_sent_once_grouped_and_resolved(bench: Bench, receiver: Receiver) -> None:
    ids = [await bench.create(f"c{number}") for number in range(3)]
    await bench.start(replace(_AT_ONCE, gather=timedelta(seconds=2)))
    for number, id_ in enumerate(ids):
        await bench.fail(id_, f"quota of {number} reached")
    await bench.settle()
    assert receiver.requests == [], "more resources with the same cause are waited for"
    bench.clock.pass_time(timedelta(seconds=3))
    await bench.until(lambda: len(receiver.requests) == 1)
    (request,) = receiver.requests
    verify(request.headers, request.body)
    assert request.path == "/hook/s3cr3t-path"
    assert request.headers["Content-Type"].startswith("application/cloudevents+json")
    assert request.headers["Host"].startswith("localhost:")
    event = request.json
    assert (event["specversion"], event["type"]) == ("1.0", "io.hyperfleet.problem.opened")
    assert event["source"] == "/hyperfleet/test/webhook/ops"
    data = event["data"]
    assert (data["cause"]["adapter"], data["cause"]["reason"]) == ("dns", "QuotaExceeded")
    assert data["cause"]["message"] == "quota of <n> reached"
    assert (data["count"], data["new"]) == (3, 3)
    assert sorted(each["name"] for each in data["members"]) == ["c0", "c1", "c2"]
    await bench.fail(ids[0], "quota of 9 reached")
    await bench.recover(ids[0])
    await bench.settle()
    bench.clock.pass_time(timedelta(seconds=3))
    await bench.settle()
    assert len(receiver.requests) == 1, "the cause is still open, and was sent"
    for id_ in ids[1:]:
        await bench.recover(id_)
    await bench.settle()
    bench.clock.pass_time(timedelta(seconds=3))
    await bench.until(lambda: len(receiver.requests) == 2)
    resolved = receiver.requests[1].json
    assert resolved["type"] == "io.hyperfleet.problem.resolved"
    assert resolved["subject"] == event["subject"]
    assert resolved["data"]["count"] == 3
    await bench.until_state(lambda state: state.problems == {} and state.failing_since is None)


async def test_further_resources_of_a_cause_are_sent_later_and_alone(bench: Bench, receiver: Receiver) -> None:
    await bench.start(replace(_AT_ONCE, growth=timedelta(minutes=1)))
    await bench.fail(await bench.create("first"))
    await bench.until(lambda: len(receiver.requests) == 1)
    await bench.fail(await bench.create("second"))
    await bench.fail(await bench.create("third"))
    await bench.settle()
    assert len(receiver.requests) == 1
    bench.clock.pass_time(timedelta(minutes=1))
    await bench.until(lambda: len(receiver.requests) == 2)
    data = receiver.requests[1].json["data"]
    assert (sorted(each["name"] for each in data["members"]), data["new"], data["count"]) == (["second", "third"], 2, 3)


async def test_a_restart_neither_repeats_nor_forgets(bench: Bench, receiver: Receiver) -> None:
    first = await bench.start()
    ids = [await bench.create("a"), await bench.create("b")]
    await bench.fail(ids[0])
    await bench.until(lambda: len(receiver.requests) == 1)
    await first.stop()
    await bench.fail(ids[1], "no such zone")
    await bench.start()
    await bench.until(lambda: len(receiver.requests) == 2)
    assert receiver.requests[1].json["data"]["cause"]["message"] == "no such zone"
    await bench.recover(ids[0])
    await bench.until(lambda: len(receiver.requests) == 3)
    assert receiver.requests[2].json["type"] == "io.hyperfleet.problem.resolved"


async def test_of_two_replicas_one_sends(bench: Bench, receiver: Receiver) -> None:
    await bench.start()
    await bench.start()
    for number in range(5):
        await bench.fail(await bench.create(f"c{number}"), f"{'abcde'[number]} is broken")
    await bench.until(lambda: len(receiver.requests) >= 5)
    await asyncio.sleep(0.2)
    assert len({each.json["id"] for each in receiver.requests}) == len(receiver.requests) == 5


async def test_a_failed_delivery_is_repeated_and_then_counts_as_well(bench: Bench, receiver: Receiver) -> None:
    receiver.answers = [(500, {}), (503, {"Retry-After": "30"})]
    started = await bench.start()
    results: list[str] = []
    started.senders[0].on_delivery = lambda _, result: results.append(result)
    await bench.fail(await bench.create("c"))
    await bench.until(lambda: len(receiver.requests) == 2)
    await bench.settle()
    state = await bench.state()
    assert state.failing_since is not None
    assert state.last_error == f"https://localhost:{receiver.port} answered 503"
    assert len(receiver.requests) == 2, "Retry-After is honoured"
    bench.clock.pass_time(timedelta(seconds=31))
    await bench.until(lambda: len(receiver.requests) == 3)
    await bench.settle()
    assert (await bench.state()).failing_since is None
    assert results == ["failed", "failed", "sent"]
    assert len({each.json["id"] for each in receiver.requests}) == 1


async def test_a_receiver_that_fails_for_a_day_is_disabled_loudly(
    bench: Bench, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.status = 500
    started = await bench.start()
    id_ = await bench.create("c")
    await bench.fail(id_)
    await bench.until(lambda: len(receiver.requests) >= 2)
    bench.clock.pass_time(_DAY)
    await bench.until(lambda: any(record.levelno == logging.ERROR for record in caplog.records))
    assert "webhook ops is disabled" in caplog.text
    assert "s3cr3t-path" not in caplog.text, "the URL may contain a secret"
    assert _SECRET.decode() not in caplog.text
    assert (await bench.state()).disabled_time is not None
    assert READER_PREFIX + "ops" not in {each.name for each in await bench.system.store.readers()}, (
        "pruning waits no more"
    )
    count = len(receiver.requests)
    await started.stop()
    started = await bench.start()  # a restart does not enable it
    await asyncio.sleep(0.2)
    assert len(receiver.requests) == count
    receiver.status = 204
    later = await bench.create("later")
    await bench.fail(later, "happened while it was disabled")
    await started.enable("ops")
    await bench.until(lambda: len(receiver.requests) == count + 2)
    assert {each["data"]["members"][0]["name"] for each in receiver.events()[count:]} == {"c", "later"}


async def test_a_receiver_that_is_gone_is_disabled_at_once(bench: Bench, receiver: Receiver) -> None:
    receiver.status = 410
    await bench.start()
    await bench.fail(await bench.create("c"))
    await bench.until(lambda: len(receiver.requests) == 1)
    await bench.until_state(lambda state: state.disabled_time is not None)


async def test_lost_changes_are_announced_and_looked_up(bench: Bench, receiver: Receiver) -> None:
    first = await bench.start()
    id_ = await bench.create("c")
    await bench.fail(id_)
    await bench.until(lambda: len(receiver.requests) == 1)
    await first.stop()
    await bench.recover(id_)
    await bench.fail(await bench.create("d"), "another cause")
    for number in range(3):
        await bench.send("PATCH", f"/clusters/{id_}", {"labels": {"n": str(number)}})
    await bench.system.events.relay.stop()
    await bench.system.store.drop_readers(timedelta())
    assert await bench.system.store.prune(Pruning("events", timedelta()), 100) > 0
    await bench.start()
    await bench.until(lambda: len(receiver.requests) == 4)
    types = [each["type"] for each in receiver.events()[1:]]
    assert sorted(types) == ["io.hyperfleet.gap", "io.hyperfleet.problem.opened", "io.hyperfleet.problem.resolved"]


async def test_changes_are_sent_one_by_one(bench: Bench, receiver: Receiver) -> None:
    await bench.start(send=("changes",), filter=WebhookFilter(phases=("Failed",)))
    other = await bench.create("other")
    id_ = await bench.create("c")
    await bench.recover(other)
    receiver.answers = [(500, {})]
    await bench.fail(id_)
    await bench.recover(id_)
    await bench.until(lambda: len(receiver.requests) == 3)
    failed, again, recovered = receiver.events()
    assert failed == again
    assert failed["type"] == "io.hyperfleet.cluster.status.changed"
    assert failed["subject"] == f"Cluster/{id_}"
    moves = [(each["subject"], each["to"]) for each in failed["data"]["transitions"]]
    assert ("phase", "Failed") in moves
    assert recovered["subject"] == f"Cluster/{id_}"


async def test_filters(bench: Bench, receiver: Receiver) -> None:
    wanted = WebhookFilter(kinds=("Cluster",), label_selector="env=prod", phases=("Failed",), causes=("QuotaExceeded",))
    await bench.start(filter=replace(wanted, conditions=("Ready",)))
    await bench.fail(await bench.create("dev", env="dev"))
    prod = await bench.create("prod", env="prod")
    await bench.send("POST", f"/clusters/{prod}/statuses", body("validation", "False/Other/x"))
    await bench.fail(prod)
    await bench.settle()
    await bench.until(lambda: len(receiver.requests) == 1)
    data = receiver.requests[0].json["data"]
    assert [each["name"] for each in data["members"]] == ["prod"]
    assert data["cause"]["adapter"] == "dns"
    await bench.send("PATCH", f"/clusters/{prod}", {"labels": {"env": "dev"}})
    await bench.until(lambda: len(receiver.requests) == 2)
    assert receiver.requests[1].json["type"] == "io.hyperfleet.problem.resolved", "it is no longer about this one"


async def test_a_foreign_tenants_changes_are_never_sent(bench: Bench, receiver: Receiver) -> None:
    await bench.start(send=("problems", "changes"), tenants=("red",))
    blue, red = await bench.create("blue-one", tenant="blue"), await bench.create("red-one", tenant="red")
    for id_ in (blue, red):
        await bench.fail(id_)
    await bench.settle()
    await bench.until(lambda: any(each["type"].endswith("problem.opened") for each in receiver.events()))
    await bench.recover(blue)
    await bench.recover(red)
    await bench.settle()
    await bench.until(lambda: any(each["type"].endswith("problem.resolved") for each in receiver.events()))
    sent = b"".join(each.body for each in receiver.requests)
    assert b"blue" not in sent
    assert blue.encode() not in sent
    assert b"red-one" in sent
    assert {each["tenant"] for each in receiver.events()} == {"red"}
    assert blue not in str(await bench.state())


async def test_slack(bench: Bench, receiver: Receiver) -> None:
    await bench.start(
        format="slack", secret_file=None, send=("problems", "changes"), filter=WebhookFilter(phases=("Failed",))
    )
    id_ = await bench.create("payments")
    await bench.fail(id_, "<!channel> a & b")
    await bench.until(lambda: len(receiver.requests) == 2)
    change, problem = receiver.events()
    assert problem["text"] == ":red_circle: dns: QuotaExceeded on 1 resource"
    text = "\n".join(block["text"]["text"] for block in problem["blocks"])
    assert "&lt;!channel&gt; a &amp; b" in text
    assert "payments" in text
    assert change["text"] == "Cluster payments"
    assert "phase: " in change["blocks"][1]["text"]["text"]
    await bench.send("DELETE", f"/clusters/{id_}")
    await bench.until(lambda: len(receiver.requests) >= 4)
    assert ":white_check_mark: Resolved: dns: QuotaExceeded" in {each["text"] for each in receiver.events()}
    assert "X-HyperFleet-Signature" not in receiver.requests[0].headers


async def test_alertmanager(bench: Bench, receiver: Receiver) -> None:
    await bench.start(format="alertmanager", secret_file=None)
    first, second = await bench.create("first"), await bench.create("second")
    await bench.fail(first)
    await bench.until(lambda: len(receiver.requests) == 1)
    (alert,) = receiver.events()[0]
    assert alert["labels"] == {
        "alertname": "HyperFleetProblem",
        "kind": "Cluster",
        "name": "first",
        "resource_id": first,
        "adapter": "dns",
        "reason": "QuotaExceeded",
    }
    assert alert["annotations"]["description"] == "quota of <n> reached"
    now = bench.clock.now()
    assert datetime.fromisoformat(alert["startsAt"]) <= now + timedelta(minutes=1)
    assert datetime.fromisoformat(alert["endsAt"]) > now
    await bench.fail(second)
    await bench.until(lambda: len(receiver.requests) == 2)
    bench.clock.pass_time(timedelta(minutes=2))
    await bench.until(lambda: len(receiver.requests) == 3)
    assert len(receiver.events()[2]) == 2, "what is open is repeated, as Alertmanager forgets it otherwise"
    await bench.recover(first)
    await bench.until(lambda: len(receiver.requests) == 4)
    ends = {each["labels"]["name"]: datetime.fromisoformat(each["endsAt"]) for each in receiver.events()[3]}
    assert ends["first"] <= bench.clock.now() < ends["second"]
    await bench.recover(second)
    await bench.until(lambda: len(receiver.requests) == 5)
    (last,) = receiver.events()[4]
    assert datetime.fromisoformat(last["endsAt"]) <= bench.clock.now()


async def test_webhooks_that_are_gone_from_the_settings_are_forgotten(bench: Bench, receiver: Receiver) -> None:
    started = await bench.start()
    await bench.fail(await bench.create("c"))
    await bench.until(lambda: len(receiver.requests) == 1)
    other = replace(bench.webhook, name="other")
    bench.webhook, mine = other, bench.webhook
    await bench.start()
    await asyncio.sleep(0.1)
    store = bench.system.store
    assert mine.name in await store.read_webhooks(), "a replica sends for it"
    await started.stop()
    await bench.start()
    async with asyncio.timeout(10):
        while mine.name in await store.read_webhooks():
            await asyncio.sleep(0.02)
    assert READER_PREFIX + mine.name not in {each.name for each in await store.readers()}
