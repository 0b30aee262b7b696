"""Answers about webhooks."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from hyperfleet.client.answers.document import ApiDocument


class WebhookCause(Struct, frozen=True, rename="camel"):
    """A problem that a webhook has sent, or is about to send, and that is not over."""

    id: str
    adapter: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0
    since: datetime | None = None


class Webhook(ApiDocument, frozen=True, rename="camel", dict=True):
    """A webhook of the server's settings, and how it is doing: `state` is ok, failing or disabled."""

    name: str
    address: str = ""
    format: str = ""
    state: str = ""
    send: tuple[str, ...] = ()
    tenants: tuple[str, ...] | None = None
    failing_since: datetime | None = None
    disabled_since: datetime | None = None
    last_error: str = ""
    last_sent: datetime | None = None
    waiting_since: datetime | None = None
    open_causes: tuple[WebhookCause, ...] = ()
    open_cause_count: int = 0


class WebhookTest(ApiDocument, frozen=True, rename="camel", dict=True):
    """What the receiver answered to a test message; status 0: nothing."""

    delivered: bool
    status: int = 0
    error: str = ""
