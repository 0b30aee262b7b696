"""Run the post actions of a file: log lines and API calls, in their order.

The first failure ends them, except for reports: those are sent on every path. If no report action of the file can be
rendered (a param that its URL needs has no value), the report goes to the path that the event names.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.adapter.api_calls import ApiAnswer, ApiCaller, ApiRequest, prepare
from hyperfleet.adapter.config import AdapterConfig, Method, PostAction
from hyperfleet.adapter.expressions import evaluate_alone, is_matched
from hyperfleet.adapter.payloads import BuiltPayloads, build_payloads
from hyperfleet.adapter.preconditions import RenderedLine
from hyperfleet.adapter.report_answers import ReportAnswer, judge
from hyperfleet.adapter.reporting import report_alone
from hyperfleet.adapter.runs import Run, RunFailure

ActionState: TypeAlias = Literal["executed", "skipped", "failed"]
_BUILT_IN: Final = "builtInReport"  # the name of the action that the framework adds


class ActionResult(Struct, frozen=True, kw_only=True):
    """What came of one action."""

    name: str
    state: ActionState
    detail: str = ""  # why it was skipped or failed
    answer: ApiAnswer | None = None
    is_report: bool = False


class ActionsResult(Struct, frozen=True, kw_only=True):
    """What came of all actions."""

    actions: tuple[ActionResult, ...]
    built: BuiltPayloads  # with the failure of an action, if one failed
    report: ReportAnswer | None = None  # the answer to the last report; None: none was sent
    lines: tuple[RenderedLine, ...] = ()


async def run_actions(config: AdapterConfig, built: BuiltPayloads, api: ApiCaller, now: datetime) -> ActionsResult:
    """Run all actions."""
    step = _ActionStep(config, built, api, now)
    for action in config.actions:
        await step.take(action)
    await step.report_if_none_was()
    return ActionsResult(actions=tuple(step.results), built=step.built, report=step.report, lines=tuple(step.lines))


class _ActionStep:
    def __init__(self, config: AdapterConfig, built: BuiltPayloads, api: ApiCaller, now: datetime) -> None:
        self.results: list[ActionResult] = []
        self.lines: list[RenderedLine] = []
        self.report: ReportAnswer | None = None
        self.built = built
        self._config = config
        self._api = api
        self._now = now
        self._has_ended = False
        self._misses_report = False

    @property
    def _run(self) -> Run:
        return self.built.run

    @property
    def _variables(self) -> dict[str, Any]:
        return {**self._run.expression_variables(), **self.built.texts}

    async def take(self, action: PostAction) -> None:
        """Run one action, unless an earlier one ended them."""
        if self._has_ended and (not action.is_report or self.report is not None):
            self._skip(action, "an earlier action ended the post actions")
            return
        missing = sorted(action.payloads - self.built.texts.keys())
        if missing:
            self._skip(action, f"the payload {', '.join(missing)} was skipped")
            return
        if action.when is not None and not self._is_open(action):
            return
        if action.log is not None:
            text, fault = action.log.message.render(self._variables, self._now)
            shown = f"the message of this line has no value: {fault.message}" if fault else text
            self.lines.append(RenderedLine(action.log.level, self._run.secrets.redact(shown)))
        if action.call is None:
            self.results.append(ActionResult(name=action.name, state="executed"))
            return
        await self._call(action)

    def _is_open(self, action: PostAction) -> bool:
        assert action.when is not None  # noqa: S101 - the caller looked
        gate = evaluate_alone(action.when, self._config.environment, self._run.expression_variables(), self._now)
        if gate.failure:
            self._fail(action, f"when: {gate.failure}")
            return False
        if not is_matched(gate.value):
            self._skip(action, "its when is false")
            return False
        return True

    async def _call(self, action: PostAction) -> None:
        assert action.call is not None  # noqa: S101 - the caller looked
        request, fault = prepare(action.call, self._variables, self._now)
        if request is None:
            self._fail(action, fault.message if fault else "")
            return
        answer = await self._api.call(request)
        if action.is_report:
            self.report = judge(answer)
        if answer.is_success:
            result = ActionResult(name=action.name, state="executed", answer=answer, is_report=action.is_report)
            self.results.append(result)
        elif answer.is_gone:
            self._skip(action, "ResourceNotFound", answer)
            self._has_ended = True
        else:
            self._fail(action, answer.describe(), answer)

    def _skip(self, action: PostAction, detail: str, answer: ApiAnswer | None = None) -> None:
        self.results.append(
            ActionResult(name=action.name, state="skipped", detail=detail, answer=answer, is_report=action.is_report)
        )

    def _fail(self, action: PostAction, detail: str, answer: ApiAnswer | None = None) -> None:
        """Note a failure; the reports that come later tell it."""
        detail = self._run.secrets.redact(detail)
        self.results.append(
            ActionResult(name=action.name, state="failed", detail=detail, answer=answer, is_report=action.is_report)
        )
        self._has_ended = True
        self._misses_report = self._misses_report or (action.is_report and answer is None)
        if self._run.failure is None and not (action.is_report and answer is not None):
            failure = RunFailure(
                reason="AdapterError",
                phase="post_actions",
                step=action.name,
                message=f"{action.name}: {detail}",
                error_reason="PostActionFailed",
            )
            self.built = build_payloads(self._config, replace(self._run, failure=failure), self._now)

    async def report_if_none_was(self) -> None:
        """Send our own report if one of the file was meant to be sent and could not be."""
        href = self._run.subject.href
        if not self._misses_report or self.report is not None:
            return
        if not href:
            self.results.append(
                ActionResult(
                    name=_BUILT_IN,
                    state="failed",
                    detail="the event has no href: nothing can be reported",
                    is_report=True,
                )
            )
            return
        document = report_alone(self._config, self._run, self._now).document
        answer = await self._api.call(self._own_request(href, document))
        self.report = judge(answer)
        self.results.append(
            ActionResult(
                name=_BUILT_IN,
                state="executed" if answer.is_success else "failed",
                detail="" if answer.is_success else answer.describe(),
                answer=answer,
                is_report=True,
            )
        )

    def _own_request(self, href: str, document: Mapping[str, Any]) -> ApiRequest:
        """Use the method of the file: our API takes POST, that of the Go system PUT."""
        calls = (each.call for each in self._config.actions if each.is_report)
        method: Method = next((call.method for call in calls if call is not None), "POST")
        return ApiRequest(
            method=method,
            url=f"{href.rstrip('/')}/statuses",
            body=msgspec.json.encode(document).decode(),
            headers=(("Content-Type", "application/json"),),
        )
