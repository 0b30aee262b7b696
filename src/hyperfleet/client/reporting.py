"""What adapters say: from a few words to the report that the contract asks for. Flows of both faces.

A report is safe to be sent again: the very same one is known by its time and counts once. That is why the time is
set when it is made and not when it is sent.
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
from hyperfleet.client.effects import Flow, Request
from hyperfleet.client.errors import UnexpectedAnswer
from hyperfleet.client.exchange import JSON, Patience, fetch
from hyperfleet.client.places import BASE, NODE_POOLS, Subject, place_of
from hyperfleet.client.query import query_of
from hyperfleet.model.report import APPLIED, AVAILABLE, FINALIZED, HEALTH

_MOST_AT_ONCE: Final = 500  # reports of a batch; servers take 1,000 unless told otherwise


class Verdict(Struct, frozen=True):
    """A condition in an adapter's words: its status, a reason in CamelCase, a message for people."""

    status: bool | str | None  # None: Unknown
    reason: str = ""
    message: str = ""


Said: TypeAlias = Verdict | bool | str | None


class Words(TypedDict, total=False):
    """What a report says. `reason` and `message` are those of Available; a `Verdict` says them of another one."""

    available: Required[Said]  # has the work succeeded? None: it is not known yet
    applied: Said  # has what the work needs been created? Yes, unless told
    health: Said  # has nothing unexpected happened? Yes, unless told
    finalized: Said  # when deleting: has everything been cleaned up?
    reason: str
    message: str
    conditions: Mapping[str, Said]  # further ones, by type
    data: Mapping[str, Any]
    metadata: Mapping[str, Any]
    generation: int | None  # that was looked at; unless told, that of the object, or the present one
    observed_time: datetime | None  # when it was looked at; now, unless told


class BatchReport(Struct, frozen=True):
    """One report of a batch: what it is about, of which generation, and what it says."""

    subject: Subject
    adapter: str
    words: Words


def compose(adapter: str, words: Words, generation: int, now: datetime) -> dict[str, Any]:
    """Write a report as it is sent."""
    about = Verdict(None, words.get("reason", ""), words.get("message", ""))
    said: dict[str, Said] = {
        AVAILABLE: words["available"],
        APPLIED: words.get("applied", True),
        HEALTH: words.get("health", True),
        **({FINALIZED: words["finalized"]} if "finalized" in words else {}),
        **words.get("conditions", {}),
    }
    observed = words.get("observed_time") or now
    return {
        "adapter": adapter,
        "observedGeneration": generation,
        "observedTime": observed.isoformat(),
        "conditions": [_condition(type_, each, about if type_ == AVAILABLE else None) for type_, each in said.items()],
        **{key: words[key] for key in ("data", "metadata") if words.get(key)},
    }


def report(subject: Subject, adapter: str, words: Words, patience: Patience) -> Flow[Outcome]:
    """Send a report on one resource; the generation is read only if nobody says it."""
    path = yield from place_of(subject).locate(subject, patience)
    generation = _told_generation(subject, words)
    if generation is None:
        request = Request("GET", path, query_of({"fields": "generation"}))
        generation = (yield from fetch(Resource, request, patience)).generation
    body = compose(adapter, words, generation, patience.surroundings.now())
    headers = {**JSON, "Prefer": "return=minimal"}
    answer = yield from fetch(
        ReportAnswer, Request("POST", f"{path}/statuses", (), headers, msgspec.json.encode(body)), patience
    )
    return _outcome(answer)


def report_batch(reports: Iterable[BatchReport | Mapping[str, Any]], patience: Patience) -> Flow[BatchResult]:
    """Send many reports on many resources; each is taken in or refused as if it had come alone."""
    bodies = [_entry(each, patience) for each in reports]
    results: list[BatchEntry] = []
    answer = BatchResult()
    for start in range(0, len(bodies), _MOST_AT_ONCE):
        part = msgspec.json.encode({"reports": bodies[start : start + _MOST_AT_ONCE]})
        answer = yield from fetch(BatchResult, Request("POST", f"{BASE}/statuses:batch", (), JSON, part), patience)
        results += [replace(each, index=each.index + start) for each in answer.results]
    if len(bodies) <= _MOST_AT_ONCE:
        return answer
    refused = sum(each.problem is not None for each in results)
    return BatchResult(tuple(results), len(results) - refused, refused)


def _entry(given: BatchReport | Mapping[str, Any], patience: Patience) -> Mapping[str, Any]:
    if not isinstance(given, BatchReport):
        return given
    generation = _told_generation(given.subject, given.words)
    if generation is None:
        raise ValueError("a report of a batch needs a generation, or an object that has one")
    body = compose(given.adapter, given.words, generation, patience.surroundings.now())
    return {**_name(given.subject), **body}


def _name(subject: Subject) -> dict[str, str]:
    """Say which resource a report of a batch is about."""
    id_ = subject.id if isinstance(subject, Resource) else subject.rstrip("/").rpartition("/")[2]
    return {"nodePoolId" if place_of(subject) is NODE_POOLS else "clusterId": id_}


def _told_generation(subject: Subject, words: Words) -> int | None:
    told = words.get("generation")
    if told is None and isinstance(subject, Resource):
        return subject.generation or None  # it may have been read without it
    return told


def _condition(type_: str, said: Said, about: Verdict | None) -> dict[str, str]:
    verdict = said if isinstance(said, Verdict) else Verdict(said, *((about.reason, about.message) if about else ()))
    written = {"type": type_, "status": _status(verdict.status), "reason": verdict.reason, "message": verdict.message}
    return {key: value for key, value in written.items() if value}


def _status(said: bool | str | None) -> str:
    return said if isinstance(said, str) else {True: "True", False: "False", None: "Unknown"}[said]


def _outcome(answer: ReportAnswer) -> Outcome:
    if len(answer.outcomes) != 1:
        raise UnexpectedAnswer(f"one report was sent, and {len(answer.outcomes)} outcomes came back")
    told = answer.outcomes[0]
    outcome = Outcome(
        answer.phase,
        told.outcome,
        told.reason,
        told.report_id,
        told.stored_report_id,
        told.replayed,
        answer.removed,
        told.notes,
    )
    outcome.__dict__.update(raw_json_=answer.raw_json)
    return outcome
