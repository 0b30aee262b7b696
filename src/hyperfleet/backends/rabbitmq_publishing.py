"""RabbitMQ: publishing with confirmations. A batch is sent in order, and then all confirmations are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, cast

from aio_pika.abc import AbstractChannel
from aiormq.abc import DeliveredMessage
from aiormq.channel import Channel as InnerChannel
from msgspec import Struct
from pamqp.commands import Basic

from hyperfleet.backends.rabbitmq_link import Link, describe
from hyperfleet.errors import BrokerUnavailable

_PERSISTENT: Final = 2
_MILLISECOND: Final = timedelta(milliseconds=1)
_AT_ONCE: Final = 1_000  # messages that wait for confirmation; some 1 MB


class Outgoing(Struct, frozen=True):
    """A message to send. Headers are texts: Go consumers refuse everything else."""

    exchange: str
    routing_key: str
    body: bytes
    content_type: str
    headers: dict[str, str] = {}
    expiration: timedelta | None = None


class Publisher:
    """Publishes over one channel of one link."""

    def __init__(self, link: Link, prepare: Callable[[str], Awaitable[None]]) -> None:
        """Publish over `link`; `prepare` creates an exchange."""
        self._link = link
        self._prepare = prepare
        self._channel: AbstractChannel | None = None
        self._prepared: set[str] = set()
        self._lock = asyncio.Lock()

    async def publish(self, outgoing: Sequence[Outgoing]) -> list[Outgoing]:
        """Publish messages; return those that no queue takes. If one fails, all of them must be published again."""
        unroutable: list[Outgoing] = []
        for start in range(0, len(outgoing), _AT_ONCE):
            some = outgoing[start : start + _AT_ONCE]
            channel = await self.channel({each.exchange for each in some})
            results = await self._send(channel, some)
            unroutable += [each for each, result in zip(some, results, strict=True) if result]
        return unroutable

    async def channel(self, exchanges: set[str]) -> AbstractChannel:
        """Return a channel that takes messages now; the exchanges are there."""
        async with self._lock:
            await self._link.wait_until_unblocked()
            if self._channel is None or self._channel.is_closed:
                self._prepared.clear()
                self._channel = await self._link.open_channel(confirms=True)
            for exchange in exchanges - self._prepared - {""}:
                await self._prepare(exchange)
                self._prepared.add(exchange)
            return self._channel

    async def _send(self, channel: AbstractChannel, outgoing: Sequence[Outgoing]) -> list[bool]:
        """Return for each message whether no queue takes it."""
        try:
            async with asyncio.timeout(self._link.timeout):
                # The channel inside: the classes around it take a third of the time.
                inside = cast("InnerChannel", await channel.get_underlay_channel())
                sent = (_send_one(inside, each) for each in outgoing)
                results = await asyncio.gather(*sent, return_exceptions=True)
        except TimeoutError as error:
            await self._give_up()
            raise BrokerUnavailable("RabbitMQ: no confirmation in time") from error
        for result in results:
            if isinstance(result, BaseException):
                await self._give_up()
                raise BrokerUnavailable(f"RabbitMQ: {describe(result)}") from result
        return [result is True for result in results]

    async def _give_up(self) -> None:
        """Use another connection from now on, except if the server only holds us back.

        In that case it keeps what it was sent, and another connection would be held back too.
        """
        if not await self._link.is_blocked():
            self._channel = None
            await self._link.drop()


async def _send_one(channel: InnerChannel, outgoing: Outgoing) -> bool:
    """Send a message, and return when it is confirmed whether no queue takes it."""
    expiration = outgoing.expiration
    properties = Basic.Properties(
        content_type=outgoing.content_type,
        headers=dict(outgoing.headers),
        delivery_mode=_PERSISTENT,
        expiration=None if expiration is None else str(expiration // _MILLISECOND),
    )
    result = await channel.basic_publish(
        outgoing.body,
        exchange=outgoing.exchange,
        routing_key=outgoing.routing_key,
        properties=properties,
        mandatory=True,
        wait=False,  # for the socket; we wait for the confirmation
    )
    return isinstance(result, DeliveredMessage)
