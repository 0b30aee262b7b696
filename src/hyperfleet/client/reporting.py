"""Sending reports: from a few keywords to the report that the contract requires. Flows of both faces.

A report may be sent again: the server recognises a duplicate by its time and counts it once. So the time is set when
the report is composed, not when it is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Required, TypeAlias, TypedDict

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.client.answers.report import BatchEntry, BatchResult, Outcome, ReportAnswer
from hyperfleet.client.answers.resource import Resource
from hyperfleet.client.effects import ApiRequest, Flow
from hyperfleet.client.errors import UnexpectedAnswer
from hyperfleet.client.exchange import JSON, RetryPolicy, fetch
from hyperfleet.client.paths import BASE, NODE_POOLS, ResourceLike, type_of
from hyperfleet.client.query import query_of
from hyperfleet.model.report import APPLIED, AVAILABLE, FINALIZED, HEALTH

_MAX_BATCH: Final = 500  # reports of a batch; servers accept 1,000 by default


class ConditionResult(Struct, frozen=True):
    """A condition to report: its status, a reason in CamelCase, a message for people."""

    status: bool | str | None  # None: Unknown
    reason: str = ""
    message: str = ""


ConditionInput: TypeAlias = ConditionResult | bool | str | None


class ReportFields(TypedDict, total=False):
    """The fields of a report. `reason` and `message` belong to Available; for others pass a `ConditionResult`."""

    available: Required[ConditionInput]  # has the work succeeded? None: not known yet
    applied: ConditionInput  # has what the work needs been created? Default: yes
    health: ConditionInput  # has nothing unexpected happened? Default: yes
    finalized: ConditionInput  # when deleting: has everything been cleaned up?
    reason: str
    message: str
    conditions: Mapping[str, ConditionInput]  # additional ones, by type
    data: Mapping[str, Any]
    metadata: Mapping[str, Any]
    generation: int | None  # that was observed; default: that of the object, or the present one
    observed_time: datetime | None  # of the observation; default: now


class BatchReport(Struct, frozen=True):
    """One report of a batch."""

    subject: ResourceLike
    adapter: str
    fields: ReportFields


def compose(adapter: str, fields: ReportFields, generation: int, now: datetime) -> dict[str, Any]:
    """Return the body of a report."""
    about = ConditionResult(None, fields.get("reason", ""), fields.get("message", ""))
    conditions: dict[str, ConditionInput] = {
        AVAILABLE: fields["available"],
        APPLIED: fields.get("applied", True),
        HEALTH: fields.get("health", True),
        **({FINALIZED: fields["finalized"]} if "finalized" in fields else {}),
        **fields.get("conditions", {}),
    }
    observed = fields.get("observed_time") or now
    return {
        "adapter": adapter,
        "observedGeneration": generation,
        "observedTime": observed.isoformat(),
        "conditions": [
            _condition(type_, each, about if type_ == AVAILABLE else None) for type_, each in conditions.items()
        ],
        **{key: fields[key] for key in ("data", "metadata") if fields.get(key)},
    }


def report(subject: ResourceLike, adapter: str, fields: ReportFields, retry: RetryPolicy) -> Flow[Outcome]:
    """Send a report on one resource; the generation is read from the server only if it is not given."""
    path = yield from type_of(subject).locate(subject, retry)
    generation = _given_generation(subject, fields)
    if generation is None:
        request = ApiRequest("GET", path, query_of({"fields": "generation"}))
        generation = (yield from fetch(Resource, request, retry)).generation
    body = compose(adapter, fields, generation, retry.runtime.now())
    headers = {**JSON, "Prefer": "return=minimal"}
    answer = yield from fetch(
        ReportAnswer, ApiRequest("POST", f"{path}/statuses", (), headers, msgspec.json.encode(body)), retry
    )
    return _outcome(answer)


def report_batch(reports: Iterable[BatchReport | Mapping[str, Any]], retry: RetryPolicy) -> Flow[BatchResult]:
    """Send many reports on many resources; each is accepted or refused on its own."""
    bodies = [_entry(each, retry) for each in reports]
    results: list[BatchEntry] = []
    answer = BatchResult()
    for start in range(0, len(bodies), _MAX_BATCH):
        part = msgspec.json.encode({"reports": bodies[start : start + _MAX_BATCH]})
        answer = yield from fetch(BatchResult, ApiRequest("POST", f"{BASE}/statuses:batch", (), JSON, part), retry)
        results += [replace(each, index=each.index + start) for each in answer.results]
    if len(bodies) <= _MAX_BATCH:
        return answer
    refused = sum(each.problem is not None for each in results)
    return BatchResult(tuple(results), len(results) - refused, refused)


def _entry(given: BatchReport | Mapping[str, Any], retry: RetryPolicy) -> Mapping[str, Any]:
    if not isinstance(given, BatchReport):
        return given
    generation = _given_generation(given.subject, given.fields)
    if generation is None:
        raise ValueError("a report of a batch needs a generation, or an object that has one")
    body = compose(given.adapter, given.fields, generation, retry.runtime.now())
    return {**_name(given.subject), **body}


def _name(subject: ResourceLike) -> dict[str, str]:
    """Return the field that names the resource of a batch report."""
    id_ = subject.id if isinstance(subject, Resource) else subject.rstrip("/").rpartition("/")[2]
    return {"nodePoolId" if type_of(subject) is NODE_POOLS else "clusterId": id_}


def _given_generation(subject: ResourceLike, fields: ReportFields) -> int | None:
    outcome_entry = fields.get("generation")
    if outcome_entry is None and isinstance(subject, Resource):
        return subject.generation or None  # it may have been read without it
    return outcome_entry


def _condition(type_: str, conditions: ConditionInput, about: ConditionResult | None) -> dict[str, str]:
    result = (
        conditions
        if isinstance(conditions, ConditionResult)
        else ConditionResult(conditions, *((about.reason, about.message) if about else ()))
    )
    written = {"type": type_, "status": _status(result.status), "reason": result.reason, "message": result.message}
    return {key: value for key, value in written.items() if value}


def _status(conditions: bool | str | None) -> str:
    return conditions if isinstance(conditions, str) else {True: "True", False: "False", None: "Unknown"}[conditions]


def _outcome(answer: ReportAnswer) -> Outcome:
    if len(answer.outcomes) != 1:
        raise UnexpectedAnswer(f"one report was sent, and {len(answer.outcomes)} outcomes came back")
    outcome_entry = answer.outcomes[0]
    outcome = Outcome(
        answer.phase,
        outcome_entry.outcome,
        outcome_entry.reason,
        outcome_entry.report_id,
        outcome_entry.stored_report_id,
        outcome_entry.replayed,
        answer.removed,
        outcome_entry.notes,
    )
    outcome.__dict__.update(raw_json_=answer.raw_json)
    return outcome
