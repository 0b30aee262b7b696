"""★ A webhook at work: reads the log, looks at resources that may fail, and sends what is new.

A webhook is a named reader of the log, so it depends on no broker, and a slow receiver holds back nothing but itself.
Of all replicas one sends at a time. Everything is sent at least once: what was observed is saved before the log is
passed, and what was sent is saved after it was sent.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.errors import DeliveryFailed
from hyperfleet.events.leased_reader import RENEWAL, LeasedReader, LogBatch
from hyperfleet.events.making import Origin
from hyperfleet.events.webhook_filter import ChangeFilter, may_fail
from hyperfleet.events.webhook_messages import ChangeNotice, GapNotice, Notice, ProblemNotice, write_notice
from hyperfleet.events.webhook_state import (
    MAX_MEMBERS,
    Sighting,
    WebhookState,
    WebhookTiming,
    due_problems,
    mark_told,
    observe,
)
from hyperfleet.events.webhook_target import Webhook
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import Clock, Query, Record, Store
from hyperfleet.services.failure_search import search_failures
from hyperfleet.services.failures import find_failures
from hyperfleet.services.loops import Loop
from hyperfleet.services.policies import PolicyRegistry

READER_PREFIX: Final = "webhook-"

if TYPE_CHECKING:
    from hyperfleet.events.webhook_delivery import WebhookDelivery

_LOG: Final = logging.getLogger(__name__)
_LEASE: Final = timedelta(seconds=20)  # longer than one delivery may take, with room for a slow store
_PAGE: Final = 500  # changes of the log that are looked at together
_RECORDS: Final = 100  # decoded together in a thread, so that a page takes milliseconds
_PAUSE: Final = RENEWAL  # seconds between looks at the log
_SENT_TIME: Final = timedelta(seconds=10)  # after which the time of the last message is saved, if nothing else is
_JITTER: Final = 0.2  # of a pause after a failure, so that webhooks of one receiver do not come together

DeliveryResult = Literal["sent", "failed"]


class WebhookServices(Struct, frozen=True):
    """What every webhook works with."""

    store: Store
    policies: PolicyRegistry
    kinds: Kinds
    clock: Clock
    holder: str  # names this process among the replicas
    make_origin: Callable[[str], Origin]
    timing: WebhookTiming = WebhookTiming()


class LeaseLost(Exception):  # noqa: N818  # names a state; never leaves this module
    """Another replica sends from now on."""


class WebhookSender:
    """Sends for one webhook. Runs in `loop`, on every replica; one of them does the work."""

    def __init__(self, webhook: Webhook, services: WebhookServices, delivery: WebhookDelivery) -> None:
        """Prepare; nothing runs before `start`."""
        self.webhook = webhook
        self._services = services
        self._store = services.store
        self._delivery = delivery
        self._filter = ChangeFilter.of(webhook)
        self._reader = LeasedReader(services.store, READER_PREFIX + webhook.name, services.holder, _LEASE)
        self._state = WebhookState()
        self._epoch = 0  # of the lease under which the state was loaded
        self._attempts = 0  # failed ones in a row
        self._retry_at: datetime | None = None
        self.on_delivery: Callable[[str, DeliveryResult], None] | None = None  # called with the name and the result
        self.loop = Loop(READER_PREFIX + webhook.name, self._turn)

    @property
    def _tells_each(self) -> bool:
        return self.webhook.format == "alertmanager"

    async def start(self) -> None:
        """Open the reader, so that nothing from now on is missed, and start the loop."""
        if (await self._load()).disabled_time is None:
            await self._reader.open()
        self.loop.start()

    async def stop(self) -> None:
        """Stop, and let another replica continue at once."""
        await self.loop.stop()
        await self._reader.release()

    async def _turn(self) -> float:
        """Send everything that is new, if this replica holds the lease."""
        try:
            await self._hold()
            if self._state.disabled_time is not None and not await self._is_enabled_again():
                return _PAUSE
            if self._retry_at is None or self._retry_at <= self._services.clock.now():
                await self._follow_log()
                await self._send_due()
            await self._reader.save_if_due()
        except LeaseLost:
            self._epoch = 0
        except DeliveryFailed as failure:
            await self._note_failure(failure)
        return _PAUSE

    async def _hold(self) -> None:
        """Take the lease or extend it; a new holder continues with what was saved."""
        lease = await self._reader.hold()
        if lease is None:
            raise LeaseLost
        if self._epoch not in (0, lease.epoch):
            raise LeaseLost  # another replica has sent meanwhile: the next turn continues with what it has saved
        if self._epoch == 0:
            self._state = await self._load()
            self._epoch, self._attempts, self._retry_at = lease.epoch, 0, None
            if self._state.disabled_time is not None:
                await self._store.close_reader(self._reader.name)  # taking the lease has opened it

    async def _load(self) -> WebhookState:
        return WebhookState.decode((await self._store.read_webhooks()).get(self.webhook.name, b""))

    async def _save(self, state: WebhookState) -> None:
        """Save and keep a new state, unless nothing has changed."""
        if state != self._state:
            lease = self._reader.lease
            if lease is None or not await self._store.save_webhook(self.webhook.name, state.encode(), lease):
                raise LeaseLost
            self._state = state

    async def _is_enabled_again(self) -> bool:
        """Look whether an administrator has enabled the webhook, perhaps at another replica."""
        state = await self._load()
        if state.disabled_time is not None:
            return False
        self._state, self._attempts, self._retry_at = state, 0, None
        await self._reader.reopen()
        _LOG.info("webhook %s is enabled again", self.webhook.name)
        return True

    # ── observing ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _follow_log(self) -> None:
        """Look at everything that has changed; send changes, if they are wanted."""
        while True:
            await self._hold()
            if self._state.must_survey and "problems" in self.webhook.send:
                await self._survey()
            batch = await self._reader.read(_PAGE)
            if batch.upto <= self._reader.position:
                return
            if batch.gap is not None:
                _LOG.error(
                    "webhook %s: changes %d to %d were lost", self.webhook.name, batch.gap.after + 1, batch.gap.upto
                )
                await self._save(replace(self._state, gap=batch.gap, must_survey=True))
            await self._observe(batch)
            await self._send_changes(batch)
            self._reader.position = batch.upto
            if not await self._reader.save_if_due():
                raise LeaseLost

    async def _observe(self, batch: LogBatch) -> None:
        """Look at the resources of a batch that may fail, or did."""
        if "problems" not in self.webhook.send:
            return
        known = self._state.member_ids
        ids = {
            change.resource_id
            for change in batch.changes
            if self._filter.concerns(change.kind, change.tenant) and (change.resource_id in known or may_fail(change))
        }
        if ids:
            await self._look_at(sorted(ids), self._state)

    async def _survey(self) -> None:
        """Look at every resource that may fail, and at those that did: changes may have been missed."""
        queries = [Query(kind.name, self._filter.scope) for kind in self._services.kinds]
        found = await search_failures(self._store, self._services.policies.rules, queries, limit=MAX_MEMBERS)
        ids = {failure.resource.id for failure in found.failures} | self._state.member_ids
        await self._look_at(sorted(ids), replace(self._state, must_survey=False, is_full=False))

    async def _look_at(self, ids: Sequence[str], state: WebhookState) -> None:
        """Read resources as they are now, and save which of them fail."""
        sightings = {id_: Sighting(id_) for id_ in ids}
        origin = await self._origin()
        for start in range(0, len(ids), _RECORDS):
            records = await self._store.read_records(ids[start : start + _RECORDS], self._filter.scope)
            for sighting in await asyncio.to_thread(self._sightings_of, records, origin):
                sightings[sighting.resource_id] = sighting
        now, timing = self._services.clock.now(), self._services.timing
        await self._save(observe(state, [*sightings.values()], now, timing, tells_each=self._tells_each))

    def _sightings_of(self, records: Collection[Record], origin: Origin) -> list[Sighting]:
        policies = self._services.policies.rules.policies
        found: list[Sighting] = []
        for record in records:
            resource = record.resource
            failures = find_failures(record, policies.select(resource))
            admitted = tuple(each for each in failures if self._filter.admits_failure(each, record))
            href = origin.href(resource.kind, resource.id, resource.parent_id)
            found.append(Sighting(resource.id, admitted, href))
        return found

    # ── sending ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _send_changes(self, batch: LogBatch) -> None:
        """Send changes one by one; after a failure the next turn continues with the one that failed."""
        if "changes" not in self.webhook.send:
            return
        for change in batch.changes:
            if self._filter.admits_change(change):
                state = await self._deliver(ChangeNotice(change))
                if self._state.failing_since or state.is_newer(self._state, _SENT_TIME):
                    await self._save(state)
            self._reader.position = change.position

    async def _send_due(self) -> None:
        """Send problems that are new, have grown or are over, and that changes were lost."""
        timing, now = self._services.timing, self._services.clock.now()
        if self._state.gap is not None:
            await self._save(replace(await self._deliver(GapNotice(self._state.gap, now)), gap=None))
        for id_ in tuple(due_problems(self._state, now, timing.repeat if self._tells_each else None)):
            state = await self._deliver(ProblemNotice(id_, self._state.problems[id_], now))
            await self._save(mark_told(state, id_, now, tells_each=self._tells_each))

    async def _deliver(self, notice: Notice) -> WebhookState:
        """Send one message, and return the state after it; the lease must outlast it."""
        await self._hold()
        now = self._services.clock.now()
        await self._delivery.send(write_notice(notice, self.webhook, await self._origin()), now)
        self._count("sent")
        self._attempts, self._retry_at = 0, None
        if self._state.failing_since is not None:
            _LOG.info("webhook %s: %s takes messages again", self.webhook.name, self.webhook.address)
        return replace(self._state, sent_time=now, failing_since=None, last_error="")

    async def _note_failure(self, failure: DeliveryFailed) -> None:
        """Try again later; after a day of failures, or if the receiver is gone for good, disable the webhook."""
        self._count("failed")
        now, timing = self._services.clock.now(), self._services.timing
        since = self._state.failing_since or now
        state = replace(self._state, failing_since=since, last_error=str(failure))
        if failure.is_final or now - since >= timing.give_up:
            await self._disable(replace(state, disabled_time=now))
            return
        jitter = random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311  # no secret
        pause = timing.retries[min(self._attempts, len(timing.retries) - 1)] * jitter
        self._attempts += 1
        self._retry_at = now + timedelta(seconds=max(pause, failure.retry_after))
        _LOG.warning("webhook %s: %s; trying again", self.webhook.name, failure)
        try:
            await self._save(state)
            await self._reader.save_if_due()
        except LeaseLost:
            self._epoch = 0

    async def _disable(self, state: WebhookState) -> None:
        """Send nothing more until an administrator enables it; the log no longer waits for it."""
        try:
            await self._save(state)
        except LeaseLost:
            self._epoch = 0
            return
        await self._store.close_reader(self._reader.name)
        _LOG.error(
            "webhook %s is disabled: it has failed since %s (%s). Correct the receiver, then run: "
            "hyperfleet webhooks enable %s",
            self.webhook.name,
            state.failing_since,
            state.last_error,
            self.webhook.name,
        )

    async def _origin(self) -> Origin:
        return self._services.make_origin(await self._store.store_id())

    def _count(self, result: DeliveryResult) -> None:
        if self.on_delivery is not None:
            self.on_delivery(self.webhook.name, result)
