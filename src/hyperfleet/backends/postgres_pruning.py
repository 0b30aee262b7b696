"""Forgetting in PostgreSQL, a little at a time. `pruning` says what may go, and why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from hyperfleet.backends.past import Horizon, WalkedLog
from hyperfleet.backends.postgres_connections import Connection, transaction
from hyperfleet.backends.postgres_loading import SQL
from hyperfleet.backends.postgres_past import read_horizon
from hyperfleet.backends.pruning import Walk, choose_victims, expired, forgotten_until, steps_of
from hyperfleet.ports import Pruning

_WINDOW: Final = 1_000  # rows that are looked at in one transaction


async def prune(connection: Connection, task: Pruning, limit: int) -> int:
    """Delete up to `limit` rows of a log that are past their time; return how many went."""
    match task.log:
        case "keys":
            done = await connection.execute(SQL["prune_keys"], task.keep, limit)
            return int(done.removeprefix("DELETE "))
        case "transitions":
            return int(await connection.fetchval(SQL["prune_transitions"], task.keep, limit))
        case "events" | "reports":
            cutoff = await connection.fetchval(SQL["read_cutoff"], task.keep)
            deleted = await _walk_on(connection, task.log, cutoff, limit)
            if not deleted and task.log == "reports":
                return await _walk_on(connection, "beats", cutoff, limit)
            return deleted


async def _walk_on(connection: Connection, log: WalkedLog, cutoff: datetime, limit: int) -> int:
    deleted: int | None = 0
    while deleted == 0:
        async with transaction(connection):
            deleted = await _go_on(connection, log, cutoff, limit)
    return deleted or 0


async def _go_on(connection: Connection, log: WalkedLog, cutoff: datetime, limit: int) -> int | None:
    """Walk on from where the last walk ended and delete what may go; None: nothing is past its time there."""
    start = (await read_horizon(connection, log)).walked
    rows = await connection.fetch(SQL[f"walk_{log}"], start, _WINDOW)
    steps = expired(steps_of(log, rows), cutoff)
    if not steps:
        return None
    until = forgotten_until(log, steps, cutoff)
    if gone := [step.gone for step in steps if step.gone]:
        if orphans := await _find_orphans(connection, "find_orphans", gone, limit):
            await connection.execute(SQL["delete_reports"], orphans)
            await connection.execute(SQL["move_horizon"], log, 0, until, start)
            return len(orphans)
        if beats := await _find_orphans(connection, "find_orphan_beats", gone, limit):
            return await _delete(connection, log, until, Walk(tuple(beats), start))
    return await _delete(connection, log, until, choose_victims(steps, start, limit))


async def _find_orphans(connection: Connection, name: str, gone: Sequence[str], limit: int) -> list[int]:
    return [row["key"] for row in await connection.fetch(SQL[name], gone, limit)]


async def _delete(connection: Connection, log: WalkedLog, until: datetime, walk: Walk) -> int:
    """Delete, and move the horizon with it; return how much went."""
    await connection.execute(SQL["delete_reports" if log == "reports" else "delete_events"], walk.victims)
    position, time = (max(walk.victims), until) if walk.victims else (0, Horizon().time)
    await connection.execute(SQL["move_horizon"], log, position, time, walk.walked)
    if log == "beats":
        await connection.execute(SQL["move_horizon"], "events", position, time, 0)
        await connection.execute(SQL["move_horizon"], "reports", 0, time, 0)
    return len(walk.victims)
