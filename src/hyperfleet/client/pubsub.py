"""Subscriptions and their messages: the flows behind the operations of `fleet` and of received events."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from hyperfleet.client.answers.pubsub import (
    AcknowledgedMessages,
    DeadLetter,
    PubSub,
    PulledMessage,
    PulledMessages,
    ReplayedMessages,
    Subscription,
)
from hyperfleet.client.answers.resource import PageAnswer
from hyperfleet.client.effects import ApiRequest, Feed, FeedItem, Flow, Pause
from hyperfleet.client.exchange import JSON, RetryPolicy, decode, decode_part, exchange, failure_of, fetch
from hyperfleet.client.paths import BASE, quote_segment
from hyperfleet.client.query import query_of

_WAIT: Final = 20  # seconds that the server waits for a message at most
_IDLE: Final = 1.0  # seconds between pulls if requests are too short to wait in


def read_pubsub(retry: RetryPolicy) -> Flow[PubSub]:
    """Read where events go."""
    return fetch(PubSub, ApiRequest("GET", f"{BASE}/pubsub"), retry)


def put_subscription(name: str, topic: str, retry: RetryPolicy) -> Flow[Subscription]:
    """Create a subscription, unless it exists."""
    return fetch(Subscription, _request("PUT", _path(name), {"topic": topic}), retry)


def list_subscriptions(retry: RetryPolicy) -> Flow[tuple[Subscription, ...]]:
    """Read all subscriptions."""
    page = yield from fetch(PageAnswer, ApiRequest("GET", f"{BASE}/subscriptions"), retry)
    return tuple([decode_part(Subscription, raw) for raw in page.items])


def read_subscription(name: str, topic: str | None, retry: RetryPolicy) -> Flow[Subscription]:
    """Read one subscription."""
    return fetch(Subscription, ApiRequest("GET", _path(name), query_of({"topic": topic})), retry)


def delete_subscription(name: str, retry: RetryPolicy) -> Flow[Subscription | None]:
    """Delete a subscription; None: an earlier attempt, whose answer was lost, has deleted it."""
    reply = yield from exchange(ApiRequest("DELETE", _path(name), answers=(404,)), retry)
    if reply.status == 404 and reply.attempts == 1:
        raise failure_of(reply)
    return decode(Subscription, reply) if reply.is_success else None


def list_dead_letters(
    name: str, topic: str | None, limit: int | None, retry: RetryPolicy
) -> Flow[tuple[DeadLetter, ...]]:
    """Read dead letters, the oldest first."""
    request = ApiRequest("GET", f"{_path(name)}/dead-letters", query_of({"topic": topic, "limit": limit}))
    page = yield from fetch(PageAnswer, request, retry)
    return tuple([decode_part(DeadLetter, raw) for raw in page.items])


def replay_dead_letters(name: str, topic: str | None, limit: int | None, retry: RetryPolicy) -> Flow[int]:
    """Put dead letters back; return their number."""
    body = {} if limit is None else {"max": limit}
    request = replace(_request("POST", f"{_path(name)}:replay", body), query=query_of({"topic": topic}))
    return (yield from fetch(ReplayedMessages, request, retry)).replayed


def pull(
    name: str, size: Callable[[], int], deadline: int, retry: RetryPolicy, is_stopping: Callable[[], bool]
) -> Feed[PulledMessage]:
    """Yield messages as they come, `size` at once; a server that is away is waited for, however long it takes.

    Messages whose deadline passes before they are asked for are not yielded: the server delivers them again.
    """
    endless = replace(retry, deadline=float("inf"), retries=sys.maxsize)
    wait = min(_WAIT, int(retry.timeout / 2))
    while not is_stopping():
        body = {"max": size(), "ackDeadlineSeconds": deadline, "waitSeconds": wait}
        page = yield from fetch(PulledMessages, _request("POST", f"{_path(name)}:pull", body), endless)
        late = retry.runtime.monotonic() + deadline
        for message in page.messages:
            if retry.runtime.monotonic() < late and not is_stopping():
                yield FeedItem(message)
        if not page.messages and not wait:
            yield Pause(_IDLE)


def acknowledge(name: str, receipt: str, retry: RetryPolicy) -> Flow[bool]:
    """Answer that a message was handled; False: too late, it is delivered again."""
    return _answer(f"{_path(name)}:ack", {"receipts": [receipt]}, retry)


def reject(name: str, receipt: str, error: str, retry: RetryPolicy, *, is_dead: bool) -> Flow[bool]:
    """Answer that a message was not handled; False: too late, it is delivered again anyway."""
    return _answer(f"{_path(name)}:nack", {"receipts": [receipt], "error": error, "deadLetter": is_dead}, retry)


def _answer(path: str, body: Any, retry: RetryPolicy) -> Flow[bool]:
    reply = yield from exchange(_request("POST", path, body), retry)
    # If the answer to an earlier attempt was lost, that attempt may have counted, and this one cannot.
    return decode(AcknowledgedMessages, reply).acknowledged > 0 or reply.attempts > 1


def _request(method: str, path: str, body: Any) -> ApiRequest:
    return ApiRequest(method, path, (), JSON, msgspec.json.encode(body))


def _path(name: str) -> str:
    return f"{BASE}/subscriptions/{quote_segment(name)}"
