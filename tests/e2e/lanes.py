"""Adapters that report and remember what they were told: the load of the crash and concurrency tests.

A lane is one adapter of one cluster. It numbers its reports and sends one after the other, so what must be stored at
any time follows from what it remembers. As `python -m tests.e2e.lanes` it is a process with many of them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct, field

BASE: Final = "/api/hyperfleet/v1"
_PAUSE: Final = 0.02  # seconds after a failure, so that nobody hammers a server that is away


class LostError(Exception):
    """No answer came: what was sent may have been done or not."""


class Channel:
    """A connection that is kept and made anew when it breaks; as little HTTP as these tests need."""

    def __init__(self, port: Callable[[], int]) -> None:
        """Ask for the port whenever a connection is made: a server that was started again has another one."""
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send a request; return the status and the decoded body of the answer."""
        content = b"" if body is None else msgspec.json.encode(body)
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n"
        try:
            reader, writer = self._streams or await self._connect()
            writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + content)
            return await _read_answer(reader)
        except (OSError, EOFError) as error:
            self.close()
            raise LostError from error

    def close(self) -> None:
        """Let go of the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self._streams = await asyncio.open_connection("127.0.0.1", self._port())
        return self._streams


async def _read_answer(reader: asyncio.StreamReader) -> tuple[int, Any]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    _, _, length = head.partition("content-length:")
    content = await reader.readexactly(int(length.split("\r\n", 1)[0]))
    return int(head.split(" ", 2)[1]), msgspec.json.decode(content)


class Acknowledged(Struct, frozen=True):
    """A report that the server said it keeps."""

    number: int
    outcome: str
    report_id: str
    observed_time: datetime


class Lane(Struct):
    """One adapter of one cluster: the number of its last report, and what became of each."""

    cluster: str
    adapter: str
    sent: int = 0
    acknowledged: list[Acknowledged] = field(default_factory=list)
    answers: dict[int, int] = field(default_factory=dict)  # how many, by status; 0: none came

    @property
    def last(self) -> int:
        """Return the number of the last report that was acknowledged."""
        return self.acknowledged[-1].number if self.acknowledged else 0

    async def report(self, channel: Channel) -> None:
        """Send the next report and remember the answer."""
        self.sent += 1
        observed = datetime.now(UTC)
        body = {**report_body(self.adapter, self.sent), "observedTime": observed}
        try:
            status, answer = await channel.request("POST", f"{BASE}/clusters/{self.cluster}/statuses", body)
        except LostError:
            status = 0
        self.answers[status] = self.answers.get(status, 0) + 1
        if status == 200:
            (outcome,) = answer["outcomes"]
            self.acknowledged.append(Acknowledged(self.sent, outcome["outcome"], outcome["reportId"], observed))
        else:
            await asyncio.sleep(_PAUSE)


def words_of(number: int) -> int:
    """Return the number of the report whose words a report has: every other one is a heartbeat of the one before."""
    return number - (number + 1) % 2


def report_body(adapter: str, number: int) -> dict[str, Any]:
    """Make a report whose verdict changes now and then, and its health too."""
    number = words_of(number)
    beat = number + len(adapter)  # adapters do not change their minds all at once
    conditions = {
        "Available": "True" if beat // 3 % 2 else "False",
        "Applied": "True",
        "Health": "False" if beat % 11 == 10 else "True",
    }
    return {
        "adapter": adapter,
        "observedGeneration": 1,
        "conditions": [
            {"type": type_, "status": status, "reason": f"{type_}{status}", "message": f"report {number}"}
            for type_, status in conditions.items()
        ],
        "data": {"n": number},
    }


class Traffic:
    """Lanes that report without end, each over a channel of its own, until they are told to stop."""

    def __init__(self, lanes: Sequence[Lane], port: Callable[[], int]) -> None:
        """Send to whoever listens at the port."""
        self.lanes = lanes
        self._channels = [Channel(port) for _ in lanes]
        self._tasks: list[asyncio.Task[None]] = []
        self._is_stopping = False

    @property
    def acknowledged(self) -> int:
        """Return how many reports were acknowledged."""
        return sum(len(lane.acknowledged) for lane in self.lanes)

    def start(self) -> None:
        """Set the lanes going."""
        self._is_stopping = False
        pairs = zip(self.lanes, self._channels, strict=True)
        self._tasks = [asyncio.create_task(self._run(lane, channel)) for lane, channel in pairs]

    async def stop(self) -> None:
        """Wait until every lane has its last answer, or has lost it."""
        self._is_stopping = True
        await asyncio.gather(*self._tasks)
        for channel in self._channels:
            channel.close()

    async def _run(self, lane: Lane, channel: Channel) -> None:
        while not self._is_stopping:
            await lane.report(channel)


class Plan(Struct, frozen=True):
    """What one process sends: each adapter goes over all clusters, `rounds` times, with so many requests at once.

    The reports of one lane go to the servers in turn.
    """

    ports: list[int]
    adapters: list[str]
    clusters: list[str]
    rounds: int
    at_once: int = 1


async def follow(plan: Plan) -> list[Lane]:
    """Carry out a plan."""
    by_adapter = [[Lane(cluster, adapter) for cluster in plan.clusters] for adapter in plan.adapters]
    await asyncio.gather(*(_go_over(lanes, plan) for lanes in by_adapter))
    return [lane for lanes in by_adapter for lane in lanes]


async def _go_over(lanes: Sequence[Lane], plan: Plan) -> None:
    channels = [[Channel(partial(int, port)) for port in plan.ports] for _ in range(plan.at_once)]
    for _ in range(plan.rounds):
        ahead = iter(lanes)
        await asyncio.gather(*(_walk(ahead, own, place) for place, own in enumerate(channels)))
    for channel in (channel for own in channels for channel in own):
        channel.close()


async def _walk(ahead: Iterator[Lane], channels: Sequence[Channel], place: int) -> None:
    """Take the next lane as long as there is one; neither a lane nor a walker keeps to one server."""
    for lane in ahead:
        await lane.report(channels[(lane.sent + place) % len(channels)])


if __name__ == "__main__":
    followed = asyncio.run(follow(msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)))
    sys.stdout.buffer.write(msgspec.json.encode(followed))
