"""Writes the current span into messages, so that consumers can continue the trace in which they were published."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hyperfleet.messaging import Message
from hyperfleet.services.tracing import CURRENT_SPAN


def with_traceparent(messages: Sequence[Message]) -> Sequence[Message]:
    """Return messages with the W3C trace context of the current span, if that is recorded."""
    here = CURRENT_SPAN.get()
    if here is None or not here.is_recorded:
        return messages
    traceparent = f"00-{here.trace_id}-{here.span_id}-01"
    return [replace(message, traceparent=traceparent) for message in messages]
