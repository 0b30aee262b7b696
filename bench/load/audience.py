"""Many watchers in a process of their own, as plain sockets that count what they hear.

`python -m bench.load.audience PORT WATCHERS SECONDS` connects, says `ready`, waits for a line, listens for so long and
writes what it heard. A few of them look at each event: how long ago the server wrote it, by the clock of the machine.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct, field

PATH: Final = "/api/hyperfleet/v1/clusters?watch=true&fields=name,status"

_ATTENTIVE: Final = 10  # watchers who look at times; the others only count
_EVENT: Final = b"\nid: "
_TIME: Final = re.compile(rb'\],"lastUpdated":"([^"]+)"')  # that of the status, which follows the list of adapters


class Heard(Struct):
    """What an audience heard."""

    watchers: int = 0  # who heard something
    events: int = 0
    delays: list[float] = field(default_factory=list)  # seconds

    def delay(self, share: float) -> float:
        """Return the delay in milliseconds that so large a share of events had at most."""
        ordered = sorted(self.delays)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] * 1e3 if ordered else 0.0


class _Watcher:
    def __init__(self, *, is_attentive: bool) -> None:
        self.events = 0
        self.delays: list[float] = []
        self._is_attentive = is_attentive
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]

    async def connect(self, port: int) -> None:
        """Read the initial list."""
        reader, writer = self._streams = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
        writer.write(f"GET {PATH} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
        await reader.readuntil(b"event: synced\n")

    async def listen(self) -> None:
        """Count what comes; an event that two pieces share counts with the second."""
        rest = b""
        while piece := await self._streams[0].read(2**18):
            now = time.time()
            events, end, rest = (rest + piece).rpartition(b"\n\n")
            self.events += events.count(_EVENT)
            if self._is_attentive:
                self.delays += [now - _read_time(found) for found in _TIME.findall(events + end)]


def _read_time(text: bytes) -> float:
    return datetime.fromisoformat(text.decode()).timestamp()


async def _attend(port: int, number: int, seconds: float) -> Heard:
    watchers = [_Watcher(is_attentive=place < _ATTENTIVE) for place in range(number)]
    for start in range(0, number, 20):  # a few at once: a list for everybody takes a while
        await asyncio.gather(*(watcher.connect(port) for watcher in watchers[start : start + 20]))
    tasks = [asyncio.create_task(watcher.listen()) for watcher in watchers]
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    before = [watcher.events for watcher in watchers]
    await asyncio.sleep(seconds)
    heard = [watcher.events - then for watcher, then in zip(watchers, before, strict=True)]
    for task in tasks:
        task.cancel()
    delays = [delay for watcher in watchers for delay in watcher.delays]
    return Heard(sum(each > 0 for each in heard), sum(heard), delays)


if __name__ == "__main__":
    found = asyncio.run(_attend(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
    sys.stdout.buffer.write(msgspec.json.encode(found))
