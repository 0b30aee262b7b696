"""Two servers on one PostgreSQL: one relay publishes at a time, and the other takes over when it stops or freezes.

A frozen relay that wakes up does no harm: nothing is skipped, at worst one batch is repeated, and the saved position
never goes back.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from msgspec import Struct

from tests.e2e.audit import query
from tests.e2e.changes import Changes
from tests.e2e.lanes import BASE, Channel
from tests.e2e.pulling import QUIET, Puller, expected_messages, find_faults, repeated
from tests.e2e.server import PATIENCE, Server, await_state, migrated, running

pytestmark = pytest.mark.long

FREEZES: Final = 3
BATCH: Final = 500  # changes that the relay publishes at once
SOON: Final = 10.0  # seconds; a lease of 3 s and a turn of 1 s, on a machine that may be busy

_ACTIVE: Final = re.compile(r"^hyperfleet_relay_active 1(\.0)?$", re.MULTILINE)


@pytest.fixture
def pair(tmp_path: Path, postgres_url: str) -> Iterator[Sequence[Server]]:
    """Give two servers of one database with a subscription."""
    migrated(postgres_url)
    with running(tmp_path, postgres_url, **QUIET) as one, running(tmp_path, postgres_url, **QUIET) as other:
        one.http.put("/subscriptions/work", json={}).raise_for_status()
        yield one, other


def test_a_frozen_relay_is_replaced_and_does_no_harm_when_it_wakes(pair: Sequence[Server], postgres_url: str) -> None:
    asyncio.run(freeze_again_and_again(Fleet(pair), postgres_url))


def test_a_relay_that_stops_hands_over_at_once(pair: Sequence[Server], postgres_url: str) -> None:
    asyncio.run(stop_the_holder(Fleet(pair), postgres_url))


class Fleet:
    """Two servers, somebody who writes to one of them, and a consumer that pulls from the same one."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self.servers = servers
        self.awake = servers[0]
        self.puller = Puller("work", lambda: self.awake.port)
        self.changes = Changes(lambda: self.awake.port)
        self.positions: list[int] = []  # that the relays have saved

    async def find_holder(self) -> tuple[Server, Server]:
        """Return the server whose relay publishes, and the other one."""
        one, other = self.servers

        def look() -> tuple[Server, Server] | None:
            active = [is_publishing(server) for server in self.servers]
            return None if sum(active) != 1 else (one, other) if active[0] else (other, one)

        found = await asyncio.to_thread(await_state, look)
        assert found is not None
        return found

    @asynccontextmanager
    async def busy(self, server: Server) -> AsyncIterator[None]:
        """Write to a server and pull from it for the length of a block."""
        self.awake = server
        self.puller.start()
        self.changes.start()
        watch = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watch.cancel()
            await asyncio.wait({watch})
            await self.changes.stop()
            await self.puller.stop()

    async def _watch(self) -> None:
        """Note the position of the relay again and again."""
        channel = Channel(lambda: self.awake.port)
        try:
            while True:
                _, answer = await channel.request("GET", f"{BASE}/pubsub")
                self.positions.append(answer["position"])
                await asyncio.sleep(0.01)
        finally:
            channel.close()

    async def await_more(self, number: int) -> None:
        """Wait until so many more writes were acknowledged, and the last of them delivered."""
        await self.changes.await_more(number)
        head = self.awake.http.get("/pubsub").json()["head"]
        await wait(lambda: self.puller.newest >= head)

    async def drain(self) -> None:
        """Pull what is left."""

        def is_done() -> bool:
            relay, queue = (self.awake.http.get(path).json() for path in ("/pubsub", "/subscriptions/work"))
            return relay["position"] == relay["head"] and not queue["waiting"] + queue["inFlight"]

        self.puller.start()
        await asyncio.to_thread(await_state, is_done)
        await self.puller.stop()


async def freeze_again_and_again(fleet: Fleet, database: str) -> None:
    """Freeze the server whose relay publishes, again and again, and audit."""
    frozen = [await freeze_once(fleet, database) for _ in range(FREEZES)]
    await fleet.drain()
    again = await must_be_delivered(fleet, database)
    assert all(position > frozen[0].saved for position in again)
    assert len(again) <= FREEZES * BATCH
    assert max(each.seconds for each in frozen) < SOON
    seconds = ", ".join(f"{each.seconds:.2f} s" for each in frozen)
    print(f"\nfrozen {FREEZES} times: taken over after {seconds}; {len(again)} published twice")  # noqa: T201


class Freeze(Struct, frozen=True):
    """What was saved when a relay was frozen, and after how many seconds the other one had taken over."""

    saved: int
    seconds: float


async def freeze_once(fleet: Fleet, database: str) -> Freeze:
    """Freeze the server whose relay publishes, wait for the other one, and wake it."""
    holder, other = await fleet.find_holder()
    async with fleet.busy(other):
        await fleet.await_more(50)
        os.kill(holder.pid, signal.SIGSTOP)
        start, (saved, head) = time.monotonic(), await read_window(database)
        await wait(lambda: fleet.puller.newest > head)
        seconds = time.monotonic() - start
        assert is_publishing(other)
        os.kill(holder.pid, signal.SIGCONT)
        await asyncio.to_thread(await_state, lambda: not is_publishing(holder))
        await fleet.await_more(50)
        assert is_publishing(other)
    return Freeze(saved, seconds)


async def stop_the_holder(fleet: Fleet, database: str) -> None:
    """Stop the server whose relay publishes, in good order."""
    holder, other = await fleet.find_holder()
    async with fleet.busy(other):
        await fleet.await_more(50)
        assert await asyncio.to_thread(holder.stop) == 0
        start, (_, head) = time.monotonic(), await read_window(database)
        await wait(lambda: fleet.puller.newest > head)
        took = time.monotonic() - start
        await fleet.await_more(50)
    await fleet.drain()
    again = await must_be_delivered(fleet, database)
    assert not again, "what was published is saved before the lease is released"
    assert took < SOON
    print(f"\nstopped: taken over after {took:.3f} s, nothing published twice")  # noqa: T201


async def must_be_delivered(fleet: Fleet, database: str) -> set[int]:
    """Audit; return the positions of what was published twice."""
    faults = list(find_faults(fleet.puller, await expected_messages(database, "clusterEvents")))
    assert not faults, "\n".join(faults)
    assert all(before <= after for before, after in pairwise(fleet.positions)), "the position went back"
    return repeated(fleet.puller.deliveries)


async def read_window(database: str) -> tuple[int, int]:
    """Return the position that the relays have saved, and the head of the log."""
    statement = "select r.position, h.position from readers r, head h where r.name = 'relay'"
    ((saved, head),) = await query(database, statement)
    return saved, head


def is_publishing(server: Server) -> bool:
    """Tell whether the relay of a server holds the lease."""
    return _ACTIVE.search(server.http.get(f"{server.url}/metrics").text) is not None


async def wait(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.001)
