"""Events as consumers see them: typed, with the data read. Handlers get these, from every broker and from the client.

Imported by the client, so it knows nothing of the server and loads nothing slow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.events.cloud_events import MalformedEvent, read_data
from hyperfleet.messaging import Message

MAX_ERROR: Final = 2_000  # characters of an error that are kept with a dead letter
_ADAPTER: Final = "adapter"


class Poison(Exception):  # noqa: N818  # names what the event is
    """Raised by a handler: to deliver the event again does not help, make it a dead letter at once."""


class Event(Struct, frozen=True, kw_only=True):
    """One event. It tells that something may have changed, never what it is now: read the resource."""

    id: str
    type: str
    source: str
    subject: str
    time: datetime | None
    tenant: str
    data: Mapping[str, Any]
    attempt: int = 1  # how often it was delivered, this time included
    traceparent: str = ""
    older: tuple[Event, ...] = ()  # events of the resource that came before and are handled with this one

    @property
    def resource_id(self) -> str:
        """Return the id of the resource; empty for a gap."""
        return _text(self.data, "id")

    @property
    def kind(self) -> str:
        """Return the kind of the resource."""
        return _text(self.data, "kind")

    @property
    def href(self) -> str:
        """Return the path of the resource in the API."""
        return _text(self.data, "href")

    @property
    def generation(self) -> int:
        """Return the generation of the resource at the time of the event; 0: it has none."""
        found = self.data.get("generation")
        return found if isinstance(found, int) else 0

    @property
    def reason(self) -> str:
        """Return why it was sent."""
        return _text(self.data, "reason")

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return every reason of this event and of the older ones it stands for, the oldest first."""
        return tuple(dict.fromkeys(each.reason for each in (*self.older, self)))

    @property
    def adapter(self) -> str:
        """Return the adapter whose state changed, which ignores the event; empty: it is for every adapter."""
        return _text(self.data, _ADAPTER)

    @property
    def is_gap(self) -> bool:
        """Return whether events were lost before this one: look at everything."""
        return self.type == "io.hyperfleet.gap"


def event_of(message: Message, attempt: int = 1) -> Event:
    """Read the data of a message; raises `MalformedEvent`."""
    try:
        data = read_data(message.data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MalformedEvent(f"the data of the event is not JSON: {error}") from error
    return Event(
        id=message.id,
        type=message.type,
        source=message.source,
        subject=message.subject,
        time=message.time,
        tenant=message.tenant,
        data=data,
        attempt=attempt,
        traceparent=message.traceparent,
    )


def merge(events: Sequence[Event]) -> Event:
    """Return one event for several of a resource: the newest, with the others as `older`.

    The newest has the highest generation; of the same generation, it came last. Its adapter would ignore it, so it
    names one only if all of them name the same.
    """
    index = max(range(len(events)), key=lambda at: (events[at].generation, at))
    newest = events[index]
    older = tuple(event for at, event in enumerate(events) if at != index)
    if any(event.adapter != newest.adapter for event in older):
        newest = replace(newest, data={key: value for key, value in newest.data.items() if key != _ADAPTER})
    return replace(newest, older=older)


def describe_error(error: BaseException) -> str:
    """Return the text of an error as a dead letter keeps it."""
    return (f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)[:MAX_ERROR]


def _text(data: Mapping[str, Any], key: str) -> str:
    found = data.get(key)
    return found if isinstance(found, str) else ""
