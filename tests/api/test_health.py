"""Whether the process lives and whether it can do its work."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from hyperfleet.api.app import create_app
from hyperfleet.api.context import RequestLimits
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.errors import StoreUnavailable
from hyperfleet.ports import Needs, StatusCause, Work
from hyperfleet.services.upkeep import Recompute
from tests.api.fleet import ROOT, Fleet, HandClock, open_fleet


class LostStore(MemoryStore):
    """A store that loses its database and gets it back."""

    is_lost = False
    is_slow = False
    is_stuck = False

    async def check(self) -> None:
        """Do as the tests want it."""
        if self.is_slow:
            await asyncio.Event().wait()
        if self.is_lost:
            raise StoreUnavailable("no route to the database")

    async def transact(self, needs: Needs, work: Work) -> int:
        """Write, unless stuck."""
        while self.is_stuck:
            await asyncio.sleep(0)
        return await super().transact(needs, work)


def test_alive_and_ready(client: Fleet) -> None:
    assert client.get(f"{ROOT}/healthz").json() == {"status": "alive"}
    answer = client.get(f"{ROOT}/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "reasons": []})
    assert answer.headers["cache-control"] == "no-store"


def test_a_server_without_its_store_lives_and_is_not_ready(clock: HandClock) -> None:
    store = LostStore(clock)
    with open_fleet(store, clock, RequestLimits()) as fleet:
        store.is_lost = True
        answer = fleet.get(f"{ROOT}/readyz")
        assert (answer.status_code, answer.json()) == (
            503,
            {
                "status": "notReady",
                "reasons": [{"check": "store", "message": "StoreUnavailable: no route to the database"}],
            },
        )
        assert fleet.get(f"{ROOT}/healthz").status_code == 200
        store.is_lost = False
        assert fleet.get(f"{ROOT}/readyz").status_code == 200


def test_a_store_that_does_not_answer(clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hyperfleet.api.health._TIMEOUT", 0.01)
    store = LostStore(clock)
    with open_fleet(store, clock, RequestLimits()) as fleet:
        store.is_slow = True
        (reason,) = fleet.get(f"{ROOT}/readyz").json()["reasons"]
        assert reason == {"check": "store", "message": "the store did not answer within 0.01 s"}


def test_a_full_queue(clock: HandClock) -> None:
    store = LostStore(clock)
    with open_fleet(store, clock, RequestLimits()) as fleet:
        store.is_stuck = True
        answer = fleet.run(ask_while_writes_pile_up(fleet, store))
        assert answer.status_code == 503
        assert answer.json()["reasons"] == [{"check": "queue", "message": "1000 writes wait, no more are taken"}]
        assert fleet.get(f"{ROOT}/readyz").status_code == 200


async def ask_while_writes_pile_up(fleet: Fleet, store: LostStore) -> httpx.Response:
    """Ask for readiness when no more writes are taken, then let them go."""
    writes = []
    while not fleet.committer.is_full:
        writes.append(asyncio.ensure_future(fleet.committer.submit(Recompute("cls-none", StatusCause("deadline")))))
        await asyncio.sleep(0)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(create_app(fleet.context))) as http:
        answer = await http.get(f"{ROOT}/readyz")
    store.is_stuck = False
    await asyncio.gather(*writes)
    return answer


def test_every_reason_is_told(clock: HandClock) -> None:
    store = LostStore(clock)
    with open_fleet(store, clock, RequestLimits()) as fleet:
        fleet.policies.version = None
        store.is_lost = True
        reasons = fleet.get(f"{ROOT}/readyz").json()["reasons"]
        assert [reason["check"] for reason in reasons] == ["store", "policy"]


def test_it_is_not_below_the_base_path(memory_client: Fleet) -> None:
    assert memory_client.get("/healthz").status_code == 404
