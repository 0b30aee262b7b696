"""Making a resource what somebody wants it to be, whatever it is now: `apply` and `label`. Flows of both faces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

from hyperfleet.client.answers.resource import Applied, R, Resource
from hyperfleet.client.effects import Flow
from hyperfleet.client.errors import Conflict, ProblemDocument

_TRIES: Final = 5  # against others who write to the same resource at the same time


class Wanted(Struct, frozen=True):
    """What a resource shall be; without labels it keeps those that it has."""

    name: str
    spec: Mapping[str, Any]
    labels: Mapping[str, str] | None = None


class Desk(Protocol[R]):
    """The steps that are needed, for resources of one kind below one parent."""

    def find(self, name: str) -> Flow[tuple[R, ...]]:
        """Return those with a name."""
        ...

    def read(self, path: str) -> Flow[R]:
        """Read one."""
        ...

    def create(self, wanted: Wanted) -> Flow[R]:
        """Create one."""
        ...

    def replace(self, present: R, spec: Mapping[str, Any], labels: Mapping[str, str]) -> Flow[R]:
        """Replace one that is still what we know; raise `Conflict` if it is not."""
        ...


def apply(desk: Desk[R], wanted: Wanted, *, dry_run: bool = False) -> Flow[Applied[R]]:
    """Create a resource, or make the one with its name so; begin again if somebody else was faster."""
    for attempt in range(_TRIES):
        found = yield from desk.find(wanted.name)
        present = next((each for each in found if each.name == wanted.name and not each.is_deleting), None)
        try:
            return (yield from _apply_once(desk, wanted, present, dry_run=dry_run))
        except Conflict as error:
            if error.code not in ("NameTaken", "GenerationConflict", "BeingDeleted") or attempt == _TRIES - 1:
                raise
    raise AssertionError("every attempt returns or raises")


def _apply_once(desk: Desk[R], wanted: Wanted, present: R | None, *, dry_run: bool) -> Flow[Applied[R]]:
    if present is None:
        return Applied("created", None if dry_run else (yield from desk.create(wanted)))
    labels = present.labels if wanted.labels is None else wanted.labels
    if is_so(present, wanted.spec, labels):
        return Applied("unchanged", present)
    if dry_run:
        return Applied("configured", present)
    return Applied("configured", (yield from desk.replace(present, wanted.spec, labels)))


def label(desk: Desk[R], path: str, labels: Mapping[str, str | None], *, overwrite: bool) -> Flow[R]:
    """Set and take away labels of a resource, and leave everything else as it is."""
    for attempt in range(_TRIES):
        present = yield from desk.read(path)
        after = _merge(present, labels, overwrite=overwrite)
        if after == present.labels:
            return present
        try:
            return (yield from desk.replace(present, present.spec, after))
        except Conflict as error:
            if error.code != "GenerationConflict" or attempt == _TRIES - 1:
                raise
    raise AssertionError("every attempt returns or raises")


def is_so(present: Resource, spec: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Tell whether a resource is what it shall be."""
    return present.spec == spec and present.labels == labels


def _merge(present: Resource, labels: Mapping[str, str | None], *, overwrite: bool) -> dict[str, str]:
    taken = [key for key, value in labels.items() if value is not None and present.labels.get(key, value) != value]
    if taken and not overwrite:
        told = ", ".join(f"{key}={present.labels[key]}" for key in taken)
        detail = f"{present.name or present.id} has {told} already; overwrite it, or leave it out"
        raise Conflict(ProblemDocument(title="A label has another value", detail=detail, status=409, code="LabelTaken"))
    merged = {**present.labels, **labels}
    return {key: value for key, value in merged.items() if value is not None}
