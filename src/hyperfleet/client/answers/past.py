"""What changed, when and why: entries of history, and differences."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct, field

from hyperfleet.client.answers.document import ApiDocument


class ChangeCause(Struct, frozen=True, rename="camel"):
    """Why a status was computed."""

    kind: str = ""
    ref: str | None = None


class HistoryEntry(ApiDocument, frozen=True, rename="camel", dict=True):
    """One transition of the phase or of a condition's status; None: it did not exist before, or no longer exists."""

    position: int = 0
    time: datetime | None = None
    subject: str = ""
    from_: str | None = field(default=None, name="from")
    to: str | None = None
    reason: str = ""
    message: str = ""
    cause: ChangeCause = field(default_factory=ChangeCause)
    policy: str = ""
    duration: str | None = None


class MovedSubject(Struct, frozen=True, rename="camel"):
    """One move among those that one change made; None: it was not there before, or is not any more."""

    subject: str = ""
    from_: str | None = field(default=None, name="from")
    to: str | None = None
    reason: str = ""
    message: str = ""
    duration: str | None = None


class ResourceTransitions(ApiDocument, frozen=True, rename="camel", dict=True):
    """One change of one resource, with the transitions that it made. `phase` is that after it; None: it was removed."""

    position: int = 0
    time: datetime | None = None
    event: str = ""
    kind: str = ""
    id: str = ""
    name: str = ""
    href: str = ""
    tenant: str = ""
    generation: int = 0
    phase: str | None = None
    cause: ChangeCause = field(default_factory=ChangeCause)
    policy: str = ""
    transitions: tuple[MovedSubject, ...] = ()


class DiffSide(Struct, frozen=True, rename="camel"):
    """One of two that are compared; without a time: as it is now."""

    id: str = ""
    href: str = ""
    revision: int = 0
    generation: int = 0
    time: datetime | None = None


class Difference(Struct, frozen=True, rename="camel"):
    """One place where two documents differ: `added`, `removed` or `changed`."""

    path: str
    kind: str = "changed"
    from_: Any = field(default=None, name="from")
    to: Any = None


class Diff(ApiDocument, frozen=True, rename="camel", dict=True):
    """The differences between a resource and itself at another time, or another resource."""

    summary: str = ""
    from_: DiffSide = field(default_factory=DiffSide, name="from")
    to: DiffSide = field(default_factory=DiffSide)
    items: tuple[Difference, ...] = ()
    total: int = 0
    truncated: bool = False
    times_changed: int = 0
