"""Heartbeats to write to stores: reports that say what was said before, and what becomes of records by them."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from hyperfleet.model.report import StoredReport
from hyperfleet.ports import Changes, LoggedReport, Record, Store
from tests.contract.stores import START, changed, created, make_draft, make_record, make_stored, must_read, write

SECOND = timedelta(seconds=1)


def beat(record: Record, adapter: str, seconds: int, **more: object) -> Changes:
    """Make the changes of a report that says what was said before."""
    now = START + seconds * SECOND
    known = record.reports[adapter]
    fields: dict[str, object] = {"effective_time": now, "last_heard": now, "id": f"rep-{seconds}", **more}
    stored = replace(known, **fields, report=replace(known.report, observed_time=now))
    id_ = record.resource.id
    return Changes(
        updated=[heard(record, stored)],
        revisions={id_: 0},
        steady=frozenset({id_}),
        repeated=[(id_, stored)],
        log=[LoggedReport(id_, stored, 0, is_same=True)],
        events=[make_draft(record.resource, type_="Reported", time=now, answer=None)],
    )


def together(*several: Changes) -> Changes:
    """Make the changes of several heartbeats in one transaction."""
    drafts = [draft for each in several for draft in each.events]
    return Changes(
        updated=[record for each in several for record in each.updated],
        revisions={each.updated[0].resource.id: place for place, each in enumerate(several)},
        steady=frozenset().union(*(each.steady for each in several)),
        repeated=[pair for each in several for pair in each.repeated],
        log=[replace(each.log[0], event=place) for place, each in enumerate(several)],
        events=drafts,
    )


def heard(record: Record, stored: StoredReport) -> Record:
    """Return a record after a report: the status has its times too."""
    status = record.status
    adapters = tuple(
        replace(each, last_updated=stored.effective_time) if each.name == stored.report.adapter else each
        for each in status.adapters
    )
    memory = replace(status.memory, written_time=stored.last_heard)
    status = replace(status, adapters=adapters, last_updated=stored.last_heard, memory=memory)
    reports = {**record.reports, stored.report.adapter: stored}
    return replace(record, status=status, reports=reports, answer=b"{%d}" % len(stored.id))


async def begin(store: Store) -> Record:
    """Store a cluster on which two adapters have reported."""
    await write(store, created(make_record("cls-1")))
    reports = [("cls-1", make_stored("dns")), ("cls-1", make_stored("apply"))]
    log = [LoggedReport(id_, stored, 0) for id_, stored in reports]
    await write(store, changed(make_record("cls-1"), reports=reports, log=log))
    return await must_read(store, "cls-1")
