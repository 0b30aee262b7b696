"""Why a resource has its status: from the phase to conditions, rules, terms and adapters."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from hyperfleet.client.answers.document import ApiDocument
from hyperfleet.client.answers.resource import FlappingMark, Undamped


class Term(Struct, frozen=True, rename="camel"):
    """A part of an expression and its value."""

    text: str
    value: Any = None
    error: str | None = None
    skipped: bool = False
    parts: tuple[Term, ...] = ()


class ExplainedAdapter(Struct, frozen=True, rename="camel"):
    """What one adapter contributes, even if it has not reported yet."""

    name: str
    state: str = ""
    available: str = "Unknown"
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    required: bool = False
    stale: bool = False
    missing: bool = False
    last_heard: datetime | None = None
    since: datetime | None = None


class RemedyReport(Struct, frozen=True, rename="camel"):
    """A report that would help."""

    adapter: str
    state: str = ""
    generation: int = 0
    conditions: Mapping[str, str] = field(default_factory=dict)


class Remedies(Struct, frozen=True, rename="camel"):
    """The smallest sets of reports that would give a condition the wanted status."""

    wanted: str = "True"
    sets: tuple[tuple[RemedyReport, ...], ...] = ()
    exhaustive: bool = True
    minimal: bool = True


class FlappingMove(Struct, frozen=True, rename="camel"):
    """One transition of a flapping phase or condition."""

    time: datetime | None = None
    to: str = ""


class ExplainedFlapping(FlappingMark, frozen=True, rename="camel"):
    """The recent transitions of a flapping phase or condition."""

    moves: tuple[FlappingMove, ...] = ()


class ExplainedCondition(Struct, frozen=True, rename="camel"):
    """Why a condition has its status."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    culprits: tuple[ExplainedAdapter, ...] = ()
    since: datetime | None = None
    rule: str | None = None
    terms: Term | None = None
    undamped: Undamped | None = field(default=None, name="raw")
    remedies: Remedies | None = None
    flapping: ExplainedFlapping | None = None


class Explanation(ApiDocument, frozen=True, rename="camel", dict=True):
    """Why a resource has its status. Not `current`: the policy changed, and this is the status it will have."""

    id: str
    generation: int = 0
    phase: str = ""
    phase_since: datetime | None = None
    because: tuple[str, ...] = ()
    conditions: tuple[ExplainedCondition, ...] = ()
    adapters: tuple[ExplainedAdapter, ...] = ()
    policy: str = ""
    current: bool = True
    next_deadline: datetime | None = None
    phase_flapping: ExplainedFlapping | None = None
