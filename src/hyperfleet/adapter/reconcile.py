"""One event: params → preconditions → objects → report → post actions. This file is the story of an adapter.

Each step decides purely and returns a value; ports do what must be done outside. Every path ends in a report, unless
the resource is gone. Nothing raises for what a file, an API or a cluster does, and no value shows a secret.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.adapter.api_calls import ApiAnswer, ApiRequest, read_object
from hyperfleet.adapter.config import AdapterConfig, StatusBuild
from hyperfleet.adapter.object_finding import Clusters
from hyperfleet.adapter.object_step import ObjectStep, WriteLimits
from hyperfleet.adapter.objects import ObjectRules
from hyperfleet.adapter.params import ParamFailure, ParamPorts, Resolved, resolve_params
from hyperfleet.adapter.payloads import BuiltPayloads, build_payloads
from hyperfleet.adapter.post_actions import ActionResult, ActionsResult, run_actions
from hyperfleet.adapter.preconditions import (
    PreconditionFailed,
    PreconditionNotMet,
    PreconditionResult,
    RenderedLine,
    ResourceGone,
    check_preconditions,
)
from hyperfleet.adapter.reasons import IN_PROGRESS
from hyperfleet.adapter.report_answers import ReportAnswer, read_previous
from hyperfleet.adapter.runs import PreviousReport, Run, RunFailure, object_failure
from hyperfleet.adapter.subject import Subject, find_subject, read_subject

RunStatus: TypeAlias = Literal["success", "skipped", "failed", "gone"]
_MAX_REDO: Final = 3  # times an event is done again because the API had not seen the generation


class ReconcilePorts(Struct, frozen=True, kw_only=True):
    """What an event needs from outside."""

    params: ParamPorts
    clusters: Clusters
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]]
    limits: WriteLimits = WriteLimits()


class EventResult(Struct, frozen=True, kw_only=True):
    """What came of one event. The worker acts on it; a dry run shows it."""

    status: RunStatus
    run: Run
    preconditions: PreconditionResult | None = None
    built: BuiltPayloads | None = None
    actions: tuple[ActionResult, ...] = ()
    report: ReportAnswer | None = None  # None: nothing was sent
    lines: tuple[RenderedLine, ...] = ()  # of the file's log actions
    redone: int = 0


async def reconcile(config: AdapterConfig, event: Mapping[str, Any], ports: ReconcilePorts) -> EventResult:
    """Do what one event asks for; again if the API turns out to know an older generation than was read."""
    result = await _Reconciliation(config, event, ports).run()
    for attempt in range(1, _MAX_REDO + 1):
        if result.report is None or result.report.verdict != "ahead":
            break
        await ports.sleep(ports.limits.pause * attempt)
        result = replace(await _Reconciliation(config, event, ports).run(), redone=attempt)
    return result


class _Reconciliation:
    def __init__(self, config: AdapterConfig, event: Mapping[str, Any], ports: ReconcilePorts) -> None:
        self._config: Final = config
        self._event: Final = event
        self._ports: Final = ports
        self._api: Final = ports.params.api
        self._now: Final = ports.now()  # one moment for everything that an event decides

    async def run(self) -> EventResult:
        """Go through the steps."""
        resolved = await resolve_params(self._config, self._event, self._ports.params, self._now)
        if isinstance(resolved, ParamFailure):
            return await self._report(self._fail_params(resolved), is_gone=self._is_gone(resolved.answer))
        run = await self._find_subject(resolved)
        if run is None:
            return self._stop(resolved)
        if run.failure is not None:
            return await self._report(run)
        checked = await check_preconditions(self._config, resolved, self._api, self._now)
        run = replace(run, variables=checked.resolved.variables, secrets=checked.resolved.secrets)
        match checked:
            case ResourceGone():
                return EventResult(status="gone", run=run, preconditions=checked, lines=checked.lines)
            case PreconditionFailed():
                return await self._report(_fail_precondition(run, checked), checked)
            case PreconditionNotMet() if not self._deletes_anyway(run):
                return await self._report(replace(run, not_met=checked.reason), checked)
        return await self._report(await self._bring_objects(run), checked)

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _find_subject(self, resolved: Resolved) -> Run | None:
        """Read the resource if no param has, because only the API knows whether it is being deleted; None: gone."""
        subject = find_subject(self._event, resolved.variables)
        run = Run(subject=subject, variables=resolved.variables, secrets=resolved.secrets)
        if subject.is_read or not subject.href or not _needs_resource(self._config):
            return run
        answer = await self._api.call(ApiRequest(method="GET", url=subject.href))
        if answer.is_gone:
            return None
        value, fault = read_object(answer) if answer.is_success else ({}, answer.describe())
        if fault:
            return replace(run, failure=_fail("preconditions", "resource", fault, "PreconditionFailed"))
        return replace(run, subject=read_subject(self._event, value))

    def _deletes_anyway(self, run: Run) -> bool:
        """Preconditions guard what is applied. While deleting nothing is; objects without gates go all the same."""
        return run.subject.is_deleting and self._rules(run.subject).deletes_by_default

    async def _bring_objects(self, run: Run) -> Run:
        step = ObjectStep(
            self._config,
            self._rules(run.subject),
            run.variables,
            self._ports.clusters,
            self._ports.sleep,
            self._ports.limits,
        )
        objects = (await step.run()).redacted(run.secrets.redact)
        return replace(run, objects=objects, failure=object_failure(objects))

    async def _report(
        self, run: Run, checked: PreconditionResult | None = None, *, is_gone: bool = False
    ) -> EventResult:
        """Build the report and run the post actions."""
        if is_gone:
            return EventResult(status="gone", run=run)
        run = replace(run, failure=_redact(run))
        built = build_payloads(self._config, run, self._now)
        if _needs_previous(built):
            built = build_payloads(self._config, replace(run, previous=await self._read_previous(run)), self._now)
        done = await run_actions(self._config, built, self._api, self._now)
        lines = (*(checked.lines if checked else ()), *done.lines)
        return EventResult(
            status=_status(done),
            run=replace(done.built.run, failure=_redact(done.built.run)),
            preconditions=checked,
            built=done.built,
            actions=done.actions,
            report=done.report,
            lines=lines,
        )

    async def _read_previous(self, run: Run) -> PreviousReport:
        """Read what this adapter reported last. If that is not known, it counts as reported but never available."""
        unknown = PreviousReport(exists=True)
        if not run.subject.href:
            return unknown
        answer = await self._api.call(ApiRequest(method="GET", url=f"{run.subject.href.rstrip('/')}/statuses"))
        if answer.status == 404:
            return PreviousReport()
        value, fault = read_object(answer) if answer.is_success else ({}, "no answer")
        return unknown if fault else read_previous(value, self._config.name)

    # ── paths that end early ─────────────────────────────────────────────────────────────────────────────────────

    def _rules(self, subject: Subject) -> ObjectRules:
        return ObjectRules.of(self._config, subject, self._now)

    def _fail_params(self, failed: ParamFailure) -> Run:
        resolved = failed.resolved
        return Run(
            subject=find_subject(self._event, resolved.variables),
            variables=resolved.variables,
            secrets=resolved.secrets,
            failure=_fail("param_extraction", failed.param, str(failed), "ParameterExtractionFailed"),
        )

    def _is_gone(self, answer: ApiAnswer | None) -> bool:
        """Tell whether a param was told that the resource of the event itself does not exist."""
        id_ = self._event.get("id")
        return answer is not None and answer.is_gone and bool(id_) and answer.url.rstrip("/").endswith(f"/{id_}")

    def _stop(self, resolved: Resolved) -> EventResult:
        run = Run(
            subject=find_subject(self._event, resolved.variables),
            variables=resolved.variables,
            secrets=resolved.secrets,
        )
        return EventResult(status="gone", run=run)


def _needs_resource(config: AdapterConfig) -> bool:
    return bool(config.resources) or any(isinstance(each.build, StatusBuild) for each in config.payloads)


def _needs_previous(built: BuiltPayloads) -> bool:
    """Tell whether a report depends on the one before: Unknown is for the first only, and "in progress" for a start."""
    for payload in built.payloads:
        conditions = payload.document.get("conditions") if isinstance(payload.document, dict) else None
        for each in conditions if isinstance(conditions, list) else ():
            is_available = isinstance(each, dict) and each.get("type") == "Available"
            if is_available and (
                each.get("reason") == IN_PROGRESS or (built.run.not_met and each["status"] == "Unknown")
            ):
                return True
    return False


def _fail(phase: Any, step: str, message: str, error_reason: str) -> RunFailure:
    return RunFailure(reason="AdapterError", phase=phase, step=step, message=message, error_reason=error_reason)


def _fail_precondition(run: Run, failed: PreconditionFailed) -> Run:
    message = f"precondition {failed.name}: {failed.message}"
    return replace(run, failure=_fail("preconditions", failed.name, message, "PreconditionFailed"))


def _redact(run: Run) -> RunFailure | None:
    failure = run.failure
    return None if failure is None else replace(failure, message=run.secrets.redact(failure.message))


def _status(done: ActionsResult) -> RunStatus:
    run = done.built.run
    if done.report is not None and done.report.verdict == "gone":
        return "gone"
    if run.failure is not None or any(each.state == "failed" for each in done.actions):
        return "failed"
    return "skipped" if run.not_met else "success"
