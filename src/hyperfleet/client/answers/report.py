"""What adapters reported, and what became of reports."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from hyperfleet.client.answers.document import Document
from hyperfleet.client.answers.resource import Condition
from hyperfleet.client.errors import ProblemDocument


class AdapterReport(Document, frozen=True, rename="camel", dict=True):
    """The last report of one adapter on a resource."""

    adapter: str
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()
    last_updated: datetime | None = None
    id: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def condition(self, type_: str) -> Condition | None:
        """Return the condition of a type, if the adapter sent one."""
        return next((each for each in self.conditions if each.type == type_), None)


class Reports(Document, frozen=True, rename="camel", dict=True):
    """What every adapter last reported of one resource; before the first report there is nothing in it."""

    id: str = ""
    type: str = ""
    href: str = ""
    cluster_id: str | None = None
    node_pool_id: str | None = None
    generation: int | None = None
    adapter_statuses: tuple[AdapterReport, ...] = ()
    last_updated: datetime | None = None

    def of(self, adapter: str) -> AdapterReport | None:
        """Return what an adapter reported."""
        return next((each for each in self.adapter_statuses if each.adapter == adapter), None)


class Note(Struct, frozen=True, rename="camel"):
    """Something about a report that is legal but likely not meant."""

    pointer: str = ""
    code: str = ""
    message: str = ""


class Outcome(Document, frozen=True, rename="camel", dict=True):
    """What became of one report: `aggregated`, `stored` or `discarded`. A discard is no error: do not send it again."""

    phase: str = ""
    outcome: str = ""
    reason: str | None = None  # why it was discarded
    report_id: str | None = None
    stored_report_id: str | None = None  # of the one that stays in its place
    replayed: bool = False
    removed: bool = False  # it was the last word that the removal of the resource waited for
    notes: tuple[Note, ...] = ()

    @property
    def is_discarded(self) -> bool:
        """Tell whether it counted for nothing: there is a newer one, or it is about an older generation."""
        return self.outcome == "discarded"


class OutcomeEntry(Struct, frozen=True, rename="camel"):
    """What became of one of the reports of a request."""

    adapter: str = ""
    outcome: str = ""
    reason: str | None = None
    report_id: str | None = None
    stored_report_id: str | None = None
    replayed: bool = False
    notes: tuple[Note, ...] = ()


class ReportAnswer(Document, frozen=True, rename="camel", dict=True):
    """The answer to a report, as it is sent."""

    phase: str = ""
    outcomes: tuple[OutcomeEntry, ...] = ()
    removed: bool = False


class BatchEntry(Struct, frozen=True, rename="camel"):
    """What became of one report of a batch; `problem`: it was refused."""

    index: int = 0
    status: int = 0
    adapter: str = ""
    outcome: str = ""
    reason: str | None = None
    report_id: str | None = None
    stored_report_id: str | None = None
    replayed: bool = False
    notes: tuple[Note, ...] = ()
    phase: str = ""
    problem: ProblemDocument | None = None


class BatchResult(Document, frozen=True, rename="camel", dict=True):
    """What became of a batch, each entry in the order in which it was sent."""

    results: tuple[BatchEntry, ...] = ()
    accepted: int = 0
    refused: int = 0


class FailedAdapter(Struct, frozen=True):
    """An adapter that failed on the present generation of a resource, and why."""

    name: str
    state: str  # Failed or Unhealthy
    reason: str
    message: str
    generation: int
    since: datetime | None = None

    @property
    def is_unhealthy(self) -> bool:
        """Tell whether the adapter itself is in trouble, rather than its work."""
        return self.state == "Unhealthy"


class AdapterProgress(Struct, frozen=True):
    """How far an adapter is with a resource. `str()` is the line of the guide: `dns - completed (gen 1)`."""

    adapter: str
    state: str  # completed, running, pending, failed, unhealthy, outdated
    generation: int
    message: str = ""
    required: bool = True
    stale: bool = False

    def __str__(self) -> str:
        """Say it on one line."""
        return f"{self.adapter} - {self.state} (gen {self.generation})"
