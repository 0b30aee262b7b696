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


class DiffSide(Struct, frozen=True, rename="camel"):
    """One of the two compared resources; without a time: as it is now."""

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
