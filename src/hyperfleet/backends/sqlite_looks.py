"""When the sentinel looks at which resource, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from hyperfleet.backends.rows import (
    FIRST_INSTANT,
    decode_looks,
    decode_resource,
    decode_status,
    encode_looks,
    from_micros,
    in_micros,
    to_micros,
)
from hyperfleet.backends.sqlite_connection import SQL, transaction
from hyperfleet.backends.sqlite_loading import as_list
from hyperfleet.backends.sqlite_reading import tenants_of
from hyperfleet.backends.sqlite_session import Session
from hyperfleet.ports import Clock, LookCounts, LookMove, LookPage, LookPlan, ScheduledLook, Scope


class SqliteLooks:
    """The looks in the file of a store."""

    def __init__(self, opened: Callable[[], Session], clock: Clock) -> None:
        """Use the open session of a store."""
        self._opened = opened
        self._clock = clock

    async def due(self, kind: str, scope: Scope, limit: int, after: tuple[datetime, str] | None = None) -> LookPage:
        """Return resources that are due, the longest first."""
        now, (time, id_) = self._clock.now(), after or (FIRST_INSTANT, "")
        parameters = (kind, to_micros(now), to_micros(time), id_, tenants_of(scope), limit)
        return LookPage(now, await self._opened().scan(_read, "read_due_looks", parameters))

    async def read(self, kind: str, ids: Collection[str], scope: Scope) -> LookPage:
        """Return resources by id, in order of ids."""
        parameters = (kind, as_list(ids), tenants_of(scope))
        return LookPage(self._clock.now(), await self._opened().scan(_read, "read_looks", parameters))

    async def count(self, kind: str, scope: Scope, limit: int) -> LookCounts:
        """Count the resources that are due, at most `limit`."""
        return await self._opened().scan(_count, kind, scope, limit, self._clock.now())

    async def advance(self, moves: Sequence[LookMove]) -> frozenset[str]:
        """Set the next look at resources; return the ids of those that were still as they had been read."""
        if not moves:
            return frozenset()
        async with self._opened().writing() as connection:
            return frozenset(_advance(connection, moves))

    async def spread(self, after: str, limit: int, over: timedelta, *, forgets: bool = False) -> str | None:
        """Let resources be due within a time, at random; return the last id; None: that was all."""
        async with self._opened().writing() as connection:
            ids = [id_ for (id_,) in connection.execute(SQL["read_ids_after"], (after, limit))]
            now, span = to_micros(self._clock.now()), max(in_micros(over), 1)
            connection.executemany(SQL["spread_look"], [(id_, now, span, forgets) for id_ in ids])
        return ids[-1] if len(ids) == limit else None

    async def rules_digest(self) -> str:
        """Return the digest of the rules with which all looks were scheduled."""
        return await self._opened().scan(_read_digest)

    async def save_rules_digest(self, digest: str) -> None:
        """Save the digest of the rules."""
        async with self._opened().writing() as connection:
            connection.execute(SQL["save_look_rules"], (digest,))


def _read(connection: sqlite3.Connection, statement: str, parameters: Sequence[Any]) -> tuple[ScheduledLook, ...]:
    return tuple(
        ScheduledLook(
            decode_resource(resource), decode_status(status), answer, LookPlan(_instant(look_at), decode_looks(history))
        )
        for answer, look_at, history, resource, status in connection.execute(SQL[statement], parameters)
    )


def _count(connection: sqlite3.Connection, kind: str, scope: Scope, limit: int, now: datetime) -> LookCounts:
    parameters = (kind, to_micros(now), tenants_of(scope))
    with transaction(connection, "deferred"):
        count, oldest = connection.execute(SQL["count_looks"], (*parameters, limit)).fetchone()
        row = connection.execute(SQL["read_next_look"], parameters).fetchone()
    return LookCounts(now, count, _instant(oldest), None if row is None else from_micros(row[0]))


def _advance(connection: sqlite3.Connection, moves: Sequence[LookMove]) -> Iterable[str]:
    for move in moves:
        before, after = (_columns(look) for look in (move.before, move.after))
        if connection.execute(SQL["advance_look"], (move.id, *before, *after)).rowcount > 0:
            yield move.id


def _columns(look: LookPlan) -> tuple[int | None, str | None]:
    return None if look.at is None else to_micros(look.at), encode_looks(look.history)


def _read_digest(connection: sqlite3.Connection) -> str:
    (digest,) = connection.execute(SQL["read_look_rules"]).fetchone()
    return str(digest)


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
