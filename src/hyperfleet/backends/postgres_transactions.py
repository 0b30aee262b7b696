"""★ Transactions of PostgreSQL: lock, load, compute, write, commit; and heartbeats, which are one statement."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from hyperfleet.backends.postgres_connections import Connection, transaction
from hyperfleet.backends.postgres_loading import SQL, as_storable, load
from hyperfleet.backends.postgres_writing import write
from hyperfleet.backends.rows import decode_report, encode, phase_of
from hyperfleet.ports import Heartbeat, Needs, RecordedHeartbeat, Work


async def transact(connection: Connection, needs: Needs, work: Work) -> int:
    """Run one transaction; return the position before its first event."""
    async with transaction(connection):
        loaded, position = await load(connection, needs)
        changes = work(loaded)
        if changes.is_empty:
            await connection.execute("rollback")  # unlike a commit it needs no flush
            return position
        return await write(connection, loaded.policy_version, changes)


async def record_heartbeats(connection: Connection, heartbeats: Sequence[Heartbeat]) -> list[RecordedHeartbeat | None]:
    """Record the reports that are heartbeats: one statement, which is a transaction of its own."""
    order = sorted(range(len(heartbeats)), key=lambda index: (heartbeats[index].resource_id, heartbeats[index].adapter))
    columns = zip(*[_parameters(heartbeats[index]) for index in order], strict=True)
    recorded: list[RecordedHeartbeat | None] = [None] * len(heartbeats)
    for place, *row in await connection.fetch(SQL["record_heartbeats"], *[list(column) for column in columns]):
        index = order[place - 1]
        recorded[index] = _recorded(heartbeats[index], row)
    return recorded


def _parameters(sent: Heartbeat) -> tuple[object, ...]:
    tenants = sent.scope.tenants
    return (
        as_storable(sent.resource_id),
        sent.adapter,
        sent.kind,
        None if sent.parent_id is None else as_storable(sent.parent_id),
        None if tenants is None else encode(sorted(tenants)).decode(),
        sent.generation,
        sent.digest,
        sent.observed_time,
        sent.wants_report,
    )


def _recorded(sent: Heartbeat, row: Sequence[Any]) -> RecordedHeartbeat:
    name, parent_id, tenant, revision, severity, report_id, skew, effective, last_heard, body = row
    stored = None if body is None else decode_report(body, effective, last_heard, sent.digest, True)
    return RecordedHeartbeat(
        name, parent_id, tenant, revision, phase_of(severity), report_id, skew or timedelta(), stored
    )
