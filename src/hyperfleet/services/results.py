"""Inputs and results of commands: values that the API makes from requests and turns into responses.

Expected outcomes (not found, a conflict, a failed precondition) are a `Refusal`, never an exception; `api.problems` has
the HTTP code of each.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from hyperfleet.aggregation import BodyProblem
from hyperfleet.model.kind import Kind
from hyperfleet.model.phase import Phase
from hyperfleet.ports import Heartbeat, Record, RecordedHeartbeat

RefusalCode = Literal[
    "NotFound",
    "GenerationAhead",
    "GenerationConflict",
    "NameTaken",
    "BeingDeleted",
    "ParentBeingDeleted",
    "NotBeingDeleted",
    "PreconditionFailed",
    "IdempotencyKeyReused",
    "InvalidSpec",
    "InvalidLabels",
    "TooManyAdapters",
    "Forgotten",
    "NotYourAdapter",
    "Forbidden",
]


class Target(Struct, frozen=True, gc=False):
    """The resource that a request addresses; a child is only found below its parent."""

    kind: Kind
    id: str
    parent_id: str | None = None


class Preconditions(Struct, frozen=True):
    """What must hold for the stored resource, or nothing is written."""

    revisions: frozenset[int] | None = None  # If-Match: one of these; None: not given
    generation: int | None = None  # the generation that the body was made from
    is_absent: bool = False  # If-None-Match: *


class ResourceEdit(Struct, frozen=True):
    """The new spec or labels of a resource. A merge keeps what it does not name, and null deletes (RFC 7396)."""

    spec: dict[str, Any] | UnsetType = UNSET
    labels: dict[str, Any] | UnsetType | None = UNSET
    is_merge: bool = False


class Refusal(Struct, frozen=True):
    """Why nothing was written."""

    code: RefusalCode
    message: str
    errors: tuple[BodyProblem, ...] = ()

    def at(self, base: int) -> Self:
        """Return itself: nothing was written, so nothing has a position."""
        return self


class Written(Struct, frozen=True):
    """A resource after the write. `is_gone`: it was removed, and this is its last state."""

    record: Record
    is_repeated: bool = False  # the answer to an earlier request with the same idempotency key
    is_gone: bool = False

    def at(self, base: int) -> Self:
        """Give the record the position it got when its transaction committed after `base`."""
        return replace(self, record=_place(self.record, base))


class ReportResult(Struct, frozen=True, gc=False):
    """The outcome of one report."""

    adapter: str
    outcome: str  # aggregated, stored or discarded
    cause: str = ""  # of a discard
    report_id: str = ""  # of the report that is stored now, if any
    is_replay: bool = False


class Reported(Struct, frozen=True, gc=False):
    """The outcome of the reports of one request."""

    phase: Phase
    results: tuple[ReportResult, ...]
    record: Record | None = None  # None: it was a heartbeat
    heartbeat: RecordedHeartbeat | None = None  # None: it was not
    is_first: bool = False  # no adapter had reported on this resource before
    is_gone: bool = False  # the report was the last one that its removal waited for

    def at(self, base: int) -> Self:
        """Give the record the position it got when its transaction committed after `base`."""
        return self if self.record is None else replace(self, record=_place(self.record, base))


def heartbeat_result(sent: Heartbeat, recorded: RecordedHeartbeat) -> Reported:
    """Return the outcome of a heartbeat that was recorded."""
    return Reported(
        recorded.phase, (ReportResult(sent.adapter, "aggregated", "", recorded.report_id),), heartbeat=recorded
    )


def not_found(target: Target) -> Refusal:
    """Refuse a resource that does not exist or that the caller may not see: the answer must not show which."""
    where = f" below {target.parent_id}" if target.parent_id else ""
    return Refusal("NotFound", f"there is no {target.kind.name} {target.id}{where}")


def _place(record: Record, base: int) -> Record:
    """Turn a provisional revision, minus the ordinal of its event, into a position."""
    return replace(record, revision=base - record.revision) if record.revision < 0 else record
