"""The answers about webhooks. No secret is in them: of a URL only scheme, host and port."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from hyperfleet.api.wire import Time
from hyperfleet.events.webhook_target import WebhookContent, WebhookFilter, WebhookFormat

Count = Annotated[int, Meta(ge=0)]


class OpenCause(Struct, frozen=True):
    """A problem that is not over."""

    id: str
    adapter: str
    reason: str
    message: Annotated[str, Meta(description="With placeholders for numbers, names and addresses.")]
    count: Annotated[Count, Meta(description="Resources that have the cause now.")]
    since: Time


class WebhookAnswer(Struct, frozen=True, rename="camel", kw_only=True):
    """A webhook and how it is doing, at whichever replica it is sent from."""

    name: str
    address: Annotated[str, Meta(description="Scheme, host and port of its URL; the rest may be a secret.")]
    format: WebhookFormat
    send: tuple[WebhookContent, ...]
    tenants: Annotated[tuple[str, ...] | None, Meta(description="Only resources of these tenants; null: of all.")]
    filter: WebhookFilter
    state: Annotated[
        Literal["ok", "failing", "disabled"],
        Meta(description="A failing webhook is tried again; a disabled one must be enabled."),
    ]
    failing_since: Time | UnsetType = UNSET
    disabled_since: Time | UnsetType = UNSET
    last_error: Annotated[str | UnsetType, Meta(description="Why the last attempt failed; absent: it did not.")] = UNSET
    last_sent: Annotated[Time | UnsetType, Meta(description="When the last message was taken.")] = UNSET
    waiting_since: Annotated[
        Time | UnsetType, Meta(description="The time of the oldest change that is yet to be sent; absent: none.")
    ] = UNSET
    open_causes: Annotated[tuple[OpenCause, ...], Meta(description="The first 20, the oldest first.")]
    open_cause_count: Count


class WebhookList(Struct, frozen=True):
    """All webhooks, in the order of the settings."""

    items: tuple[WebhookAnswer, ...]


class WebhookTestAnswer(Struct, frozen=True):
    """What the receiver answered to a test message."""

    delivered: Annotated[bool, Meta(description="The receiver took the message: its status is 2xx.")]
    status: Annotated[int, Meta(description="The status of its answer; 0: there was none.", ge=0)]
    error: Annotated[str | UnsetType, Meta(description="Why it was not delivered.")] = UNSET
