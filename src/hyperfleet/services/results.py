"""What services are asked with and what they answer: values that the API turns into requests and responses.

What can be expected (not found, a conflict, a failed precondition) is a `Refusal`, never an exception; which HTTP
code belongs to which refusal is written in `api.problems`.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from hyperfleet.aggregation import BodyProblem
from hyperfleet.model.kind import Kind
from hyperfleet.model.phase import Phase
from hyperfleet.ports import Heard, Heartbeat, Record

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
    """The resource a request is about; a child is only found below its parent."""

    kind: Kind
    id: str
    parent_id: str | None = None


class Preconditions(Struct, frozen=True):
    """What must hold of the stored resource, or nothing is done."""

    revisions: frozenset[int] | None = None  # If-Match: one of these; None: not asked
    generation: int | None = None  # a body that says which generation it was made from
    is_absent: bool = False  # If-None-Match: *


class Change(Struct, frozen=True):
    """What to make of a resource. A merge keeps what it does not name, and null takes away (RFC 7396)."""

    spec: dict[str, Any] | UnsetType = UNSET
    labels: dict[str, Any] | UnsetType | None = UNSET
    is_merge: bool = False


class Refusal(Struct, frozen=True):
    """Why nothing was done."""

    code: RefusalCode
    message: str
    errors: tuple[BodyProblem, ...] = ()

    def at(self, base: int) -> Self:
        """Return itself: nothing was written, so nothing has a position."""
        return self


class Written(Struct, frozen=True):
    """A resource as it stands after the write. `is_gone`: it was removed, and this is how it was last."""

    record: Record
    is_repeated: bool = False  # the answer to an earlier request with the same idempotency key
    is_gone: bool = False

    def at(self, base: int) -> Self:
        """Give the record the position it got when its transaction committed after `base`."""
        return replace(self, record=_place(self.record, base))


class Verdict(Struct, frozen=True, gc=False):
    """The outcome of one report."""

    adapter: str
    outcome: str  # aggregated, stored or discarded
    cause: str = ""  # of a discard
    report_id: str = ""  # of the report that is stored now, if any
    is_replay: bool = False


class Reported(Struct, frozen=True, gc=False):
    """The outcome of the reports of one request."""

    phase: Phase
    verdicts: tuple[Verdict, ...]
    record: Record | None = None  # None: it was a heartbeat
    heard: Heard | None = None  # None: it was not
    is_first: bool = False  # no adapter had reported on this resource before
    is_gone: bool = False  # the report was the last thing its removal waited for

    def at(self, base: int) -> Self:
        """Give the record the position it got when its transaction committed after `base`."""
        return self if self.record is None else replace(self, record=_place(self.record, base))


def heard_again(heartbeat: Heartbeat, heard: Heard) -> Reported:
    """Return the outcome of a heartbeat that was recorded."""
    return Reported(heard.phase, (Verdict(heartbeat.adapter, "aggregated", "", heard.report_id),), heard=heard)


def not_found(target: Target) -> Refusal:
    """Refuse a resource that is not there, or not for this caller: nobody may learn the difference."""
    where = f" below {target.parent_id}" if target.parent_id else ""
    return Refusal("NotFound", f"there is no {target.kind.name} {target.id}{where}")


def _place(record: Record, base: int) -> Record:
    """Turn a provisional revision, minus the number of its event, into a position."""
    return replace(record, revision=base - record.revision) if record.revision < 0 else record
