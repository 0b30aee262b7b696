"""Events of a server: the chosen broker, the relay, webhooks and the sentinel, started and stopped together.

Part of the composition root.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

import msgspec

from hyperfleet.aggregation import PolicySet
from hyperfleet.api.context import EventOptions
from hyperfleet.api.wire import href_of
from hyperfleet.broker_opening import open_external, read_addresses
from hyperfleet.document_problem import DocumentProblem
from hyperfleet.errors import RestartRequired, SettingsError, StoreError
from hyperfleet.events.broker_choice import BrokerChoice, choose_broker
from hyperfleet.events.in_process import InProcessBroker
from hyperfleet.events.looking import Looking
from hyperfleet.events.making import Origin, gap_message, position_before
from hyperfleet.events.relay import Relay
from hyperfleet.events.server_sentinel import ServerSentinel
from hyperfleet.events.webhook_checks import check_files
from hyperfleet.events.webhook_sender import WebhookServices
from hyperfleet.events.webhooks import Webhooks
from hyperfleet.messaging import Broker, Message, OverdueQueue, PubSubBlock
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import Clock, LogGap, Store
from hyperfleet.sentinel.warnings import find_warnings
from hyperfleet.services.ids import new_id
from hyperfleet.services.look_planning import LookRules
from hyperfleet.services.measures import Measures
from hyperfleet.services.policies import PolicyRegistry
from hyperfleet.services.tracing import UNTRACED, TracePoint, Tracer
from hyperfleet.settings import Named, Settings

_LOG: Final = logging.getLogger(__name__)


class EventSystem:
    """The broker and what publishes through it."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        kinds: Kinds,
        policies: PolicyRegistry,
        look_rules: LookRules,
    ) -> None:
        """Remember the parts; the broker is chosen in `start`, when the policy in force is known."""
        self._settings = settings
        self._store = store
        self._clock = clock
        self._kinds = kinds
        self._policies = policies
        self._broker: Broker | None = None
        self._relay: Relay | None = None
        self._look_rules = look_rules
        self._sentinel: ServerSentinel | None = None
        self.tracer: Tracer = UNTRACED
        self._addresses = read_addresses(settings.pubsub, os.environ)
        self._webhooks = self._build_webhooks()
        queues = InProcessBroker(store, clock)
        self.options = EventOptions(queues=queues, choose=self._choose, webhooks=self._webhooks)

    async def start(self, measures: Measures) -> None:
        """Choose the broker, connect to it, and start the relay."""
        choice = self._choose(self._policies.rules.policies.pubsub)
        if choice.warning:
            _LOG.warning("%s", choice.warning)
        external = open_external(choice, self._addresses, measures.events.count_unroutable)
        self._broker = external or InProcessBroker(self._store, self._clock, choice.retry)
        self.options.choice, self.options.broker = choice, self._broker
        self.options.queues = self._broker if isinstance(self._broker, InProcessBroker) else None
        self._policies.check = self._require_same_broker
        await self._broker.open()
        relay = Relay(self._store, self._broker, self._clock, new_id("relay"), _origin_maker(self._kinds))
        self.options.find_trouble = relay.describe_trouble
        measures.events.observe_relay(relay)
        relay.loop.on_failure = measures.loop_failures.add
        relay.tracer = self.tracer
        self._store.on_foreign_commit(relay.loop.nudge)
        self._relay = relay
        await relay.start()
        await self._start_webhooks(measures)
        self._start_sentinel(self._broker, relay, measures)

    def _build_webhooks(self) -> Webhooks:
        check_webhook_files(self._settings)
        origin = _origin_maker(self._kinds)
        services = WebhookServices(self._store, self._policies, self._kinds, self._clock, new_id("webhooks"), origin)
        return Webhooks(self._settings.webhooks, services)

    async def _start_webhooks(self, measures: Measures) -> None:
        for sender in self._webhooks.senders:
            sender.on_delivery = measures.events.webhook_messages.add
        for loop in self._webhooks.loops:
            loop.on_failure = measures.loop_failures.add
        await self._webhooks.start()

    def _start_sentinel(self, broker: Broker, relay: Relay, measures: Measures) -> None:
        looking = Looking(self._store, self._policies, broker, _origin_maker(self._kinds), self._look_rules)
        names, is_enabled = [kind.name for kind in self._kinds], self._settings.sentinel.enabled
        sentinel = ServerSentinel(looking, names, new_id("server"), is_enabled=is_enabled)
        self.options.looking, self.options.find_sentinel_trouble = looking, sentinel.find_trouble
        relay.on_gap = sentinel.note_gap
        measures.events.observe_sentinel(sentinel, looking)
        sentinel.loop.on_failure = measures.loop_failures.add
        for warning in find_warnings(self._look_rules.rules, looking.policies.policies):
            _LOG.warning("the sentinel: %s", warning)
        self._sentinel = sentinel
        sentinel.loop.start()

    @property
    def relay(self) -> Relay:
        """Return the relay of a system that was started."""
        if self._relay is None:
            raise RuntimeError("the relay exists only after the start")
        return self._relay

    def nudge(self) -> None:
        """Publish at once what this process has committed."""
        if self._relay is not None:
            self._relay.loop.nudge()

    def note_traces(self, upto: int, origins: Sequence[TracePoint | None]) -> None:
        """Remember which requests made the changes up to a position, until they are published."""
        if self._relay is not None:
            self._relay.traced_commits.note(upto, origins)

    async def drop_overdue(self, max_lag: timedelta) -> tuple[str, ...]:
        """Empty queues that nobody has pulled from for `max_lag`, loudly; return the names of their subscriptions."""
        if self.options.queues is None:
            return ()
        origin, head = _origin_maker(self._kinds)(await self._store.store_id()), await self._store.position()

        def make_gap(queue: OverdueQueue) -> Message:
            gap = LogGap(position_before(queue.oldest.id), head)
            return msgspec.structs.replace(gap_message(gap, origin, queue.subscription.topic), time=self._clock.now())

        dropped = await self.options.queues.drop_overdue(max_lag, make_gap)
        for name, count in dropped.items():
            _LOG.warning(
                "%d messages of the subscription %s are dropped, a Gap is in their place: none was pulled for %s",
                count,
                name,
                max_lag,
            )
        return tuple(dropped)

    async def stop(self) -> None:
        """Stop publishing, and let another replica continue at once."""
        if self._sentinel is not None:
            await self._sentinel.stop()
        if self._relay is not None:
            with suppress(StoreError):  # the lease expires by itself
                await self._relay.stop()
            with suppress(StoreError):
                await self._webhooks.stop()
        if self._broker is not None:
            await self._broker.close()

    def _choose(self, block: PubSubBlock | None) -> BrokerChoice:
        return choose_broker(block, self._addresses.providers)

    def _require_same_broker(self, policies: PolicySet) -> None:
        """Refuse a policy that would send events elsewhere: the broker is chosen when the server starts."""
        if self._choose(policies.pubsub) != self.options.choice:
            raise RestartRequired("events would go to another broker, to other topics, or with other retries")


def check_webhook_files(settings: Settings) -> None:
    """Raise `SettingsError` if a file of a webhook cannot be used."""
    problems = [
        DocumentProblem(Named(file, 0, 0), message, "Unreadable") for file, message in check_files(settings.webhooks)
    ]
    if problems:
        raise SettingsError(problems)


def _origin_maker(kinds: Kinds) -> Callable[[str], Origin]:
    """Return what makes the origin of events from the id of a store."""

    def href(kind: str, id_: str, parent_id: str | None) -> str:
        known = kinds.get(kind)
        return "" if known is None else href_of(known, id_, parent_id, kinds)

    def parent_kind(kind: str) -> str | None:
        known = kinds.get(kind)
        return None if known is None else known.parent

    return lambda store_id: Origin(store_id, href, parent_kind)
