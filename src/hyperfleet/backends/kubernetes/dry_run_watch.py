"""What changed in the cluster of a dry run, and who follows it."""

from __future__ import annotations

import asyncio
import copy
import time
from collections import deque
from collections.abc import AsyncGenerator
from typing import Final

from msgspec import Struct

from hyperfleet.errors import ObjectInvalid, VersionExpired
from hyperfleet.kubernetes.port import EventType, KubernetesObject, ObjectKind, Selection, WatchEvent
from hyperfleet.services.selectors import Requirement, parse_selector

_KEPT: Final = 10_000  # changes; a watcher that is further behind lists again


class ObjectChange(Struct, frozen=True):
    """One change: the object before it, after it (None: it is gone), and as it was last."""

    before: KubernetesObject | None
    after: KubernetesObject | None
    last: KubernetesObject


class Matcher:
    """Tells which objects a selection has."""

    def __init__(self, selection: Selection) -> None:
        """Read the selector."""
        self._selection: Final = selection
        self._requirements, faults = parse_selector(selection.labels) if selection.labels else ([], [])
        if faults:
            raise ObjectInvalid(f"the selector {selection.labels}: {faults[0].message}", status=400)

    @property
    def kind(self) -> ObjectKind:
        """Return the kind that is selected."""
        return self._selection.kind

    def matches(self, found: KubernetesObject | None) -> bool:
        """Tell whether an object is selected."""
        if found is None or ObjectKind.of(found) != self._selection.kind:
            return False
        metadata = found["metadata"]
        labels = metadata.get("labels") or {}
        is_inside = not self._selection.namespace or metadata.get("namespace") in (self._selection.namespace, None)
        return is_inside and all(_is_met(each, labels) for each in self._requirements)

    def event_of(self, change: ObjectChange) -> EventType | None:
        """Return what a change is for a watcher; None: nothing."""
        was, remains = self.matches(change.before), self.matches(change.after)
        if remains:
            return "modified" if was else "added"
        return "deleted" if was else None


def _is_met(requirement: Requirement, labels: dict[str, str]) -> bool:
    key, values = requirement.key.text, {value.text for value in requirement.values}
    match requirement.operator:
        case "in":
            return labels.get(key) in values
        case "notin":
            return labels.get(key) not in values
        case "exists":
            return key in labels
        case "absent":
            return key not in labels


class ChangeLog:
    """The last changes, numbered by version."""

    def __init__(self) -> None:
        self.version = 0
        self._changes: Final[deque[ObjectChange]] = deque(maxlen=_KEPT)
        self._changed = asyncio.Event()

    def append(self, change: ObjectChange) -> None:
        """Add a change, which has the next version; wake the watchers."""
        self.version += 1
        self._changes.append(change)
        self._changed.set()
        self._changed = asyncio.Event()

    def forget(self) -> None:
        """Drop all changes."""
        self._changes.clear()

    async def follow(self, matcher: Matcher, version: str, seconds: int) -> AsyncGenerator[WatchEvent, None]:
        """Yield the changes after a version, and those to come, for some time; then a bookmark."""
        position = _read_version(version)
        end = time.monotonic() + seconds
        while True:
            changed = self._changed
            for change in self._after(position):
                position += 1
                if kind := matcher.event_of(change):
                    yield WatchEvent(kind, copy.deepcopy(change.after or change.last), str(position))
            try:
                await asyncio.wait_for(changed.wait(), end - time.monotonic())
            except TimeoutError:
                break
        bookmark = {"apiVersion": matcher.kind.api_version, "kind": matcher.kind.kind}
        yield WatchEvent("bookmark", {**bookmark, "metadata": {"resourceVersion": str(position)}}, str(position))

    def _after(self, position: int) -> list[ObjectChange]:
        oldest = self.version - len(self._changes)
        if position < oldest:
            raise VersionExpired(f"too old resource version: {position} ({oldest})", status=410)
        return list(self._changes)[position - oldest :]


def _read_version(version: str) -> int:
    if not version.isdecimal():
        raise ObjectInvalid(f"{version!r} is not a resource version", status=400)
    return int(version)
