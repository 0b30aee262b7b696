"""Simulations that take long: as a stream, only a few at once, and no longer than somebody waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from starlette.types import Message

from hyperfleet.api.context import RequestLimits
from hyperfleet.api.wire import BASE
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.errors import StoreUnavailable
from hyperfleet.ports import Record, Scope
from tests.api.fleet import ROOT, Fleet, HandClock, errors_of, open_fleet, problem_of
from tests.candidates import FEWER_ADAPTERS, NOTHING

YAML = {"Content-Type": "application/yaml"}
STREAM = {**YAML, "Accept": "text/event-stream"}


def read_events(text: str) -> list[tuple[str, Any]]:
    frames = [frame.splitlines() for frame in text.split("\n\n") if frame.startswith("event")]
    return [(lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))) for lines in frames]


def test_progress_comes_as_a_stream(client: Fleet) -> None:
    for number in range(5):
        client.create(f"cluster-{number}")
    response = client.post("/policy:simulate", content=FEWER_ADAPTERS.encode(), headers=STREAM)
    assert response.headers["content-type"].startswith("text/event-stream")
    *progress, (kind, result) = read_events(response.text)
    assert {name for name, _ in progress} == {"progress"}
    assert progress[0][1] == {"examined": 1, "total": 5, "changed": 0}
    assert kind == "result"
    assert result == client.post("/policy:simulate", content=FEWER_ADAPTERS.encode(), headers=YAML).json()


def test_wrong_requests_for_a_stream_are_answered_as_usual(memory_client: Fleet) -> None:
    problem_of(memory_client.post("/policy:simulate", content=b"a: 1", headers=STREAM), 422, "InvalidPolicy")
    response = memory_client.post("/policy:simulate?page=1", content=b"a: 1", headers=STREAM)
    assert errors_of(response, 400, "InvalidQuery") == {("page", "UnknownParameter")}


# ── when it takes long ───────────────────────────────────────────────────────────────────────────────────────────


class GatedStore(MemoryStore):
    """A store through which nobody walks before a gate is opened; it may be broken then."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.waiting = 0
        self.is_broken = False

    async def walk(self, after: str, limit: int, scope: Scope) -> tuple[Record, ...]:
        """Wait, then walk."""
        self.waiting += 1
        await self.gate.wait()
        if self.is_broken:
            raise StoreUnavailable("it broke")
        return await super().walk(after, limit, scope)


@pytest.fixture
def gated() -> GatedStore:
    """Give the store of `slow_client`."""
    return GatedStore()


@pytest.fixture
def slow_client(gated: GatedStore, limits: RequestLimits) -> Iterator[Fleet]:
    """Give a client of a server on which simulations wait at a gate."""
    with open_fleet(gated, HandClock(), limits) as fleet:
        fleet.create()
        yield fleet


def test_what_fails_in_a_stream_is_its_last_event(slow_client: Fleet, gated: GatedStore) -> None:
    gated.gate.set()
    gated.is_broken = True
    response = slow_client.post("/policy:simulate", content=NOTHING.encode(), headers=STREAM)
    ((kind, problem),) = read_events(response.text)
    assert (kind, problem["code"], problem["status"]) == ("failed", "StoreUnavailable", 503)
    problem_of(slow_client.post("/policy:simulate", content=NOTHING.encode()), 503, "StoreUnavailable")


def test_only_a_few_at_once(slow_client: Fleet, gated: GatedStore) -> None:
    async def crowd() -> tuple[list[httpx.Response], list[httpx.Response]]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(slow_client.app)) as http:

            def ask(headers: dict[str, str], policy: bytes = NOTHING.encode()) -> Coroutine[Any, Any, httpx.Response]:
                return http.post(f"{ROOT}{BASE}/policy:simulate", content=policy, headers=headers)

            first = [asyncio.create_task(ask(headers)) for headers in (YAML, STREAM)]
            while gated.waiting < 2:
                await asyncio.sleep(0)
            late = [await ask(headers) for headers in (YAML, STREAM)]
            late.append(await ask(YAML, b"not: [a policy"))  # is not even looked at
            gated.gate.set()
            return await asyncio.gather(*first), late

    first, late = slow_client.run(crowd())
    assert [response.status_code for response in first] == [200, 200]
    for response in late:
        problem_of(response, 503, "Overloaded")
        assert response.headers["retry-after"]
    assert slow_client.post("/policy:simulate", content=NOTHING.encode()).status_code == 200, "seats are free again"


@pytest.mark.parametrize("headers", [YAML, STREAM])
def test_it_ends_when_the_caller_goes_away(slow_client: Fleet, gated: GatedStore, headers: dict[str, str]) -> None:
    sent = []

    async def receive() -> Message:
        if not gated.waiting:
            return {"type": "http.request", "body": NOTHING.encode(), "more_body": False}
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def ask() -> None:
        scope = {
            "type": "http",
            "method": "POST",
            "path": f"{BASE}/policy:simulate",
            "query_string": b"",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
        await slow_client.app(scope, receive, send)

    slow_client.run(ask())
    assert not any(b"result" in message.get("body", b"") for message in sent)
    gated.gate.set()
    assert slow_client.post("/policy:simulate", content=NOTHING.encode()).status_code == 200


def test_a_server_that_stops_does_not_wait_for_a_stream(slow_client: Fleet, gated: GatedStore) -> None:
    slow_client.tail.close()
    gated.gate.set()
    response = slow_client.post("/policy:simulate", content=NOTHING.encode(), headers=STREAM)
    *_, (kind, problem) = read_events(response.text)
    assert (kind, problem["code"]) == ("failed", "Overloaded")
    assert slow_client.post("/policy:simulate", content=NOTHING.encode()).status_code == 200, (
        "what is short is finished"
    )


@pytest.mark.parametrize("limits", [RequestLimits(time=timedelta(milliseconds=50))])
def test_only_a_stream_may_take_longer_than_a_request(slow_client: Fleet, gated: GatedStore) -> None:
    problem_of(slow_client.post("/policy:simulate", content=NOTHING.encode()), 503, "Timeout")

    async def open_late() -> None:
        await asyncio.sleep(0.1)  # past the limit of time
        gated.gate.set()

    async def begin() -> asyncio.Task[None]:
        return asyncio.create_task(open_late())

    opening = slow_client.run(begin())
    response = slow_client.post("/policy:simulate", content=NOTHING.encode(), headers=STREAM)
    assert [kind for kind, _ in read_events(response.text)] == ["progress", "result"]
    assert opening.done()
