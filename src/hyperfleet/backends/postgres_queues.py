"""Leases and the queues of the in-process broker in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

from hyperfleet.backends.postgres_connections import Connection
from hyperfleet.backends.postgres_loading import SQL, as_storable
from hyperfleet.backends.queues import (
    MAX_ERROR,
    UNANSWERED,
    dead_letter,
    overdue_queue,
    queued_message,
    subscription_of,
    subscription_state,
)
from hyperfleet.events.cloud_events import encode_event
from hyperfleet.messaging import (
    DeadLetter,
    Message,
    OverdueQueue,
    QueuedMessage,
    Subscription,
    SubscriptionState,
    read_receipts,
)
from hyperfleet.ports import Lease

Connect = Callable[[], AbstractAsyncContextManager[Connection]]


async def take_lease(connection: Connection, name: str, holder: str, duration: timedelta) -> Lease | None:
    """Take a lease or extend it; None: another holder has it."""
    epoch = await connection.fetchval(SQL["take_lease"], name, holder, duration)
    return None if epoch is None else Lease(name, holder, epoch)


async def release_lease(connection: Connection, lease: Lease) -> None:
    """Let another holder take a lease at once."""
    await connection.execute(SQL["release_lease"], lease.name, lease.holder, lease.epoch)


async def read_leases(connection: Connection, prefix: str) -> tuple[Lease, ...]:
    """Return the leases whose names begin so and that have not expired, by name."""
    return tuple(Lease(*row) for row in await connection.fetch(SQL["read_leases"], as_storable(prefix)))


async def read_webhooks(connection: Connection) -> dict[str, bytes]:
    """Return the saved states of webhooks."""
    rows = await connection.fetch(SQL["read_webhooks"])
    return {row["name"]: row["state"] for row in rows}


async def save_webhook(connection: Connection, name: str, state: bytes, lease: Lease | None) -> bool:
    """Save the state of a webhook; an empty one deletes it."""
    if not state:
        await connection.execute(SQL["delete_webhook"], name)
        return True
    holding = (None, None) if lease is None else (lease.name, lease.epoch)
    done = await connection.execute(SQL["save_webhook"], name, state, *holding)
    return bool(done == "INSERT 0 1")


class PostgresQueues:
    """The queues in a database."""

    def __init__(self, connect: Connect, connect_durably: Connect) -> None:
        """Use connections of a store that may write; the latter's commits are durable when they return."""
        self._connect = connect
        self._connect_durably = connect_durably

    async def subscribe(self, subscription: Subscription) -> bool:
        """Add a subscription; False: one of that name exists."""
        tenants = None if subscription.tenants is None else sorted(map(as_storable, subscription.tenants))
        async with self._connect_durably() as connection:
            done = await connection.execute(SQL["subscribe"], subscription.name, subscription.topic, tenants)
        return _count(done) > 0

    async def unsubscribe(self, name: str) -> bool:
        """Delete a subscription with its queue; False: there was none."""
        async with self._connect_durably() as connection:
            return _count(await connection.execute(SQL["unsubscribe"], name)) > 0

    async def find(self, name: str) -> Subscription | None:
        """Return a subscription."""
        async with self._connect() as connection:
            row = await connection.fetchrow(SQL["read_subscription"], as_storable(name))
        return None if row is None else subscription_of(name, *row)

    async def subscriptions(self, name: str | None = None) -> tuple[SubscriptionState, ...]:
        """Return all subscriptions by name, or one, and what is in their queues."""
        async with self._connect() as connection:
            rows = await connection.fetch(SQL["read_subscriptions"], None if name is None else as_storable(name))
        return tuple(
            subscription_state(each, topic, tenants, (waiting, flying, dead), oldest)
            for each, topic, tenants, waiting, flying, dead, oldest in rows
        )

    async def enqueue(self, messages: Sequence[Message], only: str | None = None) -> None:
        """Add messages to the queue of every subscription that admits them."""
        rows = [(each.topic, as_storable(each.tenant), each.is_for_all, encode_event(each)) for each in messages]
        columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []]
        async with self._connect() as connection:
            await connection.execute(SQL["enqueue"], *columns, only)

    async def overdue(self, max_lag: timedelta) -> tuple[OverdueQueue, ...]:
        """Return queues whose oldest message could have been taken for longer than `max_lag`."""
        async with self._connect() as connection:
            return tuple(overdue_queue(*row) for row in await connection.fetch(SQL["find_overdue"], max_lag))

    async def discard(self, name: str, upto: int, limit: int) -> int:
        """Delete messages that are not dead letters, up to a number."""
        async with self._connect() as connection:
            return _count(await connection.execute(SQL["discard_messages"], name, upto, limit))

    async def take(self, name: str, limit: int, deadline: timedelta, retries: int) -> tuple[QueuedMessage, ...]:
        """Take the oldest messages that wait."""
        taken: list[QueuedMessage] = []
        async with self._connect() as connection:
            while room := limit - len(taken):
                rows = await connection.fetch(SQL["take_messages"], name, room, deadline, retries, UNANSWERED)
                taken += [queued_message(*row) for *row, is_spent in sorted(rows, key=_sequence) if not is_spent]
                if not any(row["is_spent"] for row in rows):
                    break
        return tuple(taken)

    async def ack(self, name: str, receipts: Sequence[str]) -> int:
        """Delete messages that were handled."""
        async with self._connect() as connection:
            return _count(await connection.execute(SQL["ack_messages"], name, *_columns(receipts)))

    async def nack(self, name: str, receipts: Sequence[str], error: str, delay: timedelta | None) -> int:
        """Let messages wait for `delay`; None: they become dead letters."""
        text = as_storable(error[:MAX_ERROR])
        async with self._connect() as connection:
            return _count(await connection.execute(SQL["nack_messages"], name, *_columns(receipts), text, delay))

    async def dead_letters(self, name: str, limit: int) -> tuple[DeadLetter, ...]:
        """Return dead letters, the oldest first."""
        async with self._connect() as connection:
            return tuple(dead_letter(*row) for row in await connection.fetch(SQL["read_dead_letters"], name, limit))

    async def replay_dead_letters(self, name: str, limit: int) -> int:
        """Put dead letters back, the oldest first."""
        async with self._connect() as connection:
            return _count(await connection.execute(SQL["replay_dead_letters"], name, limit))


def _sequence(row: Sequence[Any]) -> int:
    return int(row[0])


def _columns(receipts: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return the messages and attempts of receipts."""
    read = read_receipts(receipts)
    return [sequence for sequence, _ in read], [attempt for _, attempt in read]


def _count(tag: str) -> int:
    """Return the number of rows in a command tag such as `DELETE 3` or `INSERT 0 3`."""
    return int(tag.rpartition(" ")[2])
