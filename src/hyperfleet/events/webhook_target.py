"""The settings of a webhook: where to send which changes, and in which form.

Part of the settings tree. Loads nothing that sends. `webhook_checks` checks what types cannot say.
"""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from hyperfleet.model.phase import Phase

Text = Annotated[str, Meta(min_length=1)]
WebhookFormat = Literal["cloudevents", "slack", "alertmanager"]
WebhookContent = Literal["problems", "changes"]


class _Part(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the settings."""


class WebhookFilter(_Part, frozen=True, kw_only=True):
    """Which problems and changes are sent. Every key that is given must match."""

    kinds: Annotated[tuple[Text, ...], Meta(description="Only resources of these kinds")] = ()
    label_selector: Annotated[str, Meta(description="Only resources with these labels, as in lists")] = ""
    phases: Annotated[
        tuple[Phase, ...],
        Meta(description="Problems of resources in these phases; changes into or out of one of these phases"),
    ] = ()
    conditions: Annotated[
        tuple[Text, ...],
        Meta(description="Problems of resources with one of these conditions not True; changes of these conditions"),
    ] = ()
    causes: Annotated[
        tuple[Text, ...],
        Meta(description="Problems of these adapters, or with these reasons; changes with these reasons"),
    ] = ()


class Webhook(_Part, frozen=True, kw_only=True):
    """One receiver."""

    name: Annotated[
        str, Meta(pattern="^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", description="Its name in logs, metrics and the API")
    ]
    url: Annotated[Text, Meta(description="The https URL of the receiver; only its host is ever shown")]
    format: Annotated[WebhookFormat, Meta(description="The form of the messages")] = "cloudevents"
    send: Annotated[
        tuple[WebhookContent, ...],
        Meta(
            min_length=1,
            description="`problems`: failing adapters, grouped by cause, and when they are over. `changes`: every "
            "transition of a phase or condition",
        ),
    ] = ("problems",)
    secret_file: Annotated[
        Text | None, Meta(description="The file with the key of the signature; required for `cloudevents`")
    ] = None
    ca_file: Annotated[Text | None, Meta(description="The file with the CA of the receiver, if it is not public")] = (
        None
    )
    allow_private: Annotated[bool, Meta(description="Allow a private or loopback address, and plain http to it")] = (
        False
    )
    tenants: Annotated[
        tuple[Text, ...] | None, Meta(description="Only resources of these tenants; absent: of all tenants")
    ] = None
    filter: WebhookFilter = WebhookFilter()

    @property
    def address(self) -> str:
        """Return scheme, host and port of the receiver: all that may be shown, as the rest may be a secret."""
        parts = urlsplit(self.url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")

    def __repr__(self) -> str:
        """Show no more than the address: this may end up in a log."""
        return f"Webhook({self.name}, {self.address})"
