"""`python -m bench tracing`: the processor time of a request without and with traces, and with the access log.

Without sockets and on the store in memory, so that little else is measured. Of many short blocks the quickest counts:
whatever else the machine does only adds to it. What the thread takes that sends spans away is not in it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from starlette.types import ASGIApp, Message

from bench.load.fleet import ADAPTERS, report_of
from bench.load.profile import Request
from hyperfleet import logs
from hyperfleet.api.wire import BASE
from hyperfleet.bootstrap import System
from hyperfleet.settings import Settings
from hyperfleet.settings.tree import TracingSettings
from tests.e2e.collector import collecting

_BLOCKS: Final = 60
_REQUESTS: Final = 50  # in a block


def main(options: Sequence[str]) -> None:
    """Measure, and print the table; the access log is on stderr."""
    if options:
        sys.exit("this measurement has no options")
    logs.configure("info", "json")
    print("| µs | GET one | heartbeat |\n|---|---|---|")
    with collecting() as collector:
        ways = {
            "off": Settings(database="memory:"),
            "traced, none": _traced(collector.url, 0.0),
            "traced, 1 of 10": _traced(collector.url, 0.1),
            "traced, every one": _traced(collector.url, 1.0),
            "access log": Settings(database="memory:", access_log=True),
        }
        for name, settings in ways.items():
            reading, writing = asyncio.run(_measure(settings))
            print(f"| {name} | {reading:.0f} | {writing:.0f} |", flush=True)


def _traced(url: str, ratio: float) -> Settings:
    return Settings(database="memory:", tracing=TracingSettings(endpoint=url, sample_ratio=ratio))


async def _measure(settings: Settings) -> tuple[float, float]:
    """Return what reading a cluster takes, and what a heartbeat takes that comes alone."""
    system = System(settings)
    await system.start()
    created = await _ask(system.app, "POST", f"{BASE}/clusters", {"name": "one", "spec": {}})
    path, report = f"{BASE}/clusters/{msgspec.json.decode(created)['id']}", report_of(ADAPTERS[0])
    found = (
        await _time(system.app, "GET", path),
        await _time(system.app, "POST", f"{path}/statuses", report),
    )
    await system.stop()
    return found


async def _time(app: ASGIApp, method: str, path: str, body: Any = None) -> float:
    """Return the microseconds of one request in the quickest block."""
    blocks = []
    for _ in range(_BLOCKS):
        start = time.thread_time()
        for _ in range(_REQUESTS):
            await _ask(app, method, path, body)
        blocks.append((time.thread_time() - start) / _REQUESTS * 1e6)
    return min(blocks)


async def _ask(app: ASGIApp, method: str, path: str, body: Any = None) -> bytes:
    """Send a request as a server does; return the body of the answer."""
    raw = b"" if body is None else msgspec.json.encode(body)
    answer = b""
    peers = {"client": ("127.0.0.1", 40_000), "server": ("127.0.0.1", 8_000)}  # traces and the access log tell them

    async def receive() -> Message:
        return {"type": "http.request", "body": raw, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal answer
        answer += message.get("body", b"")

    await app({**Request(method, path, raw).scope(), **peers}, receive, send)
    return answer
