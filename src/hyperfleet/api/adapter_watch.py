"""Watching adapters: all of them, then those that changed, at most once a second.

What is told of adapters is a state, not a log: there is nothing to go on from, so whoever comes back gets all of them
again. However many watch, the store is asked once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.api.shapes import AdapterSummaryBody
from hyperfleet.api.streams import HEARTBEAT, QUIET, EventStream, Frames, frame
from hyperfleet.errors import StoreError, StoreUnavailable
from hyperfleet.ports import Scope, Store
from hyperfleet.services.tail import Tail

_INTERVAL: Final = 1.0  # seconds between looks …
_UNMOVED: Final = 10.0  # … and so many if nothing was written to a resource: a discarded report moves counters alone

Find = Callable[[Scope], Awaitable[tuple[AdapterSummaryBody, ...]]]
State = Mapping[str, bytes]  # name → what is told of it


class _Board(Struct, frozen=True):
    """What all adapters were at a moment, for those who may see the same."""

    state: State
    position: int
    made: float
    looked: float  # when it was last made sure that it still holds


class _Failure(Struct, frozen=True):
    """That a look failed, and when."""

    reason: str
    time: float


class AdapterWatch:
    """The state of all adapters, shared by everybody who watches them."""

    def __init__(self, store: Store, tail: Tail, find: Find) -> None:
        """Look with `find`, when the position of `store` has moved."""
        self._store = store
        self._tail = tail
        self._find = find
        self._boards: dict[Scope, _Board] = {}
        self._failure: _Failure | None = None
        self._looking = asyncio.Lock()

    async def watch(self, scope: Scope) -> EventStream:
        """Answer with all adapters, and with those that change."""
        state = await self._look(scope)  # now, so that what fails is answered as it should be
        return EventStream(self._tail, self._follow(scope, state))

    async def _follow(self, scope: Scope, state: State) -> Frames:
        time = asyncio.get_running_loop().time
        yield b"".join([*map(_added, state.values()), frame("synced", b"{}")])
        spoken = time()
        while not self._tail.is_closing:
            await self._tail.pause(_INTERVAL)
            before, state = state, await self._look_again(scope, state)
            frames = _tell_changes(before, state)
            if frames or time() >= spoken + QUIET:
                yield frames or HEARTBEAT
                spoken = time()

    async def _look_again(self, scope: Scope, known: State) -> State:
        try:
            return await self._look(scope)
        except StoreError:  # it will be back; until then nothing changes
            return known

    async def _look(self, scope: Scope) -> State:
        """Return the state of all adapters as it was within the last second."""
        async with self._looking:
            board, now = self._boards.get(scope), asyncio.get_running_loop().time()
            if board is None or now >= board.looked + _INTERVAL:
                board = await self._renew_or_fail(board, scope, now)
                self._boards = {scope: board} | self._others(scope, now)
            return board.state

    async def _renew_or_fail(self, board: _Board | None, scope: Scope, now: float) -> _Board:
        """Look; if that has just failed, do not: finding out takes seconds, and many may wait behind us."""
        if self._failure is not None and now < self._failure.time + _INTERVAL:
            raise StoreUnavailable(self._failure.reason)
        try:
            return await self._renew(board, scope, now)
        except StoreError as error:
            self._failure = _Failure(str(error), asyncio.get_running_loop().time())
            raise

    async def _renew(self, board: _Board | None, scope: Scope, now: float) -> _Board:
        position = await self._store.position()
        if board is not None and position == board.position and now < board.made + _UNMOVED:
            return replace(board, looked=now)
        found = {each.name: msgspec.json.encode(each) for each in await self._find(scope)}
        return _Board(found, position, now, now)

    def _others(self, scope: Scope, now: float) -> dict[Scope, _Board]:
        """Return what others look at; nobody has looked at the rest for a while."""
        return {key: each for key, each in self._boards.items() if key != scope and now < each.looked + _UNMOVED}


def _added(data: bytes) -> bytes:
    return frame("added", data)


def _tell_changes(before: State, after: State) -> bytes:
    if before is after:
        return b""
    changed = [
        frame("modified" if name in before else "added", data)
        for name, data in after.items()
        if data != before.get(name)
    ]
    gone = [frame("deleted", msgspec.json.encode({"name": name})) for name in before if name not in after]
    return b"".join([*changed, *gone])
