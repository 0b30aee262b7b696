"""Reading whole records from an SQLite connection, for transactions and for readers alike."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Final

from hyperfleet.backends.pulse import decode_pulse
from hyperfleet.backends.record_cache import Found, RecordCache, Trail
from hyperfleet.backends.rows import decode_resource, decode_status, encode, from_micros
from hyperfleet.backends.sketches import SketchRow, draw
from hyperfleet.backends.sqlite_connection import SQL
from hyperfleet.model.report import Report
from hyperfleet.model.reports import Bodies
from hyperfleet.ports import Clock, Loaded, NameKey, Needs, Record, Remembered

_READ_RECORDS: Final = SQL["read_records"]
_READ_REPORTS: Final = SQL["read_reports"]
_READ_SKETCHES: Final = SQL["read_sketches"]


def as_list(values: Iterable[str]) -> str:
    """Write values as the JSON list that statements take."""
    return encode(list(values)).decode()


def load(
    connection: sqlite3.Connection, needs: Needs, clock: Clock, cache: RecordCache, *, is_whole: bool = False
) -> tuple[Loaded, Found, int]:
    """Load what a transaction needs; return that, all records with their marks, and the position of the head.

    Unless they must be whole, records can be sketches.
    """
    found = Found()
    position, policy_version = connection.execute(SQL["read_head"]).fetchone()
    cache.validate(connection.execute("pragma data_version").fetchone()[0])
    for id_, kept in cache.find(needs.ids).items():
        found.add(id_, kept)
    missing = needs.ids - found.records.keys()
    if missing and not is_whole and (sent := cache.expect(needs, missing)):
        drawn = _add_sketches(connection, found, sent)
        cache.tell_drawn(found, len(drawn), len(sent))
        missing -= drawn
    _add_records(connection, found, missing)
    parents = {record.resource.parent_id for record in found.records.values()} - found.records.keys()
    _add_records(connection, found, {parent for parent in parents if parent is not None})
    records = dict(found.records)
    loaded = Loaded(
        now=clock.now(),
        policy_version=policy_version,
        records=records,
        children=_load_children(connection, found, needs),
        names=_load_names(connection, needs.names),
        remembered=_load_remembered(connection, needs.keys),
    )
    return loaded, found, position


def read_records(connection: sqlite3.Connection, ids: Collection[str]) -> tuple[Record, ...]:
    """Return the records of ids, in the order of ids."""
    found = Found()
    _add_records(connection, found, ids)
    return tuple(found.records[id_] for id_ in sorted(found.records))


def _add_records(connection: sqlite3.Connection, found: Found, ids: Collection[str]) -> None:
    if not ids:
        return
    listed = as_list(ids)
    bodies: dict[str, Bodies] = {}
    for resource_id, adapter, body in connection.execute(_READ_REPORTS, (listed,)):
        bodies.setdefault(resource_id, {})[adapter] = body
        found.sizes.setdefault(resource_id, {})[adapter] = len(body)
    for number, id_, revision, wake_at, policy, answer, raw, status, resource, *trail in connection.execute(
        _READ_RECORDS, (listed,)
    ):
        pulse = decode_pulse(raw)
        record = Record(
            decode_resource(resource),
            pulse.bring_up(decode_status(status)),
            pulse.reports(bodies.get(id_, {})),
            answer,
            revision,
            _instant(wake_at),
            policy,
        )
        found.take_in(number, pulse, record, Trail(*trail))


def _add_sketches(connection: sqlite3.Connection, found: Found, sent: Mapping[str, Mapping[str, Report]]) -> set[str]:
    """Add the records of which a sketch is enough for the reports that are sent; return their ids."""
    drawn: set[str] = set()
    for (
        number,
        id_,
        kind,
        parent_id,
        tenant,
        answer,
        revision,
        wake_at,
        policy,
        raw,
        last,
        passed,
    ) in connection.execute(_READ_SKETCHES, (as_list(sent),)):
        row = SketchRow(number, id_, kind, parent_id, tenant, answer, revision, _instant(wake_at), policy)
        pulse = decode_pulse(raw)
        record = draw(row, pulse, sent[row.id])
        if record is not None:
            found.take_in(row.mark, pulse, record, Trail(last, passed))
            drawn.add(row.id)
    return drawn


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def _load_children(connection: sqlite3.Connection, found: Found, needs: Needs) -> Mapping[str, tuple[Record, ...]]:
    """Load the children of each record whose children are wanted."""
    families: dict[str, list[str]] = {
        id_: [] for id_, record in found.records.items() if needs.wants_children(record.resource)
    }
    if not families:
        return {}
    for parent, child in connection.execute(SQL["read_child_ids"], (as_list(families),)):
        families[parent].append(child)
    missing = {child for children in families.values() for child in children} - found.records.keys()
    _add_records(connection, found, missing)
    return {parent: tuple(found.records[child] for child in children) for parent, children in families.items()}


def _load_names(connection: sqlite3.Connection, names: Collection[NameKey]) -> Mapping[NameKey, str]:
    taken: dict[NameKey, str] = {}
    for name in names:
        row = connection.execute(SQL["read_name"], (name.tenant, name.kind, name.parent_id, name.name)).fetchone()
        if row is not None:
            taken[name] = row[0]
    return taken


def _load_remembered(connection: sqlite3.Connection, keys: Collection[str]) -> Mapping[str, Remembered]:
    if not keys:
        return {}
    rows = connection.execute(SQL["read_remembered"], (as_list(keys),))
    return {
        key: Remembered(key, digest, resource_id, answer, from_micros(time))
        for key, digest, resource_id, answer, time in rows
    }
