"""Step 4: the report of an event, in one of the contract's six patterns, on every path. Pure.

A file gives the report as a payload: a tree (the Go adapter's form) or a block of conditions (the contract's). What
the file says counts, with three exceptions. When something failed, Available and Health are False. While preconditions
are not met, Available is False, or Unknown in a first report. Finalized is True only if every object is confirmed gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.adapter.building import BuildFault, ValueBuilder
from hyperfleet.adapter.config import AdapterConfig, ComputedValue, StatusBuild, StatusCondition
from hyperfleet.adapter.expressions import Evaluated
from hyperfleet.adapter.reasons import ConditionTexts, texts_for, waiting_for
from hyperfleet.adapter.report_metadata import describe_objects
from hyperfleet.adapter.runs import Run, RunFailure
from hyperfleet.adapter.templates import TextTemplate
from hyperfleet.model.condition import MAX_MESSAGE, MAX_REASON
from hyperfleet.model.report import APPLIED, AVAILABLE, FINALIZED, HEALTH

STATUSES: Final = ("True", "False", "Unknown")
_REQUIRED: Final = (APPLIED, AVAILABLE, HEALTH)


class BuiltReport(Struct, frozen=True):
    """A report, and what failed while it was built: then it says so itself."""

    document: dict[str, Any]
    failure: RunFailure | None = None


class _Draft(Struct, frozen=True):
    """A condition before the rules of the framework: a status of None could not be computed."""

    type: str
    status: str | None
    reason: str = ""
    message: str = ""
    fault: str = ""


# ── the two forms of a file ──────────────────────────────────────────────────────────────────────────────────────────


def report_block(config: AdapterConfig, build: StatusBuild, builder: ValueBuilder, run: Run) -> BuiltReport:
    """Build a report from the contract's block."""
    drafts = [] if run.failure or run.not_met else [_draft(each, builder, run) for each in build.conditions]
    data = builder.build(build.data) if build.data is not None else None
    metadata = builder.build(build.metadata) if build.metadata is not None else None
    faults = [each.fault for each in drafts if each.fault]
    faults += [
        f"{name}: {each.fault}" for name, each in (("data", data), ("metadata", metadata)) if each and each.fault
    ]
    run = _with_fault(run, faults)
    document: dict[str, Any] = {"data": data.value} if data and data.value else {}
    document["metadata"] = dict(metadata.value) if metadata and isinstance(metadata.value, dict) else {}
    types = [each.type for each in build.conditions]
    return _finish(config, run, document, [] if run.failure else drafts, types, builder.scope.now)


def report_tree(config: AdapterConfig, document: Mapping[str, Any], run: Run, now: datetime) -> BuiltReport:
    """Complete a report that a file has built itself, and hold it to the rules."""
    drafts = [_read(each) for each in _listed(document.get("conditions"))]
    drafts = [each for each in drafts if each.type]
    run = _with_fault(run, [each.fault for each in drafts if each.fault])
    return _finish(config, run, dict(document), drafts, [each.type for each in drafts], now)


def report_alone(config: AdapterConfig, run: Run, now: datetime) -> BuiltReport:
    """Build a report without the file: nothing could be built from it, or it has none."""
    return _finish(config, run, {}, [], [], now)


def _with_fault(run: Run, faults: list[str]) -> Run:
    if run.failure is not None or not faults:
        return run
    failure = RunFailure(
        reason="AdapterError",
        phase="post_actions",
        step="build_payloads",
        message="; ".join(faults),
        error_reason="PostActionFailed",
    )
    return replace(run, failure=failure)


# ── conditions of the contract's block ───────────────────────────────────────────────────────────────────────────────


def _draft(condition: StatusCondition, builder: ValueBuilder, run: Run) -> _Draft:
    outcome = condition.status.evaluate(builder.scope)
    status = _read_status(False if outcome.value is None and not outcome.failure else outcome.value)
    if outcome.failure or status is None:
        fault = outcome.failure or f"{condition.status.source.strip()} is no boolean"
        return _Draft(condition.type, None, fault=f"{condition.type}: {fault}")
    try:
        reason, message = (_text_of(each, builder) for each in (condition.reason, condition.message))
    except BuildFault as fault:
        return _Draft(condition.type, None, fault=f"{condition.type}: {fault}")
    ours = waiting_for(run)
    if condition.type == AVAILABLE and status == "False":
        # What follows `??` is meant for a workload that is there: "DeploymentReady" would read as a failure here.
        reason = reason if not reason.is_fallback else Evaluated(ours.reason)
        message = message if not message.is_fallback else Evaluated(ours.message)
    return _Draft(condition.type, status, _as_text(reason.value), _as_text(message.value))


