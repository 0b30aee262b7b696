"""Follows the objects of one selection: a local copy that is current within moments, and a call for every change.

The adapter framework and the operator use it, through `SharedInformers`: one informer for each selection of a cluster,
however many ask for it. It lists once, then watches, and resumes when a watch ends or breaks. When the server no longer
has the changes in between, it lists again and reports the differences, so no change of an object is missed for good;
several changes of one object in that time are one.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from hyperfleet.errors import KubernetesError, KubernetesUnreachable, VersionExpired
from hyperfleet.kubernetes.port import (
    WATCH_SECONDS,
    KubernetesObject,
    ObjectClient,
    ObjectRef,
    Selection,
    WatchEvent,
)

_log: Final = logging.getLogger(__name__)

_FIRST_PAUSE: Final = 0.2  # seconds after a failure; doubled after each further one
_LONGEST_PAUSE: Final = 30.0  # an API server that was away is followed again within this time


class Change(Struct, frozen=True):
    """An object before and after a change; None: it was not there, or is gone."""

    ref: ObjectRef
    before: KubernetesObject | None
    after: KubernetesObject | None


Handler = Callable[[Change], None]


class Informer:
    """A local copy of the selected objects. Nobody may change the objects that it gives."""

    def __init__(self, client: ObjectClient, selection: Selection, *, seconds: int = WATCH_SECONDS) -> None:
        """Follow nothing yet: `run` does. `seconds` is the longest time of one watch."""
        self.selection: Final = selection
        self.error: KubernetesError | None = None  # why the copy is not current now
        self._client: Final = client
        self._seconds: Final = seconds
        self._objects: Final[dict[ObjectRef, KubernetesObject]] = {}
        self._handlers: Final[list[Handler]] = []
        self._version: str | None = None  # up to which we know everything; None: list first
        self._synced: Final = asyncio.Event()

    @property
    def is_synced(self) -> bool:
        """Tell whether the objects were listed at least once."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return when the objects were listed at least once."""
        await self._synced.wait()

    def get(self, ref: ObjectRef) -> KubernetesObject | None:
        """Return an object as we last saw it."""
        return self._objects.get(ref)

    def items(self) -> list[KubernetesObject]:
        """Return all objects as we last saw them."""
        return list(self._objects.values())

    def add_handler(self, handler: Handler) -> None:
        """Call a function for every object that is there, and for every change from now on. It must be quick."""
        self._handlers.append(handler)
        for ref, found in list(self._objects.items()):
            _call(handler, Change(ref, None, found))

    def remove_handler(self, handler: Handler) -> None:
        """Call a function no more."""
        self._handlers.remove(handler)

    async def run(self) -> None:
        """Follow the objects until cancelled."""
        failures = 0
        while True:
            started = self._version
            error = await self._follow()
            has_progressed = started is not None and started != self._version
            if error is None or has_progressed:
                failures = 0
            if error is not None:
                self._note(error)
                failures += 1
            await asyncio.sleep(_pause(failures, error))

    async def _follow(self) -> KubernetesError | None:
        """List if need be, and watch until the watch ends; return why it ended, None: in good order."""
        try:
            if self._version is None:
                await self._list()
            await self._watch(self._version or "")
        except KubernetesError as error:
            return error
        except Exception as error:  # noqa: BLE001  # a mistake of ours must not end the loop unnoticed
            _log.exception("following %s failed", self.selection)
            return KubernetesError(f"{type(error).__name__}: {error}", status=0)
        return None

    async def _list(self) -> None:
        """Replace the copy, and report what differs."""
        found = await self._client.list(self.selection)
        current = {ObjectRef.of(each): each for each in found.items}
        for ref in self._objects.keys() - current.keys():
            self._replace(ref, None)
        for ref, each in current.items():
            self._replace(ref, each)
        self._version = found.version
        self._recover()
        self._synced.set()

    async def _watch(self, version: str) -> None:
        """Apply changes until the watch ends."""
        async with self._client.watch(self.selection, version, seconds=self._seconds) as events:
            self._recover()
            async for event in events:
                self._take(event)

    def _take(self, event: WatchEvent) -> None:
        if event.type != "bookmark":
            self._replace(ObjectRef.of(event.object), None if event.type == "deleted" else event.object)
        self._version = event.version

    def _replace(self, ref: ObjectRef, after: KubernetesObject | None) -> None:
        before = self._objects.pop(ref, None)
        if after is not None:
            self._objects[ref] = after
        if before is None and after is None:
            return
        if before is None or after is None or _version_of(before) != _version_of(after):
            for handler in list(self._handlers):
                _call(handler, Change(ref, before, after))

    def _note(self, error: KubernetesError) -> None:
        """Log the first failure. An answer of the server means that it may not accept our version: list again."""
        if self.error is None and not isinstance(error, VersionExpired):
            _log.warning("%s cannot be followed: %s", self.selection, error)
        self.error = error
        if error.status is not None:
            self._version = None

    def _recover(self) -> None:
        if self.error is not None:
            _log.info("%s is followed again", self.selection)
        self.error = None


