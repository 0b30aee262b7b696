"""The JSON Schemas of events and the AsyncAPI document, made of the types in `event_data`.

`make docs` writes the files in `schemas/`, which ship with the package; the API serves the AsyncAPI document with the
names of its topics. Nothing is written by hand twice.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from hyperfleet.documents.schema import describe_schema
from hyperfleet.events.cloud_events import CONTENT_TYPE
from hyperfleet.events.event_data import ClusterEvent, GapEvent, StatusEvent
from hyperfleet.messaging import TopicNames

_REFERENCE: Final = "#/components/schemas/{name}"


class CloudEvent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The envelope of every event: CloudEvents 1.0 in structured mode."""

    specversion: Annotated[Literal["1.0"], Meta(description="The version of CloudEvents: 1.0")]
    id: Annotated[
        str,
        Meta(
            description="The position of the change in the log; with -s on the topic of status updates; a UUID from a "
            "sentinel. The same id of the same source is the same event, delivered again."
        ),
    ]
    source: Annotated[str, Meta(description="/hyperfleet/{store id}/relay, or /hyperfleet/{store id}/sentinel/{name}")]
    type: Annotated[str, Meta(description="io.hyperfleet.{kind}.reconcile, io.hyperfleet.{kind}.status.changed")]
    subject: Annotated[str, Meta(description="The resource: {kind}/{id}")]
    time: Annotated[datetime | None, Meta(description="When the change was made")] = None
    datacontenttype: Annotated[Literal["application/json"], Meta(description="The type of `data`")]
    tenant: Annotated[str, Meta(description="The tenant of the resource; absent: it has none")] = ""
    partitionkey: Annotated[
        str, Meta(description="The id of the resource: events with the same key are published in order")
    ]
    traceparent: Annotated[str, Meta(description="W3C trace context of the publication, if it was traced")] = ""
    data: Annotated[dict[str, Any], Meta(description="What the event is about")]


class _EventType(Struct, frozen=True):
    """A type of event: its data, and the pattern of its `type`."""

    name: str
    data: type[Struct]
    pattern: str
    summary: str


_CLUSTER: Final = _EventType(
    "ClusterEvent", ClusterEvent, r"^io\.hyperfleet\.[a-z0-9]+\.reconcile$", "Look at a resource again"
)
_STATUS: Final = _EventType(
    "StatusEvent", StatusEvent, r"^io\.hyperfleet\.[a-z0-9]+\.status\.changed$", "The status of a resource changed"
)
_GAP: Final = _EventType("GapEvent", GapEvent, r"^io\.hyperfleet\.gap$", "Events were lost: look at everything")
_TYPES: Final = (_CLUSTER, _STATUS, _GAP)


def event_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of the envelope and of the data of each type, by file name."""
    shapes: dict[str, tuple[type[Struct], str]] = {
        "cloud-event": (CloudEvent, "HyperFleet event"),
        "cluster-event": (ClusterEvent, "Data of an event that asks to look at a resource again"),
        "status-event": (StatusEvent, "Data of an event about a changed status"),
        "gap-event": (GapEvent, "Data of an event about lost events"),
    }
    return {
        f"{name}.schema.json": describe_schema(shape, id_=f"urn:hyperfleet:schema:{name}", title=title)
        for name, (shape, title) in shapes.items()
    }


def describe_events(version: str, topics: TopicNames = TopicNames(), *, has_exchanges: bool = False) -> dict[str, Any]:  # noqa: B008  # frozen
    """Return the AsyncAPI document; `has_exchanges`: topics are exchanges of RabbitMQ."""
    shapes = [CloudEvent, *(each.data for each in _TYPES)]
    _, schemas = msgspec.json.schema_components(shapes, ref_template=_REFERENCE)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "HyperFleet events",
            "version": version,
            "description": "Delivered at least once. Events carry identity, never state: read the resource, and never "
            "act on an older generation. See docs/events.md.",
        },
        "defaultContentType": CONTENT_TYPE.partition(";")[0],
        "channels": {
            "clusterEvents": _channel(topics.cluster_events, (_CLUSTER, _GAP), has_exchanges),
            "statusUpdates": _channel(topics.status_updates, (_STATUS, _GAP), has_exchanges),
        },
        "operations": {
            "publishClusterEvents": _operation("clusterEvents", (_CLUSTER, _GAP)),
            "publishStatusUpdates": _operation("statusUpdates", (_STATUS, _GAP)),
        },
        "components": {
            "messages": {each.name: _message(each) for each in _TYPES},
            "schemas": dict(sorted(schemas.items())),
        },
    }


def _channel(address: str, types: tuple[_EventType, ...], has_exchanges: bool) -> dict[str, Any]:
    channel: dict[str, Any] = {
        "address": address,
        "messages": {each.name: {"$ref": f"#/components/messages/{each.name}"} for each in types},
    }
    if has_exchanges:
        exchange = {"name": address, "type": "topic", "durable": True, "autoDelete": False}
        channel["bindings"] = {"amqp": {"is": "routingKey", "exchange": exchange, "bindingVersion": "0.3.0"}}
    return channel


def _operation(channel: str, types: tuple[_EventType, ...]) -> dict[str, Any]:
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{channel}"},
        "messages": [{"$ref": f"#/channels/{channel}/messages/{each.name}"} for each in types],
    }


def _message(type_: _EventType) -> dict[str, Any]:
    data = {"$ref": _REFERENCE.format(name=type_.data.__name__)}
    own = {"type": "object", "properties": {"type": {"type": "string", "pattern": type_.pattern}, "data": data}}
    return {
        "name": type_.name,
        "summary": type_.summary,
        "contentType": CONTENT_TYPE.partition(";")[0],
        "payload": {"allOf": [{"$ref": _REFERENCE.format(name="CloudEvent")}, own]},
    }