def _text_of(value: ComputedValue | TextTemplate | None, builder: ValueBuilder) -> Evaluated:
    if value is None:
        return Evaluated("")
    return builder.compute(value) if isinstance(value, ComputedValue) else Evaluated(builder.render(value))


# ── conditions that a file built ─────────────────────────────────────────────────────────────────────────────────────


def _listed(conditions: Any) -> Iterable[Mapping[str, Any]]:
    """Return conditions as a list; the contract's map of conditions is one too."""
    if isinstance(conditions, Mapping):
        pairs = ((str(key), each) for key, each in conditions.items() if isinstance(each, Mapping))
        return [{"type": name[:1].upper() + name[1:], **each} for name, each in pairs]
    return [each for each in conditions if isinstance(each, Mapping)] if isinstance(conditions, list) else []


def _read(condition: Mapping[str, Any]) -> _Draft:
    type_, status = _as_text(condition.get("type")), _read_status(condition.get("status"))
    reason, message = _as_text(condition.get("reason")), _as_text(condition.get("message"))
    fault = "" if status else f"the condition {type_} has no status that is True, False or Unknown"
    return _Draft(type_, status, reason, message, fault)


def _read_status(value: Any) -> str | None:
    """Return a status; a boolean and the text of one are converted."""
    text = str(value).strip().capitalize() if isinstance(value, bool | str) else ""
    return text if text in STATUSES else None


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else str(value)


# ── the rules ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _finish(
    config: AdapterConfig, run: Run, document: dict[str, Any], drafts: list[_Draft], types: list[str], now: datetime
) -> BuiltReport:
    """Complete a document: the framework's fields, all required conditions, and the rules."""
    given = {each.type: each for each in drafts}
    added = [FINALIZED] if run.subject.is_deleting and not document.get("conditions") else []  # a tree has its own
    names = dict.fromkeys([*types, *_REQUIRED, *added])
    conditions = [_settle(given.get(name, _Draft(name, None)), config, run) for name in names]
    finished = {
        **document,
        "adapter": document.get("adapter") or config.name,
        "observed_generation": _generation(document.get("observed_generation"), run),
        "observed_time": document.get("observed_time") or now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "conditions": conditions,
        "metadata": {**describe_objects(run), **_mapping(document.get("metadata"))},
    }
    return BuiltReport(run.secrets.redact_value(finished), run.failure)


def _settle(draft: _Draft, config: AdapterConfig, run: Run) -> dict[str, str]:
    """Apply the rules to one condition: a status that must be another gets our reason with it."""
    status = _rule(draft, config, run)
    ours = texts_for(draft.type, status, run)
    texts = (
        ours if status != draft.status else ConditionTexts(draft.reason or ours.reason, draft.message or ours.message)
    )
    return {
        "type": draft.type,
        "status": status,
        "reason": texts.reason[:MAX_REASON],
        "message": _shorten(texts.message),
    }


def _rule(draft: _Draft, config: AdapterConfig, run: Run) -> str:
    if draft.type == FINALIZED:
        return "True" if run.is_finalized and draft.status in (None, "True") else "False"
    if run.failure is not None and (draft.type in (AVAILABLE, HEALTH) or draft.status is None):
        return "False"
    if run.not_met:
        return _while_waiting(draft, config, run)
    return draft.status or _default(draft.type, run)


def _while_waiting(draft: _Draft, config: AdapterConfig, run: Run) -> str:
    """Pattern 1: Unknown is for a first report only, and only if the file says so."""
    if draft.type == APPLIED:
        return "False"
    if draft.type == AVAILABLE:
        says_unknown = draft.status == "Unknown" or (draft.status is None and config.unknown_at_first)
        return "Unknown" if says_unknown and not run.previous.exists else "False"
    return draft.status or ("True" if draft.type == HEALTH else "False")


def _default(type_: str, run: Run) -> str:
    """Return the status of a condition that the file does not have: what is known without it."""
    if type_ == HEALTH:
        return "True"
    is_applied = type_ == APPLIED and not run.skip_reason and not run.subject.is_deleting
    return "True" if is_applied else "False"


def _generation(given: Any, run: Run) -> int:
    """Return the generation as a number; templates give a text, CEL a float."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    text = str(given).strip() if isinstance(given, str | float) else ""
    number = text.removesuffix(".0")
    return int(number) if number.isdecimal() and len(number) < 19 else run.subject.generation


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
