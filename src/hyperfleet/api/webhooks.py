"""Webhooks, for administrators of the whole fleet: how they are doing, a test message, enabling one again."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.callers import require_everything
from hyperfleet.api.context import Context
from hyperfleet.api.problems import Problem, Refused
from hyperfleet.api.responses import answer_made, answer_written
from hyperfleet.api.webhook_shapes import OpenCause, WebhookAnswer, WebhookList, WebhookTestAnswer
from hyperfleet.events.webhooks import Webhooks, WebhookStatus

_MAX_CAUSES: Final = 20  # shown of one webhook
_ONE: Final = "/webhooks/{name:plain}"
_VERB: Final = "/webhooks/{name}"


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""
    handlers = _WebhookHandlers(context.events.webhooks)
    return [
        Route("/webhooks", handlers.list, methods=["GET"]),
        Route(_ONE, handlers.read, methods=["GET"]),
        Route(f"{_VERB}:test", handlers.test, methods=["POST"]),
        Route(f"{_VERB}:enable", handlers.enable, methods=["POST"]),
    ]


class _WebhookHandlers(Struct, frozen=True):
    """The handlers."""

    webhooks: Webhooks | None

    async def list(self, request: Request) -> Response:
        """Answer all webhooks."""
        require_everything(request)
        statuses = () if self.webhooks is None else await self.webhooks.statuses()
        return answer_made(request, WebhookList(tuple([_present(status) for status in statuses])))

    async def read(self, request: Request) -> Response:
        """Answer one webhook."""
        _, status = await self._find(request)
        return answer_made(request, _present(status))

    async def test(self, request: Request) -> Response:
        """Send a test message and answer what the receiver did."""
        webhooks, status = await self._find(request)
        result = await webhooks.test(status.webhook.name)
        answer = WebhookTestAnswer(not result.error, result.status, result.error or UNSET)
        return answer_written(request, 200, msgspec.json.encode(answer))

    async def enable(self, request: Request) -> Response:
        """Let a webhook send again; one that is not disabled stays as it is."""
        webhooks, status = await self._find(request)
        await webhooks.enable(status.webhook.name)
        _, after = await self._find(request)
        return answer_written(request, 200, msgspec.json.encode(_present(after)))

    async def _find(self, request: Request) -> tuple[Webhooks, WebhookStatus]:
        """Return the webhook that the path names."""
        require_everything(request)
        name = str(request.path_params["name"])
        if self.webhooks is not None:
            for status in await self.webhooks.statuses():
                if status.webhook.name == name:
                    return self.webhooks, status
        raise Refused(Problem("NotFound", f"there is no webhook {name} in the settings"))


def _present(status: WebhookStatus) -> WebhookAnswer:
    webhook, state = status.webhook, status.state
    problems = sorted(state.problems.items(), key=lambda item: (item[1].since, item[0]))
    return WebhookAnswer(
        name=webhook.name,
        address=webhook.address,
        format=webhook.format,
        send=webhook.send,
        tenants=webhook.tenants,
        filter=webhook.filter,
        state="disabled" if state.disabled_time else "failing" if state.failing_since else "ok",
        failing_since=state.failing_since or UNSET,
        disabled_since=state.disabled_time or UNSET,
        last_error=state.last_error or UNSET,
        last_sent=state.sent_time or UNSET,
        waiting_since=status.waiting_since or UNSET,
        open_causes=tuple(
            OpenCause(id_, each.adapter, each.reason, each.message, len(each.members), each.since)
            for id_, each in problems[:_MAX_CAUSES]
        ),
        open_cause_count=len(problems),
    )
