"""The sentinel inside servers: it publishes what is due, servers share the work, and nothing is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from hyperfleet.api.wire import BASE
from hyperfleet.bootstrap import System, open_tables
from hyperfleet.messaging import Message, Subscription
from hyperfleet.ports import EVERYTHING, LookPlan
from hyperfleet.settings import Settings
from hyperfleet.settings.tree import SentinelSettings
from tests.contract.conftest import DURABLE

pytestmark = pytest.mark.anyio

_SOON = 20.0  # seconds that a test waits for what takes a moment
EAGER = "ages: {new: 0s}"


@pytest.fixture(params=DURABLE)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of an empty database."""
    return f"sqlite:{tmp_path / 'fleet.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
async def stack(anyio_backend: str) -> AsyncIterator[AsyncExitStack]:
    """Give what stops systems at the end."""
    async with AsyncExitStack() as opened:
        yield opened


async def start(
    url: str, stack: AsyncExitStack, directory: Path, rules: str = EAGER, *, enabled: bool = True
) -> System:
    """Start a server without sockets."""
    file = directory / "sentinel.yaml"
    file.write_text(rules)
    await open_tables(url).migrate()
    system = System(Settings(database=url, sentinel=SentinelSettings(config=str(file), enabled=enabled)))
    await system.start()
    stack.push_async_callback(system.stop)
    return system


async def send(system: System, method: str, path: str, body: Any = None) -> Any:
    """Send a request and return the answer."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(system.app)) as client:
        answer = await client.request(method, f"http://localhost{path}", json=body)
    assert answer.is_success, answer.text
    return answer.json() if "json" in answer.headers["content-type"] else answer.text


async def create(system: System, count: int) -> list[str]:
    """Create clusters; return their ids."""
    bodies = [{"name": f"c{number}", "spec": {}} for number in range(count)]
    return [(await send(system, "POST", f"{BASE}/clusters", body))["id"] for body in bodies]


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(_SOON):
        while not await holds():
            await asyncio.sleep(0.02)


async def until_adopted(system: System) -> None:
    """Wait until all looks are scheduled by the rules of a server."""

    async def has_adopted() -> bool:
        return await system.store.looks.rules_digest() != ""

    await until(has_adopted)


async def asked(system: System) -> list[str]:
    """Return the ids of the resources that a sentinel has asked for, in order."""
    taken = await system.store.queues.take("dns", 1_000, timedelta(minutes=5), 3)
    return [each.message.partition_key for each in taken if _reason(each.message) == "new"]


def _reason(message: Message) -> str:
    return str(msgspec.json.decode(message.data)["reason"])


async def look_of(system: System, id_: str) -> LookPlan:
    """Return the next look at a cluster."""
    (found,) = (await system.store.looks.read("Cluster", [id_], EVERYTHING)).looks
    return found.look


async def test_what_nobody_reports_on_is_asked_about_once_and_shown(
    url: str, stack: AsyncExitStack, tmp_path: Path
) -> None:
    system = await start(url, stack, tmp_path)
    await system.store.queues.subscribe(Subscription("dns"))
    (id_,) = await create(system, 1)
    seen: list[str] = []

    async def has_one() -> bool:
        seen.extend(await asked(system))
        return bool(seen)

    await until(has_one)
    assert seen == [id_]

    async def has_moved() -> bool:
        return (await look_of(system, id_)).history.attempts == 1

    await until(has_moved)  # an event is published first
    look = await look_of(system, id_)
    assert look.at is not None
    assert look.history.last is not None
    assert look.at > look.history.last, "the pause grows"

    async def has_passed() -> bool:
        return "hyperfleet_sentinel_last_pass_timestamp_seconds 0" not in await send(system, "GET", "/metrics")

    await until(has_passed)
    assert 'hyperfleet_sentinel_events_published_total{rule="new"} 1' in await send(system, "GET", "/metrics")
    (shown,) = (await send(system, "GET", f"{BASE}/sentinels"))["items"]
    assert (shown["name"], len(shown["members"])) == ("default", 1)


async def test_servers_share_and_no_event_comes_twice(url: str, stack: AsyncExitStack, tmp_path: Path) -> None:
    systems = [await start(url, stack, tmp_path) for _ in range(3)]

    async def are_three() -> bool:
        found = (await send(systems[0], "GET", f"{BASE}/sentinels"))["items"]
        return bool(found) and len(found[0]["members"]) == 3

    await until(are_three)
    await systems[0].store.queues.subscribe(Subscription("dns"))
    ids = await create(systems[1], 30)
    seen: list[str] = []

    async def have_all() -> bool:
        seen.extend(await asked(systems[0]))
        return set(seen) == set(ids)

    await until(have_all)
    assert sorted(seen) == sorted(ids)


async def test_other_rules_lead_to_a_look_at_everything(url: str, stack: AsyncExitStack, tmp_path: Path) -> None:
    async with AsyncExitStack() as first:
        system = await start(url, first, tmp_path, "ages: {new: 9h}")
        await until_adopted(system)
        (id_,) = await create(system, 1)
        before = await look_of(system, id_)
    system = await start(url, stack, tmp_path, "ages: {new: 1h}", enabled=False)

    async def has_moved() -> bool:
        return await system.store.looks.rules_digest() != "" and await look_of(system, id_) != before

    await until(has_moved)
    look = await look_of(system, id_)
    assert look.at is not None
    assert before.at is not None
    assert look.at < before.at - timedelta(hours=8)


async def test_after_lost_events_everything_is_looked_at(url: str, stack: AsyncExitStack, tmp_path: Path) -> None:
    system = await start(url, stack, tmp_path, "ages: {new: 9h}", enabled=False)
    await until_adopted(system)
    (id_,) = await create(system, 1)
    before = await look_of(system, id_)
    assert system.events.relay.on_gap is not None
    await system.events.relay.on_gap()

    async def has_moved() -> bool:
        return await look_of(system, id_) != before

    await until(has_moved)
    look = await look_of(system, id_)
    assert look.at is not None
    assert before.at is not None
    assert look.at < before.at - timedelta(hours=8)


async def test_rules_that_let_adapters_go_stale_are_warned_of(
    url: str, stack: AsyncExitStack, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(STALE_POLICY)
    file = tmp_path / "sentinel.yaml"
    file.write_text("ages: {ready: 1h}")
    settings = Settings(database=url, policy=str(policy), sentinel=SentinelSettings(config=str(file)))
    await open_tables(url).migrate()
    system = System(settings)
    await system.start()
    stack.push_async_callback(system.stop)
    (warning,) = (await send(system, "GET", "/readyz"))["warnings"]
    assert warning["check"] == "sentinel"
    assert "staleThreshold of 30m needs every 10m" in warning["message"]
    assert "staleThreshold" in caplog.text


STALE_POLICY = """
name: p
appliesTo: {kind: Cluster}
requiredAdapters: [dns]
policies: {staleThreshold: 30m}
"""
