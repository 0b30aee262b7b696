"""Watching adapters: all of them first, then those that changed, at most once a second.

The stream carries state, not a log, so it cannot be resumed: a client that reconnects gets all adapters again. The
store is read once, no matter how many clients watch.
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
from hyperfleet.services.tail import LogTail

_INTERVAL: Final = 1.0  # seconds between reads; fast enough for a person who watches
# Seconds between reads while no resource was written. Discarded reports change counters without a write to the log.
_IDLE_INTERVAL: Final = 10.0

Find = Callable[[Scope], Awaitable[tuple[AdapterSummaryBody, ...]]]
State = Mapping[str, bytes]  # adapter name → its JSON


class _Snapshot(Struct, frozen=True):
    """All adapters at one moment, as callers of one scope see them."""

    state: State
    position: int
    read_at: float
    checked_at: float  # when it was last known to be current


class _Failure(Struct, frozen=True):
    """The last failed read."""

    reason: str
    time: float


class AdapterWatch:
    """The state of all adapters, shared by all watches."""

    def __init__(self, store: Store, tail: LogTail, find: Find) -> None:
        """Read with `find` when the position of `store` has moved."""
        self._store = store
        self._tail = tail
        self._find = find
        self._snapshots: dict[Scope, _Snapshot] = {}
        self._failure: _Failure | None = None
        self._reading = asyncio.Lock()

    async def watch(self, scope: Scope) -> EventStream:
        """Answer with all adapters, then with changes."""
        state = await self._read(scope)  # before the stream starts, so that an error gets a proper response
        return EventStream(self._tail, self._follow(scope, state))

    async def _follow(self, scope: Scope, state: State) -> Frames:
        time = asyncio.get_running_loop().time
        yield b"".join([*map(_added, state.values()), frame("synced", b"{}")])
        last_sent = time()
        while not self._tail.is_closing:
            await self._tail.pause(_INTERVAL)
            before, state = state, await self._read_or_keep(scope, state)
            frames = _write_changes(before, state)
            if frames or time() >= last_sent + QUIET:
                yield frames or HEARTBEAT
                last_sent = time()

    async def _read_or_keep(self, scope: Scope, known: State) -> State:
        try:
            return await self._read(scope)
        except StoreError:  # the store will be back; until then, keep the last state
            return known

    async def _read(self, scope: Scope) -> State:
        """Return the state of all adapters, at most one second old."""
        async with self._reading:
            snapshot, now = self._snapshots.get(scope), asyncio.get_running_loop().time()
            if snapshot is None or now >= snapshot.checked_at + _INTERVAL:
                snapshot = await self._refresh_or_fail(snapshot, scope, now)
                self._snapshots = {scope: snapshot} | self._others(scope, now)
            return snapshot.state

    async def _refresh_or_fail(self, snapshot: _Snapshot | None, scope: Scope, now: float) -> _Snapshot:
        """Read the store, unless that has just failed: a failing read takes seconds, and others wait behind it."""
        if self._failure is not None and now < self._failure.time + _INTERVAL:
            raise StoreUnavailable(self._failure.reason)
        try:
            return await self._refresh(snapshot, scope, now)
        except StoreError as error:
            self._failure = _Failure(str(error), asyncio.get_running_loop().time())
            raise

    async def _refresh(self, snapshot: _Snapshot | None, scope: Scope, now: float) -> _Snapshot:
        position = await self._store.position()
        if snapshot is not None and position == snapshot.position and now < snapshot.read_at + _IDLE_INTERVAL:
            return replace(snapshot, checked_at=now)
        found = {each.name: msgspec.json.encode(each) for each in await self._find(scope)}
        return _Snapshot(found, position, now, now)

    def _others(self, scope: Scope, now: float) -> dict[Scope, _Snapshot]:
        """Return the snapshots of other scopes that are still in use."""
        return {
            key: each
            for key, each in self._snapshots.items()
            if key != scope and now < each.checked_at + _IDLE_INTERVAL
        }


def _added(data: bytes) -> bytes:
    return frame("added", data)


def _write_changes(before: State, after: State) -> bytes:
    if before is after:
        return b""
    changed = [
        frame("modified" if name in before else "added", data)
        for name, data in after.items()
        if data != before.get(name)
    ]
    gone = [frame("deleted", msgspec.json.encode({"name": name})) for name in before if name not in after]
    return b"".join([*changed, *gone])
