"""Leases and the queues of the in-process broker in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import count, islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.backends.queues import MAX_ERROR, UNANSWERED
from hyperfleet.messaging import (
    DeadLetter,
    Message,
    OverdueQueue,
    QueuedMessage,
    Subscription,
    SubscriptionState,
    read_receipt,
    write_receipt,
)
from hyperfleet.ports import Clock, Lease

# No lease lasts this long. One that does was taken before the clock was set back, and its holder may be dead.
_LONG: Final = timedelta(minutes=2)


class MemoryLeases:
    """The leases of a store."""

    def __init__(self, clock: Clock) -> None:
        """Start without leases."""
        self._clock = clock
        self._held: dict[str, tuple[Lease, datetime]] = {}  # with the time when it expires

    def is_current(self, lease: Lease) -> bool:
        """Tell whether a lease has got no other holder."""
        return self._held.get(lease.name, (None,))[0] == lease

    def take(self, name: str, holder: str, duration: timedelta) -> Lease | None:
        """Take a lease or extend it; None: another holder has it."""
        now = self._clock.now()
        lease, expires = self._held.get(name, (Lease(name, "", 0), now))
        if lease.holder != holder:
            if now < expires <= now + 2 * duration:  # one that lasts longer: the clock was set back since
                return None
            lease = Lease(name, holder, lease.epoch + 1)
        self._held[name] = (lease, now + duration)
        return lease

    def find(self, prefix: str) -> tuple[Lease, ...]:
        """Return the leases whose names begin so and that have not expired, by name."""
        now = self._clock.now()
        held = sorted(self._held.items())
        return tuple(
            lease for name, (lease, expires) in held if name.startswith(prefix) and now < expires < now + _LONG
        )

    def forget(self, prefix: str, before: datetime) -> None:
        """Delete leases whose names begin so and that have expired long ago."""
        for name, (_, expires) in list(self._held.items()):
            if name.startswith(prefix) and expires < before:
                del self._held[name]

    def release(self, lease: Lease) -> None:
        """Let another holder take a lease at once."""
        if self._held.get(lease.name, (None,))[0] == lease:
            self._held[lease.name] = (lease, self._clock.now())


class _Row(Struct):
    """A message of a queue."""

    message: Message
    visible_at: datetime
    attempts: int = 0
    error: str = ""
    dead_time: datetime | None = None


class MemoryQueues:
    """The queues of a store."""

    def __init__(self, clock: Clock) -> None:
        """Start without subscriptions."""
        self._clock = clock
        self._sequence = count(1)
        self._subscriptions: dict[str, Subscription] = {}
        self._rows: dict[str, dict[int, _Row]] = {}  # by subscription and sequence

    async def subscribe(self, subscription: Subscription) -> bool:
        """Add a subscription; False: one of that name exists."""
        if subscription.name in self._subscriptions:
            return False
        self._subscriptions[subscription.name] = subscription
        self._rows[subscription.name] = {}
        return True

    async def unsubscribe(self, name: str) -> bool:
        """Delete a subscription with its queue; False: there was none."""
        self._rows.pop(name, None)
        return self._subscriptions.pop(name, None) is not None

    async def find(self, name: str) -> Subscription | None:
        """Return a subscription."""
        return self._subscriptions.get(name)

    async def subscriptions(self, name: str | None = None) -> tuple[SubscriptionState, ...]:
        """Return all subscriptions by name, or one, and what is in their queues."""
        return tuple(self._state_of(each) for key, each in sorted(self._subscriptions.items()) if name in (None, key))

    async def enqueue(self, messages: Sequence[Message], only: str | None = None) -> None:
        """Add messages to the queue of every subscription that admits them."""
        now = self._clock.now()
        for message in messages:
            for name, subscription in sorted(self._subscriptions.items()):
                if subscription.admits(message) and only in (None, name):
                    self._rows[name][next(self._sequence)] = _Row(replace(message, is_for_all=False), now)

    async def overdue(self, max_lag: timedelta) -> tuple[OverdueQueue, ...]:
        """Return queues whose oldest message could have been taken for longer than `max_lag`."""
        before = self._clock.now() - max_lag
        alive = [(each, self._alive(name)) for name, each in sorted(self._subscriptions.items())]
        return tuple(
            OverdueQueue(each, rows[0][1].message, rows[-1][0])
            for each, rows in alive
            if rows and rows[0][1].visible_at < before
        )

    async def discard(self, name: str, upto: int, limit: int) -> int:
        """Delete messages that are not dead letters, up to a number."""
        victims = [sequence for sequence, _ in self._alive(name) if sequence <= upto][:limit]
        for sequence in victims:
            del self._rows[name][sequence]
        return len(victims)

    async def take(self, name: str, limit: int, deadline: timedelta, retries: int) -> tuple[QueuedMessage, ...]:
        """Take the oldest messages that wait."""
        now = self._clock.now()
        for _, row in self._waiting(name, now):
            if row.attempts > retries:
                row.dead_time, row.error = now, row.error or UNANSWERED
        taken = list(islice(self._waiting(name, now), limit))
        for _, row in taken:
            row.visible_at, row.attempts = now + deadline, row.attempts + 1
        return tuple(
            QueuedMessage(write_receipt(sequence, row.attempts), row.message, row.attempts) for sequence, row in taken
        )

    async def ack(self, name: str, receipts: Sequence[str]) -> int:
        """Delete messages that were handled."""
        found = [each for receipt in receipts if (each := self._find(name, receipt)) is not None]
        return sum(self._rows[name].pop(sequence, None) is not None for sequence, _ in found)

    async def nack(self, name: str, receipts: Sequence[str], error: str, delay: timedelta | None) -> int:
        """Let messages wait for `delay`; None: they become dead letters."""
        now = self._clock.now()
        found = [each for receipt in receipts if (each := self._find(name, receipt)) is not None]
        for _, row in found:
            row.error, row.visible_at = error[:MAX_ERROR], now + (delay or timedelta())
            row.dead_time = now if delay is None else None
        return len(found)

    async def dead_letters(self, name: str, limit: int) -> tuple[DeadLetter, ...]:
        """Return dead letters, the oldest first."""
        return tuple(
            DeadLetter(str(sequence), row.message, row.error, row.attempts, row.dead_time)
            for sequence, row in islice(self._dead(name), limit)
        )

    async def replay_dead_letters(self, name: str, limit: int) -> int:
        """Put dead letters back, the oldest first."""
        replayed = list(islice(self._dead(name), limit))
        for sequence, row in replayed:
            self._rows[name][sequence] = _Row(row.message, self._clock.now())
        return len(replayed)

    def _waiting(self, name: str, now: datetime) -> Iterator[tuple[int, _Row]]:
        return (each for each in self._alive(name) if _is_visible(each[1], now))

    def _alive(self, name: str) -> list[tuple[int, _Row]]:
        return [each for each in sorted(self._rows.get(name, {}).items()) if each[1].dead_time is None]

    def _dead(self, name: str) -> Iterator[tuple[int, _Row]]:
        return (each for each in sorted(self._rows.get(name, {}).items()) if each[1].dead_time is not None)

    def _find(self, name: str, receipt: str) -> tuple[int, _Row] | None:
        """Return the message of a receipt that is still valid."""
        sequence, attempt = read_receipt(receipt) or (0, 0)
        row = self._rows.get(name, {}).get(sequence)
        return (sequence, row) if row is not None and row.dead_time is None and row.attempts == attempt else None

    def _state_of(self, subscription: Subscription) -> SubscriptionState:
        rows = [row for _, row in sorted(self._rows[subscription.name].items())]
        now, alive = self._clock.now(), [row for row in rows if row.dead_time is None]
        waiting = sum(_is_visible(row, now) for row in alive)
        oldest = alive[0].message.time if alive else None
        return SubscriptionState(subscription, waiting, len(alive) - waiting, len(rows) - len(alive), oldest)


def _is_visible(row: _Row, now: datetime) -> bool:
    """Tell whether a message may be taken. One that was never taken always may: the clock may have been set back."""
    return row.visible_at <= now or row.attempts == 0
