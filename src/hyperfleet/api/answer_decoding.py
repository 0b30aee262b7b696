"""Decodes stored answers: from the JSON of an answer back to the resource and the status it was made from.

The inverse of `wire.present`. `simulation` needs it to replay the past. What an answer does not contain is filled in;
that is exact unless the policy changed, or an adapter was retired, shortly before.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET

from hyperfleet.aggregation import Policy
from hyperfleet.api.wire import AdapterAnswer, ConditionAnswer, ResourceAnswer, StatusAnswer
from hyperfleet.model.condition import Condition
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import AdapterSummary, Memory, RawResult, Status
from hyperfleet.ports import LoggedEvent
from hyperfleet.services.past_events import RestoredVersion, RestoreVersion
from hyperfleet.services.workspace import Rules

_decode: Final = msgspec.json.Decoder(ResourceAnswer).decode


def answer_decoder(rules: Rules) -> RestoreVersion:
    """Return a decoder of stored answers; `rules` are those that the answers were computed with."""

    def decode(entry: LoggedEvent) -> RestoredVersion:
        if entry.answer is None:
            raise ValueError(f"event {entry.position} has no answer")
        answer = _read(entry.answer)
        resource = _resource(answer, entry)
        return RestoredVersion(resource, _status(answer.status, resource, rules.policies.select(resource), entry))

    return decode


def _read(raw: bytes) -> ResourceAnswer:
    """Decode an answer; earlier versions wrote `since` instead of `stateSince`."""
    try:
        return _decode(raw)
    except msgspec.ValidationError:
        answer = msgspec.json.decode(raw)
        for adapter in answer["status"]["adapters"]:
            adapter.setdefault("stateSince", adapter.get("since"))
        return msgspec.convert(answer, ResourceAnswer)


def _resource(answer: ResourceAnswer, entry: LoggedEvent) -> Resource:
    known = answer.metadata
    deletion_time = known.deletion_timestamp or None
    return Resource(
        id=answer.id,
        kind=answer.type,
        name=answer.name,
        generation=answer.generation,
        generation_time=deletion_time or known.updated_at,  # the last edit
        created_time=known.created_at,
        spec=answer.spec,
        labels=known.labels,
        tenant=entry.tenant,
        parent_id=entry.parent_id,
        deletion_time=deletion_time,
        updated_time=known.updated_at,
        created_by=known.created_by or "",
    )


def _status(answer: StatusAnswer, resource: Resource, policy: Policy, entry: LoggedEvent) -> Status:
    adapters = tuple([_adapter(each) for each in answer.adapters])
    moved = [each.state_since for each in adapters if each.name in policy.required]
    created = resource.created_time
    return Status(
        phase=answer.phase,
        phase_description=answer.phase_description,
        phase_since=answer.phase_since,
        conditions=tuple([_condition(each) for each in answer.conditions]),
        adapters=adapters,
        last_updated=answer.last_updated,
        policy=policy.digest,
        raw={
            each.type: RawResult(each.raw.status, each.raw.since, each.raw.since)
            for each in answer.conditions
            if each.raw is not UNSET
        },
        next_deadline=None,
        memory=Memory(entry.time, max(moved, default=created), dict.fromkeys(policy.required, created)),
    )


def _condition(answer: ConditionAnswer) -> Condition:
    return Condition(
        answer.type,
        answer.status,
        answer.reason,
        answer.message,
        answer.observed_generation,
        answer.last_transition_time,
    )


def _adapter(answer: AdapterAnswer) -> AdapterSummary:
    return AdapterSummary(
        answer.name,
        answer.available,
        answer.observed_generation,
        answer.state,
        answer.state_since,
        answer.stale,
    )
