"""`apply` and `label`: bring a resource into a desired state, whatever its present one. Flows of both faces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

from hyperfleet.client.answers.resource import Applied, R, Resource
from hyperfleet.client.effects import Flow
from hyperfleet.client.errors import Conflict, ProblemDocument

_TRIES: Final = 5  # when others write to the same resource at the same time


class DesiredState(Struct, frozen=True):
    """The desired state of a resource; with labels None it keeps its labels."""

    name: str
    spec: Mapping[str, Any]
    labels: Mapping[str, str] | None = None


class ApplySteps(Protocol[R]):
    """The requests that `apply` and `label` need, for resources of one kind and parent."""

    def find(self, name: str) -> Flow[tuple[R, ...]]:
        """Return the resources with a name."""
        ...

    def read(self, path: str) -> Flow[R]:
        """Read a resource."""
        ...

    def create(self, wanted: DesiredState) -> Flow[R]:
        """Create a resource."""
        ...

    def replace(self, present: R, spec: Mapping[str, Any], labels: Mapping[str, str]) -> Flow[R]:
        """Replace a resource if it has not changed since it was read; else raise `Conflict`."""
        ...


def apply(steps: ApplySteps[R], wanted: DesiredState, *, dry_run: bool = False) -> Flow[Applied[R]]:
    """Create a resource, or update the one with its name; start over if another client was faster."""
    for attempt in range(_TRIES):
        found = yield from steps.find(wanted.name)
        present = next((each for each in found if each.name == wanted.name and not each.is_deleting), None)
        try:
            return (yield from _apply_once(steps, wanted, present, dry_run=dry_run))
        except Conflict as error:
            if error.code not in ("NameTaken", "GenerationConflict", "BeingDeleted") or attempt == _TRIES - 1:
                raise
    raise AssertionError("every attempt returns or raises")


def _apply_once(steps: ApplySteps[R], wanted: DesiredState, present: R | None, *, dry_run: bool) -> Flow[Applied[R]]:
    if present is None:
        return Applied("created", None if dry_run else (yield from steps.create(wanted)))
    labels = present.labels if wanted.labels is None else wanted.labels
    if matches(present, wanted.spec, labels):
        return Applied("unchanged", present)
    if dry_run:
        return Applied("configured", present)
    return Applied("configured", (yield from steps.replace(present, wanted.spec, labels)))


def label(steps: ApplySteps[R], path: str, labels: Mapping[str, str | None], *, overwrite: bool) -> Flow[R]:
    """Set and remove labels of a resource, and change nothing else."""
    for attempt in range(_TRIES):
        present = yield from steps.read(path)
        after = _merge(present, labels, overwrite=overwrite)
        if after == present.labels:
            return present
        try:
            return (yield from steps.replace(present, present.spec, after))
        except Conflict as error:
            if error.code != "GenerationConflict" or attempt == _TRIES - 1:
                raise
    raise AssertionError("every attempt returns or raises")


def matches(present: Resource, spec: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a resource has this spec and these labels."""
    return present.spec == spec and present.labels == labels


def _merge(present: Resource, labels: Mapping[str, str | None], *, overwrite: bool) -> dict[str, str]:
    taken = [key for key, value in labels.items() if value is not None and present.labels.get(key, value) != value]
    if taken and not overwrite:
        values = ", ".join(f"{key}={present.labels[key]}" for key in taken)
        detail = f"{present.name or present.id} already has {values}; overwrite it, or leave it out"
        raise Conflict(ProblemDocument(title="A label has another value", detail=detail, status=409, code="LabelTaken"))
    merged = {**present.labels, **labels}
    return {key: value for key, value in merged.items() if value is not None}
