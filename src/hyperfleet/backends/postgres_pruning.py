"""Prunes PostgreSQL in small batches. `pruning` decides what may be deleted, and why."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from hyperfleet.backends.past import Horizon, WalkedLog
from hyperfleet.backends.postgres_connections import Connection, transaction
from hyperfleet.backends.postgres_loading import SQL
from hyperfleet.backends.postgres_past import read_horizon
from hyperfleet.backends.pruning import choose_victims, expired, steps_of
from hyperfleet.ports import Pruning

_WINDOW: Final = 1_000  # rows visited in one transaction: as many as it may delete


async def prune(connection: Connection, task: Pruning, limit: int) -> int:
    """Delete up to `limit` rows of a log that are past their retention; return their number."""
    match task.log:
        case "keys":
            done = await connection.execute(SQL["prune_keys"], task.keep, limit)
            return int(done.removeprefix("DELETE "))
        case "transitions":
            return int(await connection.fetchval(SQL["prune_transitions"], task.keep, limit))
        case "events" | "reports":
            cutoff = await connection.fetchval(SQL["read_cutoff"], task.keep)
            return await _walk_on(connection, task.log, cutoff, limit)


async def _walk_on(connection: Connection, log: WalkedLog, cutoff: datetime, limit: int) -> int:
    deleted: int | None = 0
    while deleted == 0:
        async with transaction(connection):
            deleted = await _go_on(connection, log, cutoff, limit)
    return deleted or 0


async def _go_on(connection: Connection, log: WalkedLog, cutoff: datetime, limit: int) -> int | None:
    """Continue where the last walk ended and delete what may be deleted; None: nothing there has expired."""
    start = (await read_horizon(connection, log)).walked
    steps = expired(steps_of(log, await connection.fetch(SQL[f"walk_{log}"], start, _WINDOW)), cutoff)
    if not steps:
        return None
    gone = [step.gone for step in steps if step.gone]
    if gone and (orphans := [row["key"] for row in await connection.fetch(SQL["find_orphans"], gone, limit)]):
        await connection.execute(SQL["delete_reports"], orphans)
        await connection.execute(SQL["move_horizon"], log, 0, cutoff, start)
        return len(orphans)
    walk = choose_victims(steps, start, limit)
    await connection.execute(SQL[f"delete_{log}"], walk.victims)
    position, time = (max(walk.victims), cutoff) if walk.victims else (0, Horizon().time)
    await connection.execute(SQL["move_horizon"], log, position, time, walk.walked)
    return len(walk.victims)
