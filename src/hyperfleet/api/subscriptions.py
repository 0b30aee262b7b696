"""Subscriptions of the in-process broker, for consumers in other processes: pull, ack, nack, dead letters.

A caller that is bound to tenants gets messages of these tenants only, and sees only subscriptions that have no others.
Of another broker, one subscription and its dead letters can be read and replayed, by callers who see all tenants.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.aggregation import BodyProblem
from hyperfleet.api.boundary import lift_time_limit
from hyperfleet.api.callers import caller_of
from hyperfleet.api.context import Context
from hyperfleet.api.message_bodies import MAX_PULL, Pull, read_ack, read_nack, read_pull, read_replay, read_subscription
from hyperfleet.api.message_shapes import (
    AcknowledgedMessages,
    DeadLetterAnswer,
    DeadLetterList,
    PubSubAnswer,
    PulledMessage,
    PulledMessages,
    ReplayedMessages,
    SubscriptionAnswer,
    SubscriptionList,
)
from hyperfleet.api.problems import Problem, Refused, from_body, from_query
from hyperfleet.api.requests import parameters_of, read_json
from hyperfleet.api.responses import answer_made, answer_written
from hyperfleet.api.streams import run_while_connected
from hyperfleet.documents.wording import quote
from hyperfleet.events.cloud_events import encode_event
from hyperfleet.events.in_process import InProcessBroker
from hyperfleet.events.relay import READER
from hyperfleet.messaging import TOPICS, Broker, DeadLetter, QueuedMessage, Subscription, SubscriptionState, Topic
from hyperfleet.model.report import ADAPTER_PATTERN, MAX_ADAPTER_NAME
from hyperfleet.ports import Scope
from hyperfleet.services.parameters import Parameters

_ONE: Final = "/subscriptions/{name:plain}"
_VERB: Final = "/subscriptions/{name}"
_LOOK: Final = 1.0  # seconds after which a pull that waits looks whether the server stops


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""
    handlers = _Subscriptions(context)
    return [
        Route("/pubsub", handlers.read_state, methods=["GET"]),
        Route("/subscriptions", handlers.list, methods=["GET"]),
        Route(_ONE, handlers.read, methods=["GET"]),
        Route(_ONE, handlers.put, methods=["PUT"]),
        Route(_ONE, handlers.delete, methods=["DELETE"]),
        Route(f"{_VERB}:pull", handlers.pull, methods=["POST"]),
        Route(f"{_VERB}:ack", handlers.ack, methods=["POST"]),
        Route(f"{_VERB}:nack", handlers.nack, methods=["POST"]),
        Route(f"{_VERB}:replay", handlers.replay, methods=["POST"]),
        Route(_ONE + "/dead-letters", handlers.list_dead_letters, methods=["GET"]),
    ]


class _Subscriptions(Struct, frozen=True):
    """The handlers."""

    context: Context

    async def read_state(self, request: Request) -> Response:
        """Answer where events go, and how far the relay is."""
        store = self.context.store
        readers = [reader for reader in await store.readers() if reader.name == READER]
        head = await store.position()
        since = readers[0].unread_since if readers else None
        choice = self.context.events.choice
        return answer_made(
            request,
            PubSubAnswer(
                choice.provider,
                choice.topics.cluster_events,
                choice.topics.status_updates,
                await store.store_id(),
                readers[0].position if readers else head,
                head,
                since or UNSET,
            ),
        )

    async def list(self, request: Request) -> Response:
        """Answer all subscriptions that the caller may see."""
        scope = caller_of(request).scope
        states = await self._queues().store.queues.subscriptions()
        visible = [_present(state) for state in states if _is_visible(state.subscription, scope)]
        return answer_made(request, SubscriptionList(tuple(visible)))

    async def read(self, request: Request) -> Response:
        """Answer one subscription."""
        subscription = await self._locate(request, _read_topic(Parameters(parameters_of(request))))
        state = await self._broker().state_of(subscription)
        if state is None:
            raise Refused(Problem("NotFound", f"the subscription {subscription.name} was deleted just now"))
        return answer_made(request, _present(state))

    async def put(self, request: Request) -> Response:
        """Create a subscription for the tenants of the caller; one that exists stays as it is."""
        topic, errors = read_subscription(await read_json(request, self.context.limits))
        name = request.path_params["name"]
        if not _is_name(name):
            message = "a name has letters, digits, -, _ and ., and begins and ends with a letter or digit: dns, dns-eu"
            errors.append(BodyProblem("", "BadFormat", message))
        _check(errors)
        scope = caller_of(request).scope
        is_new = await self._queues().store.queues.subscribe(Subscription(name, topic, scope.tenants))
        state = await self._read_state(request)
        if state.subscription.topic != topic:
            raise Refused(
                Problem("SubscriptionExists", f"the subscription {name} is to the topic {state.subscription.topic}")
            )
        return answer_written(request, 201 if is_new else 200, msgspec.json.encode(_present(state)))

    async def delete(self, request: Request) -> Response:
        """Delete a subscription with everything in its queue."""
        state = await self._read_state(request)
        await self._queues().store.queues.unsubscribe(state.subscription.name)
        return answer_written(request, 200, msgspec.json.encode(_present(state)))

    async def pull(self, request: Request) -> Response:
        """Answer messages; if there are none, wait for the first."""
        wanted, errors = read_pull(await read_json(request, self.context.limits))
        _check(errors)
        name = (await self._find(request)).name
        if wanted.wait:
            with self.context.tail.admit(caller_of(request).name):
                lift_time_limit(request.scope)
                # A message must not be given to a caller who has left: it would come again only after the deadline.
                taken = await run_while_connected(request.receive, self._pull_while_open(name, wanted))
        else:
            taken = await self._queues().pull(name, wanted.limit, wanted.deadline, 0)
        body = PulledMessages(tuple([_present_message(each) for each in taken]))
        return answer_written(request, 200, msgspec.json.encode(body))

    async def _pull_while_open(self, name: str, wanted: Pull) -> tuple[QueuedMessage, ...]:
        """Wait for messages; answer none as soon as the server stops, so that the caller goes to another replica."""
        time = asyncio.get_running_loop().time
        until = time() + wanted.wait
        while True:
            left = max(until - time(), 0)
            taken = await self._queues().pull(name, wanted.limit, wanted.deadline, min(left, _LOOK))
            if taken or left <= _LOOK or self.context.tail.is_closing:
                return taken

    async def ack(self, request: Request) -> Response:
        """Remove messages that were handled."""
        receipts, errors = read_ack(await read_json(request, self.context.limits))
        _check(errors)
        name = (await self._find(request)).name
        count = await self._queues().store.queues.ack(name, receipts)
        return answer_written(request, 200, msgspec.json.encode(AcknowledgedMessages(count)))

    async def nack(self, request: Request) -> Response:
        """Deliver messages again later, or give them up."""
        wanted, errors = read_nack(await read_json(request, self.context.limits))
        _check(errors)
        name = (await self._find(request)).name
        count = await self._queues().reject(name, wanted.receipts, wanted.error, is_poison=wanted.is_poison)
        return answer_written(request, 200, msgspec.json.encode(AcknowledgedMessages(count)))

    async def replay(self, request: Request) -> Response:
        """Put dead letters back into the queue."""
        topic = _read_topic(Parameters(parameters_of(request)))
        limit, errors = read_replay(await read_json(request, self.context.limits))
        _check(errors)
        subscription = await self._locate(request, topic)
        count = await self._broker().replay_dead_letters(subscription, limit)
        return answer_written(request, 200, msgspec.json.encode(ReplayedMessages(count)))

    async def list_dead_letters(self, request: Request) -> Response:
        """Answer dead letters, the oldest first."""
        given = Parameters(parameters_of(request))
        limit = given.number("limit", MAX_PULL) or 100
        topic = _read_topic(given, "limit")
        subscription = await self._locate(request, topic)
        letters = await self._broker().dead_letters(subscription, limit)
        return answer_made(request, DeadLetterList(tuple([_present_letter(each) for each in letters])))

    def _queues(self) -> InProcessBroker:
        queues = self.context.events.queues
        if queues is None:
            provider, names = self.context.events.choice.provider, self.context.events.choice.topics
            where = f"{names.cluster_events} and {names.status_updates}"
            here = "here you can read one subscription by its name, list its dead letters and replay them"
            raise Refused(
                Problem("BrokerElsewhere", f"events go to {provider}, topics {where}; subscribe there; {here}")
            )
        return queues

    def _broker(self) -> Broker:
        """Return the broker, whichever it is."""
        broker = self.context.events.queues or self.context.events.broker
        if broker is None:
            raise Refused(Problem("BrokerUnavailable", "the server is starting"))
        return broker

    async def _locate(self, request: Request, topic: Topic | None) -> Subscription:
        """Return the subscription in the path, at any broker, if the caller may see it."""
        if self.context.events.queues is None:
            return await self._locate_elsewhere(request, topic or TOPICS[0])
        found = await self._find(request)
        if topic not in (None, found.topic):
            raise Refused(Problem("NotFound", f"the subscription {found.name} is to the topic {found.topic}"))
        return found

    async def _locate_elsewhere(self, request: Request, topic: Topic) -> Subscription:
        """Return the subscription in the path at another broker, whose queues hold messages of all tenants."""
        found, broker = Subscription(str(request.path_params["name"]), topic), self._broker()
        is_allowed = _is_name(found.name) and _is_visible(found, caller_of(request).scope)
        if not is_allowed or await broker.state_of(found) is None:
            raise Refused(Problem("NotFound", f"there is no subscription {found.name} to {topic}; consumers create it"))
        return found

    async def _find(self, request: Request) -> Subscription:
        """Return the subscription in the path, of the in-process broker, if the caller may see it."""
        name = str(request.path_params["name"])
        found = await self._queues().store.queues.find(name)
        if found is None or not _is_visible(found, caller_of(request).scope):
            raise Refused(Problem("NotFound", f"there is no subscription {name}; PUT creates it"))
        return found

    async def _read_state(self, request: Request) -> SubscriptionState:
        """Return the subscription in the path, and what is in its queue."""
        name = (await self._find(request)).name
        for state in await self._queues().store.queues.subscriptions(name):
            return state
        raise Refused(Problem("NotFound", f"the subscription {name} was deleted just now"))


def _check(errors: Sequence[BodyProblem]) -> None:
    if errors:
        raise Refused(from_body(tuple(errors)))


def _is_name(name: str) -> bool:
    return len(name) <= MAX_ADAPTER_NAME and ADAPTER_PATTERN.fullmatch(name) is not None


def _read_topic(given: Parameters, *others: str) -> Topic | None:
    """Read the topic, if one is given; refuse what is wrong with any parameter, and all but it and `others`."""
    given.refuse_unknown(("topic", *others))
    name = given.one("topic")
    topic = next((each for each in TOPICS if each == name), None)
    if name is not None and topic is None:
        given.refuse("topic", "UnknownValue", f"topic must be one of {', '.join(TOPICS)}, not {quote(name)}")
    if given.errors:
        raise Refused(from_query(given.errors))
    return topic


def _is_visible(subscription: Subscription, scope: Scope) -> bool:
    """Tell whether every message of a subscription is one that the caller may see."""
    if scope.tenants is None:
        return True
    return subscription.tenants is not None and subscription.tenants <= scope.tenants


def _present(state: SubscriptionState) -> SubscriptionAnswer:
    subscription = state.subscription
    return SubscriptionAnswer(
        subscription.name,
        subscription.topic,
        None if subscription.tenants is None else tuple(sorted(subscription.tenants)),
        state.waiting,
        state.in_flight,
        state.dead,
        state.oldest or UNSET,
    )


def _present_message(queued: QueuedMessage) -> PulledMessage:
    return PulledMessage(queued.receipt, queued.attempt, Raw(encode_event(queued.message)))


def _present_letter(letter: DeadLetter) -> DeadLetterAnswer:
    event = Raw(encode_event(letter.message))
    return DeadLetterAnswer(letter.key, letter.error, letter.attempts, event, letter.time or UNSET)
