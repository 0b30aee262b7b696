"""Reading whole records from PostgreSQL, for transactions (which lock them) and for readers (which do not)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import astuple

from hyperfleet.backends.postgres_connections import Connection
from hyperfleet.backends.pulse import Pulse, decode_pulse
from hyperfleet.backends.record_cache import Found
from hyperfleet.backends.rows import decode_resource, decode_status
from hyperfleet.backends.sketches import SketchRow, draw
from hyperfleet.backends.statements import load_statements
from hyperfleet.model.report import Report
from hyperfleet.model.reports import Bodies
from hyperfleet.model.resource import Resource
from hyperfleet.ports import Loaded, NameKey, Needs, Record, Remembered

SQL: Final = load_statements("postgres")


class Ground(Struct, frozen=True):
    """What a transaction stands on: what it loaded, all records with the versions of their rows, and the head then."""

    loaded: Loaded
    found: Found
    position: int


async def load(connection: Connection, needs: Needs) -> Ground:
    """Lock what a transaction needs, then load it."""
    rows = await connection.fetch(SQL["lock_resources"], [as_storable(id_) for id_ in needs.ids])
    resources = {row["id"]: decode_resource(row["resource"]) for row in rows}
    families = [id_ for id_, resource in resources.items() if needs.wants_children(resource)]
    child_rows = await connection.fetch(SQL["lock_children"], families) if families else ()
    ids = [*resources, *(row["id"] for row in child_rows if row["id"] not in resources)]
    head, *report_rows = await connection.fetch(SQL["read_head_and_reports"], ids)
    everybody = (*rows, *child_rows)
    pulses = {row["id"]: decode_pulse(row["pulse"]) for row in everybody}
    found = Found(marks={row["id"]: row["version"] for row in everybody})
    bodies = _by_resource(report_rows, found)
    records = {
        row["id"]: make_record(row, bodies.get(row["id"], {}), pulses[row["id"]], resources[row["id"]]) for row in rows
    }
    children = [make_record(row, bodies.get(row["id"], {}), pulses[row["id"]]) for row in child_rows]
    found.records.update({child.resource.id: child for child in children} | records)
    found.behind.update({id_: pulses[id_].behind(record.answer) for id_, record in found.records.items()})
    loaded = Loaded(
        now=head["now"],
        policy_version=head["policy_version"],
        records=records,
        children=_by_parent(families, children),
        names=await _load_names(connection, needs.names) if needs.names else {},
        remembered=await _load_remembered(connection, needs.keys) if needs.keys else {},
    )
    return Ground(loaded, found, head["position"])


async def peek(connection: Connection, ids: Collection[str], found: Found) -> None:
    """Add records and their parents as they are now, without locking them."""
    for row in await connection.fetch(SQL["peek"], [as_storable(id_) for id_ in ids]):
        pulse = decode_pulse(row["pulse"])
        found.sizes[row["id"]] = dict(zip(row["adapters"], map(len, row["reports"]), strict=True))
        _add(found, row["version"], pulse, make_record(row, bodies_of(row), pulse))


async def peek_sketches(connection: Connection, sent: Mapping[str, Mapping[str, Report]], found: Found) -> int:
    """Add the records of which a sketch is enough for the reports that are sent; return how many."""
    drawn = 0
    for *columns, raw in await connection.fetch(SQL["peek_sketches"], [as_storable(id_) for id_ in sent]):
        row, pulse = SketchRow(*columns), decode_pulse(raw)
        record = draw(row, pulse, sent[row.id])
        if record is not None:
            _add(found, row.mark, pulse, record)
            drawn += 1
    return drawn


def _add(found: Found, version: int, pulse: Pulse, record: Record) -> None:
    id_ = record.resource.id
    found.marks[id_] = version
    found.behind[id_] = pulse.behind(record.answer)
    found.records[id_] = record


def bodies_of(row: Any) -> Bodies:
    """Return the reports of a row that has them, by adapter."""
    return dict(zip(row["adapters"], row["reports"], strict=True))


def make_record(row: Any, bodies: Bodies, pulse: Pulse, resource: Resource | None = None) -> Record:
    """Make a record of a row, its reports and its pulse; `resource` is that of the row, if it was decoded already."""
    return Record(
        resource or decode_resource(row["resource"]),
        pulse.bring_up(decode_status(row["status"])),
        pulse.reports(bodies),
        row["answer"],
        row["revision"],
        row["wake_at"],
        row["policy_version"],
    )


def as_storable(text: str) -> str:
    """Return a text as something PostgreSQL can compare: it holds no NUL and no half of a surrogate pair.

    What has one is not there, and neither is what it becomes: such texts are refused before they are written.
    """
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def _by_resource(rows: Iterable[Any], found: Found) -> Mapping[str, Bodies]:
    bodies: dict[str, Bodies] = {}
    for _, _, _, resource_id, adapter, body in rows:
        bodies.setdefault(resource_id, {})[adapter] = body
        found.sizes.setdefault(resource_id, {})[adapter] = len(body)
    return bodies


def _by_parent(families: Sequence[str], children: Iterable[Record]) -> Mapping[str, tuple[Record, ...]]:
    by_parent: dict[str | None, list[Record]] = {parent: [] for parent in families}
    for child in children:
        by_parent[child.resource.parent_id].append(child)
    return {parent: tuple(by_parent[parent]) for parent in families}


async def _load_names(connection: Connection, names: Collection[NameKey]) -> Mapping[NameKey, str]:
    wanted = [tuple(as_storable(part) for part in astuple(name)) for name in names]
    rows = await connection.fetch(SQL["read_names"], *zip(*wanted, strict=True))
    return {NameKey(tenant, kind, parent_id, name): id_ for tenant, kind, parent_id, name, id_ in rows}


async def _load_remembered(connection: Connection, keys: Collection[str]) -> Mapping[str, Remembered]:
    rows = await connection.fetch(SQL["read_remembered"], [as_storable(key) for key in keys])
    return {row["key"]: Remembered(*row) for row in rows}
