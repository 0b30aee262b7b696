"""Build the payloads of a file for one event; the report among them is completed by `reporting`. Pure.

A payload that cannot be built does not end the event, as it does in the Go adapter: if it is the report, ours takes
its place and says what failed. Otherwise the actions that need it are skipped, and the report says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.adapter.building import ValueBuilder
from hyperfleet.adapter.config import AdapterConfig, Payload, StatusBuild
from hyperfleet.adapter.expressions import ExpressionScope, is_matched
from hyperfleet.adapter.reporting import BuiltReport, report_alone, report_block, report_tree
from hyperfleet.adapter.runs import Run, RunFailure


class BuiltPayload(Struct, frozen=True, kw_only=True):
    """A payload as JSON. Without a text it is skipped: by its gate, or because it could not be built."""

    name: str
    document: Any = None
    text: str | None = None
    fault: str = ""
    warnings: tuple[str, ...] = ()


class BuiltPayloads(Struct, frozen=True):
    """All payloads, and the run with what failed while they were built."""

    payloads: tuple[BuiltPayload, ...]
    run: Run

    @property
    def texts(self) -> dict[str, str]:
        """Return the payloads by name, as templates of actions see them."""
        return {each.name: each.text for each in self.payloads if each.text is not None}


def build_payloads(config: AdapterConfig, run: Run, now: datetime) -> BuiltPayloads:
    """Build all payloads; if one fails, again, so that the report tells it."""
    first = _build_all(config, run, now)
    if first.run.failure is run.failure:
        return first
    return _build_all(config, first.run, now)


def _build_all(config: AdapterConfig, run: Run, now: datetime) -> BuiltPayloads:
    reports = report_names(config)
    variables = run.expression_variables()
    scope = ExpressionScope(config.environment, variables, now)
    built: list[BuiltPayload] = []
    failure = run.failure
    for payload in config.payloads:
        texts = {**variables, **{each.name: each.text for each in built if each.text is not None}}
        one, fault = _build(config, payload, run, ValueBuilder(scope, texts), is_report=payload.name in reports)
        built.append(one)
        failure = failure or fault
    return BuiltPayloads(tuple(built), replace(run, failure=failure))


def report_names(config: AdapterConfig) -> frozenset[str]:
    """Return the names of the payloads that are reports."""
    sent = frozenset(name for action in config.actions if action.is_report for name in action.payloads)
    return sent | {each.name for each in config.payloads if isinstance(each.build, StatusBuild)}


def _build(
    config: AdapterConfig, payload: Payload, run: Run, builder: ValueBuilder, *, is_report: bool
) -> tuple[BuiltPayload, RunFailure | None]:
    now = builder.scope.now
    if payload.when is not None:
        gate = payload.when.evaluate(builder.scope)
        if gate.failure:
            return _replace_failed(
                config, payload, run, f"{payload.name}.when: {gate.failure}", now, is_report=is_report
            )
        if not is_matched(gate.value):
            return BuiltPayload(name=payload.name), None
    if isinstance(payload.build, StatusBuild):
        report = report_block(config, payload.build, builder, run)
        return _present(payload, report, builder), report.failure
    value, fault = builder.build(payload.build)
    if fault:
        return _replace_failed(config, payload, run, f"{payload.name}: {fault}", now, is_report=is_report)
    if is_report and isinstance(value, Mapping):
        report = report_tree(config, value, run, now)
        return _present(payload, report, builder), report.failure
    return BuiltPayload(name=payload.name, document=value, text=_encode(value), warnings=tuple(builder.warnings)), None


def _replace_failed(
    config: AdapterConfig, payload: Payload, run: Run, message: str, now: datetime, *, is_report: bool
) -> tuple[BuiltPayload, RunFailure | None]:
    failure = run.failure or RunFailure(
        reason="AdapterError",
        phase="post_actions",
        step="build_payloads",
        message=message,
        error_reason="PostActionFailed",
    )
    if not is_report:
        return BuiltPayload(name=payload.name, fault=message), failure
    document = report_alone(config, replace(run, failure=failure), now).document
    return BuiltPayload(name=payload.name, document=document, text=_encode(document), fault=message), failure


def _present(payload: Payload, report: BuiltReport, builder: ValueBuilder) -> BuiltPayload:
    return BuiltPayload(
        name=payload.name,
        document=report.document,
        text=_encode(report.document),
        warnings=tuple(builder.warnings),
    )


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()
