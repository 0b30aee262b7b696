"""The operations on webhooks, for administrators of the whole fleet."""

from __future__ import annotations

from typing import Final

from hyperfleet.api.description.operations import Operation, Parameter, Success
from hyperfleet.api.description.resource_operations import IF_NONE_MATCH, NOT_MODIFIED
from hyperfleet.api.webhook_shapes import WebhookAnswer, WebhookList, WebhookTestAnswer
from hyperfleet.api.wire import BASE

_TAG: Final = "Events"
_NAME: Final = Parameter("name", "path", "The name of a webhook, as in the settings.", example="ops")
_ONE: Final = f"{BASE}/webhooks/{{name}}"


def webhook_operations() -> list[Operation]:
    """Return the operations on webhooks."""
    return [
        Operation(
            "get",
            f"{BASE}/webhooks",
            "listWebhooks",
            _TAG,
            "List the webhooks of the settings",
            (Success(200, "All of them, and how they are doing.", WebhookList, ("ETag",)), NOT_MODIFIED),
            "Only for callers who see all tenants.",
            (IF_NONE_MATCH,),
            refusals=("InvalidHeader",),
            role="admin",
        ),
        Operation(
            "get",
            _ONE,
            "getWebhook",
            _TAG,
            "Read a webhook",
            (Success(200, "The webhook, and how it is doing.", WebhookAnswer, ("ETag",)), NOT_MODIFIED),
            "Only for callers who see all tenants.",
            (_NAME, IF_NONE_MATCH),
            refusals=("InvalidHeader", "NotFound"),
            role="admin",
        ),
        Operation(
            "post",
            f"{_ONE}:test",
            "testWebhook",
            _TAG,
            "Send a test message",
            (Success(200, "What the receiver answered.", WebhookTestAnswer),),
            "Waits for the receiver for up to 10 s. It changes nothing: a disabled webhook stays disabled.",
            (_NAME,),
            refusals=("NotFound",),
            role="admin",
        ),
        Operation(
            "post",
            f"{_ONE}:enable",
            "enableWebhook",
            _TAG,
            "Let a disabled webhook send again",
            (Success(200, "The webhook.", WebhookAnswer),),
            "It continues with the problems that are open now. One that is not disabled stays as it is.",
            (_NAME,),
            refusals=("NotFound",),
            role="admin",
        ),
    ]
