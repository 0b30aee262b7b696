"""Where events go, as a server tells it: what the policy says, and what cannot change while it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from hyperfleet.api.wire import BASE
from hyperfleet.bootstrap import System
from hyperfleet.settings import Settings

pytestmark = pytest.mark.anyio

GUIDE = "requiredAdapters: [dns]\npubsub: {provider: rabbitmq, retryPolicy: {maxRetries: 3, retryInterval: 30s}}\n"


@pytest.fixture
def anyio_backend() -> str:
    """Run in asyncio."""
    return "asyncio"


@asynccontextmanager
async def serving(directory: Path, policy: str) -> AsyncIterator[httpx.AsyncClient]:
    """Run a server on a policy file; give a client."""
    file = directory / "policy.yaml"
    file.write_text(policy)
    system = System(Settings(database=f"sqlite:{directory / 'fleet.db'}", policy=str(file)))
    await system.store.migrate()  # type: ignore[attr-defined]
    await system.start()
    try:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(system.app), base_url="http://localhost") as client:
            yield client
    finally:
        await system.stop()


async def put(client: httpx.AsyncClient, policy: str, **more: Any) -> httpx.Response:
    headers = {"Content-Type": "application/yaml", "If-Match": "*"}
    return await client.put(f"{BASE}/policy", content=policy, headers=headers, **more)


async def test_a_broker_without_an_address_is_a_warning(tmp_path: Path) -> None:
    async with serving(tmp_path, GUIDE) as client:
        ready = await client.get("/readyz")
        assert ready.status_code == 200
        (warning,) = ready.json()["warnings"]
        assert warning["check"] == "events"
        assert "pubsub.url is not set" in warning["message"]
        assert (await client.get(f"{BASE}/pubsub")).json()["provider"] == "in-process"


async def test_pubsub_cannot_change_while_the_server_runs(tmp_path: Path) -> None:
    async with serving(tmp_path, GUIDE) as client:
        for changed in (GUIDE.replace("maxRetries: 3", "maxRetries: 4"), "requiredAdapters: [dns]\n"):
            for query in ({}, {"dryRun": "true"}):
                answer = await put(client, changed, params=query)
                assert (answer.status_code, answer.json()["code"]) == (422, "RestartRequired")
        (tmp_path / "policy.yaml").write_text(GUIDE.replace("30s", "31s"))
        answer = await client.post(f"{BASE}/policy:reload")
        assert (answer.status_code, answer.json()["code"]) == (422, "RestartRequired")
        assert answer.json()["detail"] == "events would go to another broker, to other topics, or with other retries"
        other = await put(client, GUIDE.replace("[dns]", "[dns, validation]"))
        assert other.status_code == 200, other.text
    async with serving(tmp_path, GUIDE.replace("30s", "31s")) as client:
        policy = (await client.get(f"{BASE}/policy")).json()
        assert "31s" in policy["text"], "a file that changes only pubsub comes into force at the next start"
