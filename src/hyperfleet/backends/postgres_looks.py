"""When the sentinel looks at which resource, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any

from hyperfleet.backends.postgres_connections import Connection
from hyperfleet.backends.postgres_loading import SQL, as_storable
from hyperfleet.backends.postgres_reading import tenants_of
from hyperfleet.backends.rows import FIRST_INSTANT, decode_looks, decode_resource, decode_status, encode_looks
from hyperfleet.ports import LookCounts, LookMove, LookPage, LookPlan, ScheduledLook, Scope

Connect = Callable[[], AbstractAsyncContextManager[Connection]]


class PostgresLooks:
    """The looks in a database."""

    def __init__(self, connect: Connect) -> None:
        """Use connections of a store that may write."""
        self._connect = connect

    async def due(self, kind: str, scope: Scope, limit: int, after: tuple[datetime, str] | None = None) -> LookPage:
        """Return resources that are due, the longest first."""
        time, id_ = after or (FIRST_INSTANT, "")
        async with self._connect() as connection:
            statement = SQL["read_due_looks"]
            return _page_of(await connection.fetch(statement, kind, time, id_, tenants_of(scope), limit))

    async def read(self, kind: str, ids: Collection[str], scope: Scope) -> LookPage:
        """Return resources by id, in order of ids."""
        async with self._connect() as connection:
            wanted = [as_storable(id_) for id_ in ids]
            return _page_of(await connection.fetch(SQL["read_looks"], kind, wanted, tenants_of(scope)))

    async def count(self, kind: str, scope: Scope, limit: int) -> LookCounts:
        """Count the resources that are due, at most `limit`."""
        async with self._connect() as connection:
            return LookCounts(*await connection.fetchrow(SQL["count_looks"], kind, tenants_of(scope), limit))

    async def advance(self, moves: Sequence[LookMove]) -> frozenset[str]:
        """Set the next look at resources; return the ids of those that were still as they had been read."""
        if not moves:
            return frozenset()
        rows = [(each.id, *_columns(each.before), *_columns(each.after)) for each in moves]
        async with self._connect() as connection:
            done = await connection.fetch(SQL["advance_looks"], *zip(*rows, strict=True))
        return frozenset(row["id"] for row in done)

    async def spread(self, after: str, limit: int, over: timedelta, *, forgets: bool = False) -> str | None:
        """Let resources be due within a time, at random; return the last id; None: that was all."""
        async with self._connect() as connection:
            last, count = await connection.fetchrow(SQL["spread_looks"], after, limit, over, forgets)
        return last if count == limit else None

    async def rules_digest(self) -> str:
        """Return the digest of the rules with which all looks were scheduled."""
        async with self._connect() as connection:
            return str(await connection.fetchval(SQL["read_look_rules"]))

    async def save_rules_digest(self, digest: str) -> None:
        """Save the digest of the rules."""
        async with self._connect() as connection:
            await connection.execute(SQL["save_look_rules"], digest)


def _page_of(rows: Sequence[Any]) -> LookPage:
    """Make a page; without resources there is one row, with the clock alone."""
    looks = [
        ScheduledLook(
            decode_resource(resource), decode_status(status), answer, LookPlan(look_at, decode_looks(history))
        )
        for _, answer, look_at, history, resource, status in rows
        if answer is not None
    ]
    return LookPage(rows[0]["now"], tuple(looks))


def _columns(look: LookPlan) -> tuple[datetime | None, str | None]:
    return look.at, encode_looks(look.history)
