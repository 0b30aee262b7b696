"""What another policy would change, and what it would have made of the past."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from hyperfleet.client.answers.document import Document
from hyperfleet.client.errors import Fault


class SimulatedCount(Struct, frozen=True, rename="camel"):
    """How many resources would make the same move."""

    subject: str
    from_: str | None = field(default=None, name="from")
    to: str | None = None
    count: int = 0


class SimulatedTransition(Struct, frozen=True, rename="camel"):
    """What would become of the phase or of one condition."""

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


class ReplayedAccount(Struct, frozen=True, rename="camel"):
    """What became of one subject under one policy, over all resources."""

    transitions: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)


class ReplayedSubject(Struct, frozen=True, rename="camel"):
    """The phase, or a condition, under both policies."""

    subject: str
    present: ReplayedAccount = field(default_factory=ReplayedAccount)
    candidate: ReplayedAccount = field(default_factory=ReplayedAccount)


class ReplayedStretch(Struct, frozen=True, rename="camel"):
    """A time in which something stayed what it was."""

    state: str
    since: datetime | None = None
    seconds: float = 0.0


class ReplayedStory(Struct, frozen=True, rename="camel"):
    """A subject of one resource that would have been something else for a while."""

    subject: str
    gist: str = ""
    present: tuple[ReplayedStretch, ...] = ()
    candidate: tuple[ReplayedStretch, ...] = ()


class ReplayedLife(Struct, frozen=True, rename="camel"):
    """A resource whose past would have been another one."""

    id: str
    name: str = ""
    kind: str = ""
    href: str = ""
    subjects: tuple[ReplayedStory, ...] = ()


class Replay(Struct, frozen=True, rename="camel"):
    """What the recorded reports would have come to."""

    from_: datetime | None = field(default=None, name="from")
    to: datetime | None = None
    complete: bool = True
    resources: int = 0
    reports: int = 0
    differing: int = 0
    subjects: tuple[ReplayedSubject, ...] = ()
    lives: tuple[ReplayedLife, ...] = ()


class Simulation(Document, frozen=True, rename="camel", dict=True):
    """What another policy would change."""

    policy: str = ""
    examined: int = 0
    changed: int = 0
    reworded: int = 0
    unchanged: int = 0
    summary: tuple[SimulatedCount, ...] = ()
    changes: tuple[SimulatedChange, ...] = ()
    truncated: bool = False
    warnings: tuple[Fault, ...] = ()
    replay: Replay | None = None


class SimulationProgress(Struct, frozen=True, rename="camel"):
    """How far a simulation is."""

    examined: int = 0
    total: int = 0
    changed: int = 0
