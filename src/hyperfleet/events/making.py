"""What becomes an event: from one change of the log to the messages that the relay publishes. Pure.

A change makes at most one message on each topic, so the position of the change names them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from hyperfleet.events.cloud_events import GAP_TYPE
from hyperfleet.events.event_data import (
    CauseData,
    ClusterEvent,
    GapEvent,
    Reference,
    RelayReason,
    StatusEvent,
    TransitionData,
)
from hyperfleet.messaging import Message, Topic
from hyperfleet.model.event import EventType
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import AdapterState
from hyperfleet.ports import FacetChange, LogGap, LoggedChange
from hyperfleet.services.facets import adapters_in, phase_in

TYPE_PREFIX: Final = "io.hyperfleet"

_REASONS: Final[dict[EventType, RelayReason]] = {
    "Created": "Created",
    "SpecChanged": "SpecChanged",
    "DeletionRequested": "DeletionRequested",
    "Removed": "Removed",
    "ReconcileRequested": "Requested",
}
_EMPTY: Final[Mapping[str, Any]] = {}
_SUFFIXES: Final[dict[Topic, str]] = {"clusterEvents": "", "statusUpdates": "-s"}  # of ids
_ID: Final = re.compile(r"(?:(?P<position>[0-9]{1,18})|gap-(?P<after>[0-9]{1,18})-[0-9]+)(?:-s)?")
_COMPLETED: Final[AdapterState] = "Completed"


class Origin(Struct, frozen=True):
    """Where events come from, and how they refer to resources."""

    store_id: str
    href: Callable[[str, str, str | None], str]  # kind, id, id of the parent → path
    parent_kind: Callable[[str], str | None]  # kind → kind of its parents

    @property
    def relay(self) -> str:
        """Return the source of events that the relay publishes."""
        return f"/hyperfleet/{self.store_id}/relay"

    def sentinel(self, name: str) -> str:
        """Return the source of events that a sentinel publishes."""
        return f"/hyperfleet/{self.store_id}/sentinel/{name}"

    def webhook(self, name: str) -> str:
        """Return the source of events that a webhook makes."""
        return f"/hyperfleet/{self.store_id}/webhook/{name}"

    def owner_of(self, kind: str, parent_id: str | None) -> Reference | UnsetType:
        """Return the reference to the parent of a resource."""
        parent = self.parent_kind(kind)
        if parent_id is None or parent is None:
            return UNSET
        return Reference(parent_id, parent, self.href(parent, parent_id, None))


class Sender(Struct, frozen=True):
    """A sentinel that sends an event, and the event's id and time."""

    origin: Origin
    name: str
    event_id: str
    time: datetime


def messages_of(change: LoggedChange, origin: Origin) -> Iterator[Message]:
    """Yield the messages that a change makes."""
    if (event := _cluster_event(change, origin)) is not None:
        yield _message(change, origin, "clusterEvents", str(change.position), "reconcile", msgspec.json.encode(event))
    if change.transitions:
        status = msgspec.json.encode(_status_event(change, origin))
        yield _message(change, origin, "statusUpdates", f"{change.position}-s", "status.changed", status)


def look_message(resource: Resource, reason: str, sender: Sender, extra: Mapping[str, Any] = _EMPTY) -> Message:
    """Return the message of a sentinel that asks to look at a resource; of `extra`, our own keys win."""
    origin = sender.origin
    event = ClusterEvent(
        id=resource.id,
        kind=resource.kind,
        href=origin.href(resource.kind, resource.id, resource.parent_id),
        generation=resource.generation,
        owner_references=origin.owner_of(resource.kind, resource.parent_id),
        reason=reason,
    )
    return Message(
        topic="clusterEvents",
        id=sender.event_id,
        source=origin.sentinel(sender.name),
        type=f"{TYPE_PREFIX}.{resource.kind.lower()}.reconcile",
        subject=f"{resource.kind}/{resource.id}",
        time=sender.time,
        tenant=resource.tenant,
        partition_key=resource.id,
        data=msgspec.json.encode({**extra, **msgspec.to_builtins(event)} if extra else event),
    )


def gap_message(gap: LogGap, origin: Origin, topic: Topic = "clusterEvents") -> Message:
    """Return the message about lost changes, for every subscriber of a topic."""
    data = msgspec.json.encode(GapEvent(after=gap.after, upto=gap.upto))
    id_ = f"gap-{gap.after}-{gap.upto}{_SUFFIXES[topic]}"
    return Message(topic, id_, origin.relay, GAP_TYPE, "gap", None, "", "gap", data, is_for_all=True)


def position_before(id_: str) -> int:
    """Return the position before the change that made a message, or before a gap; 0: its id does not tell."""
    found = _ID.fullmatch(id_)
    if found is None:
        return 0
    return int(found["after"]) if found["after"] else int(found["position"]) - 1


def _cluster_event(change: LoggedChange, origin: Origin) -> ClusterEvent | None:
    reason = _REASONS.get(change.type)
    changed: frozenset[str] = frozenset()
    if reason is None:
        changed = completion_changes(change.facets)
        if not changed:
            return None
        reason = "AdapterChanged"
    return ClusterEvent(
        id=change.resource_id,
        kind=change.kind,
        href=origin.href(change.kind, change.resource_id, change.parent_id),
        generation=change.generation,
        owner_references=origin.owner_of(change.kind, change.parent_id),
        reason=reason,
        # Of several adapters none is named: each must look, as another one has changed too.
        adapter=next(iter(changed)) if len(changed) == 1 else UNSET,
    )


def completion_changes(facets: FacetChange | None) -> frozenset[str]:
    """Return the adapters whose state became Completed or is no longer Completed."""
    if facets is None:
        return frozenset()
    return adapters_in(facets.gained, _COMPLETED) ^ adapters_in(facets.lost, _COMPLETED)


def _status_event(change: LoggedChange, origin: Origin) -> StatusEvent:
    facets = change.facets
    is_removed = change.type == "Removed" or facets is None
    cause = change.transitions[0].cause
    return StatusEvent(
        id=change.resource_id,
        kind=change.kind,
        href=origin.href(change.kind, change.resource_id, change.parent_id),
        generation=change.generation,
        owner_references=origin.owner_of(change.kind, change.parent_id),
        phase=None if is_removed or facets is None else phase_in((*facets.kept, *facets.gained)),
        transitions=tuple(
            TransitionData(
                subject=moved.transition.subject,
                before=moved.transition.before,
                after=moved.transition.after,
                reason=moved.transition.reason,
                message=moved.transition.message,
                since=moved.since,
            )
            for moved in change.transitions
        ),
        cause=CauseData(cause.kind, cause.ref),
    )


def _message(change: LoggedChange, origin: Origin, topic: Topic, id_: str, verb: str, data: bytes) -> Message:
    return Message(
        topic=topic,
        id=id_,
        source=origin.relay,
        type=f"{TYPE_PREFIX}.{change.kind.lower()}.{verb}",
        subject=f"{change.kind}/{change.resource_id}",
        time=change.time,
        tenant=change.tenant,
        partition_key=change.resource_id,
        data=data,
    )
