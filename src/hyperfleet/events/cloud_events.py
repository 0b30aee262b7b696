"""CloudEvents 1.0 in structured mode: the JSON text of a message, and back.

Brokers and webhooks send this text; consumers read it. Reading is tolerant: the Go sentinel sets neither `time` nor
`subject` nor our extensions.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from hyperfleet.messaging import Message, Topic

GAP_TYPE: Final = "io.hyperfleet.gap"  # says that events were lost, so it is for every subscriber
CONTENT_TYPE: Final = "application/cloudevents+json; charset=UTF-8"


class MalformedEvent(ValueError):  # noqa: N818  # names a state
    """A text that is not a CloudEvent we can handle. Such a message is poison: to deliver it again does not help."""


class _CloudEvent(Struct, omit_defaults=True):
    specversion: str
    id: str
    source: str
    type: str
    subject: str = ""
    time: datetime | None = None
    datacontenttype: str = ""
    tenant: str = ""
    partitionkey: str = ""
    traceparent: str = ""
    data: Raw | UnsetType = UNSET


_decode: Final = msgspec.json.Decoder(_CloudEvent).decode


def encode_event(message: Message) -> bytes:
    """Return the text of a message."""
    return msgspec.json.encode(
        _CloudEvent(
            specversion="1.0",
            id=message.id,
            source=message.source,
            type=message.type,
            subject=message.subject,
            time=message.time,
            datacontenttype="application/json",
            tenant=message.tenant,
            partitionkey=message.partition_key,
            traceparent=message.traceparent,
            data=Raw(message.data),
        )
    )


def decode_event(text: bytes, topic: Topic) -> Message:
    """Read the text of a message; raises `MalformedEvent`."""
    try:
        event = _decode(text)
        data = read_data(b"" if event.data is UNSET else bytes(event.data))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MalformedEvent(f"not a CloudEvent: {error}") from error
    if event.specversion != "1.0":
        raise MalformedEvent(f"specversion is {event.specversion}; only 1.0 is known")
    return Message(
        topic=topic,
        id=event.id,
        source=event.source,
        type=event.type,
        subject=event.subject,
        time=event.time,
        tenant=event.tenant,
        partition_key=event.partitionkey or str(data.get("id") or ""),
        data=msgspec.json.encode(data),
        traceparent=event.traceparent,
        is_for_all=event.type == GAP_TYPE,
    )


def read_data(data: bytes) -> dict[str, Any]:
    """Read the data of an event, which must be an object."""
    found = msgspec.json.decode(data) if data else {}
    if not isinstance(found, dict):
        raise MalformedEvent("the data of the event is not an object")
    return found
