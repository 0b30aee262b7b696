"""Reports of adapters, and their outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from hyperfleet.client.answers.document import ApiDocument
from hyperfleet.client.answers.resource import Condition
from hyperfleet.client.errors import ProblemDocument


class AdapterReport(ApiDocument, frozen=True, rename="camel", dict=True):
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


class Reports(ApiDocument, frozen=True, rename="camel", dict=True):
    """The last report of every adapter on one resource; empty before the first."""

    id: str = ""
    type: str = ""
    href: str = ""
    cluster_id: str | None = None
    node_pool_id: str | None = None
    generation: int | None = None
    adapter_statuses: tuple[AdapterReport, ...] = ()
    last_updated: datetime | None = None

    def of(self, adapter: str) -> AdapterReport | None:
        """Return the report of an adapter."""
        return next((each for each in self.adapter_statuses if each.adapter == adapter), None)


class ReportNote(Struct, frozen=True, rename="camel"):
    """Something in a report that is valid but probably a mistake."""

    pointer: str = ""
    code: str = ""
    message: str = ""


class Outcome(ApiDocument, frozen=True, rename="camel", dict=True):
    """The outcome of a report: `aggregated`, `stored` or `discarded`. A discard is not an error: do not resend it."""

    phase: str = ""
    outcome: str = ""
    reason: str | None = None  # why it was discarded
    report_id: str | None = None
    stored_report_id: str | None = None  # of the report that was kept instead
    replayed: bool = False
    removed: bool = False  # this report completed the removal of the resource
    notes: tuple[ReportNote, ...] = ()

    @property
    def is_discarded(self) -> bool:
        """Return whether it had no effect, because there is a newer one or it is about an older generation."""
        return self.outcome == "discarded"


class OutcomeEntry(Struct, frozen=True, rename="camel"):
    """The outcome of one report of a request."""

    adapter: str = ""
    outcome: str = ""
    reason: str | None = None
    report_id: str | None = None
    stored_report_id: str | None = None
    replayed: bool = False
    notes: tuple[ReportNote, ...] = ()


class ReportAnswer(ApiDocument, frozen=True, rename="camel", dict=True):
    """The answer to a report, as it is sent."""

    phase: str = ""
    outcomes: tuple[OutcomeEntry, ...] = ()
    removed: bool = False


class BatchEntry(Struct, frozen=True, rename="camel"):
    """The result of one report of a batch; `problem` is set if it was refused."""

    index: int = 0
    status: int = 0
    adapter: str = ""
    outcome: str = ""
    reason: str | None = None
    report_id: str | None = None
    stored_report_id: str | None = None
    replayed: bool = False
    notes: tuple[ReportNote, ...] = ()
    phase: str = ""
    problem: ProblemDocument | None = None


class BatchResult(ApiDocument, frozen=True, rename="camel", dict=True):
    """The results of a batch, in the order in which the reports were sent."""

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
        """Return whether the adapter itself is in trouble, rather than its work."""
        return self.state == "Unhealthy"


class AdapterProgress(Struct, frozen=True):
    """The progress of an adapter on a resource. `str()` is the line of the guide: `dns - completed (gen 1)`."""

    adapter: str
    state: str  # completed, running, pending, failed, unhealthy, outdated
    generation: int
    message: str = ""
    required: bool = True
    stale: bool = False

    def __str__(self) -> str:
        """Format as one line."""
        return f"{self.adapter} - {self.state} (gen {self.generation})"
