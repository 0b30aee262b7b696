"""Reading server-sent events in tests: what a stream says, taken apart, and a connection without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import msgspec
from msgspec import Struct
from starlette.types import Message

from hyperfleet.api.wire import BASE
from tests.api.fleet import Fleet

PATIENCE = 20.0  # seconds until something that must happen counts as not happening


class Heard(Struct, frozen=True):
    """One event of a stream; comments have no name."""

    event: str
    id: int | None
    data: Any


class Ear:
    """Takes a stream of server-sent events apart, however it is cut into pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, piece: bytes) -> list[Heard]:
        """Return the events that are complete now."""
        *blocks, self._rest = (self._rest + piece).split(b"\n\n")
        return [_read(block) for block in blocks]


def _read(block: bytes) -> Heard:
    fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if not line.startswith(":"))
    assert set(fields) <= {"event", "id", "data"}, block
    if not fields:
        return Heard("", None, None)
    return Heard(fields["event"], int(fields["id"]) if "id" in fields else None, msgspec.json.decode(fields["data"]))


class Connection:
    """A request whose answer is read little by little. Time passes for the server only while somebody waits here."""

    def __init__(
        self,
        client: Fleet,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        is_reading: bool = True,
        is_answered: bool = True,  # soon; or else it may take what the test does next
    ) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.heard: list[Heard] = []
        self.is_over = False
        self._client = client
        self._ear = Ear()
        self._is_left = asyncio.Event()
        self._has_more = asyncio.Event()
        self._task: asyncio.Task[None]
        self._is_asked = False
        self._may_send = asyncio.Event()
        self._is_answered = is_answered
        if is_reading:
            self._may_send.set()
        path, _, query = path.partition("?")
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "path": BASE + path,
            "raw_path": (BASE + path).encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
            "client": ("127.0.0.1", 1),
            "server": ("fleet", 80),
        }

    def __enter__(self) -> Self:
        """Send the request."""
        self._client.run(self._begin())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Hang up."""
        self._client.run(self.leave())

    def wait_for(self, holds: Callable[[], bool]) -> None:
        """Read until something is so."""
        self._client.run(self._wait_for(holds))

    def take(self, number: int) -> list[Heard]:
        """Return the next events, so many of them; comments and bookmarks do not count."""
        self.wait_for(lambda: len(self._news()) >= number)
        news = self._news()[:number]
        last = next(place for place, each in enumerate(self.heard) if each is news[-1])
        self.heard = self.heard[last + 1 :]
        return news

    def take_list(self) -> list[Heard]:
        """Return the events up to the end of the initial list, its mark included."""
        self.wait_for(lambda: any(each.event == "synced" for each in self.heard))
        place = [each.event for each in self.heard].index("synced")
        taken, self.heard = self.heard[: place + 1], self.heard[place + 1 :]
        return [each for each in taken if each.event]

    def begin_reading(self) -> None:
        """Take what was left in the pipe, so that the server had to wait."""
        self._may_send.set()

    async def leave(self) -> None:
        """Hang up, and wait until the server has noticed."""
        self._is_left.set()
        async with asyncio.timeout(PATIENCE):
            await self._task

    def _news(self) -> list[Heard]:
        return [each for each in self.heard if each.event not in ("", "bookmark")]

    async def _begin(self) -> None:
        self._task = asyncio.create_task(self._serve())
        if self._is_answered:
            await self._wait_for(lambda: self.status != 0)
        else:
            await asyncio.sleep(0.01)

    async def _serve(self) -> None:
        await self._client.app(self._scope, self._receive, self._send)

    async def _wait_for(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                assert not self.is_over, (self.status, self.body)
                assert not self._task.done(), self._task.exception()
                self._has_more.clear()
                await self._has_more.wait()

    async def _receive(self) -> Message:
        if not self._is_asked:
            self._is_asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._is_left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            await self._may_send.wait()
            self.body += message["body"]
            self.heard += self._ear.take(message["body"]) if "event-stream" in self.headers["content-type"] else []
            self.is_over = not message.get("more_body", False)
        self._has_more.set()
