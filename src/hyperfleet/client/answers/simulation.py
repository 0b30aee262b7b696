"""What another policy would change, and what it would have changed in the past."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from hyperfleet.client.answers.document import ApiDocument
from hyperfleet.client.errors import ErrorDetail


class SimulatedCount(Struct, frozen=True, rename="camel"):
    """How many resources would make the same transition."""

    subject: str
    from_: str | None = field(default=None, name="from")
    to: str | None = None
    count: int = 0


class SimulatedTransition(Struct, frozen=True, rename="camel"):
    """How the phase or one condition would change."""

    subject: str
    from_: str | None = field(default=None, name="from")
    to: str | None = None
    reason: str = ""
    message: str = ""
    why: str = ""


class SimulatedChange(Struct, frozen=True, rename="camel"):
    """A resource whose phase or conditions would change."""

    id: str
    name: str = ""
    kind: str = ""
    href: str = ""
    transitions: tuple[SimulatedTransition, ...] = ()


class ReplayedTotals(Struct, frozen=True, rename="camel"):
    """The transitions and durations of one subject under one policy, over all resources."""

    transitions: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)


class ReplayedSubject(Struct, frozen=True, rename="camel"):
    """The phase, or a condition, under both policies."""

    subject: str
    present: ReplayedTotals = field(default_factory=ReplayedTotals)
    candidate: ReplayedTotals = field(default_factory=ReplayedTotals)


class ReplayedInterval(Struct, frozen=True, rename="camel"):
    """A time in which a subject did not change."""

    state: str
    since: datetime | None = None
    seconds: float = 0.0


class ReplayedTimeline(Struct, frozen=True, rename="camel"):
    """A subject of one resource that would have been different for some time."""

    subject: str
    gist: str = ""
    present: tuple[ReplayedInterval, ...] = ()
    candidate: tuple[ReplayedInterval, ...] = ()


class ReplayedResource(Struct, frozen=True, rename="camel"):
    """A resource whose past would have been different."""

    id: str
    name: str = ""
    kind: str = ""
    href: str = ""
    subjects: tuple[ReplayedTimeline, ...] = ()


class ReplayResult(Struct, frozen=True, rename="camel"):
    """The recorded reports, aggregated again under both policies."""

    from_: datetime | None = field(default=None, name="from")
    to: datetime | None = None
    complete: bool = True
    inexact: tuple[str, ...] = ()
    resources: int = 0
    reports: int = 0
    differing: int = 0
    subjects: tuple[ReplayedSubject, ...] = ()
    lives: tuple[ReplayedResource, ...] = ()


class Simulation(ApiDocument, frozen=True, rename="camel", dict=True):
    """What another policy would change."""

    policy: str = ""
    examined: int = 0
    changed: int = 0
    reworded: int = 0
    unchanged: int = 0
    summary: tuple[SimulatedCount, ...] = ()
    changes: tuple[SimulatedChange, ...] = ()
    truncated: bool = False
    warnings: tuple[ErrorDetail, ...] = ()
    replay: ReplayResult | None = None


class SimulationProgress(Struct, frozen=True, rename="camel"):
    """The progress of a simulation."""

    examined: int = 0
    total: int = 0
    changed: int = 0
