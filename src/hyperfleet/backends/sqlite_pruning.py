"""Prunes an SQLite file: a reader finds what may be deleted, the writer deletes it, so that writers hardly wait.

`pruning` decides what may be deleted, and why.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from hyperfleet.backends.past import WalkedLog
from hyperfleet.backends.pruning import WalkStep, choose_victims, expired, steps_of
from hyperfleet.backends.rows import from_micros, to_micros
from hyperfleet.backends.sqlite_connection import SQL, transaction
from hyperfleet.backends.sqlite_loading import as_list
from hyperfleet.backends.sqlite_past import read_horizon
from hyperfleet.backends.sqlite_session import Session
from hyperfleet.ports import Pruning

_WINDOW: Final = 1_000  # rows that a reader visits before the writer deletes: as many as one transaction deletes


class Plan(Struct, frozen=True):
    """What the writer must do to a log."""

    log: WalkedLog
    until: datetime  # history before it is no longer complete
    walked: int
    victims: tuple[int, ...] = ()
    orphans: tuple[int, ...] = ()  # reports of resources whose last event is deleted


async def prune(session: Session, task: Pruning, cutoff: datetime, limit: int) -> int:
    """Delete up to `limit` rows of a log that are older than `cutoff`; return their number."""
    match task.log:
        case "keys":
            if members := await session.scan(_find_old_members, cutoff):
                await session.write(_delete, SQL["forget_member"], members)
            rows = await session.scan(_find_old, task.log, cutoff, limit)
            return await session.write(_delete, SQL["prune_keys"], rows)
        case "transitions":
            rows = await session.scan(_find_old, task.log, cutoff, limit)
            return await session.write(_delete_transitions, rows, cutoff)
        case "events" | "reports":
            return await _walk_on(session, task.log, cutoff, limit)


async def _walk_on(session: Session, log: WalkedLog, cutoff: datetime, limit: int) -> int:
    while (plan := await session.scan(_walk, log, cutoff, limit)) is not None:
        if deleted := await session.write(_carry_out, plan):
            return deleted
    return 0


def _find_old(connection: sqlite3.Connection, log: str, cutoff: datetime, limit: int) -> Sequence[Any]:
    return connection.execute(SQL[f"prunable_{log}"], (to_micros(cutoff), limit)).fetchall()


def _find_old_members(connection: sqlite3.Connection, cutoff: datetime) -> Sequence[Any]:
    return connection.execute(SQL["find_old_members"], (to_micros(cutoff),)).fetchall()


def _delete(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[int | str]]) -> int:
    with transaction(connection):
        return connection.executemany(statement, rows).rowcount


def _delete_transitions(connection: sqlite3.Connection, rows: Sequence[tuple[int, int]], cutoff: datetime) -> int:
    """Delete transitions, and move the horizon with them."""
    with transaction(connection):
        if rows:
            last = max(position for _, position in rows)
            connection.execute(SQL["move_horizon"], ("transitions", last, to_micros(cutoff), 0))
        return connection.executemany(SQL["prune_transitions"], [(row,) for row, _ in rows]).rowcount


def _walk(connection: sqlite3.Connection, log: WalkedLog, cutoff: datetime, limit: int) -> Plan | None:
    """Continue where the last walk ended; None: nothing there has expired."""
    with transaction(connection, "deferred"):
        start = read_horizon(connection, log).walked
        steps = expired(_steps(connection, log, start), cutoff)
        if not steps:
            return None
        gone = [step.gone for step in steps if step.gone]
        if gone and (orphans := _find_orphans(connection, gone, limit)):
            return Plan(log, cutoff, start, orphans=orphans)
    chosen = choose_victims(steps, start, limit)
    return Plan(log, cutoff, chosen.walked, chosen.victims)


def _steps(connection: sqlite3.Connection, log: WalkedLog, start: int) -> Iterator[WalkStep]:
    rows = connection.execute(SQL[f"walk_{log}"], (start, _WINDOW))
    return steps_of(log, ((key, from_micros(time), *rest) for key, time, *rest in rows))


def _find_orphans(connection: sqlite3.Connection, gone: Sequence[str], limit: int) -> tuple[int, ...]:
    return tuple(key for (key,) in connection.execute(SQL["find_orphans"], (as_list(gone), limit)))


def _carry_out(connection: sqlite3.Connection, plan: Plan) -> int:
    """Delete, and move the horizon; return the number of deleted rows."""
    with transaction(connection):
        deleted = _delete_all(connection, SQL["delete_report"], plan.orphans)
        if deleted:
            connection.execute(SQL["step_back"])
        if plan.log == "reports":
            connection.executemany(SQL["hand_over_report"], [(key,) for key in sorted(plan.victims)])
        delete = SQL["delete_report" if plan.log == "reports" else "delete_event"]
        deleted += _delete_all(connection, delete, plan.victims)
        position, time = (max(plan.victims, default=0), to_micros(plan.until)) if deleted else (0, 0)
        connection.execute(SQL["move_horizon"], (plan.log, position, time, plan.walked))
        return deleted


def _delete_all(connection: sqlite3.Connection, statement: str, keys: Sequence[int]) -> int:
    return connection.executemany(statement, [(key,) for key in keys]).rowcount if keys else 0
