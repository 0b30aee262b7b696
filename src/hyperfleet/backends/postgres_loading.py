"""Reads whole records from PostgreSQL, for transactions (with locks) and for reads (without)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import astuple, replace

from hyperfleet.backends.postgres_connections import Connection
from hyperfleet.backends.rows import decode_looks, decode_report, decode_resource, decode_status
from hyperfleet.backends.statements import load_statements
from hyperfleet.model.report import StoredReport
from hyperfleet.ports import IdempotencyRecord, Loaded, LookPlan, NameKey, Needs, Record

SQL: Final = load_statements("postgres")


async def load(connection: Connection, needs: Needs) -> tuple[Loaded, int]:
    """Lock what a transaction needs, then load it; return that and the position of the head."""
    ids = [row["id"] for row in await connection.fetch(SQL["lock_resources"], [as_storable(id_) for id_ in needs.ids])]
    if needs.reporting and ids:
        resources, adapters = zip(*sorted(needs.reporting), strict=True)
        await connection.execute(SQL["lock_reports"], [as_storable(id_) for id_ in resources], adapters)
    head, records = await _load_records(connection, ids)
    families = [id_ for id_, record in records.items() if needs.wants_children(record.resource)]
    children: dict[str, Record] = {}
    if families:
        rows = await connection.fetch(SQL["lock_children"], families)
        head, children = await _load_records(connection, [row["id"] for row in rows])
    loaded = Loaded(
        now=head["now"],
        policy_version=head["head_policy_version"],
        records=records,
        children=_by_parent(families, [children[id_] for id_ in sorted(children)]),
        names=await _load_names(connection, needs.names) if needs.names else {},
        idempotency_records=await _load_idempotency_records(connection, needs.keys) if needs.keys else {},
    )
    return loaded, head["position"]


async def _load_records(connection: Connection, ids: Sequence[str]) -> tuple[Any, dict[str, Record]]:
    """Return a row with the head and the clock, and records by id."""
    rows = await connection.fetch(SQL["load_records"], ids)
    return rows[0], {row["id"]: record_of(row) for row in rows if row["id"] is not None}


def record_of(row: Any) -> Record:
    """Make a record of a row of `whole_records`."""
    return Record(
        decode_resource(row["resource"]),
        replace(decode_status(row["status"]), next_deadline=row["wake_at"]),
        _reports_of(row),
        row["answer"],
        row["revision"],
        row["policy_version"],
        LookPlan(row["look_at"], decode_looks(row["look_history"])),
    )


def _reports_of(row: Any) -> dict[str, StoredReport]:
    adapters = row["adapters"]
    if not adapters:
        return {}
    columns = (row["bodies"], row["effective_times"], row["last_heards"], row["digests"], row["calms"])
    return dict(zip(adapters, map(decode_report, *columns), strict=True))


def as_storable(text: str) -> str:
    """Return a text that PostgreSQL accepts as a parameter: without NUL and unpaired surrogates.

    The replaced text matches nothing stored, because such texts are refused before they are written.
    """
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def _by_parent(families: Sequence[str], children: Iterable[Record]) -> Mapping[str, tuple[Record, ...]]:
    by_parent: dict[str | None, list[Record]] = {parent: [] for parent in families}
    for child in children:
        by_parent[child.resource.parent_id].append(child)
    return {parent: tuple(by_parent[parent]) for parent in families}


async def _load_names(connection: Connection, names: Collection[NameKey]) -> Mapping[NameKey, str]:
    wanted = [tuple(as_storable(part) for part in astuple(name)) for name in names]
    rows = await connection.fetch(SQL["read_names"], *zip(*wanted, strict=True))
    return {NameKey(tenant, kind, parent_id, name): id_ for tenant, kind, parent_id, name, id_ in rows}


async def _load_idempotency_records(connection: Connection, keys: Collection[str]) -> Mapping[str, IdempotencyRecord]:
    rows = await connection.fetch(SQL["read_idempotency_records"], [as_storable(key) for key in keys])
    return {row["key"]: IdempotencyRecord(*row) for row in rows}
