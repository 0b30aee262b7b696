"""Messages of Google Pub/Sub: the text of a CloudEvent, and a few attributes, which are strings.

Consumers of others need the text only. The attributes are for filters and for dead letters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from google.pubsub_v1.types import PubsubMessage, ReceivedMessage

from hyperfleet.events.cloud_events import CONTENT_TYPE, MalformedEvent, decode_event, encode_event
from hyperfleet.messaging import DeadLetter, Message, Subscription, Topic

_TENANT: Final = "tenant"
_FOR_ALL: Final = "forall"  # set if every subscription gets the message, whatever its tenants
_REPLAYED: Final = "replayed"  # the only subscription that a replayed dead letter is for
_ERROR, _ATTEMPTS, _GIVEN_UP = "error", "attempts", "givenup"  # of a dead letter of ours
_SERVICE_ATTEMPTS: Final = "CloudPubSubDeadLetterSourceDeliveryCount"  # of one that the service has made

_ATTRIBUTE_BYTES: Final = 1024  # the longest value of an attribute
_FILTER_BYTES: Final = 256  # the longest filter
_REQUEST_MESSAGES: Final = 1000  # the most of one request
_REQUEST_BYTES: Final = 9_000_000  # the service takes 10 MB; the rest is for names and attributes
_SHOWN: Final = 4096  # bytes of a poison message that are shown


def encode_message(message: Message, *, is_ordered: bool) -> PubsubMessage:
    """Return a message as it is published."""
    attributes = {"content-type": CONTENT_TYPE}
    if message.tenant:
        attributes[_TENANT] = message.tenant
    if message.is_for_all:
        attributes[_FOR_ALL] = "true"
    key = message.partition_key if is_ordered else ""
    return PubsubMessage(data=encode_event(message), attributes=attributes, ordering_key=key)


def decode_message(received: PubsubMessage, topic: Topic) -> Message:
    """Read a message; raises `MalformedEvent`."""
    message = decode_event(received.data, topic)
    return msgspec.structs.replace(message, is_for_all=received.attributes.get(_FOR_ALL) == "true")


def split_requests(messages: Sequence[PubsubMessage]) -> Iterator[list[PubsubMessage]]:
    """Split messages into requests that the service takes, in their order."""
    request: list[PubsubMessage] = []
    size = 0
    for message in messages:
        length = len(message.data)
        if request and (len(request) == _REQUEST_MESSAGES or size + length > _REQUEST_BYTES):
            yield request
            request, size = [], 0
        request.append(message)
        size += length
    if request:
        yield request


def is_for(received: PubsubMessage, name: str) -> bool:
    """Tell whether a message is for the subscription with this name at the service: a replayed one is for one only."""
    return received.attributes.get(_REPLAYED, name) == name


def write_filter(subscription: Subscription, name: str) -> str:
    """Return the filter of a subscription, so that the service need not send what its consumers skip.

    It is empty if it would be longer than the service allows: consumers check each message in any case.
    """
    own = f"(NOT attributes:{_REPLAYED} OR attributes.{_REPLAYED} = {_quote(name)})"
    tenants = sorted(subscription.tenants or ())
    visible = [f"attributes:{_FOR_ALL}", *(f"attributes.{_TENANT} = {_quote(tenant)}" for tenant in tenants)]
    full = own if subscription.tenants is None else f"{own} AND ({' OR '.join(visible)})"
    return next((text for text in (full, own) if len(text.encode()) <= _FILTER_BYTES), "")


def make_dead_letter(received: PubsubMessage, error: str, attempts: int) -> PubsubMessage:
    """Return a message as it is published to the topic of dead letters."""
    given_up = {_ERROR: _cut(error), _ATTEMPTS: str(attempts), _GIVEN_UP: datetime.now(UTC).isoformat()}
    return PubsubMessage(data=received.data, attributes={**received.attributes, **given_up})


def make_replay(dead: PubsubMessage, name: str, *, is_ordered: bool) -> PubsubMessage:
    """Return a dead letter as it is published again, for the subscription with this name at the service."""
    kept = {key: value for key, value in dead.attributes.items() if key in ("content-type", _TENANT, _FOR_ALL)}
    try:
        key = decode_event(dead.data, "clusterEvents").partition_key
    except MalformedEvent:
        key = ""
    return PubsubMessage(data=dead.data, attributes={**kept, _REPLAYED: name}, ordering_key=key if is_ordered else "")


def read_dead_letter(received: ReceivedMessage, topic: Topic) -> DeadLetter:
    """Read a message of the subscription to dead letters."""
    dead = received.message
    attempts = dead.attributes.get(_ATTEMPTS) or dead.attributes.get(_SERVICE_ATTEMPTS) or ""
    return DeadLetter(
        key=dead.message_id,
        message=_read_anything(dead, topic),
        error=dead.attributes.get(_ERROR, "it was delivered many times, and no consumer answered"),
        attempts=int(attempts) if attempts.isascii() and attempts.isdigit() else 0,
        time=_read_time(dead.attributes.get(_GIVEN_UP, "")) or dead.publish_time,
    )


def _read_anything(dead: PubsubMessage, topic: Topic) -> Message:
    """Read a message, even if it is poison: then its data is the beginning of its text."""
    try:
        return decode_message(dead, topic)
    except MalformedEvent:
        shown = msgspec.json.encode({"text": dead.data[:_SHOWN].decode(errors="replace")})
        return Message(topic, dead.message_id, "", "", "", None, dead.attributes.get(_TENANT, ""), "", shown)


def _read_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _quote(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _cut(text: str) -> str:
    return text.encode(errors="replace")[:_ATTRIBUTE_BYTES].decode(errors="ignore")
