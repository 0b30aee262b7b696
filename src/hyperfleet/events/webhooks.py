"""All webhooks of a server: start, stop, and what administrators see and do."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from hyperfleet.errors import DeliveryFailed
from hyperfleet.events.webhook_messages import ProbeNotice, write_notice
from hyperfleet.events.webhook_sender import READER_PREFIX, WebhookSender, WebhookServices
from hyperfleet.events.webhook_state import WebhookState, oldest_due
from hyperfleet.events.webhook_target import Webhook
from hyperfleet.services.ids import new_id
from hyperfleet.services.loops import Loop

if TYPE_CHECKING:
    from hyperfleet.events.webhook_delivery import Resolve, WebhookDelivery

_LOG: Final = logging.getLogger(__name__)
_CLEANING: Final = 600.0  # seconds between searches for readers of webhooks that are no longer in the settings
_LEASE: Final = timedelta(seconds=20)


class WebhookStatus(Struct, frozen=True):
    """A webhook and how it is doing."""

    webhook: Webhook
    state: WebhookState
    waiting_since: datetime | None = None  # when the oldest change that is not sent was made; None: all are

    def lag_seconds(self, now: datetime) -> float:
        """Return for how long the oldest change has waited."""
        return 0.0 if self.waiting_since is None else max((now - self.waiting_since).total_seconds(), 0.0)


class ProbeResult(Struct, frozen=True):
    """What the receiver answered to a test message; status 0: nothing."""

    status: int
    error: str = ""


class Webhooks:
    """The webhooks of the settings."""

    def __init__(self, webhooks: Sequence[Webhook], services: WebhookServices, resolve: Resolve | None = None) -> None:
        """Prepare a sender for each; nothing runs before `start`. `resolve` finds the addresses of a name."""
        self._services = services
        self._deliveries = _open_deliveries(webhooks, resolve) if webhooks else {}
        self.senders = tuple(WebhookSender(each, services, self._deliveries[each.name]) for each in webhooks)
        self._cleaning = Loop("webhooks", self._clean_up)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """Return all loops, to be observed."""
        return (self._cleaning, *(sender.loop for sender in self.senders))

    async def start(self) -> None:
        """Start sending."""
        for sender in self.senders:
            await sender.start()
        self._cleaning.start()

    async def stop(self) -> None:
        """Stop sending, and let another replica continue at once."""
        await self._cleaning.stop()
        for sender in self.senders:
            await sender.stop()

    async def statuses(self) -> tuple[WebhookStatus, ...]:
        """Return all webhooks, in the order of the settings, and how they are doing at any replica."""
        if not self.senders:
            return ()
        store = self._services.store
        saved = await store.read_webhooks()
        unread = {reader.name: reader.unread_since for reader in await store.readers()}
        now = self._services.clock.now()
        found: list[WebhookStatus] = []
        for sender in self.senders:
            webhook = sender.webhook
            state = WebhookState.decode(saved.get(webhook.name, b""))
            due = oldest_due(state)
            waiting = [unread.get(READER_PREFIX + webhook.name), due if due is not None and due <= now else None]
            since = min((each for each in waiting if each is not None), default=None)
            found.append(WebhookStatus(webhook, state, None if state.disabled_time else since))
        return tuple(found)

    async def test(self, name: str) -> ProbeResult:
        """Send a test message; it changes nothing."""
        (sender,) = (each for each in self.senders if each.webhook.name == name)
        now = self._services.clock.now()
        origin = self._services.make_origin(await self._services.store.store_id())
        written = write_notice(ProbeNotice(new_id("test"), now), sender.webhook, origin)
        try:
            return ProbeResult(await self._deliveries[name].send(written, now))
        except DeliveryFailed as failure:
            return ProbeResult(failure.status, str(failure))

    async def enable(self, name: str) -> None:
        """Let a disabled webhook send again; the replica that sends for it notices within a second."""
        store = self._services.store
        state = WebhookState.decode((await store.read_webhooks()).get(name, b""))
        if state.disabled_time is not None:
            await store.open_reader(READER_PREFIX + name)
            await store.save_webhook(name, state.enabled().encode())

    async def _clean_up(self) -> float:
        """Forget webhooks that are in the settings of no replica: pruning must not wait for their readers."""
        store = self._services.store
        known = {sender.webhook.name for sender in self.senders}
        readers = {reader.name.removeprefix(READER_PREFIX) for reader in await store.readers() if _is_ours(reader.name)}
        for name in (readers | set(await store.read_webhooks())) - known:
            lease = await store.take_lease(READER_PREFIX + name, self._services.holder, _LEASE)
            if lease is not None:  # no other replica sends for it
                await store.close_reader(READER_PREFIX + name)
                await store.save_webhook(name, b"", lease)
                await store.release_lease(lease)
                _LOG.warning("webhook %s is no longer in the settings; what it had not sent is forgotten", name)
        return _CLEANING


def _is_ours(reader: str) -> bool:
    return reader.startswith(READER_PREFIX)


def _open_deliveries(webhooks: Sequence[Webhook], resolve: Resolve | None) -> dict[str, WebhookDelivery]:
    # It loads httpx, which a server without webhooks does not need.
    from hyperfleet.events.webhook_delivery import WebhookDelivery, resolve_name  # noqa: PLC0415

    return {each.name: WebhookDelivery(each, resolve or resolve_name) for each in webhooks}
