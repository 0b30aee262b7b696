"""Leases and the queues of the in-process broker in SQLite.

Only subscriptions are flushed to the disk at once. The rest may be lost when the machine loses power, but only together
with everything that was committed later, as how far the relay has published. No process outlives that, so messages are
published again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from hyperfleet.backends.queues import (
    MAX_ERROR,
    UNANSWERED,
    dead_letter,
    overdue_queue,
    queued_message,
    subscription_of,
    subscription_state,
)
from hyperfleet.backends.rows import from_micros, to_micros
from hyperfleet.backends.sqlite_connection import SQL
from hyperfleet.backends.sqlite_loading import as_list
from hyperfleet.backends.sqlite_session import Session
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
from hyperfleet.ports import Clock, Lease


async def take_lease(session: Session, name: str, holder: str, duration: timedelta, now: datetime) -> Lease | None:
    """Take a lease or extend it; None: another holder has it."""
    async with session.writing(is_durable=False) as connection:
        parameters = (name, holder, to_micros(now), to_micros(now + duration))
        row = connection.execute(SQL["take_lease"], parameters).fetchone()
    return None if row is None else Lease(name, holder, row[0])


async def release_lease(session: Session, lease: Lease) -> None:
    """Let another holder take a lease at once."""
    async with session.writing(is_durable=False) as connection:
        connection.execute(SQL["release_lease"], (lease.name, lease.holder, lease.epoch))


def read_leases(connection: sqlite3.Connection, prefix: str, now: datetime) -> tuple[Lease, ...]:
    """Return the leases whose names begin so and that have not expired, by name."""
    # No name has a character above the last one.
    rows = connection.execute(SQL["read_leases"], (prefix, prefix + "\U0010ffff", to_micros(now)))
    return tuple(Lease(*row) for row in rows)


def read_webhooks(connection: sqlite3.Connection) -> dict[str, bytes]:
    """Return the saved states of webhooks."""
    return dict(connection.execute(SQL["read_webhooks"]).fetchall())


async def save_webhook(session: Session, name: str, state: bytes, lease: Lease | None) -> bool:
    """Save the state of a webhook; an empty one deletes it."""
    async with session.writing() as connection:
        if not state:
            connection.execute(SQL["delete_webhook"], (name,))
            return True
        holding = (None, None) if lease is None else (lease.name, lease.epoch)
        return connection.execute(SQL["save_webhook"], (name, state, *holding)).rowcount > 0


def read_store_id(connection: sqlite3.Connection) -> str:
    """Return what identifies this database."""
    (id_,) = connection.execute(SQL["read_store_id"]).fetchone()
    return str(id_)


class SqliteQueues:
    """The queues in the file of a store."""

    def __init__(self, opened: Callable[[], Session], clock: Clock) -> None:
        """Use the open session of a store."""
        self._opened = opened
        self._clock = clock

    async def subscribe(self, subscription: Subscription) -> bool:
        """Add a subscription; False: one of that name exists."""
        tenants = None if subscription.tenants is None else as_list(sorted(subscription.tenants))
        async with self._opened().writing() as connection:
            row = (subscription.name, subscription.topic, tenants, self._now())
            return connection.execute(SQL["subscribe"], row).rowcount > 0

    async def unsubscribe(self, name: str) -> bool:
        """Delete a subscription with its queue; False: there was none."""
        async with self._opened().writing() as connection:
            connection.execute(SQL["delete_messages"], (name,))
            return connection.execute(SQL["unsubscribe"], (name,)).rowcount > 0

    async def find(self, name: str) -> Subscription | None:
        """Return a subscription."""
        row = self._opened().look(SQL["read_subscription"], name)
        return None if row is None else subscription_of(name, row[0], _decode_tenants(row[1]))

    async def subscriptions(self, name: str | None = None) -> tuple[SubscriptionState, ...]:
        """Return all subscriptions by name, or one, and what is in their queues."""
        return await self._opened().scan(_read_subscriptions, name, self._now())

    async def enqueue(self, messages: Sequence[Message], only: str | None = None) -> None:
        """Add messages to the queue of every subscription that admits them."""
        if self._opened().look(SQL["has_subscriptions"]) is None:
            return  # a transaction would cost a flush of the disk
        async with self._opened().writing(is_durable=False) as connection:
            now = self._now()
            rows = [(each.topic, each.tenant, each.is_for_all, encode_event(each), now, only) for each in messages]
            connection.executemany(SQL["enqueue"], rows)

    async def overdue(self, max_lag: timedelta) -> tuple[OverdueQueue, ...]:
        """Return queues whose oldest message could have been taken for longer than `max_lag`."""
        return await self._opened().scan(_find_overdue, to_micros(self._clock.now() - max_lag))

    async def discard(self, name: str, upto: int, limit: int) -> int:
        """Delete messages that are not dead letters, up to a number."""
        async with self._opened().writing(is_durable=False) as connection:
            return connection.execute(SQL["discard_messages"], (name, upto, limit)).rowcount

    async def take(self, name: str, limit: int, deadline: timedelta, retries: int) -> tuple[QueuedMessage, ...]:
        """Take the oldest messages that wait."""
        if self._opened().look(SQL["find_waiting"], name, self._now(), 1) is None:
            return ()  # a transaction would make writers wait
        async with self._opened().writing(is_durable=False) as connection:
            rows = _take(connection, name, limit, (self._clock.now(), deadline), retries)
        return tuple(queued_message(*row) for row in rows)

    async def ack(self, name: str, receipts: Sequence[str]) -> int:
        """Delete messages that were handled."""
        rows = [(name, *each) for each in read_receipts(receipts)]
        async with self._opened().writing(is_durable=False) as connection:
            return connection.executemany(SQL["ack_message"], rows).rowcount if rows else 0

    async def nack(self, name: str, receipts: Sequence[str], error: str, delay: timedelta | None) -> int:
        """Let messages wait for `delay`; None: they become dead letters."""
        now = self._clock.now()
        until, dead = to_micros(now + (delay or timedelta())), None if delay is not None else to_micros(now)
        rows = [(name, *each, error[:MAX_ERROR], until, dead) for each in read_receipts(receipts)]
        async with self._opened().writing(is_durable=False) as connection:
            return connection.executemany(SQL["nack_message"], rows).rowcount if rows else 0

    async def dead_letters(self, name: str, limit: int) -> tuple[DeadLetter, ...]:
        """Return dead letters, the oldest first."""
        return await self._opened().scan(_read_dead_letters, name, limit)

    async def replay_dead_letters(self, name: str, limit: int) -> int:
        """Put dead letters back, the oldest first."""
        async with self._opened().writing(is_durable=False) as connection:
            return connection.execute(SQL["replay_dead_letters"], (name, limit, self._now())).rowcount

    def _now(self) -> int:
        return to_micros(self._clock.now())


def _take(
    connection: sqlite3.Connection, name: str, limit: int, term: tuple[datetime, timedelta], retries: int
) -> list[Any]:
    """Take messages; those that were delivered as often as allowed become dead letters."""
    now, until = to_micros(term[0]), to_micros(term[0] + term[1])
    taken: list[Any] = []
    while room := limit - len(taken):
        rows = connection.execute(SQL["find_waiting"], (name, now, room)).fetchall()
        spent = [row for row in rows if row[2] > retries + 1]
        fresh = [row for row in rows if row[2] <= retries + 1]
        connection.executemany(SQL["bury_message"], [(now, UNANSWERED, row[0]) for row in spent])
        connection.executemany(SQL["take_message"], [(until, row[0]) for row in fresh])
        taken += fresh
        if not spent:
            break
    return taken


def _decode_tenants(text: str | None) -> list[str] | None:
    return None if text is None else msgspec.json.decode(text, type=list[str])


def _find_overdue(connection: sqlite3.Connection, before: int) -> tuple[OverdueQueue, ...]:
    rows = connection.execute(SQL["find_overdue"], (before,))
    return tuple(overdue_queue(name, topic, _decode_tenants(tenants), *rest) for name, topic, tenants, *rest in rows)


def _read_subscriptions(connection: sqlite3.Connection, name: str | None, now: int) -> tuple[SubscriptionState, ...]:
    rows = connection.execute(SQL["read_subscriptions"], (name, now)).fetchall()
    return tuple(
        subscription_state(
            each,
            topic,
            _decode_tenants(tenants),
            (waiting, flying, dead),
            oldest,
        )
        for each, topic, tenants, waiting, flying, dead, oldest in rows
    )


def _read_dead_letters(connection: sqlite3.Connection, name: str, limit: int) -> tuple[DeadLetter, ...]:
    rows = connection.execute(SQL["read_dead_letters"], (name, limit))
    return tuple(
        dead_letter(sequence, body, error, attempts, from_micros(time), topic)
        for sequence, body, error, attempts, time, topic in rows
    )