class SharedInformers:
    """The informers of one cluster: one for each selection, for as long as somebody uses it."""

    def __init__(self, client: ObjectClient) -> None:
        """Use a client, which the caller closes after `close`."""
        self._client: Final = client
        self._running: Final[dict[Selection, _Running]] = {}

    def follow(self, selection: Selection, handler: Handler | None = None) -> Informer:
        """Return the informer of a selection, which runs; call `release` with the same arguments when done."""
        if selection not in self._running:
            informer = Informer(self._client, selection)
            task = asyncio.get_running_loop().create_task(informer.run(), name=f"informer: {selection}")
            self._running[selection] = _Running(informer, task)
        running = self._running[selection]
        running.users += 1
        if handler is not None:
            running.informer.add_handler(handler)
        return running.informer

    async def release(self, selection: Selection, handler: Handler | None = None) -> None:
        """Stop the informer of a selection if this was its last user."""
        running = self._running[selection]
        if handler is not None:
            running.informer.remove_handler(handler)
        running.users -= 1
        if running.users == 0:
            del self._running[selection]
            await _stop([running.task])

    def informers(self) -> list[Informer]:
        """Return all informers that run: health checks look at their errors."""
        return [running.informer for running in self._running.values()]

    async def close(self) -> None:
        """Stop all informers."""
        tasks = [running.task for running in self._running.values()]
        self._running.clear()
        await _stop(tasks)


class _Running(Struct):
    informer: Informer
    task: asyncio.Task[None]
    users: int = 0


async def _stop(tasks: Iterable[asyncio.Task[None]]) -> None:
    stopped = list(tasks)
    for task in stopped:
        task.cancel()
    await asyncio.gather(*stopped, return_exceptions=True)


def _call(handler: Handler, change: Change) -> None:
    """Call a handler; its mistakes must not stop the others, nor the informer."""
    try:
        handler(change)
    except Exception:  # noqa: BLE001  # it is not our code
        _log.exception("a handler of changes of %s failed", change.ref)


def _pause(failures: int, error: KubernetesError | None) -> float:
    """Return how long to wait, with jitter: all clients of an API server lose it at the same time.

    Also a watch that ended in good order is followed by a short pause: a proxy may end each of them at once.
    """
    longest: float = min(_FIRST_PAUSE * 2 ** min(max(failures - 1, 0), 10), _LONGEST_PAUSE)
    asked = error.retry_after or 0.0 if isinstance(error, KubernetesUnreachable) else 0.0
    return max(longest * random.uniform(0.5, 1), min(asked, _LONGEST_PAUSE))  # noqa: S311 - not a secret


def _version_of(found: KubernetesObject) -> str:
    return str(found["metadata"].get("resourceVersion", ""))
