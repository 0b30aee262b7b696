"""★ Accepts reports: decide, store, aggregate, log; from one adapter's report to one new status, in one transaction.

Most reports are heartbeats. The committer tries a single report as a heartbeat first (`Wants.heartbeat`); what the
store does not recognise as one is applied here.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import starmap
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from hyperfleet.aggregation import BodyProblem, Decision, decide, digest_of
from hyperfleet.model.report import Report
from hyperfleet.ports import Heartbeat, Record, StatusCause
from hyperfleet.services.callers import Caller
from hyperfleet.services.commands import Wants
from hyperfleet.services.results import Refusal, Reported, ReportResult, Target, Written, not_found
from hyperfleet.services.workspace import Workspace

REPORT_PREFIX: Final = "rpt"  # of the ids of reports
MAX_ADAPTERS: Final = 100  # of one resource; every write loads and renders all of them


class Submission(Struct, frozen=True, gc=False):
    """A submitted report: the id it gets if accepted, its pointer in the body, and how its generation is spelt."""

    report: Report
    id: str
    pointer: str = ""
    generation_key: str = "observedGeneration"
    digest: bytes = b""  # of the content of the report; computed if missing

    def __post_init__(self) -> None:
        """Compute the digest once: it is compared with the stored one, and stored."""
        if not self.digest:
            force_setattr(self, "digest", digest_of(self.report))


AnswerKind = Literal["outcome", "report", "record"]  # the content of the response


class AcceptReports(Struct, frozen=True, gc=False):
    """Accept the reports of one request about one resource: all of them or, if one is refused, none."""

    target: Target
    submissions: tuple[Submission, ...]  # of different adapters
    caller: Caller
    answer: AnswerKind = "record"

    @property
    def wants(self) -> Wants:
        """Load the resource."""
        reporting = tuple([each.report.adapter for each in self.submissions])
        return Wants(ids=(self.target.id,), reporting=reporting, heartbeat=self._heartbeat())

    def apply(self, workspace: Workspace) -> Reported | Refusal:
        """Decide on each report, then compute the status once from all of them."""
        if foreign := self._not_allowed():
            return _not_your_adapter(self.caller, foreign)
        record = workspace.find(self.target, self.caller)
        if record is None:
            return not_found(self.target)
        decisions = self._decide(record, workspace)
        for decision in decisions.values():
            if decision.outcome == "rejected":
                return self._refuse(record, decisions, workspace)
        first_timers = [each.report.adapter for each in self.submissions if each.report.adapter not in record.reports]
        if first_timers and len(record.reports) + len(first_timers) > MAX_ADAPTERS:
            return Refusal("TooManyAdapters", f"at most {MAX_ADAPTERS} adapters can report on {self.target.id}")
        self._count(record, decisions, workspace)
        cause = StatusCause("report", ",".join([each.id for each in self.submissions]))
        after = workspace.accept_reports(record, decisions, cause)
        results = tuple(starmap(_result_of, decisions.items()))
        is_gone = workspace.is_removed(record.resource.id)
        is_first = bool(first_timers) and not record.reports
        return Reported(after.status.phase, results, after, is_first=is_first, is_gone=is_gone)

    def _heartbeat(self) -> Heartbeat | None:
        """Return the report as a heartbeat, if it is the only one and the response needs no record.

        Several reports of one request are accepted or refused together, so none of them can be recorded alone.
        """
        if len(self.submissions) > 1 or self.answer == "record" or self._not_allowed():
            return None
        target, report = self.target, self.submissions[0].report
        return Heartbeat(
            target.kind.name,
            target.id,
            target.parent_id,
            self.caller.scope,
            report.adapter,
            report.observed_generation,
            self.submissions[0].digest,
            report.observed_time,
            self.answer == "report",
        )

    def _not_allowed(self) -> list[str]:
        return self.caller.adapters_not_allowed(each.report.adapter for each in self.submissions)

    def _decide(self, record: Record, workspace: Workspace) -> dict[str, Decision]:
        now = workspace.time_for(record)
        decisions = {}
        for submission in self.submissions:
            report = submission.report
            stored = record.reports.get(report.adapter)
            decisions[report.adapter] = decide(report, record.resource, stored, now, submission.id, submission.digest)
        return decisions

    def _count(self, record: Record, decisions: Mapping[str, Decision], workspace: Workspace) -> None:
        for adapter, decision in decisions.items():
            outcome = decision.cause or ("replayed" if decision.is_replay else decision.outcome)
            workspace.count_report(record, adapter, outcome, decision.skew, is_discard=bool(decision.cause))

    def _refuse(self, record: Record, decisions: Mapping[str, Decision], workspace: Workspace) -> Refusal:
        """Refuse all reports because some were rejected; only the rejected ones are counted."""
        rejected = {adapter: each for adapter, each in decisions.items() if each.outcome == "rejected"}
        self._count(record, rejected, workspace)
        generation = record.resource.generation
        errors = tuple(
            BodyProblem(
                f"{submission.pointer}/{submission.generation_key}",
                "GenerationAhead",
                f"{submission.report.adapter} observed generation {submission.report.observed_generation}, "
                f"the resource is at {generation}",
            )
            for submission in self.submissions
            if submission.report.adapter in rejected
        )
        message = f"{self.target.id} is at generation {generation}; read it again and retry"
        return Refusal("GenerationAhead", message, errors)


class RetireAdapter(Struct, frozen=True):
    """Delete an adapter's report on a resource, because the adapter will not report again."""

    target: Target
    adapter: str
    caller: Caller

    @property
    def wants(self) -> Wants:
        """Load the resource."""
        return Wants(ids=(self.target.id,))

    def apply(self, workspace: Workspace) -> Written | Refusal:
        """Delete the report and compute the status without it."""
        if foreign := self.caller.adapters_not_allowed((self.adapter,)):
            return _not_your_adapter(self.caller, foreign)
        record = workspace.find(self.target, self.caller)
        if record is None:
            return not_found(self.target)
        if self.adapter not in record.reports:
            return Refusal("NotFound", f"{self.adapter} has not reported on {self.target.id}")
        after = workspace.retire(record, self.adapter)
        return Written(after, is_gone=workspace.is_removed(record.resource.id))


def _not_your_adapter(caller: Caller, foreign: list[str]) -> Refusal:
    own = ", ".join(sorted(caller.adapters or ())) or "none"
    return Refusal("NotYourAdapter", f"{caller.name} may report as {own}, not as {', '.join(foreign)}")


def _result_of(adapter: str, decision: Decision) -> ReportResult:
    report_id = decision.stored.id if decision.stored is not None else ""
    return ReportResult(adapter, decision.outcome, decision.cause, report_id, decision.is_replay)
