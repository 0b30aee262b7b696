"""The service Google Pub/Sub: its requests, each bounded in time, and its errors as ours.

Uses the asynchronous clients that Google generates from the definition of the service. Google's larger client on top
of them has threads, batches and ordering keys that stay paused after an error. The relay publishes whole batches, and
repeats a batch that failed, so it needs none of that.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, Final

import google.auth
import grpc
from google.api_core.exceptions import AlreadyExists, DeadlineExceeded, GoogleAPICallError, NotFound, PermissionDenied
from google.auth.exceptions import GoogleAuthError
from google.pubsub_v1.services.publisher import PublisherAsyncClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcAsyncIOTransport
from google.pubsub_v1.services.subscriber import SubscriberAsyncClient
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcAsyncIOTransport
from google.pubsub_v1.types import (
    PubsubMessage,
    ReceivedMessage,
    StreamingPullRequest,
    StreamingPullResponse,
    Subscription,
    Topic,
)

from hyperfleet.backends.google_pubsub_options import PubSubOptions
from hyperfleet.errors import BrokerUnavailable

EMULATOR: Final = "PUBSUB_EMULATOR_HOST"  # the variable that all clients of Google Pub/Sub know
_TIMEOUT: Final = 10.0  # seconds of a request; one takes some 50 ms
_GRACE: Final = 5.0  # seconds for requests that are running when the broker is closed
_LONGEST_TEXT: Final = 300  # characters of an error of the service
_LOOK: Final = 3.0  # seconds that a request for dead letters waits for the first one
_REQUEST_RECEIPTS: Final = 1000  # in one request, which may have 512 KB; a receipt has some 200 bytes
_CHANNEL: Final = [
    ("grpc.max_receive_message_length", -1),  # the service limits answers
    ("grpc.keepalive_time_ms", 30_000),  # as Google's own client: finds a dead connection of an idle consumer
    ("grpc.max_reconnect_backoff_ms", 2_000),  # two minutes if not set, which is long after the service is back
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
]


class PubSubMissing(BrokerUnavailable):
    """A topic or a subscription does not exist."""


class PubSubService:
    """The requests that the broker needs. Connects with the first one."""

    def __init__(self, options: PubSubOptions) -> None:
        """Use the service, or the emulator that the options or the environment name."""
        self._publish_timeout = options.publish_timeout.total_seconds()
        self._emulator = options.emulator or os.environ.get(EMULATOR)
        self._connecting = asyncio.Lock()
        self._is_closed = False
        self._streams: set[Any] = set()
        self._channel: grpc.aio.Channel | None = None
        self._publisher: PublisherAsyncClient | None = None
        self._subscriber: SubscriberAsyncClient | None = None

    async def close(self) -> None:
        """Finish requests, end streams, and disconnect for good."""
        self._is_closed = True
        for stream in self._streams:
            stream.cancel()
        channel, self._channel = self._channel, None
        self._publisher = self._subscriber = None
        if channel is not None:
            await channel.close(grace=_GRACE)

    async def connect(self) -> tuple[PublisherAsyncClient, SubscriberAsyncClient]:
        """Find credentials, if there is no connection yet; the network is not used before the first request."""
        async with self._connecting:
            if self._is_closed:
                raise BrokerUnavailable("the broker is closed")
            if self._publisher is None or self._subscriber is None:
                with _translate():
                    self._channel = channel = await self._open_channel()
                self._publisher = PublisherAsyncClient(transport=PublisherGrpcAsyncIOTransport(channel=channel))
                self._subscriber = SubscriberAsyncClient(transport=SubscriberGrpcAsyncIOTransport(channel=channel))
            return self._publisher, self._subscriber

    async def publish(self, topic: str, messages: Sequence[PubsubMessage]) -> None:
        """Publish messages in one request; durable when this returns."""
        publisher, _ = await self.connect()
        with _translate():
            await publisher.publish(
                request={"topic": topic, "messages": messages}, retry=None, timeout=self._publish_timeout
            )

    async def has_topic(self, topic: str) -> bool:
        """Tell whether a topic exists. One that we must not look at may well be there: to publish needs less."""
        publisher, _ = await self.connect()
        try:
            with _translate(), suppress(PermissionDenied):
                await publisher.get_topic(request={"topic": topic}, retry=None, timeout=_TIMEOUT)
        except PubSubMissing:
            return False
        return True

    async def create_topic(self, topic: str) -> None:
        """Create a topic, unless there is one."""
        publisher, _ = await self.connect()
        with _translate():
            try:
                await publisher.create_topic(request=Topic(name=topic), retry=None, timeout=_TIMEOUT)
            except AlreadyExists:
                return

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic, if there is one."""
        publisher, _ = await self.connect()
        with _translate():
            try:
                await publisher.delete_topic(request={"topic": topic}, retry=None, timeout=_TIMEOUT)
            except NotFound:
                return

    async def find_subscription(self, subscription: str) -> Subscription | None:
        """Return a subscription as it is; None: there is none."""
        _, subscriber = await self.connect()
        request = {"subscription": subscription}
        with _translate():
            try:
                return await subscriber.get_subscription(request=request, retry=None, timeout=_TIMEOUT)
            except NotFound:
                return None

    async def create_subscription(self, subscription: Subscription) -> None:
        """Create a subscription, unless there is one; raises `PubSubMissing` if a topic is missing."""
        _, subscriber = await self.connect()
        with _translate():
            try:
                await subscriber.create_subscription(request=subscription, retry=None, timeout=_TIMEOUT)
            except AlreadyExists:
                return

    async def delete_subscription(self, subscription: str) -> bool:
        """Delete a subscription with its messages; False: there is none."""
        _, subscriber = await self.connect()
        with _translate():
            try:
                await subscriber.delete_subscription(
                    request={"subscription": subscription}, retry=None, timeout=_TIMEOUT
                )
            except NotFound:
                return False
        return True

    async def acknowledge(self, subscription: str, receipts: Sequence[str]) -> None:
        """Remove messages from a subscription."""
        _, subscriber = await self.connect()
        for part in _split(receipts):
            request = {"subscription": subscription, "ack_ids": part}
            with _translate():
                await subscriber.acknowledge(request=request, retry=None, timeout=_TIMEOUT)

    async def set_deadline(self, subscription: str, receipts: Sequence[str], deadline: timedelta) -> None:
        """Keep messages for this long from now; zero: give them back."""
        _, subscriber = await self.connect()
        for part in _split(receipts):
            seconds = int(deadline.total_seconds())
            request = {"subscription": subscription, "ack_ids": part, "ack_deadline_seconds": seconds}
            with _translate():
                await subscriber.modify_ack_deadline(request=request, retry=None, timeout=_TIMEOUT)

    async def pull(self, subscription: str, limit: int) -> Sequence[ReceivedMessage]:
        """Take messages, as many as there are; waits for the first one for a moment."""
        _, subscriber = await self.connect()
        request = {"subscription": subscription, "max_messages": limit}
        with _translate():
            try:
                answer = await subscriber.pull(request=request, retry=None, timeout=_LOOK)
            except DeadlineExceeded:  # how the service says that there is none
                return ()
        return answer.received_messages

    async def stream(
        self, requests: AsyncIterator[StreamingPullRequest]
    ) -> AsyncGenerator[StreamingPullResponse, None]:
        """Yield messages as they arrive, until the service ends the stream."""
        _, subscriber = await self.connect()
        with _translate():
            answers: Any = await subscriber.streaming_pull(requests=requests, retry=None, timeout=None)
            self._streams.add(answers)
            try:
                async for answer in answers:
                    yield answer
            finally:
                self._streams.discard(answers)
                answers.cancel()

    async def _open_channel(self) -> grpc.aio.Channel:
        if self._emulator:
            return grpc.aio.insecure_channel(self._emulator, options=_CHANNEL)
        # Reads files, and outside Google's cloud waits for an answer of its metadata server.
        credentials, _ = await asyncio.to_thread(google.auth.default, scopes=PublisherGrpcAsyncIOTransport.AUTH_SCOPES)
        return PublisherGrpcAsyncIOTransport.create_channel(
            PublisherGrpcAsyncIOTransport.DEFAULT_HOST, credentials=credentials, options=_CHANNEL
        )


@contextmanager
def _translate() -> Iterator[None]:
    """Raise errors of Google's packages as ours. Their text has no credentials, but may be long."""
    try:
        yield
    except NotFound as error:
        raise PubSubMissing(f"Google Pub/Sub does not know it: {_cut(error.message)}") from error
    except GoogleAPICallError as error:
        code: Any = error.grpc_status_code
        name = code.name if code is not None else type(error).__name__
        raise BrokerUnavailable(f"Google Pub/Sub answered {name}: {_cut(error.message)}") from error
    except GoogleAuthError as error:
        # The text of such an error may quote an answer of a token endpoint.
        raise BrokerUnavailable(
            f"no credentials for Google Pub/Sub ({type(error).__name__}): set GOOGLE_APPLICATION_CREDENTIALS, "
            "or run with a service account"
        ) from error
    except grpc.RpcError as error:
        raise BrokerUnavailable(f"the connection to Google Pub/Sub broke: {type(error).__name__}") from error


def _cut(text: object) -> str:
    return " ".join(str(text).split())[:_LONGEST_TEXT]


def _split(receipts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(receipts), _REQUEST_RECEIPTS):
        yield receipts[start : start + _REQUEST_RECEIPTS]
