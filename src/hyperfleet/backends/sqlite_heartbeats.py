"""Records heartbeats in an SQLite file: one small update for each, all in one transaction."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from hyperfleet.backends.rows import COUNTERS, decode_report, from_micros, in_micros, phase_of, to_micros
from hyperfleet.backends.sqlite_connection import SQL
from hyperfleet.backends.sqlite_reading import tenants_of
from hyperfleet.ports import Heartbeat, RecordedHeartbeat

_RECORD: Final = SQL["record_heartbeat"]
_NO_SKEW: Final = timedelta()
_ONLY_AGGREGATED: Final = (0,) * (len(COUNTERS) - 1)


def record(
    connection: sqlite3.Connection, heartbeats: Sequence[Heartbeat], now: datetime
) -> list[RecordedHeartbeat | None]:
    """Record the reports that are heartbeats, within a transaction."""
    recorded = [_record_one(connection, sent, now) for sent in heartbeats]
    _add_counts(connection, heartbeats, recorded, now)
    return recorded


def _record_one(connection: sqlite3.Connection, sent: Heartbeat, now: datetime) -> RecordedHeartbeat | None:
    effective = min(sent.observed_time, now) if sent.observed_time else now
    row = connection.execute(
        _RECORD,
        (
            to_micros(effective),
            to_micros(now),
            sent.resource_id,
            sent.adapter,
            sent.digest,
            sent.generation,
            sent.kind,
            sent.parent_id,
            tenants_of(sent.scope),
        ),
    ).fetchone()
    if row is None:
        return None
    report_id, last_heard = row
    name, parent_id, tenant, revision, severity = connection.execute(SQL["read_heard"], (sent.resource_id,)).fetchone()
    stored = None
    if sent.wants_report:
        (body,) = connection.execute(SQL["read_body"], (sent.resource_id, sent.adapter)).fetchone()
        stored = decode_report(body, effective, from_micros(last_heard), sent.digest, True)
    skew = sent.observed_time - now if sent.observed_time else _NO_SKEW
    return RecordedHeartbeat(name, parent_id, tenant, revision, phase_of(severity), report_id, skew, stored)


def _add_counts(
    connection: sqlite3.Connection,
    heartbeats: Sequence[Heartbeat],
    recorded: Sequence[RecordedHeartbeat | None],
    now: datetime,
) -> None:
    """Count them for their adapters."""
    counts: defaultdict[tuple[str, str], int] = defaultdict(int)
    skews: dict[tuple[str, str], timedelta] = {}
    for sent, found in zip(heartbeats, recorded, strict=True):
        if found is not None:
            counts[found.tenant, sent.adapter] += 1
            skews[found.tenant, sent.adapter] = found.skew
    connection.executemany(
        SQL["add_counts"],
        [
            (*key, to_micros(now), in_micros(skews[key]), "", count, *_ONLY_AGGREGATED)
            for key, count in sorted(counts.items())
        ],
    )
