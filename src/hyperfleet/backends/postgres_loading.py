"""Reading whole records from PostgreSQL, for transactions (which lock them) and for readers (which do not)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import astuple

from hyperfleet.backends.postgres_connections import Connection
from hyperfleet.backends.pulse import Pulse, decode_pulse
from hyperfleet.backends.record_cache import Found, Trail
from hyperfleet.backends.rows import decode_resource, decode_status
from hyperfleet.backends.sketches import SketchRow, draw
from hyperfleet.backends.statements import load_statements
from hyperfleet.model.report import Report
from hyperfleet.model.reports import Bodies
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Status
from hyperfleet.ports import Loaded, NameKey, Needs, Record, Remembered

SQL: Final = load_statements("postgres")


class Body(Struct, frozen=True):
    """What of a record stands in a row of its own, because a heartbeat leaves it alone."""

    resource: Resource
    status: Status


class Ground(Struct, frozen=True):
    """What a transaction stands on: what it loaded, all records with the versions of their rows, and the head then."""

    loaded: Loaded
    found: Found
    position: int


async def load(connection: Connection, needs: Needs) -> Ground:
    """Lock what a transaction needs, then load it."""
    rows = await connection.fetch(SQL["lock_resources"], [as_storable(id_) for id_ in needs.ids])
    bodies = await _read_bodies(connection, rows)
    families = [row["id"] for row in rows if needs.wants_children(bodies[row["number"]].resource)]
    child_rows = await connection.fetch(SQL["lock_children"], families) if families else ()
    bodies |= await _read_bodies(connection, child_rows)
    everybody = {row["id"]: row for row in (*rows, *child_rows)}
    head, *report_rows = await connection.fetch(SQL["read_head_and_reports"], list(everybody))
    found = Found()
    reports = _by_resource(report_rows, found)
    for id_, row in everybody.items():
        pulse = decode_pulse(row["pulse"])
        record = make_record(row, bodies[row["number"]], pulse, reports.get(id_, {}))
        found.take_in(row["version"], pulse, record, trail_of(row))
    loaded = Loaded(
        now=head["now"],
        policy_version=head["policy_version"],
        records={row["id"]: found.records[row["id"]] for row in rows},
        children=_by_parent(families, [found.records[row["id"]] for row in child_rows]),
        names=await _load_names(connection, needs.names) if needs.names else {},
        remembered=await _load_remembered(connection, needs.keys) if needs.keys else {},
    )
    return Ground(loaded, found, head["position"])


async def peek(connection: Connection, ids: Collection[str], found: Found) -> None:
    """Add records and their parents as they are now, without locking them."""
    for row in await connection.fetch(SQL["peek"], [as_storable(id_) for id_ in ids]):
        pulse = decode_pulse(row["pulse"])
        found.sizes[row["id"]] = dict(zip(row["adapters"], map(len, row["reports"]), strict=True))
        record = make_record(row, body_of(row), pulse, reports_of(row))
        found.take_in(row["version"], pulse, record, trail_of(row))


async def peek_sketches(connection: Connection, sent: Mapping[str, Mapping[str, Report]], found: Found) -> int:
    """Add the records of which a sketch is enough for the reports that are sent; return how many."""
    drawn = 0
    for *columns, raw, last, passed in await connection.fetch(SQL["peek_sketches"], [as_storable(id_) for id_ in sent]):
        row, pulse = SketchRow(*columns), decode_pulse(raw)
        record = draw(row, pulse, sent[row.id])
        if record is not None:
            found.take_in(row.mark, pulse, record, Trail(last, passed))
            drawn += 1
    return drawn


def body_of(row: Any) -> Body:
    """Read the body of a record from a row that has it."""
    return Body(decode_resource(row["resource"]), decode_status(row["status"]))


def trail_of(row: Any) -> Trail:
    """Read where the heartbeats of a record are from its row."""
    return Trail(row["last_beat"], row["beats_passed"])


def reports_of(row: Any) -> Bodies:
    """Return the reports of a row that has them, by adapter."""
    return dict(zip(row["adapters"], row["reports"], strict=True))


def make_record(row: Any, body: Body, pulse: Pulse, reports: Bodies) -> Record:
    """Make a record of the row of a resource and of what stands in others."""
    return Record(
        body.resource,
        pulse.bring_up(body.status),
        pulse.reports(reports),
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


async def _read_bodies(connection: Connection, rows: Sequence[Any]) -> dict[int, Body]:
    """Read what belongs to the rows of resources, by their numbers."""
    if not rows:
        return {}
    found = await connection.fetch(SQL["read_bodies"], [row["number"] for row in rows])
    return {row["number"]: body_of(row) for row in found}


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
