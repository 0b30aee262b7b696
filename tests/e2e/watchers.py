"""Watchers that remember everything they were told, and a plain second opinion on what they should have been told.

They reconnect when a server is gone and, now and then, because they feel like it, after the last position or an
earlier one. The second opinion reads the log behind the server's back and looks at answers only, where the server
decides by tokens.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import httpx
from msgspec import Struct

from hyperfleet.ports import LoggedEvent
from tests.api.listening import Ear, Heard

Matches = Callable[[dict[str, Any]], bool]

_BASE: Final = "/api/hyperfleet/v1"
_PAUSE: Final = 0.02  # seconds after a failure
_PATIENCE: Final = 60.0  # seconds


class Told(Struct, frozen=True):
    """One event as a watcher was told it."""

    position: int
    event: str
    data: dict[str, Any]


class View(Struct, frozen=True):
    """What a watcher asks for, and how the second opinion sees the same."""

    path: str
    kind: str
    matches: Matches


class Watcher:
    """Somebody who watches, through whatever happens to servers and connections."""

    def __init__(self, view: View, ports: Callable[[], Sequence[int]], seed: str) -> None:
        """Ask for the ports whenever a connection is made: servers that are started again have others."""
        self.view = view
        self.first: int | None = None  # the position of the state that the first list told
        self.state: dict[str, Any] = {}  # that state
        self.told: list[Told] = []
        self.position = 0  # after which to go on
        self.faults: list[str] = []
        self.connections = 0
        self._ports = ports
        self._chance = random.Random(seed)
        self._seen: dict[int, Told] = {}  # everything ever told, also what was given up again
        self._is_settled = False
        self._is_stopping = False

    def settle(self) -> None:
        """Forget nothing any more."""
        self._is_settled = True

    def stop(self) -> None:
        """Do not connect again."""
        self._is_stopping = True

    async def run(self) -> None:
        """Watch until told to stop."""
        async with httpx.AsyncClient(timeout=_PATIENCE) as client:
            while not self._is_stopping:
                patience = self._chance.choice([0.05, 0.3, 1.0, _PATIENCE])  # until it feels like reconnecting
                try:
                    async with asyncio.timeout(patience):
                        await self._listen(client)
                except TimeoutError:
                    self._go_back()
                except (httpx.HTTPError, OSError):
                    await asyncio.sleep(_PAUSE)

    def _go_back(self) -> None:
        """Now and then forget what was told last, so that it must be told again."""
        if self.told and not self._is_settled and self._chance.random() < 0.3:
            self.position = self._chance.choice(self.told).position
            self.told = [each for each in self.told if each.position <= self.position]

    async def _listen(self, client: httpx.AsyncClient) -> None:
        address = f"http://127.0.0.1:{self._chance.choice(self._ports())}{_BASE}{self.view.path}"
        headers = {} if self.first is None else {"Last-Event-ID": str(self.position)}
        listed: list[Heard] | None = [] if self.first is None else None
        ear = Ear()
        async with client.stream("GET", address, headers=headers) as response:
            response.raise_for_status()
            self.connections += 1
            async for piece in response.aiter_raw():
                for heard in ear.take(piece):
                    if listed is None:
                        self._note(heard)
                    elif heard.event == "synced":
                        self._begin(listed, heard)
                        listed = None
                    else:
                        listed.append(heard)

    def _begin(self, listed: Iterable[Heard], synced: Heard) -> None:
        """Take a list for the state of its position."""
        for each in listed:
            if each.event in ("added", "modified"):
                self.state[each.data["id"]] = each.data
            elif each.event == "deleted":
                self.state.pop(each.data["id"], None)
        self.first = self.position = synced.id or 0

    def _note(self, heard: Heard) -> None:
        if not heard.event:
            return
        if heard.id is None or heard.event not in ("added", "modified", "deleted", "bookmark"):
            self.faults.append(f"strange: {heard}")
            return
        if heard.event != "bookmark":
            told = Told(heard.id, heard.event, heard.data)
            if heard.id <= self.position:
                self.faults.append(f"{heard.id} was told after {self.position}")
            if self._seen.setdefault(heard.id, told) != told:
                self.faults.append(f"{heard.id} was told twice, and differently")
            self.told.append(told)
        self.position = max(heard.id, self.position)


def expect(view: View, log: Iterable[LoggedEvent]) -> list[Told]:
    """Say what somebody must be told of a log that is complete: by looking at each answer and the one before it."""
    before: dict[str, dict[str, Any]] = {}
    told = []
    for entry in log:
        if entry.kind != view.kind:
            continue
        old = before.pop(entry.resource_id, None)
        new = json.loads(entry.answer) if entry.answer is not None else None
        if new is not None:
            before[entry.resource_id] = new
        was, is_now = old is not None and view.matches(old), new is not None and view.matches(new)
        if is_now and new is not None:
            told.append(Told(entry.position, "modified" if was else "added", new))
        elif was and old is not None:
            told.append(Told(entry.position, "deleted", _farewell(old, new)))
    return told


def _farewell(old: dict[str, Any], new: dict[str, Any] | None) -> dict[str, Any]:
    words = {"id": old["id"], "type": old["type"], "href": old["href"]}
    return {**words, "reason": "Removed"} if new is None else {**words, "reason": "NoLongerMatches", "object": new}


def find_faults(watcher: Watcher, log: Sequence[LoggedEvent]) -> list[str]:
    """Compare what a watcher was told with what it should have been told: all of it, in order, once, nothing else."""
    expected, first = expect(watcher.view, log), watcher.first
    if first is None:
        return [f"{watcher.view.path}: it never got a whole list"]
    faults = [f"{watcher.view.path}: {fault}" for fault in watcher.faults]
    state: dict[str, Any] = {}
    for each in (told for told in expected if told.position <= first):
        state.pop(each.data["id"], None)
        state |= {each.data["id"]: each.data} if each.event != "deleted" else {}
    if state != watcher.state:
        faults.append(f"{watcher.view.path}: the list at {first} was not the state at {first}")
    due = [each for each in expected if each.position > first]
    if watcher.told != due:
        missing = [each.position for each in due if each not in watcher.told][:5]
        surplus = [each.position for each in watcher.told if each not in due][:5]
        faults.append(f"{watcher.view.path}: not told of {missing}, told of {surplus}; {len(due)} were due")
    return faults
