"""Reads whole records from an SQLite connection, for transactions and for reads."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from hyperfleet.backends.rows import decode_looks, decode_report, decode_resource, decode_status, encode, from_micros
from hyperfleet.backends.sqlite_connection import SQL
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import Clock, IdempotencyRecord, Loaded, LookPlan, NameKey, Needs, Record

_READ_RECORDS: Final = SQL["read_records"]
_READ_REPORTS: Final = SQL["read_reports"]


class LoadedRows(Struct, frozen=True):
    """Records that were read, and the numbers of their rows, by id."""

    records: dict[str, Record] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)


def as_list(values: Iterable[str]) -> str:
    """Encode values as the JSON list that statements take."""
    return encode(list(values)).decode()


def load(connection: sqlite3.Connection, needs: Needs, clock: Clock) -> tuple[Loaded, LoadedRows, int]:
    """Load what a transaction needs; return that, all records with their numbers, and the position of the head."""
    found = LoadedRows()
    position, policy_version = connection.execute(SQL["read_head"]).fetchone()
    _add_records(connection, found, needs.ids)
    parents = {record.resource.parent_id for record in found.records.values()} - found.records.keys()
    _add_records(connection, found, {parent for parent in parents if parent is not None})
    loaded = Loaded(
        now=clock.now(),
        policy_version=policy_version,
        records=dict(found.records),
        children=_load_children(connection, found, needs),
        names=_load_names(connection, needs.names),
        idempotency_records=_load_idempotency_records(connection, needs.keys),
    )
    return loaded, found, position


def read_records(connection: sqlite3.Connection, ids: Collection[str]) -> tuple[Record, ...]:
    """Return the records of ids, in order of ids."""
    found = LoadedRows()
    _add_records(connection, found, ids)
    return tuple(found.records[id_] for id_ in sorted(found.records))


def _add_records(connection: sqlite3.Connection, found: LoadedRows, ids: Collection[str]) -> None:
    if not ids:
        return
    listed = as_list(ids)
    reports: dict[str, dict[str, StoredReport]] = {}
    for id_, adapter, *columns in connection.execute(_READ_REPORTS, (listed,)):
        reports.setdefault(id_, {})[adapter] = make_report(*columns)
    for number, id_, *columns in connection.execute(_READ_RECORDS, (listed,)):
        found.numbers[id_] = number
        found.records[id_] = make_record(columns, reports.get(id_, {}))


def make_report(body: bytes, effective: int, heard: int, digest: bytes, is_calm: int) -> StoredReport:
    """Make a report of the columns that statements select."""
    return decode_report(body, from_micros(effective), from_micros(heard), digest, bool(is_calm))


def make_record(columns: Sequence[Any], reports: Mapping[str, StoredReport]) -> Record:
    """Make a record of the columns that statements select, and of its reports."""
    revision, wake_at, policy_version, answer, status, resource, look_at, history = columns
    current = replace(decode_status(status), next_deadline=_instant(wake_at))
    look = LookPlan(_instant(look_at), decode_looks(history))
    return Record(decode_resource(resource), current, reports, answer, revision, policy_version, look)


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def _load_children(connection: sqlite3.Connection, found: LoadedRows, needs: Needs) -> Mapping[str, tuple[Record, ...]]:
    """Load the children of each record whose children are needed."""
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


def _load_idempotency_records(connection: sqlite3.Connection, keys: Collection[str]) -> Mapping[str, IdempotencyRecord]:
    if not keys:
        return {}
    rows = connection.execute(SQL["read_idempotency_records"], (as_list(keys),))
    return {
        key: IdempotencyRecord(key, digest, resource_id, answer, from_micros(time))
        for key, digest, resource_id, answer, time in rows
    }
